//! What is kept in SQLite: the state of the host, its usage over time, and the vault of agents, tasks, inbox and audit.
#![forbid(unsafe_code)]

pub mod history;
pub mod state;
pub mod vault;
