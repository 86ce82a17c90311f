//! A barrier: a line in a shell command that blocks until the test opens it.

use super::machine::{IN_TIME, wait_until};
use super::server::Directory;

/// A closed barrier.
pub struct Barrier(Directory);

impl Barrier {
    pub fn new() -> Self {
        Self(Directory::new())
    }

    /// Returns the shell line that blocks.
    pub fn line(&self) -> String {
        let (reached, open) = (self.0.join("reached"), self.0.join("open"));
        format!(
            "touch {}; while [ ! -e {} ]; do sleep 0.05; done",
            reached.display(),
            open.display()
        )
    }

    /// Waits until a command blocks at the line.
    pub fn until_reached(&self) {
        wait_until("it runs", IN_TIME, || self.0.join("reached").exists());
    }

    /// Lets the command continue.
    pub fn open(&self) {
        std::fs::write(self.0.join("open"), "").unwrap();
    }
}
