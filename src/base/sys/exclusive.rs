//! Checks whether a block device is in use.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

/// Checks that a block device is not in use: neither mounted, nor part of another device, nor used for swap
/// (open(2)).
///
/// # Errors
/// `ResourceBusy` when it is in use; another error when it is not a block device.
pub fn is_free(device: &Path) -> io::Result<()> {
    let flags = OFlag::O_EXCL | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags.bits()).open(device)?;
    if file.metadata()?.file_type().is_block_device() {
        Ok(())
    } else {
        Err(io::Error::other("it is not a block device"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_disk_is_none() {
        assert!(is_free(Path::new("/dev/null")).is_err());
        assert!(is_free(Path::new("/dev/no-such-disk")).is_err());
    }
}
