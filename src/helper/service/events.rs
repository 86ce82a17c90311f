//! Streams events of containers: state changes from LXC's monitor, changed definitions from inotify, and changes that
//! the engines report.

use std::io;

use gatewren_base::config::{HelperPolicy, RuntimeKind};
use gatewren_wire::operations::{
    Frame, KillReason, Operation, OperationEnd, OperationRefusal, Stream,
};

use super::definition_watch::{ChangedDefinitions, DefinitionWatch};
use super::engine_watch::EngineWatch;
use super::policy_check;
use crate::context::helper_context::HelperContext;
use crate::context::limits::MAX_EVENT_STREAMS;
use crate::context::lxc_tools::{end_monitor_daemon, tool_for};
use crate::context::operation_context::OperationContext;
use crate::context::orphans::TrackedChild;
use crate::context::outputs::CommandOutputs;
use crate::context::programs::find;
use crate::context::tools;
use crate::processes::commands::require_root;

/// The longest line of LXC's monitor that is passed on. The rest of a longer one is dropped.
const MAX_LINE: usize = 4096;

/// Reports until the caller disconnects or the monitor exits. lxc-monitor leaves a daemon behind, which would keep
/// the directory busy for half a minute. The last stream to end stops the daemon if this helper started it.
pub async fn report(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    require_root()?;
    let outcome = follow(context).await;
    let last = helper.event_streams.available_permits() + 1 == MAX_EVENT_STREAMS;
    if last && helper.orphans.has_monitor_daemon() {
        let tool = end_monitor_daemon(helper.containers.lxcpath());
        if tools::output(&tool, &helper.orphans).await.is_err() {
            tracing::debug!("lxc-monitord was not stopped; it exits by itself");
        }
    }
    outcome
}

/// An event for the stream.
enum StreamNews {
    Ended,
    Output(Stream, Vec<u8>),
    Defined(io::Result<ChangedDefinitions>),
    Engine(ChangedDefinitions),
    /// The policy of which containers may be seen has changed.
    Allowed,
}

/// The sources of events about containers of LXC.
struct LxcEvents {
    monitor: TrackedChild,
    outputs: CommandOutputs,
    definitions: DefinitionWatch,
}

impl LxcEvents {
    /// Starts LXC's monitor. `None` on a host without LXC that serves other runtimes.
    fn open(helper: &HelperContext) -> Result<Option<Self>, OperationRefusal> {
        let policy = helper.policy.now();
        let is_only = policy.runtimes == [RuntimeKind::Lxc];
        if !policy.serves(RuntimeKind::Lxc) || !is_only && find("lxc-monitor").is_err() {
            return Ok(None);
        }
        let definitions = helper.containers.definitions();
        let watched = DefinitionWatch::begin(definitions).map_err(|e| unwatchable(&e))?;
        let tool = tool_for(&Operation::ContainerEvents {}, definitions.lxcpath());
        let tool = tool.ok_or_else(|| OperationRefusal::failed("unsupported operation"))?;
        let (monitor, outputs) = tools::start(&tool, &helper.orphans)?;
        Ok(Some(Self {
            monitor,
            outputs,
            definitions: watched,
        }))
    }

    /// Waits for the next event. Cancel safe.
    async fn next(&mut self, helper: &HelperContext) -> StreamNews {
        tokio::select! {
            _ = self.monitor.wait() => StreamNews::Ended,
            (stream, bytes) = self.outputs.next() => StreamNews::Output(stream, bytes),
            changed = self.definitions.next(helper.containers.definitions()) => {
                StreamNews::Defined(changed)
            }
        }
    }
}

async fn follow(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    let mut lxc = LxcEvents::open(context.helper)?;
    let outcome = stream_events(context, lxc.as_mut()).await;
    if let Some(lxc) = lxc {
        lxc.monitor.kill();
        let _ = lxc.monitor.wait().await;
    }
    outcome
}

