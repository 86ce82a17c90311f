//! `gatewren job`: shows and cancels the background jobs that agents have started.

mod context;
mod entry;
mod follow;
mod print;

pub use context::helper_of;
pub use entry::{JobArgs, run};
