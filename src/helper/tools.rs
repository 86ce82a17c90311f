//! Runs one of LXC's own tools, which need no reaper: they start nothing that is not meant to stay.

use std::ffi::CString;
use std::fs::File;
use std::future::pending;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use tokio::time::timeout;

use crate::exec::{Ending, Stream};
use crate::sys::{Child, Exit, Spawn, WithParent};

use super::{
    outputs::Outputs,
    programs::{path_variable, tool},
    pump::Pump,
    refusal::Refusal,
    strays::Strays,
};

/// How long a question to LXC may take; then the answer counts as none.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The most of an answer that is read.
const ANSWER_BYTES: usize = 64 * 1024;

/// A tool with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Such as `lxc-ls`.
    pub name: &'static str,
    /// What follows it.
    pub args: Vec<String>,
}

/// Runs a tool and carries its output to the caller; killed when the call has to end.
pub async fn carry(tool: &Tool, pump: &mut Pump, strays: &Strays) -> Result<Ending, Refusal> {
    let (child, mut outputs) = start(tool.name, &tool.args)?;
    strays.know(child.pid());
    let ended = async {
        child
            .wait()
            .await
            .map_or(Ending::Exited { code: 1 }, ending)
    };
    let ending = pump.carry(&mut outputs, ended).await;
    if matches!(ending, Ending::Killed { .. }) {
        child.kill();
        let _ = child.wait().await;
    }
    strays.forget(child.pid());
    pump.drain(&mut outputs).await;
    Ok(ending)
}

/// What a tool prints; for questions of the helper's own.
pub async fn output(name: &str, args: &[&str]) -> Result<String, Refusal> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let (child, mut outputs) = start(name, &args)?;
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
        return Err(Refusal::failed(format!(
            "{name} did not answer in ten seconds"
        )));
    }
    while let Some(bytes) = outputs.read(Stream::Stdout) {
        text.extend(bytes);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn start(name: &str, args: &[String]) -> Result<(Child, Outputs), Refusal> {
    let program = tool(name)?;
    let failed = |e: &dyn std::fmt::Display| Refusal::failed(format!("{name} cannot be run: {e}"));
    let (outputs, writers) = Outputs::open().map_err(|e| failed(&e))?;
    let nothing = File::open("/dev/null").map_err(|e| failed(&e))?;
    let argv = [name].into_iter().chain(args.iter().map(String::as_str));
    let argv: Result<_, _> = argv.map(CString::new).collect();
    let spawn = Spawn {
        programs: vec![CString::new(program.as_os_str().as_bytes()).map_err(|e| failed(&e))?],
        argv: argv.map_err(|e| failed(&e))?,
        env: vec![
            path_variable(),
            c"HOME=/root".to_owned(),
            c"LANG=C.UTF-8".to_owned(),
        ],
        fds: vec![
            nothing.as_fd(),
            writers.stdout.as_fd(),
            writers.stderr.as_fd(),
        ],
        directories: vec![c"/".to_owned()],
        with_parent: WithParent::Dies,
        ..Spawn::default()
    };
    let child = spawn.spawn().map_err(|e| failed(&e))?;
    Ok((child, outputs))
}

fn ending(exit: Exit) -> Ending {
    match exit {
        Exit::Code(code) => Ending::Exited { code },
        Exit::Signal(signal) => Ending::Signalled { signal },
    }
}
