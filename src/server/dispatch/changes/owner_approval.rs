//! Calls that the owner decides on: each becomes a change in the inbox, and is answered with it.

use serde_json::{Map, Value};
use tokio::time::timeout;

use super::proposal_target::check_target;
use super::proposals::resolve_call;
use super::propose::{Proposal, propose, proposed_answer};
use super::task::{called_result, created_task};
use crate::dispatch::call::{Call, CallOutcome};
use crate::dispatch::engine::Engine;
use crate::dispatch::record::Record;
use crate::dispatch::schedules::check::check_schedule;
use crate::dispatch::tasks::methods::check_declared;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::PATIENCE;
use gatewren_store::vault::Change;
use gatewren_wire::protocol::ToolResult;
use gatewren_wire::registry::{Answer, ProposedCall, Tool, ToolError};

/// A call for the inbox, and its record.
pub(in crate::dispatch) struct OwnerProposal<'a> {
    tool: &'a Tool,
    arguments: Map<String, Value>,
    /// The reason that the agent gave.
    reason: Option<String>,
    record: Record,
    /// Why the owner decides, if the reason is not the policy.
    why: Option<&'static str>,
    /// Whether the answer waits for the owner.
    waits: bool,
}

impl<'a> OwnerProposal<'a> {
    /// Creates a proposal of the call itself.
    pub(in crate::dispatch) fn call(
        tool: &'a Tool,
        arguments: Map<String, Value>,
        record: Record,
    ) -> Self {
        Self {
            tool,
            arguments,
            reason: None,
            record,
            why: None,
            waits: false,
        }
    }

    /// Sets whether the answer waits for the end of the change, at most as long as a question at a client stays
    /// open.
    pub(in crate::dispatch) fn waiting(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// Adds the reason that the agent gave.
    pub(in crate::dispatch) fn with_reason(self, reason: Option<String>) -> Self {
        Self { reason, ..self }
    }

    /// Adds to the answer why the owner decides.
    pub(in crate::dispatch) fn because(self, why: &'static str) -> Self {
        Self {
            why: Some(why),
            ..self
        }
    }
}

/// Puts a call into the inbox and answers with the change, or with a task where the client supports tasks. Invalid
/// arguments and targets that do not exist for the agent are refused at once.
pub(in crate::dispatch) async fn put_into_inbox(
    engine: &Engine,
    call: &Call,
    wanted: OwnerProposal<'_>,
) -> CallOutcome {
    let OwnerProposal {
        tool,
        arguments,
        reason,
        record,
        why,
        waits,
    } = wanted;
    let who = &call.context.who;
    let checked = if tool.checks_calls() {
        check_schedule(engine, who, tool, &arguments).await
    } else {
        check_target(engine, call, tool, &arguments).await
    };
    let proposal = Proposal {
        tool,
        arguments,
        reason,
        proposed_in: record.audit_id(),
    };
    let change = match checked {
        Ok(()) => propose(engine, who, proposal).await,
        Err(error) => Err(error),
    };
    match change {
        Ok(change) => {
            record.end("proposed", None);
            if check_declared(call).is_ok() {
                return CallOutcome::Complete(engine.sign_result(created_task(&change)));
            }
            if waits && let Some(result) = end_in_time(engine, who, &change).await {
                return CallOutcome::Called(result);
            }
            CallOutcome::Called(proposed_answer(engine, who, &change, why).into_result())
        }
        Err(error) => failed(record, error),
    }
}

/// Puts a call into the inbox that another call proposes, if it may be proposed.
pub(in crate::dispatch) async fn propose_other(
    engine: &Engine,
    call: &Call,
    other: ProposedCall,
    record: Record,
) -> CallOutcome {
    match resolve_call(engine, &call.context.who, other).await {
        Ok(wanted) => {
            let proposal = OwnerProposal::call(&wanted.tool, wanted.arguments, record);
            let proposal = proposal.with_reason(Some(wanted.reason));
            put_into_inbox(engine, call, proposal).await
        }
        Err(error) => failed(record, error),
    }
}

/// Returns the result of a change that ends within the time that a question at a client stays open. `None` if it is
/// still open then, if the server stops, or if too many calls of the agent are already waiting.
async fn end_in_time(engine: &Engine, who: &Principal, change: &Change) -> Option<ToolResult> {
    let _wait = engine.owner_waits.begin(who.agent_id())?;
    let changes = engine.vault.as_ref()?.changes();
    let mut inbox_changes = changes.watch_inbox();
    let mut stop = engine.stopping();
    let ended = async {
        loop {
            inbox_changes.mark_unchanged();
            match changes.get_of(&change.agent, &change.id) {
                Ok(Some(now)) if now.status.is_open() => {}
                Ok(now) => return now.as_ref().map(called_result),
                Err(cause) => {
                    tracing::error!(%cause, change = change.id, "cannot read a change");
                    return None;
                }
            }
            if inbox_changes.changed().await.is_err() {
                return None;
            }
        }
    };
    tokio::select! {
        ended = timeout(PATIENCE, ended) => ended.ok().flatten(),
        _ = stop.wait_for(|stop| *stop) => None,
    }
}

fn failed(record: Record, error: ToolError) -> CallOutcome {
    record.fail(&error.message);
    CallOutcome::Called(Answer::from(error).into_result())
}
