//! Reads the reaper's reports from its pipe. Their size is limited: other processes in a container could write to it.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

use gatewren_wire::operations::{MAX_REPORT_BYTES, ReaperReport};

/// The read end of the pipe.
#[derive(Debug)]
pub struct ReaperReports {
    pipe: Receiver,
    pending: Vec<u8>,
    second_end: bool,
}

impl ReaperReports {
    /// Creates a reader of `pipe`.
    pub fn new(pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            pipe: Receiver::from_owned_fd(pipe)?,
            pending: Vec::new(),
            second_end: false,
        })
    }

    /// Returns what identifies the pipe, as `/proc/PID/fd` shows it for each process that has it.
    pub fn pipe(&self) -> PathBuf {
        let own = format!("/proc/self/fd/{}", self.pipe.as_raw_fd());
        fs::read_link(own).unwrap_or_default()
    }

    /// Returns the next report; `None` if the reaper is gone, or if the data is not from it.
    pub async fn next(&mut self) -> Option<ReaperReport> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return serde_json::from_slice(&line).ok();
            }
            if self.pending.len() > MAX_REPORT_BYTES {
                return None;
            }
            let mut bytes = [0; 512];
            match self.pipe.read(&mut bytes).await {
                Ok(n) if n > 0 => self.pending.extend(bytes.iter().take(n)),
                _ => return None,
            }
        }
    }

    /// Waits until every process that could write here has closed the pipe: the reaper and the programs that led to
    /// it. Cancel safe: another call continues the wait.
    pub async fn wait_closed(&mut self) {
        while let Some(report) = self.next().await {
            self.second_end |= matches!(report, ReaperReport::Ended(_));
        }
        let mut bytes = [0; 512];
        while let Ok(1..) = self.pipe.read(&mut bytes).await {}
    }

    /// Returns whether a report of an ending arrived while `wait_closed` waited.
    pub fn has_second_end(&self) -> bool {
        self.second_end
    }
}
