//! Commands on the host and in containers.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use gatewren_base::sys::source::field;
use gatewren_base::sys::{adopt_orphans, is_root};
use gatewren_wire::operations::{
    Command, ContainerRef, Frame, KillReason, OperationEnd, OperationRefusal, Program,
    ReaperLaunch, RefusalCode, Stream,
};

use super::container_entry::ContainerEntry;
use super::process_scope::{ProcessScope, TeardownResult};
use super::spawn_spec::SpawnSpec;
use crate::context::helper_context::{REAPER_PATH, reaper_argv};
use crate::context::limits::{CallLimits, check};
use crate::context::operation_context::OperationContext;
use crate::context::output_relay::OutputRelay;
use crate::context::outputs::CommandOutputs;

/// How long starting the reaper may take. After that the container counts as one that cannot be entered.
const ENTRY_TIME: Duration = Duration::from_secs(15);

/// Receives a command's output in place of the caller. What it returns is sent to the caller as stderr.
pub type OutputCallback<'a> = &'a mut (dyn FnMut(Stream, &[u8]) -> Option<Vec<u8>> + Send);

/// The ending of a command when the helper's own time limit for it is over: as if killed by SIGALRM.
pub const OUT_OF_TIME: OperationEnd = OperationEnd::Signalled { signal: 14 };

/// A reader of a command's output in the helper, and how long the command may take.
struct CommandReader<'a> {
    on_output: OutputCallback<'a>,
    time: Duration,
}

/// Runs a command on the host.
pub async fn run_on_host(
    context: &mut OperationContext<'_>,
    command: &Command,
) -> Result<OperationEnd, OperationRefusal> {
    spawn_on_host(context, command, None).await
}

/// Like `run_on_host`, for a command of the helper's own. The helper reads its output, and may give it less time than
/// the caller has.
pub async fn read_on_host(
    context: &mut OperationContext<'_>,
    command: &Command,
    on_output: OutputCallback<'_>,
    time: Duration,
) -> Result<OperationEnd, OperationRefusal> {
    let reader = CommandReader { on_output, time };
    spawn_on_host(context, command, Some(reader)).await
}

async fn spawn_on_host(
    context: &mut OperationContext<'_>,
    command: &Command,
    reader: Option<CommandReader<'_>>,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    check(command)?;
    let own = File::open("/proc/self/exe").map_err(|e| {
        OperationRefusal::failed(format!("cannot open gatewren's own program: {e}"))
    })?;
    let cgroup = helper.own_cgroup.as_deref();
    let spec = SpawnSpec {
        program: REAPER_PATH.to_owned(),
        argv: reaper_argv().into(),
        reaper: own.as_fd(),
        cgroup: cgroup.and_then(|parent| helper.cgroup(parent, limits(context))),
        enters_cgroup: false,
        runs_as: None,
        description: None,
        memberships: Vec::new(),
        container: None,
    };
    let shell = if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    };
    run(context, spec, &launch(command, shell), reader).await
}

