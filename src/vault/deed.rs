//! What is done on a person's own word stands in the audit like a call: before it is done, and how it went.

use serde_json::Value;

use super::audit::{Audit, Promise};
use super::audit_entry::{AuditId, Entry, Outcome};
use super::error::VaultError;
use crate::config::Risk;
use crate::sys::now_ms;

/// The decision that rows of deeds have: nobody else's.
const OWNER: &str = "owner";

/// Something that a person is about to do, and no agent.
#[derive(Debug, Clone)]
pub struct Deed<'a> {
    /// Who does it, such as `local:root` for whoever sits at the box.
    pub by: &'a str,
    /// Where from: an address, or `local`.
    pub from: &'a str,
    /// What, such as `agent revoke`.
    pub what: &'a str,
    /// What belongs to it; secrets are taken out.
    pub arguments: &'a Value,
    /// What it is about, such as an agent's id.
    pub target: Option<&'a str>,
    /// The change of the inbox that it decides on.
    pub change: Option<&'a str>,
}

/// A deed whose beginning is written. Dropped without an end it stays open in the audit, as one that was cut off.
#[derive(Debug)]
#[must_use]
pub struct Undertaking {
    id: AuditId,
    began_ms: u64,
}

impl Audit<'_> {
    /// Writes down what is about to be done; it is done only when the answer has come.
    pub async fn undertake(&self, deed: Deed<'_>) -> Result<Undertaking, VaultError> {
        let entry = Entry {
            agent: deed.by,
            token: None,
            space: None,
            session: None,
            request: None,
            address: deed.from,
            tool: deed.what,
            risk: Risk::Persist.as_str(),
            arguments: deed.arguments,
            target: deed.target,
            mode: None,
            decision: OWNER,
            change: deed.change,
        };
        Ok(Undertaking {
            id: self.intent(entry, Promise::Committed).await?,
            began_ms: now_ms(),
        })
    }

    /// Writes down how it went, in one word.
    pub fn done(&self, undertaking: Undertaking, status: &'static str) -> Result<(), VaultError> {
        let Undertaking { id, began_ms } = undertaking;
        let outcome = Outcome {
            status,
            duration_ms: now_ms().saturating_sub(began_ms),
            revision_before: None,
            revision: None,
        };
        self.outcome(&id, outcome)
    }
}
