//! Exchanges two names of a file system atomically: both exist at every moment.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::libc;

/// Exchanges two paths (`RENAME_EXCHANGE`, renameat2(2)).
///
/// # Errors
/// When one does not exist, and `InvalidInput` where the file system does not support it. Nothing has changed then.
pub fn swap(one: &Path, other: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (one, other) = (text(one)?, text(other)?);
    let here = libc::AT_FDCWD;
    let how = libc::RENAME_EXCHANGE;
    #[expect(unsafe_code, reason = "renameat2 has no safe wrapper for every libc")]
    // SAFETY: both texts end with NUL and live through the call; the rest are numbers.
    let done = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            here,
            one.as_ptr(),
            here,
            other.as_ptr(),
            how,
        )
    };
    if done == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sys::Scratch;

    #[test]
    fn two_directories_change_places_or_nothing_happens() {
        let scratch = Scratch::new();
        let (one, other) = (scratch.join("one"), scratch.join("other"));
        for (path, file) in [(&one, "first"), (&other, "second")] {
            fs::create_dir(path).unwrap();
            fs::write(path.join(file), "").unwrap();
        }
        swap(&one, &other).unwrap();
        assert!(one.join("second").is_file() && other.join("first").is_file());
        let none = scratch.join("none");
        assert_eq!(
            swap(&one, &none).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(one.join("second").is_file(), "it is where it was");
    }
}
