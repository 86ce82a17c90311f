//! `tools/call`: runs a tool if the agent's policy allows it.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::call::{Call, CallOutcome, CallReply};
use super::changes::confirm::{ConfirmationRound, confirm};
use super::changes::owner_approval::{OwnerProposal, propose_other, put_into_inbox};
use super::changes::proposals::offers;
use super::elicitation::{StateBinding, arguments, ask, inputs, name, surroundings};
use super::engine::Engine;
use super::record::Record;
use super::reference;
use super::tasks::call_end::{CallEnd, StopReason};
use super::tasks::long_call;
use super::tasks::methods::declared;
use super::tasks::promotion::{PromotionResult, TaskPromotion};
use gatewren_base::sys::{Requester, on_behalf_of};
use gatewren_base::telemetry::redact_text;
use gatewren_gate::policy::{Verdict, confirms, judge, sees};
use gatewren_wire::protocol::{Content, InputAnswers, RpcError, progress_token};
use gatewren_wire::registry::{
    Answer, BoxFuture, CallQuestion, Cx, Interruption, Permit, Risk, TaskSupport, Tool, ToolError,
};

/// The maximum number of queued notifications of a call; if the queue is full, the tool waits.
const QUEUED_NOTES: usize = 64;

/// `tools/call`.
pub fn call(engine: Arc<Engine>, call: Call) -> CallReply {
    begin(engine, call).unwrap_or_else(|error| CallReply::ready(Err(error)))
}

fn begin(engine: Arc<Engine>, mut call: Call) -> Result<CallReply, RpcError> {
    let name = name(&call.params)?;
    let tool = engine
        .catalog
        .tool(name)
        .filter(|tool| sees(&call.context.who, tool))
        .cloned();
    let tool = tool.ok_or_else(|| {
        RpcError::invalid_params(format!(
            "unknown tool: {name}; tools/list shows tools that you may call"
        ))
    })?;
    let alias = tool.alias(name);
    let remembers = tool.remembers() || confirms(&call.context.who, &tool);
    let (inputs, binding) = inputs(&engine, &mut call, remembers)?;
    let mut arguments = arguments(&mut call.params)?;
    let understood = Tool::translate(alias, &mut arguments);
    understood.map_err(|refused| RpcError::invalid_params(refused.to_string()))?;
    let mut cx = surroundings(&call, reference::next(), inputs);
    if tool.hears_offers() {
        let (fixture, who) = (engine.clone(), call.context.who.clone());
        cx = cx.with_offers(move || offers(&fixture, &who));
    }
    cx = cx.with_long_call(long_call::of_tool(&tool));
    let token = progress_token(&call.params)?;
    let mut notes = None;
    if call.context.hears_notes && (token.is_some() || call.context.log_level.is_some()) {
        let (sender, receiver) = mpsc::channel(QUEUED_NOTES);
        cx = cx.with_listener(sender, token, call.context.log_level);
        notes = Some(receiver);
    }
    let mut questions = None;
    if may_be_task(&tool, &call)? {
        let (desk, receiver) = mpsc::channel(1);
        cx = cx.with_desk(desk);
        questions = Some(receiver);
    }
    let outlives = tool.risk().outlives_its_client();
    let running = run(engine, call, tool, (arguments, cx), (binding, questions));
    Ok(CallReply {
        notes,
        outcome: if outlives {
            detached(running)
        } else {
            Box::pin(running)
        },
    })
}

/// Whether the client receives progress notifications, which keep it from timing out while a person decides.
fn hears_progress(call: &Call) -> bool {
    call.context.hears_notes && matches!(progress_token(&call.params), Ok(Some(_)))
}

/// Runs the call to its end in a separate task, even if its client disconnects.
fn detached(
    running: impl Future<Output = Result<CallOutcome, RpcError>> + Send + 'static,
) -> BoxFuture<Result<CallOutcome, RpcError>> {
    let task = tokio::spawn(running);
    Box::pin(async move {
        task.await
            .unwrap_or_else(|_| Err(RpcError::internal("task")))
    })
}

/// Whether this call may become a task: the tool defines whether its calls may, and the request whether its client
/// supports tasks.
fn may_be_task(tool: &Tool, call: &Call) -> Result<bool, RpcError> {
    match tool.task_support() {
        TaskSupport::Never => Ok(false),
        TaskSupport::Offered => Ok(declared(call).is_ok()),
        TaskSupport::Required => declared(call).map(|()| true),
    }
}

