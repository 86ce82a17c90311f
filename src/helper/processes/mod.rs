//! The processes of a call: started together in a scope, relayed, and killed together.

pub mod accounts;
pub mod answers;
pub mod call_processes;
pub mod commands;
pub mod container_entry;
pub mod freeze_guard;
pub mod freezing;
pub mod killed_processes;
pub mod lxc_command;
pub mod printing;
pub mod process_scope;
pub mod reaper;
pub mod reports;
pub mod spawn_spec;
pub mod staging_dir;
pub mod step_error;
pub mod surviving_processes;
