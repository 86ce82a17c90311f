//! Events of containers: changes of state (`lxc-monitor`) and of definition (inotify).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::helper_client::{ContainerRef, Frame, RunningOperation, Stream};

use super::super::error::{BackendError, ErrorKind};
use super::super::request::operation_error;
use super::details::ContainerState;

/// The longest line in bytes; a longer one is cut and ignored.
const MAX_LINE: usize = 4096;

/// The changes since the last call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedContainers {
    /// The containers that changed their state, with the new state.
    pub states: BTreeMap<ContainerRef, ContainerState>,
    /// Containers that were added, removed or redefined.
    pub defined: BTreeSet<ContainerRef>,
    /// Whether any container may have been added, removed or redefined.
    pub all: bool,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ContainerEvent {
    State(ContainerRef, ContainerState),
    Defined(ContainerRef),
    AllDefined,
}

/// A subscription to changes; dropping it stops the monitor.
#[derive(Debug)]
pub struct ContainerEvents {
    running: RunningOperation,
    lines: Lines,
    heard: String,
    ended: Option<BackendError>,
}

/// Parses output into events.
#[derive(Debug, Default)]
struct Lines {
    unfinished: Vec<u8>,
    events: VecDeque<ContainerEvent>,
}

impl ContainerEvents {
    pub(super) fn of(running: RunningOperation) -> Self {
        Self {
            running,
            lines: Lines::default(),
            heard: String::new(),
            ended: None,
        }
    }

    /// Waits for the next change and returns it with all further ones already received. Cancel
    /// safe: no change is lost.
    ///
    /// # Errors
    /// When the monitor ended for any reason; the caller must subscribe again.
    pub async fn next(&mut self) -> Result<ChangedContainers, BackendError> {
        if let Some(cause) = self.ended.take() {
            return Err(cause);
        }
        let mut news = ChangedContainers::default();
        news.take(self.one().await?);
        loop {
            tokio::select! {
                biased;
                more = self.one() => match more {
                    Ok(event) => news.take(event),
                    Err(cause) => {
                        self.ended = Some(cause);
                        break;
                    }
                },
                () = std::future::ready(()) => break,
            };
        }
        Ok(news)
    }

    async fn one(&mut self) -> Result<ContainerEvent, BackendError> {
        loop {
            if let Some(event) = self.lines.events.pop_front() {
                return Ok(event);
            }
            match self.running.next().await? {
                Frame::Output(Stream::Stdout, bytes) => self.lines.push(&bytes),
                Frame::Output(Stream::Stderr, bytes) if self.heard.len() < MAX_LINE => {
                    self.heard.push_str(&String::from_utf8_lossy(&bytes));
                }
                Frame::Output(..) | Frame::Accepted | Frame::Started => {}
                Frame::End(ending) => {
                    let ended =
                        || BackendError::new(ErrorKind::Failed, "the container monitor ended");
                    return Err(operation_error(&ending, &self.heard).unwrap_or_else(ended));
                }
            }
        }
    }
}

impl ChangedContainers {
    fn take(&mut self, event: ContainerEvent) {
        match event {
            ContainerEvent::State(name, state) => {
                self.states.insert(name, state);
            }
            ContainerEvent::Defined(name) => {
                self.defined.insert(name);
            }
            ContainerEvent::AllDefined => self.all = true,
        }
    }
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                let line = String::from_utf8_lossy(&self.unfinished);
                self.events.extend(event(&line));
                self.unfinished.clear();
            } else if self.unfinished.len() < MAX_LINE {
                self.unfinished.push(*byte);
            }
        }
    }
}

/// Parses a line of [`Operation::ContainerEvents`](crate::helper_client::Operation); other lines
/// are ignored.
fn event(line: &str) -> Option<ContainerEvent> {
    if line == "definitions changed" {
        return Some(ContainerEvent::AllDefined);
    }
    let (name, what) = line.strip_prefix('\'')?.split_once("' changed ")?;
    let name = name.parse().ok()?;
    if what == "definition" {
        return Some(ContainerEvent::Defined(name));
    }
    let state = what.strip_prefix("state to [")?.strip_suffix(']')?;
    Some(ContainerEvent::State(name, ContainerState::parse(state)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_in_pieces() {
        let mut lines = Lines::default();
        for piece in [
            "'tau' changed sta",
            "te to [STOPPED]\n'tau' exited with status [0]\n'al",
            "pha",
        ] {
            lines.push(piece.as_bytes());
        }
        assert_eq!(lines.events.len(), 1);
        lines.push(b"' changed state to [RUNNING]\n");
        lines.push(b"'new' changed definition\ndefinitions changed\n");
        let mut news = ChangedContainers::default();
        lines.events.into_iter().for_each(|event| news.take(event));
        let name = |text: &str| text.parse().unwrap();
        let expected = ChangedContainers {
            states: BTreeMap::from([
                (name("tau"), ContainerState::Stopped),
                (name("alpha"), ContainerState::Running),
            ]),
            defined: BTreeSet::from([name("new")]),
            all: true,
        };
        assert_eq!(news, expected);
    }

    #[test]
    fn odd_lines_are_no_events_and_cost_no_memory() {
        let mut lines = Lines::default();
        lines.push(b"\n'../x' changed state to [RUNNING]\n'a' changed state to [ODD]\n\xff\n");
        assert_eq!(lines.events.len(), 0);
        lines.push(&vec![b'x'; 1 << 20]);
        assert!(lines.unfinished.len() <= MAX_LINE);
    }
}
