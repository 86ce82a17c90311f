//! `gatewren state`: the document that describes the box, as it is and as it was.

mod author_key;
mod blame;
mod changes;
mod check;
mod document;
mod entry;
mod patch;
mod print;
mod watch;

pub use entry::{Args, run};
