//! Reads small kernel files whole; a missing file means that the value is unknown.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// The most that is read of one file, in bytes; longer files are truncated.
const MAX_BYTES: u64 = 1024 * 1024;

/// The size that holds most of them, in bytes; the kernel generates the contents at each read.
const USUAL_BYTES: usize = 4096;

/// Returns the file's text; `None` if it cannot be read.
pub fn text(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the file's text without surrounding white space; `None` if that is empty.
pub fn word(path: impl AsRef<Path>) -> Option<String> {
    let text = text(path)?;
    let word = text.trim();
    (!word.is_empty()).then(|| word.to_owned())
}

/// Returns the names in a directory, sorted; empty if it cannot be read.
pub fn names(path: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Returns the value of a line `key<separator> value`, trimmed.
pub fn field<'t>(text: &'t str, key: &str, separator: char) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim())
    })
}
