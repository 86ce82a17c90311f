//! Small files of the kernel, read whole; one that is not there is simply not known.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use crate::sys::neutralise;

pub use crate::sys::source::{field, names, text, word};

/// The longest name of a device, in characters; the rest of a longer one is left out.
const MAX_LABEL: usize = 64;

/// The machine's files below `/`, or a recording of another machine's below some directory.
#[derive(Debug, Clone)]
pub struct Tree(PathBuf);

impl Tree {
    /// This machine.
    pub fn of_this_machine() -> Self {
        Self("/".into())
    }

    /// A recording.
    #[cfg(test)]
    pub fn below(root: &std::path::Path) -> Self {
        Self(root.to_owned())
    }

    /// Where a file of the tree is; `path` has no leading slash.
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

    /// The one number in a file.
    pub fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.word(path)?.parse().ok()
    }

    /// Whether the file is a 1 and no 0.
    pub fn flag(&self, path: &str) -> bool {
        self.word(path).as_deref() == Some("1")
    }

    /// Whether there is something.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// What a link says.
    pub fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.to_str().map(str::to_owned)
    }

    /// The last name of what a link says, such as that of a driver.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = self.link(path)?;
        target.rsplit('/').next().map(str::to_owned)
    }

    /// What a device says of itself: on one line, without what a terminal would obey, and cut.
    pub fn label(&self, path: &str) -> Option<String> {
        label(&self.word(path)?)
    }
}

/// What somebody called a thing: on one line, without what a terminal would obey, and cut.
pub fn label(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = neutralise(&words.join(" "))
        .chars()
        .take(MAX_LABEL)
        .collect::<String>();
    (!plain.is_empty()).then_some(plain)
}
