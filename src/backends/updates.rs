//! What of the host's packages could be upgraded, as apt says.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::task::spawn_blocking;

use crate::helper_client::{Helper, Operation};
use crate::sys::rfc3339;

use super::{
    error::{BackendError, ErrorKind},
    host::reboot_packages,
    keep::{Keep, ask_kept},
    source::Tree,
};

/// How long apt may read its lists: a small box needs many seconds for it.
const PATIENCE: Duration = Duration::from_mins(2);

/// So many packages are named, security updates first; the rest is counted.
const MAX_LISTED: usize = 200;

/// The longest name, version or origin that is shown, in characters.
const MAX_WORD: usize = 128;

/// What changes when apt's lists are refreshed, also where nothing is new; the stamps are of apt's daily jobs.
const REFRESHED: [&str; 4] = [
    "var/lib/apt/periodic/update-success-stamp",
    "var/lib/apt/periodic/update-stamp",
    "var/lib/apt/lists/partial",
    "var/lib/apt/lists",
];

/// What could be upgraded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdateCheck {
    /// The packages that would be upgraded, or installed for it: security updates first, then by name.
    pub packages: Vec<Upgrade>,
    /// How many there are in all.
    pub total: usize,
    /// How many of them are security updates.
    pub security: usize,
    /// Whether some of them are not shown.
    pub truncated: bool,
    /// Packages that would have to be removed for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// When the lists of packages were last refreshed, RFC 3339; absent if they never were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists_refreshed: Option<String>,
    /// Whether an update that was installed waits for a reboot.
    pub reboot_required: bool,
    /// The packages that wait for it, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reboot_packages: Vec<String>,
}

/// One package that could be upgraded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Upgrade {
    /// Its name.
    pub name: String,
    /// Its architecture, such as `amd64` or `all`.
    pub architecture: String,
    /// The version that is installed; absent if it would be new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The version that it would have then.
    pub candidate: String,
    /// Where that comes from, such as `Debian:12.5/stable`.
    pub origin: String,
    /// Whether it comes from a repository of security updates.
    pub security: bool,
}

/// apt's view of the host.
#[derive(Debug, Clone)]
pub struct Updates {
    helper: Helper,
    tree: Tree,
}

impl Updates {
    /// Over this helper.
    pub fn new(helper: Helper) -> Self {
        let tree = Tree::of_this_machine();
        Self { helper, tree }
    }

    /// Whether this machine has apt.
    pub fn are_here() -> bool {
        Tree::of_this_machine().has("usr/bin/apt-get")
    }

    /// What could be upgraded, as far as the lists know that apt fetched last.
    ///
    /// # Errors
    /// When the owner does not let the helper look, and when apt cannot tell.
    pub async fn check(&self, as_what: (Option<Keep>, &str)) -> Result<UpdateCheck, BackendError> {
        let operation = Operation::UpdateCheck {};
        let said = ask_kept(&self.helper, operation, PATIENCE, as_what).await?;
        let tree = self.tree.clone();
        let read = spawn_blocking(move || read(&said, &tree));
        read.await.map_err(|cause| {
            BackendError::new(ErrorKind::Failed, format!("reading failed: {cause}"))
        })
    }
}

fn read(said: &str, tree: &Tree) -> UpdateCheck {
    let mut packages: Vec<Upgrade> = said.lines().filter_map(upgrade).collect();
    packages.sort_by(|a, b| {
        let key = |upgrade: &Upgrade| (!upgrade.security, upgrade.name.clone());
        key(a)
            .cmp(&key(b))
            .then_with(|| a.architecture.cmp(&b.architecture))
    });
    let total = packages.len();
    let security = packages.iter().filter(|upgrade| upgrade.security).count();
    packages.truncate(MAX_LISTED);
    let mut removed: Vec<String> = said
        .lines()
        .filter_map(|line| line.strip_prefix("Remv ")?.split(' ').next().map(word))
        .collect();
    removed.sort();
    removed.truncate(MAX_LISTED);
    UpdateCheck {
        truncated: packages.len() < total,
        packages,
        total,
        security,
        removed,
        lists_refreshed: refreshed_ms(tree).map(rfc3339),
        reboot_required: tree.has("run/reboot-required"),
        reboot_packages: reboot_packages(
            &tree.text("run/reboot-required.pkgs").unwrap_or_default(),
        ),
    }
}

/// When apt last fetched its lists; nothing where it has none.
fn refreshed_ms(tree: &Tree) -> Option<u64> {
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

/// A line such as `Inst libc6 [2.36-9] (2.36-9+deb12u4 Debian:12.4/stable, Debian-Security:12/stable-security [amd64])
/// []`, of a simulated upgrade.
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

/// A repository may call its packages as it likes.
fn word(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(MAX_WORD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Scratch;

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

    #[test]
    fn what_apt_would_do_is_read_from_what_it_says() {
        let scratch = Scratch::new();
        let check = read(SAID, &Tree::below(scratch.path()));
        let names: Vec<&str> = check.packages.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["libc6", "base-files", "linux-image-6.1", "tzdata"]);
        assert_eq!(
            (check.total, check.security, check.truncated),
            (4, 1, false)
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
    fn many_are_counted_and_the_important_ones_shown() {
        let line = |n: usize| format!("Inst p{n:04} [1] (2 Debian:12/stable [all])\n");
        let mut said: String = (0..MAX_LISTED + 5).map(line).collect();
        said.push_str("Inst zzz [1] (2 Debian-Security:12/stable-security [all])\n");
        let scratch = Scratch::new();
        let check = read(&said, &Tree::below(scratch.path()));
        assert_eq!(
            (check.total, check.packages.len()),
            (MAX_LISTED + 6, MAX_LISTED)
        );
        assert!(check.truncated && check.packages[0].name == "zzz");
    }

    #[test]
    fn a_reboot_that_waits_and_the_age_of_the_lists_are_told() {
        let scratch = Scratch::new();
        for folder in ["run", "var/lib/apt/lists/partial"] {
            fs::create_dir_all(scratch.join(folder)).unwrap();
        }
        let look = || read("", &Tree::below(scratch.path()));
        assert_eq!(look().lists_refreshed, None, "there are none");
        fs::write(scratch.join("var/lib/apt/lists/_repo_._Release"), "").unwrap();
        fs::write(scratch.join("run/reboot-required"), "").unwrap();
        fs::write(scratch.join("run/reboot-required.pkgs"), "libc6\nlibc6\n").unwrap();
        let check = look();
        assert!(check.reboot_required && check.lists_refreshed.is_some());
        assert_eq!(check.reboot_packages, ["libc6"]);
    }
}
