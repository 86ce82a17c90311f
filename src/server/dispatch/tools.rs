//! `tools/call`: runs a tool if the agent's policy allows it.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::call::{Call, CallOutcome, CallReply, ToolRequest};
use super::call_reason::take_reason_of_call;
use super::changes::confirm::{ConfirmationRound, confirm};
use super::changes::owner_approval::{OwnerProposal, propose_other, put_into_inbox};
use super::changes::proposals::offers;
use super::container_names::{
    NameLookup, NameRequest, NamedContainer, ask_for_container, resolve_container,
    resolve_container_now, resolve_inside,
};
use super::elicitation::{StateBinding, arguments, ask, inputs, name, surroundings};
use super::engine::Engine;
use super::error_words;
use super::host_rights::{is_on_host, judge_call};
use super::included::with_included;
use super::record::{IntentOrder, Record};
use super::recorded_run::run_recorded;
use super::reference;
use super::schedules::check::with_check;
use super::tasks::call_end::StopReason;
use super::tasks::long_call;
use super::tasks::methods::check_declared;
use super::tasks::promotion::{PromotionResult, TaskPromotion};
use super::tool_lookup::callable;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{Verdict, confirms, judge, sees};
use gatewren_wire::protocol::{Content, InputAnswers, RpcError, progress_token};
use gatewren_wire::registry::{
    Answer, BoxFuture, CallQuestion, Risk, TaskSupport, Tool, ToolError,
};

/// The maximum number of queued notifications of a call; if the queue is full, the tool waits.
const QUEUED_NOTES: usize = 64;

/// `tools/call`.
pub fn call(engine: Arc<Engine>, call: Call) -> CallReply {
    begin(engine, call).unwrap_or_else(|error| CallReply::ready(Err(error)))
}

fn begin(engine: Arc<Engine>, mut call: Call) -> Result<CallReply, RpcError> {
    let name = name(&call.params)?;
    let tool = callable(&engine.catalog, &call.context.who, name)?;
    let alias = tool.alias(name);
    let remembers = tool.remembers() || confirms(&call.context.who, &tool);
    // Before the parameters are compared with those of an earlier round.
    let reason = take_reason_of_call(&tool, &mut call.params)?;
    let (inputs, binding) = inputs(&engine, &mut call, remembers)?;
    let mut arguments = arguments(&mut call.params)?;
    let inside = alias.and_then(|alias| alias.name_inside(&arguments));
    let understood = Tool::translate(alias, &mut arguments);
    understood.map_err(|refused| RpcError::invalid_params(refused.to_string()))?;
    let lookup = match resolve(&engine, &call.context.who, &tool, &mut arguments, inside) {
        Ok(lookup) => lookup,
        Err(refused) => {
            let refused = refused_outcome(&engine, &call.context.who, refused);
            return Ok(CallReply::ready(Ok(refused)));
        }
    };
    let mut cx = surroundings(&call, reference::next(), inputs).with_dialect(alias.is_some());
    if tool.needs_offers() {
        let (fixture, who) = (engine.clone(), call.context.who.clone());
        cx = cx.with_offers(move || offers(&fixture, &who));
    }
    cx = with_check(cx, &engine, &call.context.who, &tool, None);
    cx = with_included(cx, &engine, &call.context.who, &tool);
    cx = cx.with_long_call(long_call::of_tool(&tool));
    cx = cx.with_host_rights(is_on_host(&engine, &tool, &arguments));
    let token = progress_token(&call.params)?;
    let mut notes = None;
    if call.context.accepts_notifications && (token.is_some() || call.context.log_level.is_some()) {
        let (sender, receiver) = mpsc::channel(QUEUED_NOTES);
        cx = cx.with_listener(sender, token, call.context.log_level);
        notes = Some(receiver);
    }
    let mut questions = None;
    if may_be_task(&tool, &call)? {
        let (sender, receiver) = mpsc::channel(1);
        cx = cx.with_questions(sender);
        questions = Some(receiver);
    }
    let outlives = tool.risk().outlives_its_client();
    let request = ToolRequest {
        tool,
        arguments,
        reason,
        cx,
    };
    let outcome = match lookup {
        NameLookup::Done => boxed(outlives, run(engine, call, request, binding, questions)),
        NameLookup::Unknown => boxed(
            outlives,
            find_and_run(engine, call, request, binding, questions),
        ),
    };
    Ok(CallReply { notes, outcome })
}

