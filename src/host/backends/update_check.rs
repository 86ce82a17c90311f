//! The available updates, parsed from a simulated upgrade of apt.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{PinnedPackage, update_digest};
use gatewren_base::sys::{disk_space, rfc3339};

use super::host::reboot_packages;
use super::source::HostTree;
use super::update_applied::{parse_reboot_packages, word};

/// The maximum number of removed packages in a result.
const MAX_REMOVED: usize = 50;

/// The maximum size of the packages of one page as JSON, in bytes. A client may get the page twice, as data and as text.
const PAGE_BYTES: usize = 14 * 1024;

/// What changes when apt's lists are refreshed, even if nothing is new; stamps are from apt's daily
/// jobs.
const REFRESHED: [&str; 4] = [
    "var/lib/apt/periodic/update-success-stamp",
    "var/lib/apt/periodic/update-stamp",
    "var/lib/apt/lists/partial",
    "var/lib/apt/lists",
];

/// One page of the available package updates, and a summary of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdateCheck {
    /// The total number of packages that would be upgraded or newly installed.
    pub total: usize,
    /// The number of security updates.
    pub security: usize,
    /// Why it is unknown whether there are updates; absent if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The time of the last refresh of the package lists, RFC 3339; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists_refreshed: Option<String>,
    /// Errors of a requested refresh; lists that could not be downloaded are unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refresh_problems: Vec<String>,
    /// Whether an installed update requires a reboot.
    pub reboot_required: bool,
    /// The packages that require it, if known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reboot_packages: Vec<String>,
    /// Packages that the upgrade would remove, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The number of packages that the filter selects.
    pub matching: usize,
    /// The selected packages of this page: security updates first, then by name.
    pub packages: Vec<Upgrade>,
    /// The offset of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

/// An available upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Upgrade {
    /// Its name.
    pub name: String,
    /// Its architecture, such as `amd64` or `all`.
    pub architecture: String,
    /// The installed version; absent if it would be new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The new version.
    pub candidate: String,
    /// The origin of the new version, such as `Debian:12.5/stable`.
    pub origin: String,
    /// Whether it is from a repository of security updates.
    pub security: bool,
}

/// Which updates a page has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdatePage {
    /// Only packages with this text in their name.
    pub name: Option<String>,
    /// How many to skip.
    pub offset: usize,
    /// How many to return at most.
    pub limit: usize,
}

/// All that apt would do, and the state of the lists that it knows this from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AptSimulation {
    /// The packages that would be upgraded or newly installed: security updates first, then by name.
    pub upgrades: Vec<Upgrade>,
    /// Packages that would be removed, sorted.
    pub removed: Vec<String>,
    /// When the lists were refreshed; `None` if there are none.
    pub refreshed_ms: Option<u64>,
    /// The packages that require a reboot, if one is required.
    pub reboot: Option<Vec<String>>,
    /// The size of the download, and the growth of what is installed, in apt's words.
    pub space: Vec<String>,
    /// The free bytes on the file system with dpkg's database.
    pub free_bytes: Option<u64>,
}

impl AptSimulation {
    /// Parses apt's output. A container has no tree; its output contains the other facts too.
    pub fn parse(output: &str, tree: Option<&HostTree>) -> Self {
        let mut upgrades: Vec<Upgrade> = output.lines().filter_map(upgrade).collect();
        upgrades
            .sort_by_cached_key(|one| (!one.security, one.name.clone(), one.architecture.clone()));
        let removed = output.lines().filter_map(|line| line.strip_prefix("Remv "));
        let mut removed: Vec<String> = removed
            .filter_map(|rest| rest.split(' ').next().map(word))
            .collect();
        removed.sort();
        let space = output
            .lines()
            .filter_map(|line| line.strip_prefix("gatewren: space "));
        Self {
            upgrades,
            removed,
            refreshed_ms: match tree {
                Some(tree) => refreshed_ms(tree),
                None => refreshed_inside_ms(output),
            },
            reboot: match tree {
                Some(tree) => reboot_of_host(tree),
                None => parse_reboot_packages(output),
            },
            space: space.take(2).map(word).collect(),
            free_bytes: match tree {
                Some(tree) => disk_space(&tree.path("var/lib/dpkg"))
                    .ok()
                    .map(|space| space.free_bytes),
                None => free_inside(output),
            },
        }
    }

