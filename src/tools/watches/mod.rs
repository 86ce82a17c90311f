//! Watches: conditions that an agent has the server check, and the messages when they begin and end.

mod condition;
mod message;
mod monitor;
mod permission;
mod phase;
mod probes;
mod resources;
mod tools;
mod view;

pub use condition::{InvalidWatch, WatchKind, WatchSpec};
pub use monitor::WatchMonitor;
pub use permission::probing_tools;
pub use phase::{WatchPhase, WatchState};
pub use probes::WatchProbes;
pub use resources::WatchResources;
pub use tools::{WatchTools, tools, watch_words};
pub use view::{OwnWatches, WatchView};
