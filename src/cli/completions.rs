//! `gatewren completions`: prints shell completions.

use std::io;
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
    clap_complete::generate(args.shell, &mut command, "gatewren", &mut io::stdout());
    ExitCode::SUCCESS
}
