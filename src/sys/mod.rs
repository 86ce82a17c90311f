//! The machine: every system call and every unsafe line of gatewren stands in this room.

mod clock;
pub mod files;
mod random;
mod secret;
mod waiter;

pub use clock::{now_ms, rfc3339};
pub use files::FileError;
pub use random::{RandomError, random_bytes};
pub use secret::Secret;
pub use waiter::{Waiter, Waker};

#[cfg(test)]
mod scratch;
#[cfg(test)]
pub use scratch::Scratch;
