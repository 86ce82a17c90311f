//! Work that runs as a job of the helper, and so continues when this server or its client is gone.

use std::fmt;
use std::pin::{Pin, pin};
use std::time::Duration;

use crate::helper_client::{
    Capture, FinishedOperation, Frame, HelperClient, JobId, Operation, OperationLimits,
    RunningOperation, finish,
};

use super::error::{BackendError, ErrorKind};
use super::request::{CAPTURE, answer, ask, limits, operation_error};

/// The timeout for removing or cancelling a job.
const FORGET_TIME: Duration = Duration::from_secs(10);

/// The job that a call's work runs as.
pub struct CallJob {
    /// The new job's id.
    pub id: JobId,
    /// The agent that owns it.
    pub owner: String,
    /// The tool that starts it.
    pub tool: String,
    /// The observer of its progress.
    pub observer: Box<dyn JobObserver>,
}

/// Observes the job of a call.
pub trait JobObserver: Send + Sync {
    /// Called when the job has started.
    fn on_start(&self);

    /// Completes when the job should be cancelled.
    fn wait_for_cancel(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Called when the job has ended. Returns whether a client knows the job, so that it must be
    /// kept.
    fn on_end(&self) -> bool;
}

impl fmt::Debug for CallJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallJob")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Starts a job; dropping the result does not end it.
///
/// # Errors
/// When the helper does not start it.
pub async fn begin(
    helper: &HelperClient,
    start: Operation,
    limits: OperationLimits,
    reference: &str,
) -> Result<RunningOperation, BackendError> {
    let mut running = helper.start(start, limits, reference).await?;
    loop {
        match running.next().await? {
            Frame::Started => return Ok(running),
            Frame::End(ending) => {
                let failed = || BackendError::new(ErrorKind::Failed, "the job did not start");
                return Err(operation_error(&ending, "").unwrap_or_else(failed));
            }
            Frame::Accepted | Frame::Output(..) => {}
        }
    }
}

/// A long operation and its limits.
#[derive(Debug)]
pub struct LongOperation {
    /// The operation.
    pub operation: Operation,
    /// Its limits in the helper.
    pub limits: OperationLimits,
    /// How much of its output is captured.
    pub capture: Capture,
}

impl LongOperation {
    /// Returns an operation with this timeout and the usual limits.
    pub fn new(operation: Operation, time: Duration) -> Self {
        Self {
            operation,
            limits: limits(time),
            capture: CAPTURE,
        }
    }
}

/// Runs a long operation, as a job if there is one, and returns its output.
///
/// # Errors
/// As for a direct operation.
pub async fn ask_long(
    helper: &HelperClient,
    long: LongOperation,
    job: Option<CallJob>,
    reference: &str,
) -> Result<String, BackendError> {
    answer(&run_long(helper, long, job, reference).await?)
}

/// Like `ask_long`, but returns the captured output and how it ended.
///
/// # Errors
/// When the helper does not start it, or disconnects.
pub async fn run_long(
    helper: &HelperClient,
    long: LongOperation,
    job: Option<CallJob>,
    reference: &str,
) -> Result<FinishedOperation, BackendError> {
    let (limits, capture) = (long.limits, long.capture);
    let Some(call) = job else {
        let run = helper.run(long.operation, limits, reference, capture);
        return Ok(run.await?);
    };
    let (job, owner) = (call.id, call.owner);
    let start = Operation::JobStart {
        job: job.clone(),
        owner: owner.clone(),
        tool: call.tool,
        detached: false,
        operation: Box::new(long.operation),
    };
    let running = begin(helper, start, limits, reference).await?;
    call.observer.on_start();
    let mut finished = pin!(finish(running, limits, capture, std::future::pending()));
    let finished = tokio::select! {
        biased;
        finished = &mut finished => finished,
        () = call.observer.wait_for_cancel() => {
            let (owner, job) = (Some(owner.clone()), job.clone());
            // A job that can no longer be cancelled runs to its end.
            let _ = ask(helper, Operation::JobCancel { owner, job }, FORGET_TIME, reference).await;
            finished.await
        }
    };
    if !call.observer.on_end() {
        let owner = Some(owner);
        let forget = Operation::JobForget { owner, job };
        // Best effort: a job that remains is only one more entry in a list.
        let _ = ask(helper, forget, FORGET_TIME, reference).await;
    }
    Ok(finished?)
}
