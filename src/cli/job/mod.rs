//! `gatewren job`: shows and cancels the background jobs that agents have started.

mod entry;
mod follow;
mod print;
mod way;

pub use entry::{JobArgs, run};
pub use way::helper_of;
