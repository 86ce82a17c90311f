//! Upgrades of packages.

use serde::{Deserialize, Serialize};

use super::container_ref::ContainerRef;
use super::text_type::text_type;

text_type!(
    /// The name of a Debian package, in apt's syntax, with an optional architecture after a colon (Debian Policy
    /// 5.6.1). It is never parsed as an option or a pattern.
    PackageName,
    { "pattern": "^[a-z0-9][a-z0-9+.-]{1,99}(:[a-z0-9][a-z0-9-]{0,19})?$" },
    is_package_name,
    "a package's name is lowercase letters, digits, '+', '.' and '-', such as libc6 or libc6:i386"
);

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
}
