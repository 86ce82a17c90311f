//! Lines of what the helper prints, as they come; to drop the reader is to end the program that prints them.

use std::collections::VecDeque;

use crate::helper_client::{Ending, Frame, KillReason, Running, Stream};

use super::super::ask::obstacle;
use super::super::error::BackendError;

/// The longest line that is read, in bytes; a longer one is left out. A message may have 64 kB as a rule, and each byte
/// of one that is no text is written with up to four.
const MAX_LINE: usize = 512 * 1024;

/// The most of the program's complaints that is kept.
const MAX_COMPLAINT: usize = 4096;

/// How lines come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// There are no more.
    Done,
    /// The time was up, or too much was printed.
    Cut,
}

/// Bytes becoming lines.
#[derive(Debug)]
pub struct Reader {
    running: Running,
    unfinished: Vec<u8>,
    /// Whether the unfinished line is one that is left out.
    too_long: bool,
    lines: VecDeque<Vec<u8>>,
    heard: String,
}

impl Reader {
    /// Of an operation that prints lines.
    pub fn of(running: Running) -> Self {
        Self {
            running,
            unfinished: Vec::new(),
            too_long: false,
            lines: VecDeque::new(),
            heard: String::new(),
        }
    }

    /// The next line. Safe to drop while it waits: nothing is lost.
    ///
    /// # Errors
    /// What the program complained of, when it failed, and what the helper refused.
    pub async fn next(&mut self) -> Result<Result<Vec<u8>, End>, BackendError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Ok(line));
            }
            match self.running.next().await? {
                Frame::Output(Stream::Stdout, bytes) => self.push(&bytes),
                Frame::Output(Stream::Stderr, bytes) if self.heard.len() < MAX_COMPLAINT => {
                    self.heard.push_str(&String::from_utf8_lossy(&bytes));
                }
                Frame::Output(..) | Frame::Accepted | Frame::Started => {}
                Frame::End(Ending::Killed {
                    why: KillReason::Timeout | KillReason::Output,
                }) => return Ok(Err(End::Cut)),
                // So journalctl ends when no line fits a pattern.
                Frame::End(Ending::Exited { code: 1 }) if self.heard.trim().is_empty() => {
                    return Ok(Err(End::Done));
                }
                Frame::End(ending) => {
                    return match obstacle(&ending, &self.heard) {
                        Some(obstacle) => Err(obstacle),
                        None => Ok(Err(End::Done)),
                    };
                }
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.too_long |= self.unfinished.len() + piece.len() > MAX_LINE;
            if self.too_long {
                self.unfinished.clear();
            } else {
                self.unfinished.extend(piece);
            }
            if pieces.peek().is_some() {
                let line = std::mem::take(&mut self.unfinished);
                if !std::mem::take(&mut self.too_long) && !line.is_empty() {
                    self.lines.push_back(line);
                }
            }
        }
    }
}
