//! A root file system that is an overlay: its files have other device numbers than its directories, so that `du` cannot
//! tell by them what another file system is.

use std::path::Path;

use gatewren_base::sys::{mount_places, unescape_mount};

/// The most other mount points that are excluded by name. With more, files of the lower layers are not counted.
const MAX_EXCLUDED: usize = 500;

/// The mount points on top of an overlay that is the root.
#[derive(Debug)]
pub struct OverlayRoot {
    mounts: Vec<String>,
}

impl OverlayRoot {
    /// Returns what is mounted on the root, if that is an overlay (proc(5), mountinfo).
    pub fn of(mountinfo: &str) -> Option<Self> {
        let is_overlay = |line: &str| {
            let (mount, filesystem) = line.split_once(" - ")?;
            let place = mount.split(' ').nth(4).map(unescape_mount)?;
            (place == "/").then(|| filesystem.starts_with("overlay "))
        };
        // The last mount on a place is the one that is seen.
        mountinfo
            .lines()
            .filter_map(is_overlay)
            .next_back()
            .filter(|is_overlay| *is_overlay)?;
        let mounts: Vec<String> = mount_places(mountinfo)
            .filter(|place| place != "/")
            .collect();
        (mounts.len() <= MAX_EXCLUDED).then_some(Self { mounts })
    }

    /// Whether a path lies on the root itself.
    pub fn holds(&self, path: &str) -> bool {
        !self
            .mounts
            .iter()
            .any(|mount| Path::new(path).starts_with(mount))
    }

    /// Returns `du`'s options that exclude everything else, in place of `--one-file-system`.
    pub fn exclusions(&self) -> impl Iterator<Item = String> {
        self.mounts
            .iter()
            .map(|mount| format!("--exclude={}", escape_pattern(mount)))
    }
}

/// A shell pattern that matches this path alone.
fn escape_pattern(path: &str) -> String {
    let mut pattern = String::new();
    for letter in path.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "22 1 0:50 / / rw - overlay overlay rw\n\
        23 22 0:5 / /proc rw - proc proc rw\n\
        24 22 8:1 / /srv/a\\040[b] rw - ext4 /dev/sda1 rw\n";

    #[test]
    fn only_an_overlay_as_the_root_counts() {
        assert!(OverlayRoot::of("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n").is_none());
        let below = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:9 / /merged rw - overlay o rw\n";
        assert!(OverlayRoot::of(below).is_none());
        let root = OverlayRoot::of(TABLE).unwrap();
        assert!(root.holds("/srv") && root.holds("/srv/a [b]c") && root.holds("/"));
        assert!(!root.holds("/srv/a [b]/c") && !root.holds("/proc"));
    }

    #[test]
    fn each_mount_is_excluded_by_a_pattern_of_its_own() {
        let root = OverlayRoot::of(TABLE).unwrap();
        let options: Vec<String> = root.exclusions().collect();
        assert_eq!(options, ["--exclude=/proc", r"--exclude=/srv/a \[b\]"]);
    }
}
