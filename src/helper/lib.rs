//! The process with root: accepts typed operations only from the front, runs them, and leaves no processes behind.
#![forbid(unsafe_code)]

mod backup;
mod context;
mod disk_space;
mod engines;
mod host;
mod lxc;
mod network;
mod processes;
mod service;
mod systemd;

pub use context::helper_context::sweep;
pub use engines::podman_user::users_with_podman;
#[cfg(feature = "testing")]
pub use engines::{
    ChangedContainer, EngineError, EngineLogStream, MAX_LOG_LINE_BYTES, RawLogLine, read_events,
    read_log_lines,
};
pub use lxc::jailed::{JAIL_NAME, jail};
pub use processes::accounts::uid_of;
pub use processes::reaper::reap;
pub use service::serve::{HelperOptions, Lifeline, ReadPolicy, serve};
pub use systemd::unit_client::{UNIT_CLIENT_NAME, ask_units};
