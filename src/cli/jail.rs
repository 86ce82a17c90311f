//! `gatewren __jail`: what the helper starts to read a container's files; not for people.

use std::process::ExitCode;

use crate::helper::{JAIL_NAME, jail};

/// The hidden subcommand's name.
pub const NAME: &str = JAIL_NAME;

/// Enters a jail and runs one program in it; see the helper.
pub fn run() -> ExitCode {
    jail()
}
