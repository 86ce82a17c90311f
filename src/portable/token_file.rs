//! Reads a token from a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::file_error::FileError;
use super::permissions::check_readers;
use super::secret::{Secret, Zeroizing};

/// The longest token, in bytes; a longer file is an error.
const MAX_BYTES: usize = 4096;

/// Reads a token from a file that only its owner and its group may read. Where files have no permission bits, these
/// are not checked.
pub fn read_token(path: &Path) -> Result<Secret, FileError> {
    let wrong = |cause| FileError::new("read the secret from", path, cause);
    // Before it is opened: opening a pipe blocks.
    if !std::fs::metadata(path).map_err(wrong)?.is_file() {
        return Err(wrong(io::Error::other("it is not a regular file")));
    }
    check_readers(path).map_err(wrong)?;
    File::open(path).and_then(read_word).map_err(wrong)
}

/// Reads one word of visible ASCII, with or without a line ending.
pub fn read_word(file: impl Read) -> io::Result<Secret> {
    let other = |words: &str| io::Error::other(words.to_owned());
    // A text that grows would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * MAX_BYTES));
    let read = file.take(MAX_BYTES as u64 + 1).read_to_string(&mut text);
    read.map_err(|_| other("it is not text"))?;
    if text.len() > MAX_BYTES {
        return Err(other(&format!("it is longer than {MAX_BYTES} bytes")));
    }
    let word = text.trim_ascii();
    if word.is_empty() || !word.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(other("it must contain one word and nothing else"));
    }
    Ok(Secret::new(word))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_token_is_one_word_that_others_cannot_read() {
        let scratch = Scratch::new();
        let path = scratch.join("token");
        let put = |text: &[u8], mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read_token(&path).map_err(|error| error.to_string())
        };
        for mode in [0o600, 0o640, 0o400] {
            assert_eq!(put(b"tk_abc\r\n", mode).unwrap().expose(), "tk_abc");
        }
        for mode in [0o644, 0o660, 0o602] {
            assert!(put(b"tk_abc", mode).unwrap_err().contains("chmod 600"));
        }
        assert!(put(b"two words", 0o600).unwrap_err().contains("one word"));
        let folder = read_token(scratch.path()).unwrap_err().to_string();
        assert!(folder.contains("not a regular file"), "{folder}");
    }
}
