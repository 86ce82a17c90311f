//! The LXC containers: which there are, how they stand, and what changes them.

mod ask;
mod containers;
mod counters;
mod details;
mod events;

pub use containers::Lxc;
pub use details::{ContainerDetails, ContainerState, ContainerStatus};
pub use events::ContainerEvents;
