//! The helper's service: its socket, its connections, the owner's policy, and which module performs an operation.

pub mod connection;
pub mod container_move;
mod container_operations;
mod container_overview;
mod container_storage;
pub mod definition_watch;
pub mod engine_facts;
pub mod engine_image;
pub mod engine_limits;
pub mod engine_log;
pub mod engine_runtime;
pub mod engine_watch;
pub mod events;
pub mod host_operations;
pub mod inner_docker;
pub mod job_operations;
pub mod lxc_runtime;
pub mod perform;
pub mod policy_check;
pub mod runtime;
pub mod runtime_report;
pub mod serve;
pub mod stopped_files;