/// Runs a command in a running container. `on_host` says whether the front judged it as a command on the host.
pub async fn run_in_container(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    command: &Command,
    on_host: bool,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    check(command)?;
    require_root()?;
    let running = context
        .relay
        .wait(helper.containers.running(container))
        .await;
    let running = match running {
        Ok(running) => running?,
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    running.check_host_rights(container, &helper.policy.now(), on_host)?;
    let reaper = helper.reaper().map_err(|e| no_reaper(&e))?;
    let new_cgroup = |parent| helper.cgroup(parent, limits(context));
    let cgroup = running.call_parent().and_then(new_cgroup);
    let client_cgroup = running.client_parent().and_then(new_cgroup);
    let entry = ContainerEntry {
        container,
        running,
        cgroup,
        client_cgroup,
    };
    let lxcpath = helper.containers.lxcpath();
    let (spec, command) = entry.spec(lxcpath, command, reaper.as_fd())?;
    let launch = ReaperLaunch {
        inherits: spec.runs_as.is_some(),
        ..launch(&command, "/bin/sh")
    };
    run(context, spec, &launch, None).await
}

fn limits(context: &OperationContext<'_>) -> CallLimits {
    let is_clients_command = context.relay.is_clients_command();
    CallLimits::of(context.processes, is_clients_command, memory_total())
}

/// The host's memory in bytes.
fn memory_total() -> Option<u64> {
    // The total is in the first line; to read all of the file takes as long as to make a cgroup.
    let mut beginning = [0; 256];
    let length = File::open("/proc/meminfo")
        .ok()?
        .read(&mut beginning)
        .ok()?;
    let text = String::from_utf8_lossy(beginning.get(..length)?);
    let total = field(&text, "MemTotal", ':')?;
    total
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// Rejects an operation that only root can perform.
pub fn require_root() -> Result<(), OperationRefusal> {
    if is_root() {
        return Ok(());
    }
    let message = "containers need root: run gatewren as root, or install it as a service, \
                   whose helper is root";
    Err(OperationRefusal::new(RefusalCode::NotRoot, message))
}

async fn run(
    context: &mut OperationContext<'_>,
    spec: SpawnSpec<'_>,
    launch: &ReaperLaunch,
    mut reader: Option<CommandReader<'_>>,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    adopt_orphans().map_err(|e| no_orphans(&e))?;
    let spawned = ProcessScope::spawn(spec, helper);
    let (mut scope, mut outputs) =
        spawned.map_err(|e| OperationRefusal::failed(format!("cannot start a process: {e}")))?;
    let relay = &mut *context.relay;
    let outcome = match relay.wait(timeout(ENTRY_TIME, scope.ready())).await {
        Ok(Ok(true)) => Ok(match (relay.released().await, &mut reader) {
            (Err(why), _) => OperationEnd::Killed { why },
            (Ok(()), None) => relay.relay_until(&mut outputs, scope.run(launch)).await,
            (Ok(()), Some(reader)) => {
                let run = timeout(reader.time, scope.run(launch));
                let run = async { run.await.unwrap_or(OUT_OF_TIME) };
                stream_output(relay, &mut outputs, run, reader.on_output).await
            }
        }),
        Ok(_) => Err(()),
        Err(why) => Ok(OperationEnd::Killed { why }),
    };
    let torn_down = scope.tear_down(helper).await;
    warn_about(&torn_down, context.relay.operation());
    let ending = outcome.map_err(|()| entry_refusal(&mut outputs))?;
    let ending = with_loss(ending, &torn_down);
    match reader {
        None => context.relay.drain(&mut outputs).await,
        Some(reader) => {
            for which in [Stream::Stdout, Stream::Stderr] {
                outputs
                    .rest(which)
                    .for_each(|bytes| drop((reader.on_output)(which, &bytes)));
            }
        }
    }
    Ok(ending)
}

/// Logs a warning about a lost reaper, or about processes that survived a reaper.
fn warn_about(torn_down: &TeardownResult, operation: &str) {
    let TeardownResult {
        lost,
        survivors,
        session,
        ..
    } = torn_down;
    let (killed, first) = (survivors.killed, &survivors.first);
    if let Some(how) = lost {
        tracing::warn!(
            operation,
            how,
            killed,
            ?first,
            session,
            "the reaper of a call was lost; the helper killed the call's processes"
        );
    } else if killed > 0 {
        tracing::warn!(
            operation,
            killed,
            ?first,
            session,
            "processes of a call survived its reaper; the helper killed them"
        );
    }
}

/// Replaces the reported ending if the reaper was lost, since the command may have sent that report. Also replaces it
/// if the kernel killed a process for its memory. In the second case an exit code of 0 is kept: the command did its
/// work.
fn with_loss(ending: OperationEnd, torn_down: &TeardownResult) -> OperationEnd {
    let is_reported = matches!(
        ending,
        OperationEnd::Exited { .. } | OperationEnd::Signalled { .. }
    );
    if !is_reported || ending == OUT_OF_TIME {
        return ending;
    }
    let is_well = torn_down.lost.is_none() && ending == OperationEnd::SUCCESS;
    if torn_down.was_out_of_memory && !is_well {
        let why = KillReason::Memory;
        return OperationEnd::Killed { why };
    }
    match torn_down.lost {
        Some(_) => OperationEnd::Killed {
            why: KillReason::ReaperLost,
        },
        None => ending,
    }
}

/// Passes the output to `on_output` until the command has ended or there is a reason to kill it.
async fn stream_output(
    relay: &mut OutputRelay,
    outputs: &mut CommandOutputs,
    ended: impl Future<Output = OperationEnd>,
    on_output: OutputCallback<'_>,
) -> OperationEnd {
    let mut ended = pin!(ended);
    loop {
        let until_news = async {
            loop {
                tokio::select! {
                    biased;
                    ending = &mut ended => return Err(ending),
                    (which, bytes) = outputs.next() => if let Some(news) = on_output(which, &bytes) {
                        return Ok(news);
                    }
                }
            }
        };
        match relay.wait(until_news).await {
            Ok(Ok(news)) => relay.send_frame(&Frame::Output(Stream::Stderr, news)).await,
            Ok(Err(ending)) => return ending,
            Err(why) => return OperationEnd::Killed { why },
        }
    }
}

/// The refusal when this process cannot adopt orphans: the reaper needs the same feature to kill everything.
fn no_orphans(cause: &io::Error) -> OperationRefusal {
    OperationRefusal::failed(format!(
        "commands are refused, because their background processes could not be killed: this kernel or emulator does \
         not let a process adopt orphans: {cause}"
    ))
}

/// The refusal with lxc-attach's own message, when it did not start the reaper.
fn entry_refusal(outputs: &mut CommandOutputs) -> OperationRefusal {
    let stderr = outputs.rest(Stream::Stderr).next().unwrap_or_default();
    let stderr = String::from_utf8_lossy(&stderr);
    let cause = stderr.lines().next().unwrap_or("no reason given").trim();
    OperationRefusal::failed(format!(
        "the command's process could not be started: {cause}"
    ))
}

fn launch(command: &Command, shell: &str) -> ReaperLaunch {
    let argv = match &command.program {
        Program::Shell(line) => vec![shell.to_owned(), "-c".to_owned(), line.clone()],
        Program::Argv(argv) => argv.clone(),
    };
    ReaperLaunch {
        argv,
        user: command.user.clone(),
        cwd: command.cwd.clone(),
        env: command.env.clone(),
        inherits: false,
    }
}

fn no_reaper(cause: &io::Error) -> OperationRefusal {
    OperationRefusal::failed(if cause.kind() == io::ErrorKind::Unsupported {
        "this build of gatewren is not static, so it cannot work inside containers; \
         build it with +crt-static or install the released package"
            .to_owned()
    } else {
        format!("gatewren could not copy itself for the container: {cause}")
    })
}
