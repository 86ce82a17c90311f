//! One connection: its request, its operation and its end.

use std::sync::Arc;
use std::time::Instant;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use gatewren_base::telemetry::redact_text;
use gatewren_wire::operations::{
    AuditHead, Decoder, Frame, HelperRequest, Operation, OperationEnd, OperationRefusal,
    RefusalCode,
};

use super::job_operations;
use super::perform::perform;
use crate::context::helper_context::HelperContext;
use crate::context::limits::{REQUEST_TIME, limits};
use crate::context::operation_context::OperationContext;
use crate::context::operation_slots::OperationSlot;
use crate::context::output_relay::OutputRelay;
use crate::context::stop::StopConditions;
use crate::processes::step_error::step_end;

/// The longest part of a reference that is logged.
const REFERENCE_CHARS: usize = 80;

/// The longest part of a reason that is logged: it may repeat what the caller sent.
const REASON_CHARS: usize = 300;

/// Serves one connection to its end.
pub async fn serve_connection(helper: Arc<HelperContext>, mut stream: UnixStream) {
    let request = match timeout(REQUEST_TIME, read_request(&mut stream)).await {
        Ok(Ok(request)) => request,
        Ok(Err(cause)) => return no_request(&helper, &cause),
        Err(_) => return no_request(&helper, "the request did not arrive in time"),
    };
    let start_time = Instant::now();
    let limits = limits(request.limits, &request.operation);
    let stop = |timeout_ms| StopConditions::new(timeout_ms, helper.shutdown.clone());
    let relay = OutputRelay::new(stream, limits.output_bytes, stop(u64::MAX));
    let mut relay = relay.with_operation(&request.operation);
    if request.held {
        relay.hold();
    }
    relay.send_frame(&Frame::Accepted).await;
    let outcome = match relay.wait(permit(&helper, &request)).await {
        Err(why) => Ok(OperationEnd::Killed { why }),
        Ok(Err(refusal)) => Err(refusal),
        Ok(Ok(_permit)) => {
            // Waiting for a place does not count towards the operation's timeout.
            relay.set_stop(stop(limits.timeout_ms));
            let mut context = OperationContext {
                helper: &helper,
                relay: &mut relay,
                processes: limits.processes,
            };
            answer(&mut context, &request).await
        }
    };
    helper.orphans.sweep();
    let audit = relay.audit_at_release().or(request.audit.as_ref());
    log(&helper, &request, audit, &outcome, start_time);
    let ending = outcome.unwrap_or_else(OperationEnd::from);
    relay.send_frame(&Frame::End(ending)).await;
}

async fn answer(
    context: &mut OperationContext<'_>,
    request: &HelperRequest,
) -> Result<OperationEnd, OperationRefusal> {
    if request.held && !request.operation.is_command() {
        return Err(OperationRefusal::failed("only a command can be held"));
    }
    match &request.operation {
        Operation::JobStart { .. } => step_end(job_operations::start(context, request).await),
        Operation::JobList { owner, job } => {
            job_operations::list(context, owner.as_deref(), job.as_ref()).await
        }
        Operation::JobWait { owner, job } => {
            step_end(job_operations::wait(context, owner.as_deref(), job).await)
        }
        Operation::JobOutput {
            owner,
            job,
            offset,
            bytes,
        } => job_operations::output(context, owner.as_deref(), job, *offset, *bytes).await,
        Operation::JobCancel { owner, job } => {
            step_end(job_operations::cancel(context, owner.as_deref(), job).await)
        }
        Operation::JobForget { owner, job } => {
            job_operations::forget(context, owner.as_deref(), job)
        }
        Operation::JobEnds {} => step_end(job_operations::report_ends(context).await),
        operation => perform(context, operation).await,
    }
}

async fn read_request(stream: &mut UnixStream) -> Result<HelperRequest, String> {
    let mut decoder = Decoder::default();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        if let Some(request) = decoder.next_request().map_err(|e| e.to_string())? {
            // Depending on timing, further bytes would be dropped or mistaken for a disconnect.
            return if decoder.is_empty() {
                Ok(request)
            } else {
                Err("unexpected bytes after the request".to_owned())
            };
        }
        match stream.read(&mut bytes).await.map_err(|e| e.to_string())? {
            0 => return Err("connection closed before the request".to_owned()),
            n => decoder.push(bytes.get(..n).unwrap_or_default()),
        }
    }
}

/// What an operation holds while it runs.
enum Permit<'a> {
    Stream { _permit: SemaphorePermit<'a> },
    Place { _place: OperationSlot },
}

/// Takes a place for the operation. A stream is rejected if none is free; an operation waits a short time for one.
async fn permit<'a>(
    helper: &'a HelperContext,
    request: &HelperRequest,
) -> Result<Permit<'a>, OperationRefusal> {
    let streams = match request.operation {
        Operation::ContainerEvents {} => &helper.event_streams,
        Operation::Bounds {} | Operation::JobEnds {} => &helper.bounds_streams,
        Operation::JobWait { .. } => &helper.job_waits,
        ref operation => {
            let requester = request.requester.as_ref();
            let place = helper.operations.take(requester, operation).await?;
            return Ok(Permit::Place { _place: place });
        }
    };
    let permit = streams.try_acquire().map_err(|_| {
        let message = "the helper has reached its limit of connections; try again in a few seconds";
        OperationRefusal::new(RefusalCode::Busy, message)
    })?;
    Ok(Permit::Stream { _permit: permit })
}

fn no_request(helper: &HelperContext, cause: &str) {
    let cause = truncate_text(cause, REASON_CHARS);
    helper
        .complaints
        .log(|suppressed| tracing::warn!(cause, suppressed, "no valid request"));
}

/// Logs one line for each operation: at level info if it changes something, at debug if it only reads. The line
/// contains no arguments and no variables' values, as they may be secret.
fn log(
    helper: &HelperContext,
    request: &HelperRequest,
    audit: Option<&AuditHead>,
    outcome: &Result<OperationEnd, OperationRefusal>,
    start_time: Instant,
) {
    // As strings: control characters that would start a new line or command a terminal are escaped.
    let reference = truncate_text(&request.reference, REFERENCE_CHARS);
    let ending = match outcome {
        Ok(ending) => ending.to_string(),
        Err(refusal) => OperationEnd::from(refusal.clone()).to_string(),
    };
    let ending = truncate_text(&redact_text(&ending), REASON_CHARS);
    let operation = request.operation.name();
    // A secret that was passed as a name by mistake is redacted here too.
    let container = request.operation.container();
    let container = container.map(|name| redact_text(name.as_str()));
    let container = container.as_deref();
    let duration_ms = u64::try_from(start_time.elapsed().as_millis()).unwrap_or(u64::MAX);
    // `gatewren audit verify` reads these two fields: an entry that the front's audit had then must still be in it
    // later.
    let (audit_seq, audit_sha256) = (audit.map(AuditHead::seq), audit.map(AuditHead::sha256));
    let say = |suppressed: Option<u64>| {
        tracing::info!(
            reference,
            operation,
            container,
            ending,
            duration_ms,
            audit_seq,
            audit_sha256,
            suppressed,
            "operation"
        );
    };
    if request.operation.is_read_only() {
        tracing::debug!(
            reference,
            operation,
            container,
            ending,
            duration_ms,
            audit_seq,
            audit_sha256,
            "operation"
        );
    } else if outcome
        .as_ref()
        .is_err_and(OperationRefusal::is_of_the_request)
    {
        helper.complaints.log(say);
    } else {
        say(None);
    }
}

fn truncate_text(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}
