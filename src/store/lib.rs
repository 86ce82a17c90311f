//! What is kept in SQLite: the state of the host, and the vault of agents, tasks, inbox and audit.
#![forbid(unsafe_code)]

pub mod state;
pub mod vault;
