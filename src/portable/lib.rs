//! What the server and the bridge share on every system: secrets, private files, codes, lines. No system calls.
#![forbid(unsafe_code)]

mod crockford32;
mod file_error;
pub mod files;
mod level;
mod lines;
mod network;
#[cfg_attr(not(unix), path = "profile_permissions.rs")]
mod permissions;
mod random;
mod secret;
mod token_file;
mod unknown_word;
mod unpoisoned;

pub use crockford32::{from_letters, normalized_letters, random_letters, to_letters};
pub use file_error::FileError;
pub use level::LogLevel;
pub use lines::{LineReader, LineTooLong};
pub use network::{FoundAddress, end_when_gone, end_when_stalled};
pub use random::{RandomError, random_bytes};
pub use secret::{Secret, ZeroizeOnDrop, Zeroizing};
pub use token_file::{read_token, read_word};
pub use unknown_word::UnknownWord;
pub use unpoisoned::{lock, read_lock, write_lock};

#[cfg(any(test, feature = "testing"))]
mod scratch;
#[cfg(any(test, feature = "testing"))]
pub use scratch::Scratch;
