//! A place in a shell command where it waits until the test lets it go on.

use super::machine::{IN_TIME, wait_until};
use super::server::Directory;

/// A gate that is closed.
pub struct Gate(Directory);

impl Gate {
    pub fn new() -> Self {
        Self(Directory::new())
    }

    /// The line of shell that waits.
    pub fn line(&self) -> String {
        let (reached, open) = (self.0.join("reached"), self.0.join("open"));
        format!(
            "touch {}; while [ ! -e {} ]; do sleep 0.05; done",
            reached.display(),
            open.display()
        )
    }

    /// Waits until a command waits there.
    pub fn until_reached(&self) {
        wait_until("it runs", IN_TIME, || self.0.join("reached").exists());
    }

    /// Lets it go on.
    pub fn open(&self) {
        std::fs::write(self.0.join("open"), "").unwrap();
    }
}