/// Replaces the name of a container by its reference, or by that of the container inside it that the call names.
fn resolve(
    engine: &Engine,
    who: &Principal,
    tool: &Tool,
    arguments: &mut Map<String, Value>,
    inside: Option<String>,
) -> Result<NameLookup, ToolError> {
    let lookup = resolve_container(engine, who, tool, arguments)?;
    resolve_inside(engine, who, tool, NamedContainer { arguments, inside })?;
    Ok(lookup)
}

/// Runs the call after asking the host for the container that it names and that the state does not have.
async fn find_and_run(
    engine: Arc<Engine>,
    call: Call,
    mut request: ToolRequest,
    binding: StateBinding,
    questions: Option<mpsc::Receiver<CallQuestion>>,
) -> Result<CallOutcome, RpcError> {
    let name_request = NameRequest {
        who: &call.context.who,
        reference: request.cx.reference(),
    };
    let asked =
        ask_for_container(&engine, name_request, &request.tool, &mut request.arguments).await;
    if let Err(refused) = asked {
        return Ok(refused_outcome(&engine, &call.context.who, refused));
    }
    let on_host = is_on_host(&engine, &request.tool, &request.arguments);
    request.cx = request.cx.with_host_rights(on_host);
    run(engine, call, request, binding, questions).await
}

/// Returns the outcome of a call that was refused before it was judged.
fn refused_outcome(engine: &Engine, who: &Principal, refused: ToolError) -> CallOutcome {
    let refused = error_words::for_agent(&engine.catalog, who, refused);
    CallOutcome::Called(Answer::from(refused).into_result())
}

/// Whether the client receives progress notifications, which keep it from timing out while a person decides.
fn wants_progress(call: &Call) -> bool {
    call.context.accepts_notifications && matches!(progress_token(&call.params), Ok(Some(_)))
}

/// Boxes a running call. One that outlives its client runs in a separate task.
fn boxed(
    outlives: bool,
    running: impl Future<Output = Result<CallOutcome, RpcError>> + Send + 'static,
) -> BoxFuture<Result<CallOutcome, RpcError>> {
    if outlives {
        run_detached(running)
    } else {
        Box::pin(running)
    }
}

/// Runs the call to its end in a separate task, even if its client disconnects.
fn run_detached(
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
        TaskSupport::Offered => Ok(check_declared(call).is_ok()),
        TaskSupport::Required => check_declared(call).map(|()| true),
    }
}

async fn run(
    engine: Arc<Engine>,
    call: Call,
    request: ToolRequest,
    binding: StateBinding,
    questions: Option<mpsc::Receiver<CallQuestion>>,
) -> Result<CallOutcome, RpcError> {
    let who = &call.context.who;
    let verdict = match judge_call(&engine, who, &request.tool, &request.arguments) {
        // Rare branches are boxed, here and below, because the future of each call is moved when it starts.
        Verdict::Confirm => match Box::pin(confirm(&engine, &call, &request, &binding)).await? {
            ConfirmationRound::Run(verdict) => verdict,
            ConfirmationRound::End(outcome) => return Ok(outcome),
            ConfirmationRound::AskOwner(record, why) => {
                let proposal = OwnerProposal::call(&request.tool, request.arguments, *record);
                let proposal = proposal.because(why).with_reason(request.reason);
                return Ok(Box::pin(put_into_inbox(&engine, &call, proposal)).await);
            }
        },
        verdict => verdict,
    };
    let order = intent_order(&request.tool, &verdict);
    let record = Record::begin_in_order(&engine, &call, &request, &verdict, order).await?;
    if let Verdict::Propose | Verdict::ConfirmOwner = verdict {
        let proposal = OwnerProposal::call(&request.tool, request.arguments, record);
        let waits = matches!(verdict, Verdict::ConfirmOwner) && wants_progress(&call);
        let proposal = proposal.waiting(waits).with_reason(request.reason);
        return Ok(Box::pin(put_into_inbox(&engine, &call, proposal)).await);
    }
    let (tool, reference) = (request.tool.clone(), request.cx.reference().clone());
    let long = request.cx.long_call().cloned();
    let record = record.of_long(long.clone());
    let work = run_recorded(engine.clone(), who.clone(), request, verdict, record);
    let answered = match questions {
        None => PromotionResult::Ended(match long {
            Some(long) => Box::pin(long_call::answer(&engine, who, &long, Box::pin(work))).await,
            None => work.await,
        }),
        Some(questions) => {
            let promotion = TaskPromotion {
                engine: engine.clone(),
                tool,
                who: who.clone(),
                capabilities: call.context.capabilities.clone(),
                request: reference,
                questions,
                long,
            };
            Box::pin(promotion.answer(Box::pin(work))).await
        }
    };
    outcome_of(&engine, &call, &binding, answered).await
}

