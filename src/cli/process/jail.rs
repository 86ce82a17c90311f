//! `gatewren __jail`: a process that the helper starts to read a container's files; not for users.

use std::process::ExitCode;

use gatewren_helper::{JAIL_NAME, jail};

/// The name of the hidden subcommand.
pub const NAME: &str = JAIL_NAME;

/// Enters a jail and runs one program in it; see the helper.
pub fn run() -> ExitCode {
    jail()
}
