//! `gatewren completions`: what the shell may complete.

use std::io;
use std::process::ExitCode;

use clap_complete::Shell;

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which shell: bash, elvish, fish, powershell or zsh
    shell: Shell,
}

/// Prints them.
pub fn run(args: &Args, mut command: clap::Command) -> ExitCode {
    clap_complete::generate(args.shell, &mut command, "gatewren", &mut io::stdout());
    ExitCode::SUCCESS
}
