//! The owner's decision on a change in the inbox.

use serde_json::json;

use super::owner_context::{OwnerCommand, OwnerContext};
use gatewren_store::vault::{Change, Decision, DecisionOutcome, VaultError};

/// A decision of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerDecision {
    /// It runs once, exactly as it was shown.
    Approve,
    /// It never runs.
    Reject,
}

/// The result of a decision.
#[derive(Debug)]
pub struct DecidedChange {
    /// The change after the decision; as it was shown if nothing was decided.
    pub change: Change,
    /// Why the decision did not take effect, if it did not.
    pub refused: Option<String>,
}

/// Decides on a change as it was shown.
pub async fn decide_change(
    owner: &OwnerContext<'_>,
    change: Change,
    note: Option<&str>,
    verb: OwnerDecision,
) -> Result<DecidedChange, String> {
    let name = match verb {
        OwnerDecision::Approve => "inbox approve",
        OwnerDecision::Reject => "inbox reject",
    };
    let command = OwnerCommand {
        command: name,
        what: json!({ "change": change.id, "tool": change.tool, "agent": change.agent, "note": note }),
        target: change.target.as_deref(),
        change: Some(&change.id),
    };
    let decision = Decision {
        by: owner.by.clone(),
        note: note.map(str::to_owned),
    };
    let changes = owner.vault.changes();
    let decide = async {
        let outcome = match verb {
            OwnerDecision::Approve => {
                let binding = change.binding();
                changes.approve(&change.id, binding, decision).await?
            }
            OwnerDecision::Reject => changes.reject(&change.id, decision).await?,
        };
        let done = matches!(outcome, DecisionOutcome::Done(_));
        Ok::<_, VaultError>((outcome, if done { "ok" } else { "refused" }))
    };
    let outcome = owner.run_audited_as(command, decide).await?;
    let refused = match outcome {
        DecisionOutcome::Done(change) => {
            return Ok(DecidedChange {
                change: *change,
                refused: None,
            });
        }
        DecisionOutcome::Past(status) => format!("it is already {}", status.as_str()),
        DecisionOutcome::Altered => {
            "the change in the vault differs from the one that was proposed".to_owned()
        }
        DecisionOutcome::Absent => "it no longer exists".to_owned(),
    };
    Ok(DecidedChange {
        change,
        refused: Some(refused),
    })
}
