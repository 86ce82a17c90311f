//! The program's commands, run beside a server by another process.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// What a command prints as JSON, and its exit code.
pub fn tell(directory: &Path, args: &[&str]) -> (Value, Option<i32>) {
    let output = run(directory, &[args, &["--json"]].concat());
    let said = serde_json::from_slice(&output.stdout);
    let said = said.unwrap_or_else(|_| panic!("{args:?}: {output:?}"));
    (said, output.status.code())
}

/// What a command that goes well prints for people.
pub fn words(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Why a command does nothing.
pub fn refused(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    assert!(!output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Makes an agent of this name with these options, and says what `agent add` says.
pub fn add_agent(directory: &Path, name: &str, options: &[&str]) -> Value {
    tell(directory, &[&["agent", "add", name], options].concat()).0
}

/// What a command about the daemon of these settings prints as JSON; it must go well.
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
