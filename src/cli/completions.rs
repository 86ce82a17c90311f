//! `gatewren completions`: prints shell completions.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap_complete::Shell;

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell: bash, elvish, fish, powershell or zsh
    shell: Shell,
}

/// Prints the completions.
pub fn run(args: &CompletionsArgs, mut command: clap::Command) -> ExitCode {
    // `generate` panics when its writer fails, such as a pipe whose reader has ended.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "gatewren", &mut script);
    match io::stdout().write_all(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
