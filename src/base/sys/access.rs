//! What this process may do with a directory.

use std::path::Path;

use nix::unistd::{AccessFlags, access};

/// Returns whether this process may list, change and enter a directory.
pub fn may_use(directory: &Path) -> bool {
    let all = AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK;
    access(directory, all).is_ok()
}
