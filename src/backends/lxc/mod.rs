//! The LXC containers: which there are, how they stand, and what changes them.

mod config;
mod containers;
mod deeds;
mod details;
mod events;
mod inside;

pub use containers::{Lxc, LxcView};
pub use deeds::{ContainerDefinition, Snapshot};
pub use details::{ContainerDetails, ContainerState, ContainerStatus};
pub use events::{ContainerEvents, ContainerNews};
pub use inside::{DirectoryPage, InsidePart, LogPart, LogSource, PART_BYTES, from_base64};
