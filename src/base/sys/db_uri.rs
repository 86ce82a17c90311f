//! The URI with which SQLite reads a database file that no program writes.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Returns the URI with which SQLite reads the file without locks and without files beside it. The file must not change
/// meanwhile.
pub fn immutable_database_uri(path: &Path) -> PathBuf {
    let path = path.as_os_str().as_bytes().iter().map(|byte| match byte {
        b'/' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
        letter if letter.is_ascii_alphanumeric() => char::from(*letter).to_string(),
        other => format!("%{other:02X}"),
    });
    PathBuf::from(format!("file:{}?immutable=1", path.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_with_a_meaning_in_a_uri_is_escaped() {
        assert_eq!(
            immutable_database_uri(Path::new("/a b/c?x=1#y%.db")),
            Path::new("file:/a%20b/c%3Fx%3D1%23y%25.db?immutable=1")
        );
    }
}
