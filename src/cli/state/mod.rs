//! `gatewren state`: reads and changes the document that describes the host, and its history.

mod author_key;
mod blame;
mod changes;
mod check;
mod document;
mod entry;
mod patch;
mod print;
mod watch;

pub use entry::{StateArgs, run};
