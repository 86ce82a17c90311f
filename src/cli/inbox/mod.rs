//! `gatewren inbox`: lists what agents propose, and records the owner's decisions.

mod allow;
mod ask;
mod context;
mod decide;
mod entry;
mod look;
mod print;
#[cfg(test)]
mod shown_whole;

pub use context::{InboxContext, run_on_vault};
pub use entry::{InboxArgs, run};
