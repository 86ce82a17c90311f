//! The machine: every system call and every unsafe line of gatewren stands in this room.

mod clock;
mod datagram;
pub mod files;
mod random;
mod secret;

pub use clock::{now_ms, rfc3339};
pub use datagram::send_datagram;
pub use files::FileError;
pub use random::{RandomError, random_bytes};
pub use secret::Secret;

#[cfg(test)]
mod scratch;
#[cfg(test)]
pub use scratch::Scratch;
