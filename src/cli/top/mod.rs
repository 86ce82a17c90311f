//! `gatewren top`: what is called, what runs and what waits, as it happens.

mod entry;
mod page;
mod view;

pub use entry::{Args, run};