async fn stream_events(
    context: &mut OperationContext<'_>,
    mut lxc: Option<&mut LxcEvents>,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let mut lines = Lines::default();
    let mut policy = helper.policy.clone();
    let mut engines = EngineWatch::begin(helper);
    while context.relay.is_reachable() {
        let of_lxc = async {
            match &mut lxc {
                Some(lxc) => lxc.next(helper).await,
                None => std::future::pending().await,
            }
        };
        let next = async {
            tokio::select! {
                news = of_lxc => news,
                changed = engines.next() => StreamNews::Engine(changed),
                () = policy.changed() => StreamNews::Allowed,
            }
        };
        let (stream, text) = match context.relay.wait(next).await {
            Ok(StreamNews::Output(Stream::Stderr, bytes)) => (Stream::Stderr, bytes),
            Ok(StreamNews::Output(stream, bytes)) => (stream, lines.visible(&bytes, &policy.now())),
            Ok(StreamNews::Defined(changed)) => {
                let changed = changed.map_err(|e| unwatchable(&e))?;
                (Stream::Stdout, changed.visible(&policy.now()))
            }
            Ok(StreamNews::Engine(changed)) => (Stream::Stdout, changed.visible(&policy.now())),
            // Other containers may be visible now, or none.
            Ok(StreamNews::Allowed) => {
                policy_check::check(&policy.now(), &Operation::ContainerEvents {})?;
                engines = EngineWatch::begin(helper);
                (
                    Stream::Stdout,
                    ChangedDefinitions::All.visible(&policy.now()),
                )
            }
            Ok(StreamNews::Ended) => {
                let message = "LXC's monitor exited; the next request restarts it";
                return Err(OperationRefusal::failed(message));
            }
            Err(why) => return Ok(OperationEnd::Killed { why }),
        };
        if !text.is_empty() {
            context.relay.send_frame(&Frame::Output(stream, text)).await;
        }
    }
    let why = KillReason::Cancelled;
    Ok(OperationEnd::Killed { why })
}

fn unwatchable(cause: &io::Error) -> OperationRefusal {
    OperationRefusal::failed(format!("the containers cannot be watched: {cause}"))
}

/// Splits the monitor's output into lines.
#[derive(Debug, Default)]
struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    /// Returns the complete lines that are about visible containers.
    fn visible(&mut self, bytes: &[u8], policy: &HelperPolicy) -> Vec<u8> {
        let mut text = Vec::new();
        for byte in bytes {
            if *byte != b'\n' {
                if self.unfinished.len() < MAX_LINE {
                    self.unfinished.push(*byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&self.unfinished);
            if subject(&line).is_some_and(|name| policy.allows_container(name)) {
                text.extend_from_slice(line.as_bytes());
                text.push(b'\n');
            }
            self.unfinished.clear();
        }
        text
    }
}

/// Returns the container that a line such as `'alpha' changed state to [RUNNING]` is about.
fn subject(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix('\'')?.split_once('\'')?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::super::events::*;

    fn policy() -> HelperPolicy {
        HelperPolicy {
            containers: vec!["arr-*".parse().unwrap()],
            ..HelperPolicy::default()
        }
    }

    #[test]
    fn only_what_may_be_seen_is_reported() {
        let mut lines = Lines::default();
        let mut output = Vec::new();
        for piece in [
            "'arr-a' changed sta",
            "te to [STOPPED]\n'vault' changed state to [RUNNING]\n'arr-b' exi",
            "ted with status [0]\nnoise\n",
        ] {
            output.extend(lines.visible(piece.as_bytes(), &policy()));
        }
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "'arr-a' changed state to [STOPPED]\n'arr-b' exited with status [0]\n"
        );
        lines.visible(&vec![b'x'; 1 << 20], &policy());
        assert!(lines.unfinished.len() <= MAX_LINE);

        let names = ["arr-a", "vault"].map(|name| name.parse().unwrap());
        let changed = ChangedDefinitions::Some(names.into());
        assert_eq!(changed.visible(&policy()), b"'arr-a' changed definition\n");
        assert_eq!(
            ChangedDefinitions::All.visible(&policy()),
            b"definitions changed\n"
        );
    }
}