    /// The number of security updates.
    pub fn security(&self) -> usize {
        self.upgrades.iter().filter(|one| one.security).count()
    }

    /// Why it is unknown whether there are updates; `None` if it is known.
    pub fn unknown(&self) -> Option<String> {
        let unknown = self.refreshed_ms.is_none() && self.upgrades.is_empty();
        unknown.then(|| {
            "the package lists were never fetched, so it is unknown whether there are updates"
                .to_owned()
        })
    }

    /// A fingerprint of everything that would be installed or removed, with its versions.
    pub fn digest(&self) -> String {
        let upgrades = self.upgrades.iter().map(|one| {
            let installed = one.installed.as_deref().unwrap_or("-");
            format!(
                "{} {} {installed} {}",
                one.name, one.architecture, one.candidate
            )
        });
        let removed = self.removed.iter().map(|name| format!("- {name}"));
        let lines: Vec<String> = upgrades.chain(removed).collect();
        update_digest(lines.iter().map(String::as_str))
    }

    /// The exact versions to install; the error is the package whose name or version apt could not have printed.
    pub fn pinned(&self) -> Result<Vec<PinnedPackage>, String> {
        let pinned = self.upgrades.iter().map(|one| {
            let text = match one.architecture.as_str() {
                "all" => format!("{}={}", one.name, one.candidate),
                architecture => format!("{}:{architecture}={}", one.name, one.candidate),
            };
            text.parse().map_err(|_| text)
        });
        pinned.collect()
    }

    /// Returns one page.
    pub fn page(&self, page: &UpdatePage) -> UpdateCheck {
        let is_named = |one: &&Upgrade| {
            page.name
                .as_ref()
                .is_none_or(|name| one.name.contains(name))
        };
        let matching = self.upgrades.iter().filter(is_named);
        let matching: Vec<&Upgrade> = matching.collect();
        let mut bytes = 0;
        let shown = matching.iter().skip(page.offset).take(page.limit);
        let shown = shown.take_while(|one| {
            bytes += serde_json::to_string(one).map_or(0, |text| text.len());
            bytes <= PAGE_BYTES
        });
        let packages: Vec<Upgrade> = shown.map(|one| (*one).clone()).collect();
        let next = page.offset.saturating_add(packages.len());
        UpdateCheck {
            total: self.upgrades.len(),
            security: self.security(),
            unknown: self.unknown().map(|why| {
                format!(
                    "{why}; update_check with refresh fetches those of the host, update_apply any"
                )
            }),
            lists_refreshed: self.refreshed_ms.map(rfc3339),
            refresh_problems: Vec::new(),
            reboot_required: self.reboot.is_some(),
            reboot_packages: self.reboot.clone().unwrap_or_default(),
            removed: self.removed.iter().take(MAX_REMOVED).cloned().collect(),
            matching: matching.len(),
            next_offset: (next < matching.len() && !packages.is_empty()).then_some(next),
            packages,
        }
    }
}

/// Returns the free bytes that a container's own line states: blocks and their size.
fn free_inside(output: &str) -> Option<u64> {
    let mut lines = output.lines();
    let free = lines.find_map(|line| line.strip_prefix("gatewren: free "))?;
    let (blocks, size) = free.split_once(' ')?;
    blocks
        .parse::<u64>()
        .ok()?
        .checked_mul(size.trim().parse().ok()?)
}

/// Returns the packages that require a reboot of the host, if one is required.
fn reboot_of_host(tree: &HostTree) -> Option<Vec<String>> {
    let packages = || tree.text("run/reboot-required.pkgs").unwrap_or_default();
    tree.has("run/reboot-required")
        .then(|| reboot_packages(&packages()))
}

/// Returns the newest time that a container reports for its lists.
fn refreshed_inside_ms(output: &str) -> Option<u64> {
    let seconds = output.lines().filter_map(|line| {
        let seconds = line.strip_prefix("gatewren: lists ")?;
        seconds.parse::<u64>().ok()
    });
    seconds.max()?.checked_mul(1000)
}

