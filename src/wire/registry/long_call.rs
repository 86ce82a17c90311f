//! A call that may take longer than its client waits, and the job in which its work then continues.

use std::sync::Mutex;

use gatewren_base::sys::lock;
use tokio::sync::watch;

/// The state that is shared by such a call, its tool and its answer.
#[derive(Debug)]
pub struct LongCall {
    job: String,
    tool: String,
    started: watch::Sender<bool>,
    cancelled: watch::Sender<bool>,
    delivery: Mutex<IdDelivery>,
}

/// Whether the client was given the job's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdDelivery {
    /// Not yet.
    Pending,
    /// The client was given the id.
    Delivered,
    /// The job ended before the client was given the id.
    TooLate,
}

impl LongCall {
    /// Creates the state for a call of this tool; the job will have this id.
    pub fn new(job: String, tool: &str) -> Self {
        Self {
            job,
            tool: tool.to_owned(),
            started: watch::Sender::new(false),
            cancelled: watch::Sender::new(false),
            delivery: Mutex::new(IdDelivery::Pending),
        }
    }

    /// The id of the job.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// The tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Marks the job as started: the work no longer depends on this server.
    pub fn begin(&self) {
        self.started.send_replace(true);
    }

    /// Whether the job has started.
    pub fn has_begun(&self) -> bool {
        *self.started.borrow()
    }

    /// Waits until the job has started.
    pub async fn wait_for_start(&self) {
        // The channel cannot close while it is borrowed here.
        let _ = self.started.subscribe().wait_for(|started| *started).await;
    }

    /// Marks the job as no longer wanted by the client: it must be cancelled, and then ends.
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Waits until the client no longer wants the job.
    pub async fn wait_for_cancel(&self) {
        let _ = self.cancelled.subscribe().wait_for(|is| *is).await;
    }

    /// Marks the job's id as given to the client. Returns false if the job has already ended, so that only its
    /// answer remains to be sent.
    pub fn deliver_id(&self) -> bool {
        let mut delivery = lock(&self.delivery);
        if *delivery == IdDelivery::Pending {
            *delivery = IdDelivery::Delivered;
        }
        *delivery == IdDelivery::Delivered
    }

    /// Marks the job as ended. Returns whether the client was given its id before.
    pub fn end(&self) -> bool {
        let mut delivery = lock(&self.delivery);
        if *delivery == IdDelivery::Pending {
            *delivery = IdDelivery::TooLate;
        }
        *delivery == IdDelivery::Delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_either_told_of_or_over() {
        let call = LongCall::new("job".into(), "tool");
        assert!(call.deliver_id() && call.end());
        let over = LongCall::new("job".into(), "tool");
        assert!(!over.end() && !over.deliver_id());
    }
}
