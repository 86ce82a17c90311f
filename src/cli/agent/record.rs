//! What the owner does to an agent stands in the audit: before it is done, and how it went.

use std::fmt::Display;

use serde_json::Value;
use tokio::time::Instant;

use crate::config::Risk;
use crate::vault::{Entry, Outcome, Promise, Vault};

/// Who the audit says did it: whoever runs the command owns the vault's file.
const OWNER: &str = "owner";

/// What is about to be done.
pub struct Deed<'a> {
    /// The command, such as `agent add`.
    pub command: &'a str,
    /// The agent's id, or the name that a new one is to have.
    pub agent: &'a str,
    /// What of it changes; no token stands in it.
    pub what: Value,
}

/// Does it, between its two rows; what cannot be written down is not done.
pub async fn recorded<T, E: Display>(
    vault: &Vault,
    deed: Deed<'_>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    let entry = Entry {
        agent: OWNER,
        token: None,
        space: None,
        session: None,
        request: None,
        address: "local",
        tool: deed.command,
        risk: Risk::Persist.as_str(),
        arguments: &deed.what,
        target: Some(deed.agent),
        mode: None,
        decision: OWNER,
        change: None,
    };
    let intent = vault.audit().intent(entry, Promise::Committed).await;
    let id = intent.map_err(|e| e.to_string())?;
    let began = Instant::now();
    let done = work.await;
    let outcome = Outcome {
        status: if done.is_ok() { "ok" } else { "error" },
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        revision_before: None,
        revision: None,
    };
    // It is done; that only its beginning is on record says so too.
    let _ = vault.audit().outcome(id, outcome);
    done.map_err(|e| e.to_string())
}
