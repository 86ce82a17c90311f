//! A staging directory for large results.
//!
//! A result is moved to its place when it is complete, so an interruption leaves nothing behind.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use gatewren_wire::operations::OperationRefusal;

use super::answers::to_its_end;

/// The prefix of its name. No container's name begins with it, so it is not mistaken for one.
pub const PREFIX: &str = ".gatewren-";

/// Others may pass through: the root of an unprivileged container is an unprivileged user on the host.
const MODE: u32 = 0o711;

/// No access for others.
const PRIVATE: u32 = 0o700;

/// A directory of one call, on the file system of the final place.
#[derive(Debug)]
pub struct StagingDir(PathBuf);

impl StagingDir {
    /// Creates a stage in `parent`. Removes what an earlier one of this name left.
    pub async fn create_in(parent: &Path, name: &str) -> Result<Self, OperationRefusal> {
        Self::with_mode(parent, name, MODE).await
    }

    /// Creates a stage whose contents others must not see before they are moved.
    pub async fn private(parent: &Path, name: &str) -> Result<Self, OperationRefusal> {
        Self::with_mode(parent, name, PRIVATE).await
    }

    async fn with_mode(
        parent: &Path,
        name: &str,
        permissions: u32,
    ) -> Result<Self, OperationRefusal> {
        let path = parent.join(format!("{PREFIX}{name}"));
        let place = path.clone();
        to_its_end(move || {
            let made = remove(&place)
                .and_then(|()| fs::DirBuilder::new().mode(permissions).create(&place));
            made.map_err(|e| {
                OperationRefusal::failed(format!(
                    "the directory for the copy cannot be created: {e}"
                ))
            })
        })
        .await?;
        Ok(Self(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it with its contents.
    pub async fn clear(self) {
        let Self(path) = self;
        let place = path.clone();
        let removed =
            to_its_end(move || remove(&place).map_err(|e| OperationRefusal::failed(e.to_string())));
        if removed.await.is_err() {
            tracing::warn!(?path, "an incomplete copy could not be removed");
        }
    }
}

/// Removes a directory with its contents, if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
