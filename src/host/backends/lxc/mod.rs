//! The containers of all runtimes: queries, actions and events.

mod changes;
mod config;
mod containers;
mod cpu_readings;
mod details;
mod events;
mod inside;
mod listing;
mod measured_usage;
mod measured_vitals;
mod moves;
mod overview;
mod readings;
mod runtimes;
mod stack_changes;
mod stack_order;
mod stack_readiness;
mod stacks;

pub use changes::{ContainerDefinition, ContainerSnapshot, limits_note};
pub use containers::{Lxc, LxcView};
pub use details::{ContainerDetails, ContainerState, ContainerStatus};
pub use events::{ChangedContainers, ContainerEvents};
pub use inside::{
    DirectoryPage, InsidePart, LogPart, LogSource, NewFileContent, PART_BYTES, from_base64,
};
pub use listing::{AwayRuntime, ContainerListing};
pub use measured_vitals::MeasuredVitals;
pub use overview::StateAndRoot;
pub use stack_changes::{MemberChange, MemberOutcome, StackAction, StackRun};
pub use stacks::{Stack, StackListing, StackMember};
