//! `system_shell` and `container_shell`: commands that leave no child process running.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use super::runtime_commands::note_on_runtime;
use super::stored_outputs::OUTPUTS;
use gatewren_host::backends::{
    CapturedOutput, ContainerRef, KEPT_FOR, KillReason, Program, Shell, ShellCall, ShellOutcome,
    StoredOutputs, neutralise,
};
use gatewren_wire::protocol::ResourceContents;
use gatewren_wire::registry::{
    Answer, Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset, is_text,
};

/// The toolset.
pub fn tools(shell: Arc<Shell>) -> Toolset<Shell> {
    Toolset::new(shell)
        .with_name("shell")
        .answering("system_shell", Risk::Execute, on_host)
        .about(Scope::Host)
        .through(HelperClass::HostShell)
        .only_runs_command()
        .titled("Run a command on the host")
        .returning::<ShellOutcome>()
        .startos("system.shell", &[("timeout", "timeout_s")])
        .offers_task()
        .answering("container_shell", Risk::Execute, in_container)
        .about(Scope::Container("container"))
        .through(HelperClass::ContainerShell)
        .only_runs_command()
        .titled("Run a command in a container")
        .returning::<ShellOutcome>()
        .startos(
            "package.shell",
            &[("id", "container"), ("timeout", "timeout_s")],
        )
        .ignoring_arguments(&[("subcontainer", "string"), ("name", "string")])
        .naming_inside(&["subcontainer", "name"])
        .offers_task()
}

/// The URI of binary output, which exists only as a resource inside its answer.
const STDOUT: &str = "gatewren:///call/stdout";

/// The timeout of a command in seconds.
type Timeout = BoundedNumber<1, 300, 30>;

/// Run a command on the host with `/bin/bash -c`, a clean environment, no input and no terminal. Returns exit code
/// or signal, stdout and stderr; long output is cut in the middle. Everything it starts is killed when the call ends;
/// use `job_start` for background work. `container_shell` is for containers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnHost {
    /// The command line for bash.
    command: Option<String>,
    /// A program and its arguments, instead of `command`.
    argv: Option<Vec<String>>,
    /// Seconds until it is killed: 1 to 300, default 30.
    ///
    /// `timed_out` reports that.
    #[serde(default)]
    timeout_s: Timeout,
    /// The user to run as; default: root.
    user: Option<String>,
    /// The directory to start in; default: the user's home.
    cwd: Option<String>,
    /// Environment variables to add.
    #[serde(default)]
    env: BTreeMap<String, String>,
}

async fn on_host(shell: Arc<Shell>, asked: OnHost, cx: Cx) -> Result<Answer> {
    let program = program(asked.command, asked.argv)?;
    let note = note_on_runtime(&program);
    let call = ShellCall {
        command: program,
        timeout: asked.timeout_s.seconds(),
        user: asked.user,
        cwd: asked.cwd,
        env: asked.env,
        on_host: true,
    };
    let kept = shell.outputs().clone();
    let shell = shell.view_for(&cx.caller().reach, cx.reference());
    let outcome = shell.host(call).await.map_err(failed)?;
    let outcome = ShellOutcome { note, ..outcome };
    Ok(answer(&kept, outcome, asked.timeout_s, &cx))
}

/// Run a command in a running container with `/bin/sh -c`, a clean environment, no input and no terminal. Returns exit
/// code or signal, stdout and stderr; long output is cut in the middle. All child processes are killed when the call
/// ends. `container_start` starts a stopped container.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InContainer {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The command line for sh.
    command: Option<String>,
    /// A program and its arguments, instead of `command`.
    argv: Option<Vec<String>>,
    /// Seconds until it is killed: 1 to 300, default 30.
    ///
    /// `timed_out` reports that.
    #[serde(default)]
    timeout_s: Timeout,
    /// The user of the container to run as; default: root, in Docker and Podman the container's user.
    user: Option<String>,
    /// The directory to start in; default: the user's home, in Docker and Podman the container's directory.
    cwd: Option<String>,
    /// Environment variables to add.
    #[serde(default)]
    env: BTreeMap<String, String>,
}

