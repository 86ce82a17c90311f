//! Changes of containers' states as they happen (`lxc-monitor`).

use std::collections::{BTreeMap, VecDeque};

use crate::helper_client::{ContainerName, Frame, Running, Stream};

use super::super::error::{BackendError, ErrorKind};
use super::ask::obstacle;
use super::details::ContainerState;

/// The longest line that is understood, in bytes; a longer one is forgotten.
const MAX_LINE: usize = 4096;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ContainerEvent {
    container: ContainerName,
    state: ContainerState,
}

/// The changes from now on; dropping it ends the monitor.
#[derive(Debug)]
pub struct ContainerEvents {
    running: Running,
    lines: Lines,
    heard: String,
    ended: Option<BackendError>,
}

/// Bytes becoming events.
#[derive(Debug, Default)]
struct Lines {
    unfinished: Vec<u8>,
    events: VecDeque<ContainerEvent>,
}

impl ContainerEvents {
    pub(super) fn of(running: Running) -> Self {
        Self {
            running,
            lines: Lines::default(),
            heard: String::new(),
            ended: None,
        }
    }

    /// Waits for the next change and takes those that are there already with it: how each container that
    /// changed stands now. Safe to drop while it waits: no change is lost.
    ///
    /// # Errors
    /// When the monitor ended, for whatever reason; ask for new events then.
    pub async fn next(&mut self) -> Result<BTreeMap<ContainerName, ContainerState>, BackendError> {
        if let Some(cause) = self.ended.take() {
            return Err(cause);
        }
        let first = self.one().await?;
        let mut news = BTreeMap::from([(first.container, first.state)]);
        loop {
            tokio::select! {
                biased;
                more = self.one() => match more {
                    Ok(event) => news.insert(event.container, event.state),
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
                Frame::Output(..) | Frame::Accepted => {}
                Frame::End(ending) => {
                    let ended =
                        || BackendError::new(ErrorKind::Failed, "the container monitor ended");
                    return Err(obstacle(&ending, &self.heard).unwrap_or_else(ended));
                }
            }
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

/// Reads a line such as `'alpha' changed state to [RUNNING]`; others tell no state.
fn event(line: &str) -> Option<ContainerEvent> {
    let (name, state) = line
        .strip_prefix('\'')?
        .split_once("' changed state to [")?;
    Some(ContainerEvent {
        container: name.parse().ok()?,
        state: ContainerState::parse(state.strip_suffix(']')?)?,
    })
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
        let states: Vec<_> = lines
            .events
            .iter()
            .map(|event| (event.container.as_str(), event.state))
            .collect();
        assert_eq!(
            states,
            [
                ("tau", ContainerState::Stopped),
                ("alpha", ContainerState::Running)
            ]
        );
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
