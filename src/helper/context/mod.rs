//! What all operations of the helper share: its state, the limits, the containers, and running host programs.

pub mod container_locks;
pub mod container_rights;
pub mod containers;
pub mod definitions;
pub mod helper_context;
pub mod inner_containers;
pub mod job_log;
pub mod job_output_sink;
pub mod jobs;
pub mod limits;
pub mod line_filter;
pub mod log_limiter;
pub mod lxc_monitor;
pub mod lxc_tools;
pub mod operation_context;
pub mod operation_slots;
pub mod orphans;
pub mod output_relay;
pub mod outputs;
pub mod process_times;
pub mod programs;
pub mod reaper_source;
pub mod running_container;
pub mod send_buffer;
pub mod stop;
pub mod tools;
