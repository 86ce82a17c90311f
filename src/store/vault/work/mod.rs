//! What agents do: changes, schedules, tasks, sessions and subscriptions.

pub mod change;
pub mod change_runs;
pub mod changes;
pub mod doctor_report;
mod kept_value;
pub mod offered_tools;
pub mod poll;
pub mod push_devices;
pub mod schedule;
pub mod schedule_runs;
pub mod schedules;
mod session_changes;
pub mod session_messages;
pub mod sessions;
pub mod subscriptions;
pub mod tasks;
pub mod watches;
