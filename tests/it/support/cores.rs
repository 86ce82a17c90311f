//! A slot for each core: tests that compute take one, so that tests that wait for an event get processor time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::available_parallelism;

/// The number of tests that compute now.
static COMPUTING: Mutex<usize> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

/// A slot to compute, until it is dropped.
#[must_use = "the place is free again when this is dropped"]
pub struct Core(());

/// Waits until fewer tests compute than this machine has cores.
pub fn core() -> Core {
    let cores = available_parallelism().map_or(1, usize::from);
    let computing = COMPUTING.lock().unwrap_or_else(PoisonError::into_inner);
    let computing = LEFT.wait_while(computing, |computing| *computing >= cores);
    *computing.unwrap_or_else(PoisonError::into_inner) += 1;
    Core(())
}

impl Drop for Core {
    fn drop(&mut self) {
        *COMPUTING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        LEFT.notify_one();
    }
}
