//! `gatewren job`: what agents have begun that goes on without them.

mod entry;
mod follow;
mod print;
mod way;

pub use entry::{Args, run};
pub use way::helper_of;
