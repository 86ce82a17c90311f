//! Upgrades of packages.

use serde::{Deserialize, Serialize};

use super::backup::{BackupId, TargetName};
use super::container_ref::ContainerRef;
use super::snapshot_name::SnapshotName;
use super::text_type::text_type;

text_type!(
    /// The name of a Debian package, in apt's syntax, with an optional architecture after a colon (Debian Policy
    /// 5.6.1). It is never parsed as an option or a pattern.
    PackageName,
    { "pattern": "^[a-z0-9][a-z0-9+.-]{1,99}(:[a-z0-9][a-z0-9-]{0,19})?$" },
    is_package_name,
    "a package's name is lowercase letters, digits, '+', '.' and '-', such as libc6 or libc6:i386"
);

text_type!(
    /// One version of a Debian package, in apt's syntax: `libc6:amd64=2.36-9+deb12u4`. It is never parsed as an option
    /// or a pattern.
    PinnedPackage,
    { "pattern": "^[a-z0-9][a-z0-9+.:-]{1,119}=[0-9][A-Za-z0-9.+~:-]{0,127}$" },
    is_pinned_package,
    "a package with its version is NAME=VERSION, such as libc6:amd64=2.36-9+deb12u4"
);

/// An upgrade of several targets, one after another: each is protected, upgraded and checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateRunOrder {
    /// The targets, in this order.
    pub targets: Vec<UpdateTarget>,
    /// How containers are protected first.
    pub protect: UpdateProtection,
    /// Whether the lists of packages are fetched first, and everything that they then offer is installed.
    pub refresh: bool,
    /// Whether a container that is not well afterwards is restored.
    pub undo_on_failure: bool,
    /// Whether the first failure ends the run.
    pub stop_on_failure: bool,
    /// The agent that requests it, for apt's own history.
    pub agent: String,
}

/// A target of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateTarget {
    /// The running container; the host when absent.
    #[serde(default)]
    pub container: Option<ContainerRef>,
    /// What is installed: these versions and no others. Empty for everything that refreshed lists offer.
    pub packages: Vec<PinnedPackage>,
}

/// How a container is saved before its upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateProtection {
    /// A snapshot.
    Snapshot,
    /// A backup on this target.
    Backup(TargetName),
    /// Nothing.
    Nothing,
}

/// The result of one target of an upgrade, a JSON object a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateTargetReport {
    /// The container; the host when absent.
    pub container: Option<ContainerRef>,
    /// The snapshot that was made first.
    pub snapshot: Option<SnapshotName>,
    /// The backup that was made first.
    pub backup: Option<BackupId>,
    /// Whether the container was frozen during the copy, so that its files are those of one moment.
    pub frozen: bool,
    /// Why it ended early: what could not be saved, fetched or installed.
    pub problem: Option<String>,
    /// The differences between the installed packages before and after, a line each after `gatewren: `; absent if
    /// nothing was installed.
    pub changes: Option<String>,
    /// New faults afterwards: a unit that failed, a port that is closed.
    pub unhealthy: Vec<String>,
    /// The calls of tools that restore what was saved, in this order, each with its arguments as JSON; empty if nothing
    /// is to be undone.
    pub undo: Vec<String>,
    /// Whether the container was restored to what was saved.
    pub undone: bool,
    /// Why it could not be restored.
    pub undo_problem: Option<String>,
}

/// An upgrade of packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateOrder {
    /// The running container; the host when absent.
    #[serde(default)]
    pub container: Option<ContainerRef>,
    /// Which packages are upgraded.
    pub scope: UpdateScope,
    /// Whether apt may remove other packages.
    pub removals: bool,
    /// The agent that requests it, for apt's own history.
    pub agent: String,
}

/// Which packages are upgraded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateScope {
    /// All packages that can be upgraded.
    All,
    /// Packages that a security repository has a newer version of.
    Security,
    /// These packages, if they are installed.
    Named(Vec<PackageName>),
}

fn is_package_name(text: &str) -> bool {
    let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |text: &str, (least, most): (usize, usize), more: &[u8]| {
        let all = text.bytes().all(|b| small(b) || more.contains(&b));
        text.bytes().next().is_some_and(small) && all && (least..=most).contains(&text.len())
    };
    let (name, architecture) = text.split_once(':').unwrap_or((text, "all"));
    part(name, (2, 100), b"+.-") && part(architecture, (1, 20), b"-")
}

fn is_pinned_package(text: &str) -> bool {
    let Some((name, version)) = text.split_once('=') else {
        return false;
    };
    let is_of_version = |b: u8| b.is_ascii_alphanumeric() || b".+~:-".contains(&b);
    let begins = version.bytes().next().is_some_and(|b| b.is_ascii_digit());
    is_package_name(name) && begins && version.len() <= 128 && version.bytes().all(is_of_version)
}

/// Returns a fingerprint of a list of changes, which does not depend on their order: the first 128 bits of the SHA-256
/// of the sorted lines, as 32 hexadecimal digits.
pub fn update_digest<'a>(changes: impl Iterator<Item = &'a str>) -> String {
    let mut lines: Vec<&str> = changes.collect();
    lines.sort_unstable();
    let digest = ring::digest::digest(&ring::digest::SHA256, lines.join("\n").as_bytes());
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_take_for_more_than_a_name_is_none() {
        for good in [
            "libc6",
            "g++",
            "0ad",
            "libstdc++6:i386",
            "python3.11-minimal",
        ] {
            assert!(PackageName::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "-y",
            "--help",
            "libc6/stable",
            "libc6=1",
            "lib*",
            "Libc6",
            "a b",
            "libc6:",
            "libc6:-a",
            "+x",
            "a\0b",
            "libc6:a:b",
            "^lamp",
        ] {
            assert!(PackageName::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pinned_package_is_one_version_and_nothing_else() {
        for good in [
            "libc6=2.36-9+deb12u4",
            "libc6:amd64=1:2.0~rc1-1",
            "wren-one=1",
        ] {
            assert!(PinnedPackage::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "libc6",
            "libc6=",
            "libc6=-1",
            "-o=1",
            "libc6=1 2",
            "libc6=1=2",
            "libc6=1*",
            "=1",
            "libc6=a",
        ] {
            assert!(PinnedPackage::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_order_of_changes_is_nothing_to_their_digest_and_each_version_is() {
        let digest = |lines: &[&str]| update_digest(lines.iter().copied());
        assert_eq!(digest(&["a 1", "b 2"]), digest(&["b 2", "a 1"]));
        assert_ne!(digest(&["a 1", "b 2"]), digest(&["a 1", "b 3"]));
        assert_ne!(digest(&["a 1"]), digest(&[]));
        assert_eq!(digest(&[]).len(), 32);
    }
}
