//! Locks for containers that are being copied, exchanged or removed: no other operation may change them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use gatewren_wire::operations::{ContainerRef, OperationRefusal, RefusalCode};

use gatewren_base::sys::lock;

/// The claimed containers.
#[derive(Debug, Default)]
pub struct ContainerLocks(Mutex<BTreeSet<ContainerRef>>);

/// A claim on a container, until it is dropped.
#[derive(Debug)]
pub struct ContainerLock<'a> {
    locks: &'a ContainerLocks,
    name: ContainerRef,
}

impl ContainerLocks {
    /// Claims a container, or rejects as busy if it is already claimed.
    pub fn take(&self, name: &ContainerRef) -> Result<ContainerLock<'_>, OperationRefusal> {
        if !self.lock_names().insert(name.clone()) {
            return Err(busy_refusal(name));
        }
        let name = name.clone();
        Ok(ContainerLock { locks: self, name })
    }

    /// Rejects as busy if the container is claimed.
    pub fn check_free(&self, name: &ContainerRef) -> Result<(), OperationRefusal> {
        if self.lock_names().contains(name) {
            return Err(busy_refusal(name));
        }
        Ok(())
    }

    fn lock_names(&self) -> MutexGuard<'_, BTreeSet<ContainerRef>> {
        lock(&self.0)
    }
}

fn busy_refusal(name: &ContainerRef) -> OperationRefusal {
    let message =
        format!("container '{name}' is being copied, restored or removed; try again later");
    OperationRefusal::new(RefusalCode::Busy, message)
}

impl Drop for ContainerLock<'_> {
    fn drop(&mut self) {
        self.locks.lock_names().remove(&self.name);
    }
}