/// Returns when apt last downloaded its lists; `None` if it has none.
fn refreshed_ms(tree: &HostTree) -> Option<u64> {
    let lists = tree.names("var/lib/apt/lists");
    let moments = REFRESHED
        .iter()
        .filter_map(|path| modified_ms(&tree.path(path)));
    let has_lists = lists.iter().any(|name| name.ends_with("Release"));
    moments.max().filter(|_| has_lists)
}

fn modified_ms(path: &Path) -> Option<u64> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Parses a line of a simulated upgrade, such as
/// `Inst libc6 [2.36-9] (2.36-9+deb12u4 Debian:12.4/stable, Debian-Security:12/stable-security [amd64]) []`.
fn upgrade(line: &str) -> Option<Upgrade> {
    let rest = line.strip_prefix("Inst ")?;
    let (name, rest) = rest.split_once(' ')?;
    let (installed, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (installed, rest) = rest.split_once("] ")?;
            (Some(word(installed)), rest)
        }
        None => (None, rest),
    };
    let (inside, _) = rest.strip_prefix('(')?.rsplit_once(')')?;
    let (candidate, rest) = inside.split_once(' ')?;
    let (origins, architecture) = rest.rsplit_once('[')?;
    let origins: Vec<&str> = origins.split(", ").map(str::trim).collect();
    Some(Upgrade {
        name: word(name),
        architecture: word(architecture.trim_end_matches(']')),
        installed,
        candidate: word(candidate),
        security: origins.iter().any(|origin| is_security(origin)),
        origin: word(&origins.join(", ")),
    })
}

