//! Work that is kept as a job of the helper's: it goes on when this server or its client has gone.

use std::fmt;
use std::pin::{Pin, pin};
use std::time::Duration;

use crate::helper_client::{
    Capture, Finished, Frame, Helper, JobId, Limits, Operation, Running, finish,
};

use super::{
    ask::{CAPTURE, answer, ask, limits, obstacle},
    error::{BackendError, ErrorKind},
};

/// How long the helper may take to forget a job, or to cancel it.
const FORGET_TIME: Duration = Duration::from_secs(10);

/// As what the work of a call is kept.
pub struct Keep {
    /// The new job's id.
    pub job: JobId,
    /// The agent whose it is.
    pub owner: String,
    /// The tool that begins it.
    pub tool: String,
    /// Hears of it.
    pub ear: Box<dyn Ear>,
}

/// Hears of a job of its call.
pub trait Ear: Send + Sync {
    /// There is the job.
    fn begun(&self);

    /// Comes when it is to be cancelled.
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// It has ended; whether somebody was told of it, so that it is kept.
    fn ended(&self) -> bool;
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keep")
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

/// Begins a job; to drop what comes back ends nothing.
///
/// # Errors
/// When the helper does not begin it.
pub async fn begin(
    helper: &Helper,
    start: Operation,
    limits: Limits,
    reference: &str,
) -> Result<Running, BackendError> {
    let mut running = helper.start(start, limits, reference).await?;
    loop {
        match running.next().await? {
            Frame::Started => return Ok(running),
            Frame::End(ending) => {
                let failed = || BackendError::new(ErrorKind::Failed, "the job did not begin");
                return Err(obstacle(&ending, "").unwrap_or_else(failed));
            }
            Frame::Accepted | Frame::Output(..) => {}
        }
    }
}

/// Has the helper do one thing that takes long, as a job where there is one to be, and returns what it printed.
///
/// # Errors
/// As for what is asked and answered at once.
pub async fn ask_kept(
    helper: &Helper,
    operation: Operation,
    time: Duration,
    (keep, reference): (Option<Keep>, &str),
) -> Result<String, BackendError> {
    let bounds = (limits(time), CAPTURE);
    answer(&finish_kept(helper, operation, bounds, (keep, reference)).await?)
}

/// The same, and returns how it ended.
///
/// # Errors
/// When the helper does not begin it, or goes away.
pub async fn finish_kept(
    helper: &Helper,
    operation: Operation,
    (limits, capture): (Limits, Capture),
    (keep, reference): (Option<Keep>, &str),
) -> Result<Finished, BackendError> {
    let Some(keep) = keep else {
        return Ok(helper.run(operation, limits, reference, capture).await?);
    };
    let (job, owner) = (keep.job, keep.owner);
    let start = Operation::JobStart {
        job: job.clone(),
        owner: owner.clone(),
        tool: keep.tool,
        detached: false,
        operation: Box::new(operation),
    };
    let running = begin(helper, start, limits, reference).await?;
    keep.ear.begun();
    let mut finished = pin!(finish(running, limits, capture, std::future::pending()));
    let finished = tokio::select! {
        biased;
        finished = &mut finished => finished,
        () = keep.ear.cancelled() => {
            let (owner, job) = (Some(owner.clone()), job.clone());
            // One that cannot be cancelled any more goes to its end.
            let _ = ask(helper, Operation::JobCancel { owner, job }, FORGET_TIME, reference).await;
            finished.await
        }
    };
    if !keep.ear.ended() {
        let owner = Some(owner);
        let forget = Operation::JobForget { owner, job };
        // One that stays is one more in a list.
        let _ = ask(helper, forget, FORGET_TIME, reference).await;
    }
    Ok(finished?)
}
