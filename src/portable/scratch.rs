//! A directory that belongs to one test and is removed after it.

use std::path::{Path, PathBuf};

use super::files::private_dir;
use super::random::random_bytes;

/// An empty directory, removed when dropped.
pub struct Scratch(PathBuf);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Creates one under the system's temporary directory.
    ///
    /// # Panics
    /// If it cannot be created: the test cannot run.
    #[expect(clippy::expect_used, reason = "only tests use it")]
    pub fn new() -> Self {
        let name = u64::from_ne_bytes(random_bytes().expect("random bytes"));
        let path = std::env::temp_dir().join(format!("gatewren-test-{name:016x}"));
        private_dir(&path).expect("a directory for the test");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns a path inside it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
