//! Streams events of containers: state changes from LXC's monitor, changed definitions from inotify.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::Duration;

use tokio::time::sleep;

use gatewren_base::config::HelperPolicy;
use gatewren_base::sys::{FolderEvent, FolderWatch};
use gatewren_wire::operations::{
    ContainerRef, Frame, KillReason, Operation, OperationEnd, OperationRefusal, Stream,
};

use super::policy_check;
use crate::context::definitions::{CONFIG, ContainerDefinitions, proxmox_container};
use crate::context::limits::MAX_EVENT_STREAMS;
use crate::context::lxc_tools::{end_monitor_daemon, tool_for};
use crate::context::operation_context::OperationContext;
use crate::context::orphans::TrackedChild;
use crate::context::outputs::CommandOutputs;
use crate::context::tools;
use crate::processes::commands::require_root;

/// The most directories that are watched. Definitions in further ones are not watched.
const MAX_FOLDERS: usize = 2048;

/// How often to look for a directory that did not exist, such as Proxmox's, which is mounted late.
const REARM_TIME: Duration = Duration::from_secs(30);

/// A file in a container's directory while lxc-create builds it. LXC reports nothing about the container until the
/// file is gone.
const PARTIAL: &str = "partial";

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
    /// The policy of which containers may be seen has changed.
    Allowed,
}

async fn follow(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let definitions = helper.containers.definitions();
    let watched = DefinitionWatch::begin(definitions).map_err(|e| unwatchable(&e))?;
    let tool = tool_for(&Operation::ContainerEvents {}, definitions.lxcpath());
    let tool = tool.ok_or_else(|| OperationRefusal::failed("unsupported operation"))?;
    let (monitor, outputs) = tools::start(&tool, &helper.orphans)?;
    let outcome = stream_events(context, watched, &monitor, outputs).await;
    monitor.kill();
    let _ = monitor.wait().await;
    outcome
}

async fn stream_events(
    context: &mut OperationContext<'_>,
    mut watched: DefinitionWatch,
    monitor: &TrackedChild,
    mut outputs: CommandOutputs,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let definitions = helper.containers.definitions();
    let mut lines = Lines::default();
    let mut policy = helper.policy.clone();
    while context.relay.is_reachable() {
        let next = async {
            tokio::select! {
                _ = monitor.wait() => StreamNews::Ended,
                (stream, bytes) = outputs.next() => StreamNews::Output(stream, bytes),
                changed = watched.next(definitions) => StreamNews::Defined(changed),
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
            // Other containers may be visible now, or none.
            Ok(StreamNews::Allowed) => {
                policy_check::check(&policy.now(), &Operation::ContainerEvents {})?;
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

/// The containers whose definitions may have changed.
#[derive(Debug, PartialEq, Eq)]
enum ChangedDefinitions {
    /// These containers.
    Some(BTreeSet<ContainerRef>),
    /// Any container.
    All,
}

impl ChangedDefinitions {
    fn visible(&self, policy: &HelperPolicy) -> Vec<u8> {
        let text = match self {
            Self::All => "definitions changed\n".to_owned(),
            Self::Some(names) => {
                let seen = names
                    .iter()
                    .filter(|name| policy.allows_container(name.as_str()));
                seen.flat_map(|name| ["'", name.as_str(), "' changed definition\n"])
                    .collect()
            }
        };
        text.into_bytes()
    }
}

/// A watched directory.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WatchedDirectory {
    Lxcpath,
    Proxmox,
    Container(ContainerRef),
}

/// The directories with definitions.
struct DefinitionWatch {
    folders: FolderWatch<WatchedDirectory>,
    lxcpath: bool,
    proxmox: bool,
}

impl DefinitionWatch {
    fn begin(definitions: &ContainerDefinitions) -> io::Result<Self> {
        let mut watched = Self {
            folders: FolderWatch::new()?,
            lxcpath: false,
            proxmox: false,
        };
        watched.arm(definitions);
        Ok(watched)
    }

    /// Waits for changes. Cancel safe.
    async fn next(&mut self, definitions: &ContainerDefinitions) -> io::Result<ChangedDefinitions> {
        loop {
            let events = tokio::select! {
                events = self.folders.next() => events?,
                () = sleep(REARM_TIME), if !(self.lxcpath && self.proxmox) => {
                    if self.arm(definitions) {
                        return Ok(ChangedDefinitions::All);
                    }
                    continue;
                }
            };
            let mut containers = BTreeSet::new();
            for event in events {
                containers.extend(self.container(event, definitions));
            }
            if !containers.is_empty() {
                return Ok(ChangedDefinitions::Some(containers));
            }
        }
    }

    /// Watches directories that exist now and did not before; returns whether there were any.
    fn arm(&mut self, definitions: &ContainerDefinitions) -> bool {
        let before = (self.lxcpath, self.proxmox);
        if !self.lxcpath {
            self.lxcpath = self.add(definitions, WatchedDirectory::Lxcpath);
            let entries = fs::read_dir(definitions.lxcpath()).into_iter().flatten();
            let names = entries.flatten().filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                name.parse().ok()
            });
            for name in names {
                self.add(definitions, WatchedDirectory::Container(name));
            }
        }
        if !self.proxmox {
            self.proxmox = self.add(definitions, WatchedDirectory::Proxmox);
        }
        before != (self.lxcpath, self.proxmox)
    }

    /// Returns the container that an event is about, if any.
    fn container(
        &mut self,
        event: FolderEvent<WatchedDirectory>,
        definitions: &ContainerDefinitions,
    ) -> Option<ContainerRef> {
        let entry = event.entry.as_deref().and_then(|entry| entry.to_str());
        match (event.folder, entry) {
            (WatchedDirectory::Lxcpath, Some(entry)) => {
                let name: ContainerRef = entry.parse().ok()?;
                self.add(definitions, WatchedDirectory::Container(name.clone()));
                Some(name)
            }
            (WatchedDirectory::Container(name), Some(CONFIG | PARTIAL)) => Some(name),
            (WatchedDirectory::Container(_), Some(_)) => None,
            (WatchedDirectory::Container(name), None) => {
                // After a rename the event arrives here under the new name.
                self.add(definitions, WatchedDirectory::Container(name.clone()));
                Some(name)
            }
            (WatchedDirectory::Proxmox, Some(entry)) => proxmox_container(entry),
            (WatchedDirectory::Lxcpath, None) => {
                self.lxcpath = false;
                None
            }
            (WatchedDirectory::Proxmox, None) => {
                self.proxmox = false;
                None
            }
        }
    }

    fn add(&mut self, definitions: &ContainerDefinitions, place: WatchedDirectory) -> bool {
        let path = match &place {
            WatchedDirectory::Lxcpath => Some(definitions.lxcpath().to_owned()),
            WatchedDirectory::Proxmox => definitions.proxmox().map(ToOwned::to_owned),
            WatchedDirectory::Container(name) => Some(definitions.directory(name)),
        };
        let Some(path) = path.filter(|_| self.folders.count() < MAX_FOLDERS) else {
            return false;
        };
        let added = self.folders.add(&path, place);
        if let Err(cause) = &added {
            tracing::debug!(%cause, path = %path.display(), "not watched");
        }
        added.is_ok()
    }
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
