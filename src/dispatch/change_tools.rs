//! `change_get`, `change_list` and `change_withdraw`: an agent asks after what it has proposed.
//!
//! They stand here and not among the toolsets, because what they show is kept in the vault, which no toolset knows.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{change_view::ChangeView, reference};
use crate::registry::{Cx, Interruption, Result, Risk, Scope, ToolError, Toolset};
use crate::vault::{Change, Ruling, Vault, VaultError};

/// So many are listed at once; of more, the newest.
const MAX_LISTED: usize = 50;

/// The group, as a table.
pub fn change_tools(vault: Arc<Vault>) -> Toolset<Vault> {
    Toolset::over(vault)
        .named("changes")
        .tool("change_get", Risk::Read, get)
        .about(Scope::Within)
        .titled("How a proposal stands")
        .tool("change_list", Risk::Read, list)
        .about(Scope::Within)
        .titled("List proposals")
        .tool("change_withdraw", Risk::Write, withdraw)
        .about(Scope::Within)
        .titled("Take a proposal back")
}

/// Says how something stands that you have proposed: whether the owner has decided on it, and what came of it. Only
/// your own proposals are found; `change_list` names them. Subscribing to `gatewren:///changes/{id}` tells you when
/// to look again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// The change's id, as it was given when it was proposed.
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

/// Lists what you have proposed, the newest first, at most 50: what waits or runs, and with `all` also what is
/// over. `change_get` tells how one stands.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Also what is decided and done.
    #[serde(default)]
    all: bool,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The newest first.
    changes: Vec<ChangeView>,
    /// Whether there are older ones.
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

/// Takes back something that you have proposed, and says how it stands then. What has begun is not taken back.
/// `change_list` names what waits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Withdraw {
    /// The change's id, as it was given when it was proposed.
    change: String,
}

async fn withdraw(vault: Arc<Vault>, Withdraw { change }: Withdraw, cx: Cx) -> Result<ChangeView> {
    let ruling = vault.changes().withdraw(&cx.caller().agent, &change).await;
    match ruling.map_err(|cause| unreadable(&cause))? {
        Ruling::Done(withdrawn) => Ok(ChangeView::of(&withdrawn)),
        Ruling::Past(status) => Err(ToolError::new(format!(
            "It is {} already and cannot be taken back.",
            status.as_str()
        ))
        .into()),
        Ruling::Altered | Ruling::Absent => Err(absent(&change)),
    }
}

/// The same for an id that never was, for one whose time is over, and for another agent's.
fn absent(change: &str) -> Interruption {
    let shown: String = change.chars().take(64).collect();
    ToolError::new(format!("There is no change {shown} of yours."))
        .hint("change_list names them.")
        .into()
}

fn unreadable(cause: &VaultError) -> Interruption {
    let reference = reference::next();
    tracing::error!(%cause, %reference, "the inbox could not be asked");
    let words = format!("The inbox cannot be asked at the moment (reference {reference}).");
    ToolError {
        retry: true,
        ..ToolError::new(words)
    }
    .into()
}
