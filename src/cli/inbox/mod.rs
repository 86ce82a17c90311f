//! `gatewren inbox`: what agents propose, and what the owner says to it.

mod allow;
mod ask;
mod decide;
mod desk;
mod entry;
mod look;
mod print;
#[cfg(test)]
mod shown_whole;

pub use desk::Desk;
pub use entry::{Args, run};
