//! Runs a tool that the policy allows, and records how the call ended.

use std::sync::Arc;

use super::call::ToolRequest;
use super::call_log::CallLog;
use super::demo::refusal_in_demo;
use super::engine::Engine;
use super::error_words;
use super::record::{Record, refusal};
use super::tasks::call_end::{CallEnd, StopReason};
use gatewren_base::sys::{Requester, beside_intent, on_behalf_of};
use gatewren_base::telemetry::redact_text;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{Verdict, stricter_argument};
use gatewren_store::vault::WrittenIntent;
use gatewren_wire::protocol::RpcError;
use gatewren_wire::registry::{Answer, Interruption, Permit, ToolError};

/// The words for a call that the policy denies.
fn denial(request: &ToolRequest) -> String {
    let name = request.tool.name();
    // The agent sees the tool, so it is the argument that is denied.
    if let Some(argument) = stricter_argument(&request.tool, &request.arguments) {
        return format!(
            "{name} with `{argument}` is not allowed for this agent; call it without `{argument}`. Nothing was done"
        );
    }
    if request.cx.is_on_host() {
        return format!(
            "{name} is not allowed here: a program in this container has the rights of the host's root, and this \
             agent may not run commands on the host"
        );
    }
    format!("unknown tool {name:?}")
}

/// Runs the tool and records how it ended. Dropping the future ends what the tool runs, and records that.
pub(super) async fn run_recorded(
    engine: Arc<Engine>,
    who: Principal,
    request: ToolRequest,
    verdict: Verdict,
    mut record: Record,
) -> CallEnd {
    let log = CallLog::begin(engine.catalog.log_offer(), &request).await;
    let answer = match verdict {
        Verdict::Allow(permit)
        | Verdict::Confirmed(permit)
        | Verdict::Granted(permit)
        | Verdict::Approved(permit, _)
        | Verdict::Scheduled(permit, _) => {
            let requester = Requester::Agent(request.cx.caller().agent.clone());
            let run = on_behalf_of(requester, run_allowed(&engine, request, permit));
            match record.take_unwritten() {
                None => run.await,
                Some(unwritten) => Box::pin(run_beside(unwritten, &mut record, run)).await,
            }
        }
        Verdict::Confirm | Verdict::ConfirmOwner | Verdict::Propose => Err(needs_approval().into()),
        Verdict::Deny => Err(RpcError::invalid_params(denial(&request)).into()),
    };
    if let Some(log) = log {
        log.end(&answer).await;
    }
    match answer {
        Ok((answer, revision)) => {
            record.end_with(&answer, revision);
            Ok(answer.into_result())
        }
        Err(Interruption::Failed(error)) => {
            record.fail(&error.message);
            let error = error_words::for_agent(&engine.catalog, &who, error);
            Ok(Answer::from(error).into_result())
        }
        Err(Interruption::Ask(question)) => {
            record.end("asked", None);
            Err(StopReason::Ask(question))
        }
        Err(Interruption::Propose(other)) => Err(StopReason::Propose(Box::new((other, record)))),
        Err(Interruption::Rpc(error)) => {
            record.refuse(&error.message);
            Err(StopReason::Rpc(error))
        }
    }
}

/// Runs a tool while its intent is being written. If that fails, the command of the tool has not run, and the call fails
/// as one whose intent is written first.
async fn run_beside<T>(
    unwritten: WrittenIntent,
    record: &mut Record,
    run: impl Future<Output = Result<T, Interruption>>,
) -> Result<T, Interruption> {
    let (written, answer) = beside_intent(unwritten, run).await;
    if let Err(cause) = written {
        record.has_no_intent();
        return Err(refusal(&cause).into());
    }
    answer
}

/// Runs a tool, and waits until the state reflects its effects.
pub(super) async fn run_allowed(
    engine: &Engine,
    request: ToolRequest,
    permit: Permit,
) -> Result<(Answer, Option<u64>), Interruption> {
    let (tool, cx) = (&request.tool, &request.cx);
    if engine.catalog.is_demo
        && let Some(refusal) = refusal_in_demo(tool.name())
    {
        return Err(refusal.into());
    }
    let settling = tool
        .syncs_state()
        .then(|| engine.catalog.settling(cx.reference()));
    let viewer = cx.caller().viewer();
    let answer = tool.run(permit, request.arguments, request.cx).await;
    let mut answer = answer.map_err(without_secrets)?;
    let revision = match settling {
        Some(settling) => settling.await,
        None => None,
    };
    if let Some(revision) = revision {
        // Capped at the newest revision that the caller can see: later changes elsewhere have no revision for the
        // caller.
        answer.reflect(revision.min(engine.newest(&viewer)));
    }
    Ok((answer, revision))
}

/// The error output of a failed program may contain secrets that the caller must not see.
fn without_secrets(ended: Interruption) -> Interruption {
    match ended {
        Interruption::Failed(error) => Interruption::Failed(ToolError {
            message: redact_text(&error.message).into_owned(),
            ..error
        }),
        other => other,
    }
}

fn needs_approval() -> ToolError {
    ToolError::new(
        "This call needs the owner's approval, which this server cannot request. Nothing was done.",
    )
    .hint("Ask the owner to do it, or to give this agent a policy that allows it.")
}
