//! Runs LXC's and other host tools that need no reaper: they start no process that must not stay.

use std::ffi::CString;
use std::fs::File;
use std::future::pending;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use gatewren_base::sys::{Exit, OnParentExit, Spawn};
use gatewren_wire::operations::{OperationRefusal, Stream};

use super::orphans::{Orphans, TrackedChild};
use super::outputs::CommandOutputs;
use super::programs::{find, path_variable};

/// How long a tool may take to answer the helper's own question. After that there is no answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The most bytes of an answer that are read.
const ANSWER_BYTES: usize = 64 * 1024;

/// A tool with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTool {
    /// Such as `lxc-info`.
    pub name: &'static str,
    /// Its arguments.
    pub args: Vec<String>,
}

impl HostTool {
    /// Returns the tool with these arguments.
    pub fn new<'w>(name: &'static str, args: impl IntoIterator<Item = &'w str>) -> Self {
        let args = args.into_iter().map(str::to_owned).collect();
        Self { name, args }
    }
}

/// Returns the output of a tool, for questions of the helper's own.
pub async fn output(tool: &HostTool, orphans: &Arc<Orphans>) -> Result<String, OperationRefusal> {
    let (child, mut outputs) = start(tool, orphans)?;
    let mut text = Vec::new();
    let collect = async {
        while text.len() < ANSWER_BYTES {
            if let (Stream::Stdout, bytes) = outputs.next().await {
                text.extend(bytes);
            }
        }
        pending::<()>().await;
    };
    let answered = timeout(ANSWER_TIME, async {
        tokio::select! {
            exit = child.wait() => drop(exit),
            () = collect => {}
        }
    });
    if answered.await.is_err() {
        child.kill();
        let _ = child.wait().await;
        let name = tool.name;
        return Err(OperationRefusal::failed(format!(
            "{name} did not answer within ten seconds"
        )));
    }
    text.extend(outputs.rest(Stream::Stdout).flatten());
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Runs a tool to its end, without a time limit. Returns its exit status and the end of its stdout, followed by its
/// stderr. If the tool must not be interrupted, spawn this in its own task.
pub async fn run_to_end(
    tool: HostTool,
    orphans: Arc<Orphans>,
) -> Result<(Exit, String), OperationRefusal> {
    let (child, mut outputs) = start(&tool, &orphans)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let exit = loop {
        tokio::select! {
            exit = child.wait() => break exit,
            (which, bytes) = outputs.next() => match which {
                Stream::Stdout => put(&mut stdout, &bytes),
                Stream::Stderr => put(&mut stderr, &bytes),
            },
        }
    };
    for bytes in outputs.rest(Stream::Stdout) {
        put(&mut stdout, &bytes);
    }
    for bytes in outputs.rest(Stream::Stderr) {
        put(&mut stderr, &bytes);
    }
    let name = tool.name;
    let exit =
        exit.map_err(|e| OperationRefusal::failed(format!("cannot wait for {name}: {e}")))?;
    stdout.extend(stderr);
    Ok((exit, String::from_utf8_lossy(&stdout).into_owned()))
}

fn put(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend(bytes);
    kept.drain(..kept.len().saturating_sub(ANSWER_BYTES));
}

/// Starts a tool. It is killed if dropped early.
pub fn start(
    tool: &HostTool,
    orphans: &Arc<Orphans>,
) -> Result<(TrackedChild, CommandOutputs), OperationRefusal> {
    let name = tool.name;
    let program = find(name)?;
    let words = [name]
        .into_iter()
        .chain(tool.args.iter().map(String::as_str));
    let words: Result<_, _> = words.map(CString::new).collect();
    let spawn = Spawn {
        programs: vec![
            CString::new(program.as_os_str().as_bytes()).map_err(|e| not_run(name, &e))?,
        ],
        argv: words.map_err(|e| not_run(name, &e))?,
        env: vec![
            path_variable(),
            c"HOME=/root".to_owned(),
            c"LANG=C.UTF-8".to_owned(),
        ],
        ..Spawn::default()
    };
    start_with_outputs(name, spawn, orphans)
}

/// Starts a program in `/` with an empty stdin and separate pipes for its outputs. It is killed if dropped early.
pub fn start_with_outputs(
    name: &str,
    spawn: Spawn<'_>,
    orphans: &Arc<Orphans>,
) -> Result<(TrackedChild, CommandOutputs), OperationRefusal> {
    let (outputs, writers) = CommandOutputs::open().map_err(|e| not_run(name, &e))?;
    let nothing = File::open("/dev/null").map_err(|e| not_run(name, &e))?;
    let spawn = Spawn {
        fds: vec![
            nothing.as_fd(),
            writers.stdout.as_fd(),
            writers.stderr.as_fd(),
        ],
        directories: vec![c"/".to_owned()],
        with_parent: OnParentExit::Dies,
        ..spawn
    };
    let child = orphans.start(&spawn).map_err(|e| not_run(name, &e))?;
    Ok((child, outputs))
}

/// The refusal for a program that cannot be run.
pub fn not_run(name: &str, cause: &dyn std::fmt::Display) -> OperationRefusal {
    OperationRefusal::failed(format!("{name} cannot be run: {cause}"))
}
