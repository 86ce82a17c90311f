//! Reads small kernel files as a whole; a missing file is an unknown value.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use gatewren_base::sys::neutralise;

pub use gatewren_base::sys::source::{field, names, text, word};

/// The longest name of a device, in characters; the rest is left out.
const MAX_LABEL: usize = 64;

/// The files of this host below `/`, or of a recorded host below a directory.
#[derive(Debug, Clone)]
pub struct HostTree(PathBuf);

impl HostTree {
    /// Returns this host's files.
    pub fn of_this_machine() -> Self {
        Self("/".into())
    }

    /// Returns a recorded host's files.
    #[cfg(test)]
    pub fn below(root: &std::path::Path) -> Self {
        Self(root.to_owned())
    }

    /// Returns the path of a file in the tree; `path` has no leading slash.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// See [`text`].
    pub fn text(&self, path: &str) -> Option<String> {
        text(self.path(path))
    }

    /// See [`word`].
    pub fn word(&self, path: &str) -> Option<String> {
        word(self.path(path))
    }

    /// See [`names`].
    pub fn names(&self, path: &str) -> Vec<String> {
        names(self.path(path))
    }

    /// Returns the number in a file.
    pub fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.word(path)?.parse().ok()
    }

    /// Whether the file contains 1.
    pub fn flag(&self, path: &str) -> bool {
        self.word(path).as_deref() == Some("1")
    }

    /// Whether the path exists.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Returns the target of a symbolic link.
    pub fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.to_str().map(str::to_owned)
    }

    /// Returns the file name of a link's target, such as a driver's name.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = self.link(path)?;
        target.rsplit('/').next().map(str::to_owned)
    }

    /// Returns a device's description of itself, sanitized to one short line.
    pub fn label(&self, path: &str) -> Option<String> {
        label(&self.word(path)?)
    }
}

/// Sanitizes a name to one short line.
pub fn label(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = neutralise(&words.join(" "))
        .chars()
        .take(MAX_LABEL)
        .collect::<String>();
    (!plain.is_empty()).then_some(plain)
}
