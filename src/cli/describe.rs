//! `gatewren describe`: the settings files with every key, its default and what it means.

use std::process::ExitCode;

use super::say::conclude;
use crate::config::{helper_sample, settings_sample};

/// Print a settings file with every key, commented out at its default.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which one: `settings` for gatewren.toml, `helper` for helper.toml
    what: What,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// What the front is told.
    Settings,
    /// What the root helper lets be done at all.
    Helper,
}

/// Prints it.
pub fn run(args: &Args) -> ExitCode {
    let text = match args.what {
        What::Settings => settings_sample(),
        What::Helper => helper_sample(),
    };
    conclude(Ok(text.trim_end().to_owned()))
}
