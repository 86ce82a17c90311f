//! Small files of the kernel, read whole; one that is not there is simply not known.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// The most that is read of one file, in bytes; what is longer is cut.
const MAX_BYTES: u64 = 1024 * 1024;

/// What most of them fit into, in bytes; the kernel makes them anew at each read.
const USUAL_BYTES: usize = 4096;

/// The file's text; nothing if it cannot be read.
pub fn text(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file's text without the white space around it; nothing if that is empty.
pub fn word(path: impl AsRef<Path>) -> Option<String> {
    let text = text(path)?;
    let word = text.trim();
    (!word.is_empty()).then(|| word.to_owned())
}

/// The names in a directory, sorted; none if it cannot be read.
pub fn names(path: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The value of a line `key<separator> value`, trimmed.
pub fn field<'t>(text: &'t str, key: &str, separator: char) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim())
    })
}
