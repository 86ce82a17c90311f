//! The LXC containers: queries, actions and events.

mod config;
mod containers;
mod deeds;
mod details;
mod events;
mod inside;

pub use containers::{Lxc, LxcView};
pub use deeds::{ContainerDefinition, ContainerSnapshot};
pub use details::{ContainerDetails, ContainerState, ContainerStatus};
pub use events::{ChangedContainers, ContainerEvents};
pub use inside::{DirectoryPage, InsidePart, LogPart, LogSource, PART_BYTES, from_base64};
