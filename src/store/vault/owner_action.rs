//! Actions of the owner in the audit: recorded like calls, before the action and after it.

use serde_json::Value;

use super::audit::entry::{AuditEntry, AuditId, AuditOutcome};
use super::audit::table::AuditTable;
use super::error::VaultError;
use gatewren_base::config::Risk;
use gatewren_base::sys::now_ms;

/// The decision in rows of owner actions. No other rows have it.
const OWNER: &str = "owner";

/// An action of a person, not of an agent.
#[derive(Debug, Clone)]
pub struct OwnerAction<'a> {
    /// Who does it, such as `local:root` for a user on the host.
    pub by: &'a str,
    /// The origin: an address, or `local`.
    pub from: &'a str,
    /// The action, such as `agent revoke`.
    pub what: &'a str,
    /// The arguments. Secrets are redacted.
    pub arguments: &'a Value,
    /// The target, such as an agent's id.
    pub target: Option<&'a str>,
    /// The change of the inbox that it decides on.
    pub change: Option<&'a str>,
}

/// An action whose intent is recorded. If it is dropped, the audit shows the action without an outcome, like an
/// interrupted call.
#[derive(Debug)]
#[must_use]
pub struct RecordedAction {
    id: AuditId,
    began_ms: u64,
}

impl RecordedAction {
    /// The id of its call in the audit.
    pub fn call(&self) -> &str {
        self.id.as_str()
    }
}

impl AuditTable<'_> {
    /// Records the intent. The action must not run before this returns.
    pub async fn begin_action(
        &self,
        action: OwnerAction<'_>,
    ) -> Result<RecordedAction, VaultError> {
        let entry = AuditEntry {
            agent: action.by,
            token: None,
            space: None,
            session: None,
            request: None,
            address: action.from,
            tool: action.what,
            risk: Risk::Persist.as_str(),
            arguments: action.arguments,
            reason: None,
            target: action.target,
            mode: None,
            decision: OWNER,
            change: action.change,
        };
        Ok(RecordedAction {
            id: self.intent(entry).await?,
            began_ms: now_ms(),
        })
    }

    /// Records the outcome in one word.
    pub fn record_outcome(
        &self,
        undertaking: RecordedAction,
        outcome: &'static str,
    ) -> Result<(), VaultError> {
        let RecordedAction { id, began_ms } = undertaking;
        let outcome = AuditOutcome {
            outcome,
            duration_ms: now_ms().saturating_sub(began_ms),
            revision_before: None,
            revision: None,
            error: None,
        };
        self.outcome(&id, outcome)
    }
}
