//! The lock of the background work: of several fronts with one state directory, one does it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use tokio::sync::oneshot;

use super::build_error::BuildError;
use gatewren_base::sys::{DirectoryLock, lock, lock_workers, wait_for_workers_lock};

/// The lock, or the wait for it.
pub struct WorkersLock {
    directory: PathBuf,
    held: Mutex<Option<DirectoryLock>>,
}

impl WorkersLock {
    /// Takes the lock if no other front has it.
    pub fn try_take(directory: &Path) -> Result<Self, BuildError> {
        let held = match lock_workers(directory) {
            Ok(held) => Some(held),
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => None,
            Err(cause) => {
                let directory = directory.display();
                return Err(BuildError::new(format!("cannot lock {directory}: {cause}")));
            }
        };
        Ok(Self {
            directory: directory.to_owned(),
            held: Mutex::new(held),
        })
    }

    /// Whether this front does the background work.
    pub fn is_held(&self) -> bool {
        lock(&self.held).is_some()
    }

    /// Waits until the front that does the work has ended, and takes its place. Never ready for the front that does
    /// the work, and after an error, which is logged.
    pub async fn take_over(&self) {
        if !self.is_held() {
            match self.wait().await {
                Ok(held) => {
                    *lock(&self.held) = Some(held);
                    return;
                }
                Err(cause) => tracing::error!(
                    %cause,
                    "cannot wait for the lock of the background work; restart this front to try again"
                ),
            }
        }
        std::future::pending::<()>().await;
    }

    /// Waits in a thread of its own: the kernel wakes it, and the end of the process ends it.
    async fn wait(&self) -> io::Result<DirectoryLock> {
        let (sender, receiver) = oneshot::channel();
        let directory = self.directory.clone();
        let wait = move || {
            // Without a receiver the server stops, and the lock is released again.
            let _ = sender.send(wait_for_workers_lock(&directory));
        };
        thread::Builder::new()
            .name("workers-lock".to_owned())
            .spawn(wait)?;
        receiver.await.map_err(io::Error::other)?
    }
}
