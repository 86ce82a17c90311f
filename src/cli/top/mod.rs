//! `gatewren top`: shows live which calls run, wait and have ended.

mod entry;
mod page;
mod view;

pub use entry::{TopArgs, run};
