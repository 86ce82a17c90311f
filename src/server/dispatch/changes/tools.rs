//! `change_get`, `change_list` and `change_withdraw`: tools for an agent's own proposals.
//!
//! They are here and not in the toolsets, because changes are stored in the vault, which toolsets cannot import.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::view::ChangeView;
use crate::dispatch::reference;
use gatewren_store::vault::{Change, DecisionOutcome, Vault, VaultError};
use gatewren_wire::registry::{Cx, Interruption, Result, Risk, Scope, ToolError, Toolset};

/// The maximum number of changes in a list; older ones are left out.
const MAX_LISTED: usize = 50;

/// The toolset.
pub fn change_tools(vault: Arc<Vault>) -> Toolset<Vault> {
    Toolset::new(vault)
        .with_name("changes")
        .tool("change_get", Risk::Read, get)
        .about(Scope::Within)
        .titled("Show a proposal")
        .tool("change_list", Risk::Read, list)
        .about(Scope::Within)
        .titled("List proposals")
        .tool("change_withdraw", Risk::Write, withdraw)
        .about(Scope::Within)
        .titled("Withdraw a proposal")
}

/// Show the status and result of a change that you proposed, including the owner's decision.
///
/// Subscribe to `gatewren:///changes/{id}` to be notified when it changes. Only your own changes are found;
/// `change_list` lists them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// The change's id, as returned when it was proposed.
    change: String,
}

async fn get(vault: Arc<Vault>, Get { change }: Get, cx: Cx) -> Result<ChangeView> {
    let found = vault.changes().get_of(&cx.caller().agent, &change);
    let found = found.map_err(|cause| unreadable(&cause))?;
    found
        .as_ref()
        .map(ChangeView::of)
        .ok_or_else(|| absent(&change))
}

/// List the changes that you proposed, newest first, at most 50: pending and running ones, and with `all` also
/// finished ones. `change_get` shows one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Include changes that have ended.
    #[serde(default)]
    all: bool,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The changes, newest first.
    changes: Vec<ChangeView>,
    /// Whether there are older changes than these.
    more: bool,
}

async fn list(vault: Arc<Vault>, List { all }: List, cx: Cx) -> Result<Listed> {
    let found = vault.changes().list_of(&cx.caller().agent, !all);
    let found: Vec<Change> = found.map_err(|cause| unreadable(&cause))?;
    let shown = found.iter().take(MAX_LISTED);
    Ok(Listed {
        changes: shown.map(ChangeView::in_short).collect(),
        more: found.len() > MAX_LISTED,
    })
}

/// Withdraw a change that you proposed, and return its status. `change_list` lists the pending ones.
///
/// A change that is already running cannot be withdrawn.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Withdraw {
    /// The change's id, as returned when it was proposed.
    change: String,
}

async fn withdraw(vault: Arc<Vault>, Withdraw { change }: Withdraw, cx: Cx) -> Result<ChangeView> {
    let outcome = vault.changes().withdraw(&cx.caller().agent, &change).await;
    match outcome.map_err(|cause| unreadable(&cause))? {
        DecisionOutcome::Done(withdrawn) => Ok(ChangeView::of(&withdrawn)),
        DecisionOutcome::Past(status) => Err(ToolError::new(format!(
            "The change is already {} and cannot be withdrawn.",
            status.as_str()
        ))
        .into()),
        DecisionOutcome::Altered | DecisionOutcome::Absent => Err(absent(&change)),
    }
}

/// The same error for an id that never existed, an expired change and another agent's change.
fn absent(change: &str) -> Interruption {
    let shown: String = change.chars().take(64).collect();
    ToolError::new(format!("You have no change {shown}."))
        .hint("change_list lists your changes.")
        .into()
}

fn unreadable(cause: &VaultError) -> Interruption {
    let reference = reference::next();
    tracing::error!(%cause, %reference, "cannot read the inbox");
    let words = format!("The inbox cannot be read at the moment (reference {reference}).");
    ToolError {
        retry: true,
        ..ToolError::new(words)
    }
    .into()
}
