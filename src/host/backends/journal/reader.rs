//! Reads the lines that an operation prints, as they arrive; dropping the reader kills the program.

use std::collections::VecDeque;

use crate::helper_client::{
    Frame, KillReason, LogOrder, Operation, OperationEnd, RunningOperation, Stream,
};

use super::super::error::BackendError;
use super::super::request::operation_error;

/// The longest line in bytes; longer ones are skipped. A message usually has at most 64 kB, and
/// each byte of a binary message is printed with up to four.
const MAX_LINE: usize = 512 * 1024;

/// How much of the program's standard error is kept.
const MAX_COMPLAINT: usize = 4096;

/// The most lines that a query of a journal prints.
pub fn printed_at_most(operation: &Operation) -> Option<u32> {
    match operation {
        Operation::HostLog { query } | Operation::ContainerLog { query, .. } => {
            query.most.filter(|_| query.order == LogOrder::Older)
        }
        _ => None,
    }
}

/// Splits output into lines.
#[derive(Debug)]
pub struct OutputLineReader {
    running: RunningOperation,
    unfinished: Vec<u8>,
    /// Whether the unfinished line is too long and skipped.
    too_long: bool,
    lines: VecDeque<Vec<u8>>,
    /// How many lines have ended, skipped ones included.
    ended: usize,
    stderr: String,
    truncated: bool,
}

impl OutputLineReader {
    /// Returns a reader of an operation that prints lines.
    pub fn of(running: RunningOperation) -> Self {
        Self {
            running,
            unfinished: Vec::new(),
            too_long: false,
            lines: VecDeque::new(),
            ended: 0,
            stderr: String::new(),
            truncated: false,
        }
    }

    /// Whether the time or output limit ended the output.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// How many lines the program has printed, skipped ones included.
    pub fn printed_lines(&self) -> usize {
        self.ended
    }

    /// Returns the next line; `None` after the last one. Cancel safe: nothing is lost.
    ///
    /// # Errors
    /// The program's error message when it failed, and the helper's refusal.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, BackendError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            match self.running.next().await? {
                Frame::Output(Stream::Stdout, bytes) => self.push(&bytes),
                Frame::Output(Stream::Stderr, bytes) if self.stderr.len() < MAX_COMPLAINT => {
                    self.stderr.push_str(&String::from_utf8_lossy(&bytes));
                }
                Frame::Output(..) | Frame::Accepted | Frame::Started => {}
                Frame::End(OperationEnd::Killed {
                    why: KillReason::Timeout | KillReason::Output,
                }) => {
                    self.truncated = true;
                    return Ok(None);
                }
                // journalctl exits like this when no line matches a pattern.
                Frame::End(OperationEnd::Exited { code: 1 }) if self.stderr.trim().is_empty() => {
                    return Ok(None);
                }
                Frame::End(ending) => {
                    return operation_error(&ending, &self.stderr).map_or(Ok(None), Err);
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
                self.ended += 1;
                let line = std::mem::take(&mut self.unfinished);
                if !std::mem::take(&mut self.too_long) && !line.is_empty() {
                    self.lines.push_back(line);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_query_of_older_lines_has_a_bound() {
        let bound = |query: &str| {
            let query = serde_json::from_str(query).unwrap();
            printed_at_most(&Operation::HostLog { query })
        };
        assert_eq!(bound(r#"{"order":"older","most":7}"#), Some(7));
        assert_eq!(bound(r#"{"order":"newer","most":7}"#), None);
        assert_eq!(bound(r#"{"order":"older"}"#), None);
    }
}
