//! `gatewren __units`: what the helper starts in a container to ask its systemd; not for people.

use std::process::ExitCode;

use crate::helper::{UNIT_CLIENT_NAME, ask_units};

/// The hidden subcommand's name.
pub const NAME: &str = UNIT_CLIENT_NAME;

/// Asks once; see the helper.
pub fn run() -> ExitCode {
    ask_units()
}
