//! Executes calls: from a call to its reply, in the stateless shape; an adapter maps the stateful revisions to it.
#![forbid(unsafe_code)]

mod apps;
mod call;
mod call_log;
mod call_reason;
mod changes;
mod complete;
mod container_names;
mod cursor;
mod demo;
mod discover;
mod elicitation;
mod engine;
mod error_words;
mod host_rights;
mod in_flight;
mod included;
mod instructions;
mod listing;
mod mentions;
mod methods;
mod policy_watch;
mod prompts;
mod record;
mod recorded_run;
mod reference;
mod resources;
mod results;
mod schedules;
mod session_tools;
mod signed_state;
mod skills;
mod subscriptions;
mod tasks;
mod tool_list;
mod tool_lookup;
mod tools;
mod unattended;
mod vault_worker;
mod wake_isolated;

pub use apps::declaration as apps_declaration;
pub use call::{Call, CallContext, CallOutcome, CallReply, HeldResource};
pub use changes::executor::end_abandoned_changes;
pub use changes::inbox::{Inbox, InboxLimits, OwnerPageAddress};
pub use changes::resources::ChangeResources;
pub use changes::tools::change_tools;
pub use engine::Engine;
pub use instructions::instructions;
pub use listing::Listing;
pub use schedules::resources::ScheduleResources;
pub use schedules::runner::end_abandoned_runs;
pub use schedules::tools::schedule_tools;
pub use session_tools::{OpenSession, OpenSessionTable, OpenSessions, session_tools};
pub use subscriptions::interests::Interests;
pub use subscriptions::listen::{
    ClientSubscription, SubscriptionNotice, final_result as subscription_ended,
};
pub use subscriptions::listener::{Listener, ListenerEvent};
pub use tasks::table::{TaskLimits, end_abandoned_tasks};
pub use wake_isolated::WakeIsolated;

#[cfg(feature = "testing")]
pub use signed_state::{StateSigner, digest_of};
#[cfg(test)]
pub use tool_list::list_tools;