/// A command that may run is prepared while its intent is being written. What goes into the inbox names an intent.
fn intent_order(tool: &Tool, verdict: &Verdict) -> IntentOrder {
    let may_run = matches!(
        verdict,
        Verdict::Allow(_) | Verdict::Confirmed(_) | Verdict::Granted(_)
    );
    if may_run && tool.only_runs_command() {
        IntentOrder::BeforeCommand
    } else {
        IntentOrder::First
    }
}

async fn outcome_of(
    engine: &Engine,
    call: &Call,
    binding: &StateBinding,
    answered: PromotionResult,
) -> Result<CallOutcome, RpcError> {
    match answered {
        PromotionResult::Task(result) => Ok(CallOutcome::Complete(engine.sign_result(result))),
        PromotionResult::Ended(Ok(result)) => Ok(CallOutcome::Called(result)),
        PromotionResult::Ended(Err(StopReason::Ask(question))) => {
            ask(engine, call, binding, question)
        }
        PromotionResult::Ended(Err(StopReason::Propose(proposal))) => {
            let (other, record) = *proposal;
            let record = Box::pin(record.with_intent()).await?;
            Ok(Box::pin(propose_other(engine, call, other, record)).await)
        }
        PromotionResult::Ended(Err(StopReason::Rpc(error))) => Err(error),
    }
}

/// Calls a read-only tool for a prompt, with the caller's permissions, and records the call. Returns `None` if the
/// caller has no such tool.
pub(super) async fn call_read_only(
    engine: Arc<Engine>,
    call: Arc<Call>,
    name: &'static str,
    mut arguments: Map<String, Value>,
) -> Option<Result<String, String>> {
    let who = &call.context.who;
    let tool = engine.catalog.tool(name)?.clone();
    let cx = surroundings(&call, reference::next(), InputAnswers::default());
    let name_request = NameRequest {
        who,
        reference: cx.reference(),
    };
    let resolved = resolve_container_now(&engine, name_request, &tool, &mut arguments).await;
    if let Err(refused) = resolved {
        return Some(Err(refused.to_string()));
    }
    let may_read = sees(who, &tool) && tool.risk() == Risk::Read;
    let verdict = Some(judge(who, &tool, &arguments));
    let verdict = verdict.filter(|one| may_read && matches!(one, Verdict::Allow(_)))?;
    let cx = with_included(cx, &engine, who, &tool);
    let request = ToolRequest {
        tool,
        arguments,
        reason: None,
        cx,
    };
    let record = Record::begin(&engine, &call, &request, &verdict).await;
    let end = run_recorded(engine, who.clone(), request, verdict, record.ok()?).await;
    let result = end.ok()?;
    let failed = result.failed;
    let Some(Content::Text { text, .. }) = result.blocks().into_iter().next() else {
        return None;
    };
    Some(if failed { Err(text) } else { Ok(text) })
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn p1_what_changes_the_box_runs_to_its_end_when_its_client_goes() {
        let (proceed, gone) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        let running = run_detached(async move {
            let _ = gone.await;
            let _ = done.send(());
            Err(RpcError::internal("x"))
        });
        drop(running);
        proceed.send(()).unwrap();
        is_done.await.unwrap();
    }
}
