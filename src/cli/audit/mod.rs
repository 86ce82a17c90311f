//! `gatewren audit`: what was done, by whom, and whether the record of it is as it was written.

mod anchors;
mod calls;
mod entry;
mod export;
mod print;
mod verify;

pub use entry::{Args, run};
