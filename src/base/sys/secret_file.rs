//! Reads a secret from a file that no other user may read or replace.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use gatewren_portable::{FileError, Secret, read_word};

/// Any permission of others, and write permission of the group.
const OF_OTHERS: u32 = 0o027;

/// Reads a token: one word of visible ASCII, with or without a line ending. The file must belong to root or to this
/// user, and only its owner and its group may read it.
pub fn read_secret(path: &Path) -> Result<Secret, FileError> {
    let wrong = |cause| FileError::new("read the secret from", path, cause);
    let other = |words: String| wrong(io::Error::other(words));
    // Opening must not block, whatever the file is: it may be a pipe.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(wrong)?;
    let facts = file.metadata().map_err(wrong)?;
    if !facts.is_file() {
        return Err(other("it is not a regular file".to_owned()));
    }
    let (owner, us) = (facts.uid(), geteuid().as_raw());
    if owner != 0 && owner != us {
        let words =
            format!("it belongs to uid {owner}, which is neither root nor the service's user");
        return Err(other(words));
    }
    let mode = facts.mode() & 0o7777;
    if mode & OF_OTHERS != 0 {
        let shown = path.display();
        let words = format!(
            "other users may read or write it (mode {mode:04o}); run: chgrp gatewren {shown} && chmod 640 {shown}"
        );
        return Err(other(words));
    }
    read_word(file).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use gatewren_portable::Scratch;

    #[test]
    fn a_secret_is_one_word_that_nobody_else_reads() {
        let scratch = Scratch::new();
        let path = scratch.join("token");
        let put = |text: &[u8], mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read_secret(&path).map_err(|error| error.to_string())
        };
        for mode in [0o600, 0o640, 0o400] {
            assert_eq!(put(b"tk_abc\n", mode).unwrap().expose(), "tk_abc");
        }
        for mode in [0o644, 0o660, 0o602] {
            assert!(put(b"tk_abc", mode).unwrap_err().contains("chmod 640"));
        }
        for bad in [b"".as_slice(), b"\n", b"two words", b"a\r\nX: y", b"\xff"] {
            let error = put(bad, 0o600).unwrap_err();
            assert!(error.contains("word") || error.contains("text"), "{error}");
        }
        let long = put(&[b'a'; 5000], 0o600).unwrap_err();
        // More consecutive `a` than a random path can have.
        let shown = long.contains(&"a".repeat(20));
        assert!(long.contains("longer") && !shown, "{long}");
        let folder = read_secret(scratch.path()).unwrap_err().to_string();
        assert!(folder.contains("not a regular file"), "{folder}");
        assert!(read_secret(&scratch.join("none")).is_err());
    }
}
