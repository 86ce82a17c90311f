//! The LXC containers: queries, actions and events.

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
