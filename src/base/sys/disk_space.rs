//! The size and free space of a file system.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use serde::{Deserialize, Serialize};

/// The sizes of a file system in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "every field names its unit")]
pub struct DiskSpace {
    /// The total size.
    pub total_bytes: u64,
    /// The free space.
    pub free_bytes: u64,
    /// The space available to an unprivileged program.
    pub available_bytes: u64,
}

/// Returns the sizes of the file system that contains `path` (statvfs(3)). On a network file system it hangs while
/// the server is unreachable.
pub fn disk_space(path: &Path) -> io::Result<DiskSpace> {
    let found = statvfs(path)?;
    let fragment = to_u64(found.fragment_size());
    let bytes = |blocks: u64| blocks.saturating_mul(fragment);
    Ok(DiskSpace {
        total_bytes: bytes(found.blocks()),
        free_bytes: bytes(found.blocks_free()),
        available_bytes: bytes(found.blocks_available()),
    })
}

/// C's `long` has 32 bits on armhf.
fn to_u64(number: impl Into<u64>) -> u64 {
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
