//! What the reaper says, as it comes up its pipe; inside a container others could write there, so it is bounded.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

use crate::exec::{MAX_REPORT_BYTES, Report};

/// The reading end.
#[derive(Debug)]
pub struct Reports {
    pipe: Receiver,
    pending: Vec<u8>,
    told_again: bool,
}

impl Reports {
    /// Reads from `pipe`.
    pub fn new(pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            pipe: Receiver::from_owned_fd(pipe)?,
            pending: Vec::new(),
            told_again: false,
        })
    }

    /// The next report; `None` when the reaper is gone, or when this is not from our reaper.
    pub async fn next(&mut self) -> Option<Report> {
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

    /// Waits until every process that could write here has closed it: the reaper and what led to it. Calling it again
    /// goes on where it was stopped.
    pub async fn closed(&mut self) {
        while let Some(report) = self.next().await {
            self.told_again |= matches!(report, Report::Ended(_));
        }
        let mut bytes = [0; 512];
        while let Ok(1..) = self.pipe.read(&mut bytes).await {}
    }

    /// Whether a report of an end came while `closed` waited.
    pub fn told_again(&self) -> bool {
        self.told_again
    }
}
