//! Keeps the state document true to the box.
#![forbid(unsafe_code)]

mod complaints;
mod containers;
mod facts;
mod handle;
mod watch;

pub use handle::{Nudge, ObserverHandle};
pub use watch::Observer;
