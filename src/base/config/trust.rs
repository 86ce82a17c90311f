//! Checks that only trusted users can change or replace a file.

use std::fs::{self, Metadata};
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, absolute};

use super::error::Problem;

/// The mode bit of a directory in which only an entry's owner may rename or remove it.
const STICKY: u32 = 0o1000;

/// The mode bits that let other users write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Returns the first reason to distrust a file: users other than root and us can change the file or a directory on
/// its path. A file in a missing directory has none.
pub fn find_distrust(path: &Path) -> Option<Problem> {
    let named = absolute(path).ok()?;
    if !named.parent()?.exists() {
        return None;
    }
    // A link can be changed at its own path and at its target.
    let real = fs::canonicalize(path).ok();
    let paths = [Some(named.as_path()), real.as_deref()];
    let mut places = paths.into_iter().flatten().flat_map(Path::ancestors);
    places.find_map(|place| {
        let message = distrust_reason(place, &fs::metadata(place).ok()?)?;
        Some(Problem {
            file: place.to_owned(),
            line: None,
            message,
        })
    })
}

fn distrust_reason(place: &Path, facts: &Metadata) -> Option<String> {
    let shown = place.display();
    let others_write = facts.st_mode() & WRITABLE_BY_OTHERS != 0;
    let keeps_entries = facts.is_dir() && facts.st_mode() & STICKY != 0;
    if others_write && !keeps_entries {
        return Some(format!(
            "users other than its owner may write to it; run: chmod go-w {shown}"
        ));
    }
    let trusted = facts.st_uid() == 0 || Some(facts.st_uid()) == own_uid();
    (!trusted).then(|| {
        format!("it belongs neither to root nor to the helper's user; run: chown root {shown}")
    })
}

/// Returns our user id: the owner of our own entry in `/proc`.
fn own_uid() -> Option<u32> {
    let own = fs::metadata("/proc/self");
    own.as_ref().map(Metadata::st_uid).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;
    use crate::sys::{Scratch, is_root, skip};

    const SOMEBODY: u32 = 65_534;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A policy file in a separate directory.
    fn policy(scratch: &Scratch) -> std::path::PathBuf {
        let folder = scratch.join("etc");
        fs::create_dir(&folder).unwrap();
        mode(&folder, 0o755);
        let path = folder.join("helper.toml");
        fs::write(&path, "").unwrap();
        mode(&path, 0o644);
        path
    }

    fn problem_text(path: &Path) -> String {
        find_distrust(path).map_or_else(String::new, |doubt| doubt.to_string())
    }

    #[test]
    fn a_file_that_others_may_write_is_doubted() {
        let scratch = Scratch::new();
        let path = policy(&scratch);
        assert_eq!(problem_text(&path), "");
        for bad in [0o664, 0o646, 0o666] {
            mode(&path, bad);
            let remedy = format!("run: chmod go-w {}", path.display());
            assert!(
                problem_text(&path).ends_with(&remedy),
                "{bad:o}: {}",
                problem_text(&path)
            );
        }
    }

    #[test]
    fn so_is_one_that_others_may_replace_or_take_away() {
        let scratch = Scratch::new();
        let path = policy(&scratch);
        let folder = scratch.join("etc");
        for bad in [0o775, 0o757, 0o777] {
            mode(&folder, bad);
            let remedy = format!("run: chmod go-w {}", folder.display());
            assert!(
                problem_text(&path).ends_with(&remedy),
                "{bad:o}: {}",
                problem_text(&path)
            );
            // The same error if the file was removed already.
            assert!(problem_text(&folder.join("other.toml")).ends_with(&remedy));
        }
        // In a sticky directory only an entry's owner can replace it.
        mode(&folder, 0o1777);
        assert_eq!(problem_text(&path), "");
        assert_eq!(problem_text(&scratch.join("none/helper.toml")), "");
    }

    #[test]
    fn a_link_is_followed() {
        let scratch = Scratch::new();
        let path = policy(&scratch);
        let link = scratch.join("link.toml");
        symlink(&path, &link).unwrap();
        assert_eq!(problem_text(&link), "");
        mode(&scratch.join("etc"), 0o777);
        assert!(
            problem_text(&link).ends_with("/etc"),
            "{}",
            problem_text(&link)
        );
    }

    #[test]
    fn what_belongs_to_somebody_else_is_doubted() {
        if !is_root() {
            return skip("giving files away needs root");
        }
        let scratch = Scratch::new();
        let path = policy(&scratch);
        for place in [path.clone(), scratch.join("etc")] {
            chown(&place, Some(SOMEBODY), None).unwrap();
            let remedy = format!("run: chown root {}", place.display());
            assert!(
                problem_text(&path).ends_with(&remedy),
                "{}",
                problem_text(&path)
            );
            chown(&place, Some(0), None).unwrap();
        }
        assert_eq!(problem_text(&path), "");
    }
}