async fn in_container(shell: Arc<Shell>, asked: InContainer, cx: Cx) -> Result<Answer> {
    let call = ShellCall {
        command: program(asked.command, asked.argv)?,
        timeout: asked.timeout_s.seconds(),
        user: asked.user,
        cwd: asked.cwd,
        env: asked.env,
        on_host: cx.is_on_host(),
    };
    let kept = shell.outputs().clone();
    let shell = shell.view_for(&cx.caller().reach, cx.reference());
    let outcome = shell.container(&asked.container, call).await;
    Ok(answer(
        &kept,
        outcome.map_err(failed)?,
        asked.timeout_s,
        &cx,
    ))
}

/// Returns the program: exactly one of the two arguments.
pub fn program(
    command: Option<String>,
    argv: Option<Vec<String>>,
) -> std::result::Result<Program, ToolError> {
    match (command, argv) {
        (Some(line), None) if !line.trim().is_empty() => Ok(Program::Shell(line)),
        (None, Some(argv)) if argv.first().is_some_and(|name| !name.is_empty()) => {
            Ok(Program::Argv(argv))
        }
        _ => Err(ToolError::new(
            "invalid argument `command`: give either `command`, a line, or `argv`, a list",
        )
        .hint("Nothing was done.")),
    }
}

/// The text is neutralised, because terminal control sequences would take effect in the terminal that shows it.
fn answer(kept: &StoredOutputs, mut outcome: ShellOutcome, timeout: Timeout, cx: &Cx) -> Answer {
    let text = if cx.is_in_dialect() {
        text_in_dialect(&outcome, timeout)
    } else {
        text(&outcome)
    };
    let mut answer = Answer::text(text).with_data_of_text(&outcome, &["stdout", "stderr"], cx);
    // In this dialect a command that fails is a call that fails.
    answer.failed = cx.is_in_dialect() && !outcome.succeeded;
    for (name, output) in std::mem::take(&mut outcome.longer) {
        let words = link_words(name, &output);
        if let Some(id) = kept.keep(&cx.caller().agent, output) {
            answer = answer.with_link(&format!("{OUTPUTS}{id}"), name, &words);
        }
    }
    match outcome.stdout_raw.as_deref() {
        Some(bytes) if !is_text(bytes) => {
            let kind = "application/octet-stream";
            answer.with_resource(ResourceContents::of_bytes(STDOUT, kind, bytes))
        }
        _ => answer,
    }
}

/// Describes the target of a link to an output.
fn link_words(name: &str, output: &CapturedOutput) -> String {
    let bytes = output.head.len() + output.tail.len();
    let minutes = KEPT_FOR.as_secs() / 60;
    let part = if output.truncated() {
        format!("{bytes} of the {} bytes", output.total_bytes)
    } else {
        format!("all {bytes} bytes")
    };
    format!("{part} of {name}, kept for {minutes} minutes, only for this agent")
}

/// Describes the result for models.
fn text(outcome: &ShellOutcome) -> String {
    let mut text = format!("{}\n", summary(outcome));
    for (name, output) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !output.is_empty() {
            let _ = writeln!(text, "--- {name}\n{}", neutralise(output));
        }
    }
    if let Some(note) = outcome.note {
        let _ = writeln!(text, "--- note\n{note}");
    }
    text
}

/// Describes the result as `StartOS` does: the output, then the exit code, -1 for a command that a signal ended. What
/// was printed before a timeout is not left out.
fn text_in_dialect(outcome: &ShellOutcome, timeout: Timeout) -> String {
    let mut text = neutralise(&outcome.stdout).into_owned();
    if !outcome.stderr.is_empty() {
        let _ = write!(text, "\n[stderr]\n{}", neutralise(&outcome.stderr));
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    if outcome.timed_out {
        let seconds = timeout.seconds().as_secs();
        let _ = write!(text, "\nCommand timed out after {seconds} seconds");
    } else {
        let _ = write!(text, "\n[exit code: {}]", outcome.exit_code.unwrap_or(-1));
    }
    text
}

/// Describes how the command ended, in a line.
fn summary(outcome: &ShellOutcome) -> String {
    let seconds = Duration::from_millis(outcome.duration_ms).as_secs_f64();
    match (outcome.exit_code, outcome.signal, outcome.killed_because) {
        (Some(code), ..) => format!("exit code {code} after {seconds:.3} s"),
        (_, Some(signal), _) => format!("ended by signal {signal} after {seconds:.3} s"),
        (.., Some(KillReason::Timeout)) => {
            format!("timeout after {seconds:.3} s: killed, with all its child processes")
        }
        (.., Some(why)) => format!("killed after {seconds:.3} s: {why}"),
        _ => format!("killed after {seconds:.3} s, no reason given"),
    }
}
