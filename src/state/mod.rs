//! The box as one JSON document: kept as a log of patches in SQLite, read from memory, open to other programs.
#![forbid(unsafe_code)]

mod author;
mod changes;
mod diff;
mod document;
mod error;
mod log;
mod operation;
mod patch;
mod pointer;
mod recent;
mod schema;
mod shared;
mod store;
mod writer;

pub use author::{Actor, Author};
pub use changes::{Changes, Revision};
pub use document::Document;
pub use error::StateError;
pub use operation::{Obstacle, Operation};
pub use patch::{Patch, PatchError};
pub use pointer::{InvalidPointer, Pointer};
pub use store::State;