/// `Debian-Security:12/stable-security` on Debian, `Ubuntu:22.04/jammy-security` on Ubuntu.
fn is_security(origin: &str) -> bool {
    let label = origin.split(':').next().unwrap_or_default();
    label.to_ascii_lowercase().ends_with("-security") || origin.ends_with("-security")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    const SAID: &str = "\
Reading package lists...
Building dependency tree...
Reading state information...
Calculating upgrade...
The following packages will be upgraded:
  base-files libc6 zlib1g
Remv old-lib [1.0] [other:amd64 ]
Inst base-files [12.4+deb12u4] (12.4+deb12u5 Debian:12.5/stable [amd64])
Conf base-files (12.4+deb12u5 Debian:12.5/stable [amd64])
Inst libc6 [2.36-9] (2.36-9+deb12u4 Debian:12.4/stable, Debian-Security:12/stable-security [amd64]) [libc6:amd64 ]
Inst linux-image-6.1 (6.1.69-1 Debian:12.5/stable [amd64])
Inst tzdata [2023c-5] (2024a-0 local [all])
Inst broken
Inst worse [1 (2 x
";

    fn whole(output: &str, tree: Option<&HostTree>) -> UpdateCheck {
        AptSimulation::parse(output, tree).page(&page(0, 100))
    }

    fn page(offset: usize, limit: usize) -> UpdatePage {
        UpdatePage {
            offset,
            limit,
            ..UpdatePage::default()
        }
    }

    #[test]
    fn what_apt_would_do_is_read_from_what_it_says() {
        let scratch = Scratch::new();
        let check = whole(SAID, Some(&HostTree::below(scratch.path())));
        let names: Vec<&str> = check.packages.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["libc6", "base-files", "linux-image-6.1", "tzdata"]);
        assert_eq!(
            (check.total, check.security, check.next_offset),
            (4, 1, None)
        );
        assert_eq!(check.removed, ["old-lib"]);
        assert_eq!(
            check.packages[0],
            Upgrade {
                name: "libc6".into(),
                architecture: "amd64".into(),
                installed: Some("2.36-9".into()),
                candidate: "2.36-9+deb12u4".into(),
                origin: "Debian:12.4/stable, Debian-Security:12/stable-security".into(),
                security: true,
            }
        );
        assert_eq!(check.packages[2].installed, None);
        assert_eq!(check.packages[3].origin, "local");
        assert_eq!(check.lists_refreshed, None);
        assert!(!check.reboot_required);
    }

    #[test]
    fn security_updates_are_known_by_where_they_come_from() {
        assert!(is_security("Debian-Security:12/stable-security"));
        assert!(is_security("Ubuntu:22.04/jammy-security"));
        for other in ["Debian:12.5/stable", "security-tools:1/main", ""] {
            assert!(!is_security(other), "{other}");
        }
    }

    #[test]
    fn many_are_counted_and_shown_by_pages_that_are_bounded() {
        let line = |n: usize| format!("Inst p{n:04} [1] (2 Debian:12/stable [all])\n");
        let mut output: String = (0..400).map(line).collect();
        output.push_str("Inst zzz [1] (2 Debian-Security:12/stable-security [all])\n");
        let found = AptSimulation::parse(&output, None);
        let first = found.page(&page(0, 30));
        assert_eq!((first.total, first.packages.len()), (401, 30));
        assert_eq!(
            (first.packages[0].name.as_str(), first.next_offset),
            ("zzz", Some(30))
        );
        let (mut offset, mut seen, mut pages) = (0, 0, 0);
        loop {
            let next = found.page(&page(offset, 400));
            assert!(serde_json::to_string(&next).unwrap().len() < 16 * 1024);
            seen += next.packages.len();
            pages += 1;
            let Some(to) = next.next_offset else { break };
            offset = to;
        }
        assert_eq!(seen, 401);
        assert!(pages > 1, "{pages}");
        let named = found.page(&UpdatePage {
            name: Some("p000".into()),
            ..page(0, 3)
        });
        assert_eq!((named.matching, named.next_offset), (10, Some(3)));
    }

    #[test]
    fn without_lists_it_is_unknown_whether_there_are_updates() {
        let never = whole("", None);
        assert!(never.unknown.unwrap().contains("never fetched"));
        assert_eq!(whole("gatewren: lists 1700000000\n", None).unknown, None);
    }

    #[test]
    fn the_digest_is_of_all_versions_and_the_packages_are_pinned_to_them() {
        let found = AptSimulation::parse(SAID, None);
        let other = AptSimulation::parse(&SAID.replace("2024a-0", "2024a-1"), None);
        assert_ne!(found.digest(), other.digest());
        let pinned = found.pinned().unwrap();
        let pinned: Vec<&str> = pinned.iter().map(PinnedPackage::as_str).collect();
        assert_eq!(
            pinned,
            [
                "libc6:amd64=2.36-9+deb12u4",
                "base-files:amd64=12.4+deb12u5",
                "linux-image-6.1:amd64=6.1.69-1",
                "tzdata=2024a-0"
            ]
        );
        let hostile = "Inst -o=x [1] (2 a [all])\n";
        assert!(AptSimulation::parse(hostile, None).pinned().is_err());
    }

    #[test]
    fn a_container_states_the_space_that_its_updates_need() {
        let output = "gatewren: space Need to get 12.3 MB of archives.\ngatewren: free 1000 4096\n";
        let found = AptSimulation::parse(output, None);
        assert_eq!(found.space, ["Need to get 12.3 MB of archives."]);
        assert_eq!(found.free_bytes, Some(4_096_000));
    }

    #[test]
    fn a_container_says_itself_how_old_its_lists_are_and_whether_it_waits() {
        let output = "Inst a [1] (2 Debian:12/stable [all])\ngatewren: lists 1700000000\n\
                    gatewren: lists 1700000100\ngatewren: reboot\ngatewren: reboot libc6\n";
        let check = whole(output, None);
        assert_eq!(
            check.lists_refreshed.as_deref(),
            Some("2023-11-14T22:15:00.000Z")
        );
        assert!(check.reboot_required && check.reboot_packages == ["libc6"]);
        let none = whole("", None);
        assert!(!none.reboot_required && none.lists_refreshed.is_none());
    }

    #[test]
    fn a_reboot_that_waits_and_the_age_of_the_lists_are_told() {
        let scratch = Scratch::new();
        for folder in ["run", "var/lib/apt/lists/partial"] {
            fs::create_dir_all(scratch.join(folder)).unwrap();
        }
        let look = || whole("", Some(&HostTree::below(scratch.path())));
        assert_eq!(look().lists_refreshed, None, "there are none");
        fs::write(scratch.join("var/lib/apt/lists/_repo_._Release"), "").unwrap();
        fs::write(scratch.join("run/reboot-required"), "").unwrap();
        fs::write(scratch.join("run/reboot-required.pkgs"), "libc6\nlibc6\n").unwrap();
        let check = look();
        assert!(check.reboot_required && check.lists_refreshed.is_some());
        assert_eq!(check.reboot_packages, ["libc6"]);
    }
}
