//! Containers that are being copied, exchanged or removed: nothing else is done to them meanwhile.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exec::{ContainerName, RefusalCode};

use super::refusal::Refusal;

/// Which containers are taken.
#[derive(Debug, Default)]
pub struct Claims(Mutex<BTreeSet<ContainerName>>);

/// A container is ours until this is dropped.
#[derive(Debug)]
pub struct Claim<'a> {
    claims: &'a Claims,
    name: ContainerName,
}

impl Claims {
    /// Takes one.
    pub fn take(&self, name: &ContainerName) -> Result<Claim<'_>, Refusal> {
        if !self.taken().insert(name.clone()) {
            return Err(busy(name));
        }
        let name = name.clone();
        Ok(Claim { claims: self, name })
    }

    /// Refuses what would be in the way of who has taken one.
    pub fn check_free(&self, name: &ContainerName) -> Result<(), Refusal> {
        if self.taken().contains(name) {
            return Err(busy(name));
        }
        Ok(())
    }

    fn taken(&self) -> MutexGuard<'_, BTreeSet<ContainerName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn busy(name: &ContainerName) -> Refusal {
    let message = format!(
        "container '{name}' is just being copied, restored or removed; try again when that is done"
    );
    Refusal::new(RefusalCode::Busy, message)
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.taken().remove(&self.name);
    }
}
