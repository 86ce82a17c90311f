//! What agents do: changes, tasks, sessions and subscriptions.

pub mod change;
pub mod change_runs;
pub mod changes;
pub mod offered_tools;
pub mod poll;
pub mod sessions;
pub mod subscriptions;
pub mod tasks;
