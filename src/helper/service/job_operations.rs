//! Operations on jobs: start one, query it, read its output, cancel it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use gatewren_base::sys::now_ms;
use gatewren_base::telemetry::redact_text;
use gatewren_wire::operations::{
    Command, Frame, HelperRequest, Job, JobId, JobOutputHeader, KillReason, Operation,
    OperationEnd, OperationLimits, OperationRefusal, Program,
};

use super::perform::{check, perform};
use crate::context::helper_context::HelperContext;
use crate::context::job_log;
use crate::context::job_output_sink::JobOutputSink;
use crate::context::jobs::no_such_job;
use crate::context::limits::job_limits;
use crate::context::operation_context::OperationContext;
use crate::context::output_relay::OutputRelay;
use crate::context::stop::StopConditions;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// The most characters of a command in a job's description.
const COMMAND_CHARS: usize = 200;

/// The most output of one response.
const PIECE_BYTES: u32 = 1 << 20;

/// Starts a job and passes its output to the caller until it ends or the caller disconnects.
pub async fn start(
    context: &mut OperationContext<'_>,
    request: &HelperRequest,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let Operation::JobStart {
        job,
        owner,
        tool,
        detached,
        operation,
    } = &request.operation
    else {
        return Err(OperationRefusal::failed("unsupported operation").into());
    };
    if !can_be_a_job(operation) {
        return Err(OperationRefusal::bad_command("it cannot run as a job").into());
    }
    check(helper, operation)?;
    if let Operation::ContainerCommand { container, .. } = &**operation {
        require_root()?;
        // A container that cannot be entered is reported at once; no job starts.
        let running = helper.containers.running(container);
        let _ = context.relay.wait(running).await??;
    }
    let job = Job {
        reference: request.reference.clone(),
        ..new_job(job, owner, tool, operation)
    };
    let id = job.id.clone();
    let (sink, mut frames) = helper.jobs.begin(job)?;
    let limits = job_limits(request.limits, operation);
    let operation = (**operation).clone();
    tokio::spawn(run(Arc::clone(helper), sink, id.clone(), operation, limits));
    context.relay.send_frame(&Frame::Started).await;
    if *detached {
        return Ok(OperationEnd::SUCCESS);
    }
    while context.relay.is_reachable() {
        match context.relay.wait(frames.recv()).await {
            Ok(Some(frame)) => context.relay.send_frame(&frame).await,
            Ok(None) => {
                let ended = helper.jobs.find(None, &id)?.ending;
                let why = KillReason::Lost;
                return Ok(ended.unwrap_or(OperationEnd::Killed { why }));
            }
            Err(_) => break,
        }
    }
    // The caller has disconnected, so nothing receives this. The job runs on.
    Ok(OperationEnd::SUCCESS)
}

/// Creates the record of a job that starts now.
fn new_job(id: &JobId, owner: &str, tool: &str, operation: &Operation) -> Job {
    Job {
        id: id.clone(),
        owner: owner.to_owned(),
        tool: tool.to_owned(),
        reference: String::new(),
        operation: operation.name().to_owned(),
        container: operation.container().cloned(),
        command: command_of(operation),
        began_ms: now_ms(),
        ended_ms: None,
        ending: None,
        heard: false,
        output_bytes: 0,
        lost_bytes: 0,
    }
}

/// Returns whether an operation can be a job: it ends without its caller and is not a stream.
fn can_be_a_job(operation: &Operation) -> bool {
    !matches!(
        operation,
        Operation::Ping {}
            | Operation::Bounds {}
            | Operation::ContainerEvents {}
            | Operation::JobStart { .. }
            | Operation::JobList { .. }
            | Operation::JobWait { .. }
            | Operation::JobOutput { .. }
            | Operation::JobCancel { .. }
            | Operation::JobForget { .. }
            | Operation::JobEnds {}
    )
}

