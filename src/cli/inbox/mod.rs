//! `gatewren inbox`: what agents propose, and what the owner says to it.

mod allow;
mod decide;
mod desk;
mod entry;
mod look;
mod print;

pub use desk::Desk;
pub use entry::{Args, run};
