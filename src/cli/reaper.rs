//! `gatewren __reaper`: what the helper starts beside each command; not for people.

use std::process::ExitCode;

use crate::helper::reap;

/// The hidden subcommand's name.
pub const NAME: &str = "__reaper";

/// Keeps one command; see the helper.
pub fn run() -> ExitCode {
    reap()
}
