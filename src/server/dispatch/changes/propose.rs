//! Proposals: a call that needs the owner's approval becomes a change in the inbox, and is answered at once.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::precondition::rests_on;
use crate::dispatch::engine::Engine;
use crate::dispatch::reference;
use gatewren_base::sys::{now_ms, rfc3339};
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{schedule_words, sees};
use gatewren_store::vault::{Change, NewChange, OpenChangeLimits, ProposalOutcome, Vault};
use gatewren_wire::registry::{Answer, Tool, ToolError};

/// The maximum size of a proposal's arguments in bytes; larger ones are refused.
const MAX_ARGUMENTS_BYTES: usize = 64 << 10;

/// The maximum length of a reason in characters; longer ones are cut.
const MAX_REASON_CHARS: usize = 1000;

/// A proposed call.
pub(in crate::dispatch) struct Proposal<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// The arguments, as read from the call.
    pub arguments: Map<String, Value>,
    /// The reason, as the agent gave it.
    pub reason: Option<String>,
    /// The audit id of the call that proposes it.
    pub proposed_in: Option<String>,
}

/// Stores a proposal in the inbox; it is durable when this returns. An identical proposal that is still waiting
/// returns the existing change.
///
/// # Errors
/// An error for the model: the arguments are invalid or too large, the inbox is full, or the change cannot be
/// stored.
pub(in crate::dispatch) async fn propose(
    engine: &Engine,
    who: &Principal,
    proposal: Proposal<'_>,
) -> Result<Change, ToolError> {
    let (Some(inbox), Some(vault)) = (&engine.inbox, &engine.vault) else {
        return Err(ToolError::new(
            "This call needs the owner's approval, but this server has no owner. Nothing was done.",
        ));
    };
    let Proposal {
        tool,
        arguments,
        reason,
        proposed_in,
    } = proposal;
    tool.check_arguments(arguments.clone())?;
    if let Some(class) = engine.catalog.missing_class(tool, &arguments) {
        return Err(ToolError::new(format!(
            "This call could not run: it needs {class} in helper.toml, which only the owner can change. Nothing was \
             proposed."
        )));
    }
    let bytes = Value::Object(arguments.clone()).to_string().len();
    if bytes > MAX_ARGUMENTS_BYTES {
        return Err(ToolError::new(format!(
            "The arguments have {bytes} bytes; the inbox accepts at most {MAX_ARGUMENTS_BYTES}. Nothing was proposed."
        ))
        .hint("Split the change into smaller proposals."));
    }
    let new = NewChange {
        agent: who.agent_id().to_string(),
        space: who.space().to_string(),
        tool: tool.name().to_owned(),
        target: tool.target(&arguments).map(str::to_owned),
        rests_on: rests_on(&inbox.state, who, tool, &arguments),
        revision: inbox.state.document().revision,
        reason: reason.map(|reason| reason.chars().take(MAX_REASON_CHARS).collect()),
        expires_ms: now_ms().saturating_add(millis(inbox.limits().expires)),
        arguments,
        proposed_in,
    };
    add(vault, new, inbox.limits().room).await
}

async fn add(vault: &Vault, new: NewChange, room: OpenChangeLimits) -> Result<Change, ToolError> {
    match vault.changes().add(new, room).await {
        Ok(ProposalOutcome::New(change)) => {
            let Change {
                id, agent, tool, ..
            } = &change;
            tracing::info!(change = id, agent, tool, "{tool} waits for the owner");
            Ok(change)
        }
        Ok(ProposalOutcome::Same(change)) => Ok(change),
        Ok(ProposalOutcome::NoRoom) => Err(ToolError {
            retry: true,
            ..ToolError::new(
                "The owner's inbox is full: earlier proposals still wait for a decision. Nothing was proposed.",
            )
            .hint("Withdraw proposals that are no longer needed, or wait for the owner.")
        }),
        Err(cause) => {
            let reference = reference::next();
            tracing::error!(%cause, %reference, "cannot store a proposal");
            let words = format!(
                "The proposal could not be stored (reference {reference}). Nothing was proposed."
            );
            Err(ToolError::new(words))
        }
    }
}

/// The answer to a call that has become a change.
pub(in crate::dispatch) fn proposed_answer(
    engine: &Engine,
    who: &Principal,
    change: &Change,
    why: Option<&str>,
) -> Answer {
    let Change {
        id, tool, status, ..
    } = change;
    let expires = rfc3339(change.expires_ms);
    let look = engine.catalog.tool("change_get");
    let look = if look.is_some_and(|tool| sees(who, tool)) {
        format!(
            " Check its status with change_get (change: {id}), and do not call {tool} again for it."
        )
    } else {
        format!(" While it waits, calling {tool} again with the same arguments returns its status.")
    };
    let why = why.map_or_else(String::new, |why| format!(" {why}"));
    let arguments = change.proven_arguments().unwrap_or_default();
    let schedule = schedule_words(tool, &arguments);
    let schedule = schedule.map_or_else(String::new, |words| format!(" The schedule: {words}"));
    let words = format!(
        "Nothing has been done yet.{why} This call of {tool} needs the owner's approval and is now change {id} \
         in the owner's inbox. If the owner approves it before {expires}, the server runs it with these \
         arguments; you do not have to wait.{look}{schedule}"
    );
    Answer::text(words).with_data(&json!({
        "change": id,
        "status": status.as_str(),
        "applied": false,
        "tool": tool,
        "agent": change.agent,
        "space": change.space,
        "expires": expires,
    }))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
