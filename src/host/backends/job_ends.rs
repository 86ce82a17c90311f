//! Jobs that end while no call waits for them, as the helper reports them.

use std::collections::VecDeque;

use crate::helper_client::{
    Frame, HelperClient, HelperError, Job, Operation, OperationLimits, RunningOperation, Stream,
};

use super::job_status::JobStatus;

/// The helper sends no longer line; the connection is dropped at one.
const MAX_LINE: usize = 64 * 1024;

/// The ends of jobs that no call waited for: past ones and, from then on, new ones.
#[derive(Debug)]
pub struct JobEnds {
    running: RunningOperation,
    line: Vec<u8>,
    waiting: VecDeque<JobStatus>,
}

impl JobEnds {
    /// Subscribes to them at this helper.
    pub async fn of(helper: &HelperClient) -> Result<Self, HelperError> {
        let limits = OperationLimits {
            timeout_ms: u64::MAX,
            output_bytes: u64::MAX,
            processes: 1,
        };
        let running = helper
            .start(Operation::JobEnds {}, limits, "job ends")
            .await?;
        Ok(Self {
            running,
            line: Vec::new(),
            waiting: VecDeque::new(),
        })
    }

    /// Returns the next one; `None` when the helper sends no more.
    pub async fn next(&mut self) -> Option<JobStatus> {
        loop {
            if let Some(job) = self.waiting.pop_front() {
                return Some(job);
            }
            match self.running.next().await {
                Ok(Frame::Output(Stream::Stdout, bytes)) => self.take(&bytes),
                Ok(Frame::Output(Stream::Stderr, _) | Frame::Accepted | Frame::Started) => {}
                Ok(Frame::End(_)) | Err(_) => return None,
            }
            if self.line.len() > MAX_LINE {
                return None;
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let job = serde_json::from_slice::<Job>(&self.line);
            self.line = rest;
            match job {
                Ok(job) => self.waiting.push_back(job.into()),
                Err(cause) => {
                    tracing::error!(%cause, "the helper reported an invalid end of a job");
                }
            }
        }
    }
}
