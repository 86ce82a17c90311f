//! How full a file system is.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use serde::{Deserialize, Serialize};

/// The sizes of a file system in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the unit stands in every name")]
pub struct DiskSpace {
    /// All of it.
    pub total_bytes: u64,
    /// What is free.
    pub free_bytes: u64,
    /// What is free for a program without special rights.
    pub available_bytes: u64,
}

/// The sizes of the file system in which `path` stands (statvfs(3)); hangs while its server is gone, if it
/// is on the network.
pub fn disk_space(path: &Path) -> io::Result<DiskSpace> {
    let found = statvfs(path)?;
    let fragment = wide(found.fragment_size());
    let bytes = |blocks: u64| blocks.saturating_mul(fragment);
    Ok(DiskSpace {
        total_bytes: bytes(found.blocks()),
        free_bytes: bytes(found.blocks_free()),
        available_bytes: bytes(found.blocks_available()),
    })
}

/// C's `long` has 32 bits on armhf.
fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_sizes() {
        let space = disk_space(Path::new("/")).unwrap();
        assert!(space.total_bytes >= space.free_bytes && space.free_bytes >= space.available_bytes);
        assert!(disk_space(Path::new("/no/such/place")).is_err());
    }
}
