//! Executes calls: from a call to its reply, in the stateless shape; an adapter maps the stateful revisions to it.
#![forbid(unsafe_code)]

mod call;
mod change_resources;
mod change_task;
mod change_tools;
mod change_view;
mod complete;
mod confirm;
mod discover;
mod ended;
mod engine;
mod executor;
mod handover;
mod inbox;
mod interests;
mod listen;
mod listener;
mod listing;
mod live_task;
mod long_call;
mod methods;
mod owner_waits;
mod precondition;
mod prompts;
mod proposal_target;
mod proposals;
mod propose;
mod record;
mod reference;
mod resources;
mod results;
mod rounds;
mod sealed;
mod session_tools;
mod standing;
mod task_methods;
mod task_runner;
mod task_store;
mod task_watch;
mod tasks;
mod to_owner;
mod tool_list;
mod tools;
mod under_way;
mod welcome;

pub use call::{Call, Context, Held, Outcome, Reply};
pub use change_resources::WithChanges;
pub use change_tools::change_tools;
pub use engine::Engine;
pub use executor::end_abandoned_changes;
pub use inbox::{Inbox, InboxLimits};
pub use interests::Interests;
pub use listen::ended as subscription_ended;
pub use listener::{Event, Listener};
pub use listing::Listing;
pub use session_tools::{OpenSession, OpenSessions, SessionDesk, session_tools};
pub use tasks::{TaskLimits, end_abandoned_tasks};
pub use welcome::instructions;

#[cfg(feature = "testing")]
pub use sealed::{Sealer, digest_of};
#[cfg(test)]
pub use tool_list::listed;
