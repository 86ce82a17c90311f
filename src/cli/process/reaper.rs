//! `gatewren __reaper`: a process that the helper starts beside each command; not for users.

use std::process::ExitCode;

use gatewren_helper::reap;

/// The name of the hidden subcommand.
pub const NAME: &str = "__reaper";

/// Supervises one command; see the helper.
pub fn run() -> ExitCode {
    ExitCode::from(reap())
}