async fn run(
    helper: Arc<HelperContext>,
    sink: JobOutputSink,
    id: JobId,
    operation: Operation,
    limits: OperationLimits,
) {
    let start_time = Instant::now();
    let stop = StopConditions::new(limits.timeout_ms, helper.shutdown.clone());
    let name = operation.name();
    let mut relay =
        OutputRelay::for_job(sink, limits.output_bytes, stop).with_operation(&operation);
    let own = Arc::clone(&helper);
    // In its own task: if it panics, the job still ends.
    let work = tokio::spawn(async move {
        let mut context = OperationContext {
            helper: &own,
            relay: &mut relay,
            processes: limits.processes,
        };
        let outcome = perform(&mut context, &operation).await;
        (relay, outcome)
    });
    let (relay, outcome) = match work.await {
        Ok((relay, outcome)) => (Some(relay), outcome),
        Err(cause) => {
            tracing::error!(%cause, job = %id, "a job's task failed");
            (
                None,
                Err(OperationRefusal::failed(
                    "the helper failed with an internal error; see its log",
                )),
            )
        }
    };
    helper.orphans.sweep();
    let ending = outcome.unwrap_or_else(OperationEnd::from);
    let shown = redact_text(&ending.to_string()).into_owned();
    let duration_ms = u64::try_from(start_time.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(job = %id, operation = name, ending = shown, duration_ms, "job ended");
    let heard = relay.as_ref().is_some_and(OutputRelay::has_listener);
    helper.jobs.end(&id, ending, heard);
    // The end can be queried now: drop the relay, so that a listening caller is notified.
    drop(relay);
}

/// Returns the beginning of a command with secrets redacted, so that people can tell jobs apart.
fn command_of(operation: &Operation) -> Option<String> {
    let (Operation::HostCommand { command } | Operation::ContainerCommand { command, .. }) =
        operation
    else {
        return None;
    };
    let Command { program, .. } = command;
    let text = match program {
        Program::Shell(line) => line.clone(),
        Program::Argv(argv) => argv.join(" "),
    };
    let text: String = redact_text(&text).chars().take(COMMAND_CHARS).collect();
    Some(text)
}

/// Prints jobs with their current state.
pub async fn list(
    context: &mut OperationContext<'_>,
    owner: Option<&str>,
    job: Option<&JobId>,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let mut jobs = helper.jobs.list(owner, job);
    jobs.retain(|job| may_be_seen(helper, job));
    if let (Some(id), true) = (job, jobs.is_empty()) {
        return Err(no_such_job(id));
    }
    print(context.relay, move || {
        Ok(jobs.iter().flat_map(line).collect())
    })
    .await
}

/// Waits until a job has ended, and prints it.
pub async fn wait(
    context: &mut OperationContext<'_>,
    owner: Option<&str>,
    id: &JobId,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let mut ended_jobs = helper.jobs.subscribe();
    loop {
        ended_jobs.mark_unchanged();
        let job = find(helper, owner, id)?;
        if job.ending.is_some() {
            return Ok(print(context.relay, move || Ok(line(&job))).await?);
        }
        let _ = context.relay.wait(ended_jobs.changed()).await?;
    }
}

/// Prints a piece of a job's output.
pub async fn output(
    context: &mut OperationContext<'_>,
    owner: Option<&str>,
    id: &JobId,
    offset: u64,
    bytes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let job = find(helper, owner, id)?;
    let place = helper
        .jobs
        .place(&job.id)
        .ok_or_else(|| no_such_job(&job.id))?;
    let most = usize::try_from(bytes.min(PIECE_BYTES)).unwrap_or_default();
    print(context.relay, move || {
        let read = job_log::read(&place, offset, job.output_bytes, most);
        let (offset, bytes) =
            read.map_err(|e| OperationRefusal::failed(format!("the output cannot be read: {e}")))?;
        let piece = JobOutputHeader {
            offset,
            output_bytes: job.output_bytes,
            ended: job.ending.is_some(),
        };
        Ok([line(&piece), bytes].concat())
    })
    .await
}

/// Cancels a job, waits until it has ended, and prints it.
pub async fn cancel(
    context: &mut OperationContext<'_>,
    owner: Option<&str>,
    id: &JobId,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let job = find(helper, owner, id)?;
    helper.jobs.cancel(&job.id);
    wait(context, owner, id).await
}

/// Removes a job that has ended.
pub fn forget(
    context: &OperationContext<'_>,
    owner: Option<&str>,
    id: &JobId,
) -> Result<OperationEnd, OperationRefusal> {
    let job = find(context.helper, owner, id)?;
    context.helper.jobs.forget(&job.id);
    Ok(OperationEnd::SUCCESS)
}

/// Prints each job that ended while its caller did not listen, and then each further one, until the caller
/// disconnects.
pub async fn report_ends(context: &mut OperationContext<'_>) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let mut ended_jobs = helper.jobs.subscribe();
    let mut reported = BTreeSet::new();
    while context.relay.is_reachable() {
        ended_jobs.mark_unchanged();
        let mut jobs = helper.jobs.list(None, None);
        reported.retain(|id| jobs.iter().any(|job| job.id == *id));
        jobs.retain(|job| job.ending.is_some() && !job.heard && reported.insert(job.id.clone()));
        for job in jobs {
            context.relay.write_stdout(line(&job)).await;
        }
        let _ = context.relay.wait(ended_jobs.changed()).await?;
    }
    let why = KillReason::Cancelled;
    Ok(OperationEnd::Killed { why })
}

fn find(helper: &HelperContext, owner: Option<&str>, id: &JobId) -> Result<Job, OperationRefusal> {
    let job = helper.jobs.find(owner, id)?;
    if may_be_seen(helper, &job) {
        Ok(job)
    } else {
        Err(no_such_job(id))
    }
}

/// A job of a container that the policy hides is hidden too.
fn may_be_seen(helper: &HelperContext, job: &Job) -> bool {
    let policy = helper.policy.now();
    let container = job.container.as_ref();
    container.is_none_or(|name| policy.allows_container(name.as_str()))
}

fn line(value: &impl serde::Serialize) -> Vec<u8> {
    // Plain strings and numbers always serialize.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}
