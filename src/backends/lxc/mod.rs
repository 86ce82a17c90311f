//! The LXC containers: which there are, how they stand, and what changes them.

mod config;
mod containers;
mod details;
mod events;

pub use containers::{Lxc, LxcView};
pub use details::{ContainerDetails, ContainerState, ContainerStatus};
pub use events::{ContainerEvents, ContainerNews};
