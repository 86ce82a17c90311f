//! A place where something large grows until it is whole, so that what is broken off leaves nothing behind.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::{answers::to_its_end, refusal::Refusal};

/// What its name begins with: no container's name does, so nobody takes it for one.
pub const PREFIX: &str = ".gatewren-";

/// The root of an unprivileged container, who is nobody here, passes through.
const MODE: u32 = 0o711;

/// Nobody else does.
const PRIVATE: u32 = 0o700;

/// A directory of one call, on the file system where its contents are to be.
#[derive(Debug)]
pub struct Stage(PathBuf);

impl Stage {
    /// Makes one in `parent`; what an earlier one of the name has left goes.
    pub async fn below(parent: &Path, name: &str) -> Result<Self, Refusal> {
        Self::with_mode(parent, name, MODE).await
    }

    /// The same where nobody else is to see what is in it, and may see it later.
    pub async fn private(parent: &Path, name: &str) -> Result<Self, Refusal> {
        Self::with_mode(parent, name, PRIVATE).await
    }

    async fn with_mode(parent: &Path, name: &str, permissions: u32) -> Result<Self, Refusal> {
        let path = parent.join(format!("{PREFIX}{name}"));
        let place = path.clone();
        to_its_end(move || {
            let made = remove(&place)
                .and_then(|()| fs::DirBuilder::new().mode(permissions).create(&place));
            made.map_err(|e| Refusal::failed(format!("no place for the copy: {e}")))
        })
        .await?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes it away with all that is left in it.
    pub async fn clear(self) {
        let Self(path) = self;
        let place = path.clone();
        let removed =
            to_its_end(move || remove(&place).map_err(|e| Refusal::failed(e.to_string())));
        if removed.await.is_err() {
            tracing::warn!(?path, "what is left of a copy cannot be removed");
        }
    }
}

/// Removes a directory with all that is in it, if it is there.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
