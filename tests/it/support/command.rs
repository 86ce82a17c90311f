//! gatewren's subcommands, run by another process beside a server.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Returns the JSON that a command prints, and its exit code.
pub fn tell(directory: &Path, args: &[&str]) -> (Value, Option<i32>) {
    let output = run(directory, &[args, &["--json"]].concat());
    let said = serde_json::from_slice(&output.stdout);
    let said = said.unwrap_or_else(|_| panic!("{args:?}: {output:?}"));
    (said, output.status.code())
}

/// Returns the text that a successful command prints for people.
pub fn words(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the error message of a command that fails.
pub fn refused(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    assert!(!output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Adds an agent with this name and these options, and returns the output of `agent add`.
pub fn add_agent(directory: &Path, name: &str, options: &[&str]) -> Value {
    tell(directory, &[&["agent", "add", name], options].concat()).0
}

/// Runs a command about the daemon with these settings and returns the JSON that it prints. It must succeed.
pub fn tell_by(settings: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command
        .args(args)
        .arg("--json")
        .arg("--config")
        .arg(settings);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn run(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(args).arg("--dir").arg(directory);
    command.output().unwrap()
}
