//! The machine: every system call that the standard library does not offer, safely named.

mod waiter;

pub use waiter::{Waiter, Waker, Woken};
