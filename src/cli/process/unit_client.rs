//! `gatewren __units`: a process that the helper starts in a container to query its systemd; not for users.

use std::process::ExitCode;

use gatewren_helper::{UNIT_CLIENT_NAME, ask_units};

/// The name of the hidden subcommand.
pub const NAME: &str = UNIT_CLIENT_NAME;

/// Sends one query; see the helper.
pub fn run() -> ExitCode {
    ask_units()
}
