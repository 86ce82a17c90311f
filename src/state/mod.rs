//! The box as one JSON document: kept as a log of patches in SQLite, read from memory, open to other programs.
#![forbid(unsafe_code)]

mod author;
mod changes;
mod diff;
mod document;
mod effect;
mod error;
mod follow;
mod log;
mod operation;
mod patch;
mod pointer;
mod recent;
mod schema;
mod shared;
mod size;
mod store;
mod writer;

pub use author::{Actor, Author};
pub use changes::Changes;
pub use error::StateError;
pub use patch::Patch;
pub use pointer::Pointer;
pub use store::State;

#[cfg(feature = "fuzzing")]
pub use {
    diff::{diff, put},
    operation::Operation,
};
