//! Recorded hosts for tests, as trees of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use gatewren_base::sys::Scratch;

use super::super::source::HostTree;

/// Writes a recorded host: paths and file contents. The content `-> target` makes a link; a path
/// that ends with `/` is a directory.
pub fn record(scratch: &Scratch, files: &[(&str, &str)]) -> HostTree {
    for (path, content) in files {
        write(&scratch.join(path), path.ends_with('/'), content);
    }
    HostTree::below(scratch.path())
}

fn write(path: &Path, is_directory: bool, content: &str) {
    if is_directory {
        return fs::create_dir_all(path).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match content.strip_prefix("-> ") {
        Some(target) => symlink(target, path).unwrap(),
        None => fs::write(path, content).unwrap(),
    }
}
