//! The files of `/etc` that changed since a time: names only, and only of directories that every user may list.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most entries that are examined. `/etc` of a server has a few thousand.
const MAX_ENTRIES: usize = 20_000;

/// The deepest directory below the first one.
const MAX_DEPTH: usize = 12;

/// The most files that are named, the newest first.
const MAX_FILES: usize = 50;

/// A file, a link or another entry that is no directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// When its content, its owner or its permissions changed, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The files that changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedFiles {
    /// The newest 50, newest first.
    pub files: Vec<ChangedFile>,
    /// How many there are.
    pub total: usize,
    /// Whether everything that every user may list was examined.
    pub complete: bool,
}

/// Returns the files below `root` that changed at `since_ms` or later. Removed files leave no trace. No link is
/// followed, and no file is opened.
pub fn changed_files(root: &Path, since_ms: u64) -> ChangedFiles {
    let mut found = ChangedFiles {
        complete: true,
        ..ChangedFiles::default()
    };
    let mut examined = 0;
    let mut left: Vec<(PathBuf, usize)> = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = left.pop() {
        // A directory that is private is left out, as it is for every other user.
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            examined += 1;
            if examined > MAX_ENTRIES {
                found.complete = false;
                left.clear();
                break;
            }
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            if facts.is_dir() {
                let is_public = facts.mode() & 0o005 == 0o005;
                found.complete &= depth < MAX_DEPTH;
                if is_public && depth < MAX_DEPTH {
                    left.push((entry.path(), depth + 1));
                }
                continue;
            }
            let at_ms = u64::try_from(facts.ctime()).unwrap_or_default() * 1000;
            if at_ms >= since_ms {
                let path = entry.path().to_string_lossy().into_owned();
                found.files.push(ChangedFile { path, at_ms });
            }
        }
    }
    found.total = found.files.len();
    found
        .files
        .sort_by(|a, b| (b.at_ms, &a.path).cmp(&(a.at_ms, &b.path)));
    found.files.truncate(MAX_FILES);
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use gatewren_base::sys::{Scratch, now_ms};

    use super::*;

    #[test]
    fn the_newest_files_are_named_and_private_directories_are_left_out() {
        let scratch = Scratch::new();
        let root = scratch.join("etc");
        for directory in ["", "a", "a/b", "private"] {
            fs::create_dir(root.join(directory)).unwrap();
            let mode = if directory == "private" { 0o700 } else { 0o755 };
            fs::set_permissions(root.join(directory), fs::Permissions::from_mode(mode)).unwrap();
        }
        for file in ["one", "a/b/two", "private/three"] {
            fs::write(root.join(file), "x").unwrap();
        }
        symlink("/", root.join("a/out")).unwrap();
        let found = changed_files(&root, now_ms() - 60_000);
        let mut names: Vec<&str> = found
            .files
            .iter()
            .map(|file| file.path.strip_prefix(root.to_str().unwrap()).unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["/a/b/two", "/a/out", "/one"]);
        assert_eq!((found.total, found.complete), (3, true));
        assert_eq!(changed_files(&root, now_ms() + 60_000).total, 0);
        for number in 0..60 {
            fs::write(root.join(format!("n{number}")), "x").unwrap();
        }
        let many = changed_files(&root, 0);
        assert_eq!((many.files.len(), many.total), (MAX_FILES, 63));
    }
}