async fn run(
    engine: Arc<Engine>,
    call: Call,
    tool: Arc<Tool>,
    (arguments, cx): (Map<String, Value>, Cx),
    (binding, questions): (StateBinding, Option<mpsc::Receiver<CallQuestion>>),
) -> Result<CallOutcome, RpcError> {
    let (who, given) = (&call.context.who, (&tool, &arguments));
    let verdict = match judge(who, &tool, &arguments) {
        // Rare branches are boxed, here and below, because the future of each call is moved when it starts.
        Verdict::Confirm => match Box::pin(confirm(&engine, &call, given, &cx, &binding)).await? {
            ConfirmationRound::Run(verdict) => verdict,
            ConfirmationRound::End(outcome) => return Ok(outcome),
            ConfirmationRound::AskOwner(record, why) => {
                let proposed = OwnerProposal::call(&tool, arguments, record).because(why);
                return Ok(Box::pin(put_into_inbox(&engine, &call, proposed)).await);
            }
        },
        verdict => verdict,
    };
    let request = cx.reference().clone();
    let record = Record::begin(&engine, &call, given, &request, &verdict).await?;
    if let Verdict::Propose | Verdict::ConfirmOwner = verdict {
        let proposed = OwnerProposal::call(&tool, arguments, record);
        let waits = matches!(verdict, Verdict::ConfirmOwner) && hears_progress(&call);
        let proposed = proposed.waiting(waits);
        return Ok(Box::pin(put_into_inbox(&engine, &call, proposed)).await);
    }
    let long = cx.long_call().cloned();
    let record = record.of_long(long.clone());
    let work = work(
        engine.clone(),
        tool.clone(),
        (verdict, record),
        (arguments, cx),
    );
    let answered = match questions {
        None => PromotionResult::Ended(match long {
            Some(long) => Box::pin(long_call::answer(&engine, who, &long, Box::pin(work))).await,
            None => work.await,
        }),
        Some(questions) => {
            let handover = TaskPromotion {
                engine: engine.clone(),
                tool,
                who: who.clone(),
                capabilities: call.context.capabilities.clone(),
                request,
                questions,
                long,
            };
            Box::pin(handover.answer(Box::pin(work))).await
        }
    };
    outcome_of(&engine, &call, &binding, answered).await
}

async fn outcome_of(
    engine: &Engine,
    call: &Call,
    binding: &StateBinding,
    answered: PromotionResult,
) -> Result<CallOutcome, RpcError> {
    match answered {
        PromotionResult::Task(result) => Ok(CallOutcome::Complete(engine.signed(result))),
        PromotionResult::Ended(Ok(result)) => Ok(CallOutcome::Called(result)),
        PromotionResult::Ended(Err(StopReason::Ask(question))) => {
            ask(engine, call, binding, question)
        }
        PromotionResult::Ended(Err(StopReason::Propose(proposal))) => {
            Ok(Box::pin(propose_other(engine, call, *proposal)).await)
        }
        PromotionResult::Ended(Err(StopReason::Rpc(error))) => Err(error),
    }
}

/// Calls a read-only tool for a prompt, with the caller's permissions, and records the call. Returns `None` if the
/// caller has no such tool.
pub(super) async fn look(
    engine: Arc<Engine>,
    call: Arc<Call>,
    (name, arguments): (&'static str, Map<String, Value>),
) -> Option<Result<String, String>> {
    let who = &call.context.who;
    let tool = engine.catalog.tool(name)?.clone();
    let looks = sees(who, &tool) && tool.risk() == Risk::Read;
    let verdict = Some(judge(who, &tool, &arguments)).filter(|_| looks)?;
    let Verdict::Allow(_) = verdict else {
        return None;
    };
    let cx = surroundings(&call, reference::next(), InputAnswers::default());
    let request = cx.reference().clone();
    let given = (&tool, &arguments);
    let record = Record::begin(&engine, &call, given, &request, &verdict)
        .await
        .ok()?;
    let ended = work(engine, tool, (verdict, record), (arguments, cx)).await;
    let result = ended.ok()?;
    let failed = result.failed;
    let Some(Content::Text { text, .. }) = result.blocks().into_iter().next() else {
        return None;
    };
    Some(if failed { Err(text) } else { Ok(text) })
}

/// Runs the tool and records how it ended. Dropping the future ends what the tool runs, and records that.
async fn work(
    engine: Arc<Engine>,
    tool: Arc<Tool>,
    (verdict, record): (Verdict, Record),
    (arguments, cx): (Map<String, Value>, Cx),
) -> CallEnd {
    let answer = match verdict {
        Verdict::Allow(permit)
        | Verdict::Confirmed(permit)
        | Verdict::Granted(permit)
        | Verdict::Approved(permit, _) => {
            let requester = Requester::Agent(cx.caller().agent.clone());
            let run = run_allowed(&engine, &tool, permit, (arguments, cx));
            on_behalf_of(requester, run).await
        }
        Verdict::Confirm | Verdict::ConfirmOwner | Verdict::Propose => Err(needs_approval().into()),
        Verdict::Deny => {
            Err(RpcError::invalid_params(format!("unknown tool: {}", tool.name())).into())
        }
    };
    match answer {
        Ok((answer, revision)) => {
            record.end(if answer.failed { "failed" } else { "ok" }, revision);
            Ok(answer.into_result())
        }
        Err(Interruption::Failed(error)) => {
            record.end("failed", None);
            Ok(Answer::from(error).into_result())
        }
        Err(Interruption::Ask(question)) => {
            record.end("asked", None);
            Err(StopReason::Ask(question))
        }
        Err(Interruption::Propose(asked)) => Err(StopReason::Propose(Box::new((asked, record)))),
        Err(Interruption::Rpc(error)) => {
            record.end("refused", None);
            Err(StopReason::Rpc(error))
        }
    }
}

/// Runs a tool, and waits until the state reflects its effects.
pub(super) async fn run_allowed(
    engine: &Engine,
    tool: &Tool,
    permit: Permit,
    (arguments, cx): (Map<String, Value>, Cx),
) -> Result<(Answer, Option<u64>), Interruption> {
    let settling = tool
        .syncs_state()
        .then(|| engine.catalog.settling(cx.reference()));
    let viewer = cx.caller().viewer();
    let answer = tool.run(permit, arguments, cx).await;
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

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn p1_what_changes_the_box_runs_to_its_end_when_its_client_goes() {
        let (go_on, gone) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        let running = detached(async move {
            let _ = gone.await;
            let _ = done.send(());
            Err(RpcError::internal("x"))
        });
        drop(running);
        go_on.send(()).unwrap();
        is_done.await.unwrap();
    }
}
