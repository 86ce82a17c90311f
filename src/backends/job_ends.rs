//! Jobs that end while nobody listens, as the helper tells of them.

use std::collections::VecDeque;

use crate::helper_client::{Frame, Helper, HelperError, Job, Limits, Operation, Running, Stream};

use super::job_standing::{JobStanding, standing};

/// A longer line is none of the helper's; the connection is given up at it.
const MAX_LINE: usize = 64 * 1024;

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// The agent whose it was.
    pub owner: String,
    /// The call that began it, as it stands in the journal and the audit.
    pub reference: String,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// How it ended.
    pub standing: JobStanding,
}

/// The ends of jobs that nobody listened to: those that there are, and those that come.
#[derive(Debug)]
pub struct JobEnds {
    running: Running,
    line: Vec<u8>,
    waiting: VecDeque<JobEnd>,
}

impl JobEnds {
    /// As this helper tells of them.
    pub async fn of(helper: &Helper) -> Result<Self, HelperError> {
        let limits = Limits {
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

    /// The next one; nothing when the helper tells no more.
    pub async fn next(&mut self) -> Option<JobEnd> {
        loop {
            if let Some(end) = self.waiting.pop_front() {
                return Some(end);
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
                Ok(job) => self.waiting.push_back(end_of(job)),
                Err(cause) => tracing::error!(%cause, "the end of a job is not understood"),
            }
        }
    }
}

fn end_of(job: Job) -> JobEnd {
    JobEnd {
        owner: job.owner.clone(),
        reference: job.reference.clone(),
        duration_ms: job
            .ended_ms
            .unwrap_or_default()
            .saturating_sub(job.began_ms),
        standing: standing(job),
    }
}
