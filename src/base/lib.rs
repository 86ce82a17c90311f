//! What every floor stands on: settings, the machine's system calls, the log.

pub mod config;
pub mod sys;
pub mod telemetry;
