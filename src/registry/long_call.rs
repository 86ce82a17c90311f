//! A call that may take longer than its client waits, and the job in which its work then goes on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// What such a call, its tool and its caller's answer share.
#[derive(Debug)]
pub struct LongCall {
    job: String,
    tool: String,
    begun: watch::Sender<bool>,
    cancelled: watch::Sender<bool>,
    standing: Mutex<Standing>,
}

/// What was said of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing.
    Untold,
    /// The client knows its id.
    Told,
    /// It has ended before the client was told.
    Over,
}

impl LongCall {
    /// For a call of this tool, whose work is to be in the job of this id.
    pub fn new(job: String, tool: &str) -> Self {
        Self {
            job,
            tool: tool.to_owned(),
            begun: watch::Sender::new(false),
            cancelled: watch::Sender::new(false),
            standing: Mutex::new(Standing::Untold),
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

    /// Says that there is the job from now on: the work goes on without this server.
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// Whether there is the job.
    pub fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Waits until there is the job.
    pub async fn begun(&self) {
        // It cannot close while it is asked.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }

    /// Says that the client wants no more of it: the job is to be cancelled, and ends then.
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Waits until the client wants no more of it.
    pub async fn cancelled(&self) {
        let _ = self.cancelled.subscribe().wait_for(|is| *is).await;
    }

    /// Says that the client is told of the job; false if it has ended before, and there is only its answer to tell.
    pub fn tell(&self) -> bool {
        let mut standing = self.lock();
        if *standing == Standing::Untold {
            *standing = Standing::Told;
        }
        *standing == Standing::Told
    }

    /// Says that the job has ended; whether the client was told of it before.
    pub fn end(&self) -> bool {
        let mut standing = self.lock();
        if *standing == Standing::Untold {
            *standing = Standing::Over;
        }
        *standing == Standing::Told
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_either_told_of_or_over() {
        let told = LongCall::new("job".into(), "tool");
        assert!(told.tell() && told.end());
        let over = LongCall::new("job".into(), "tool");
        assert!(!over.end() && !over.tell());
    }
}
