//! One decision on several changes of an agent, bound to all its pending changes and to the text that was shown.

use ring::digest::{Context, SHA256};

use super::decision::{DecidedChange, OwnerDecision, decide_change};
use super::owner_context::OwnerContext;
use super::render::shown_change;
use gatewren_store::vault::{Change, ChangeStatus, Vault, hex};

/// Changes of one agent that were shown together in full.
#[derive(Debug)]
pub struct ChangeBatch {
    /// The changes that were shown, in the order in which they were proposed.
    pub changes: Vec<Change>,
    /// Hexadecimal SHA-256 of all pending changes of the agent and of the text that was shown. It differs if a change
    /// is added, removed or modified.
    pub digest: String,
}

impl ChangeBatch {
    /// Creates a batch of an agent's pending changes, given in any order. It contains those for which `is_shown`
    /// returns true.
    pub fn of(mut waiting: Vec<Change>, is_shown: impl Fn(&Change) -> bool) -> Self {
        waiting.retain(|change| change.status == ChangeStatus::Pending);
        waiting.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        let mut context = Context::new(&SHA256);
        for change in &waiting {
            context.update(&change.binding());
        }
        waiting.retain(is_shown);
        for change in &waiting {
            let text = shown_change(change);
            // The lengths keep two different pairs of texts from having the same digest.
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        }
        Self {
            changes: waiting,
            digest: hex(context.finish().as_ref()),
        }
    }

    /// Creates a batch of all pending changes of an agent.
    ///
    /// # Errors
    /// Fails if the vault cannot be read.
    pub fn all_of(vault: &Vault, agent: &str) -> Result<Self, String> {
        let waiting = vault.changes().list_of(agent, true);
        Ok(Self::of(waiting.map_err(|e| e.to_string())?, |_| true))
    }

    /// Checks that this is the batch that was shown with `digest`.
    ///
    /// # Errors
    /// A message for the owner if a change was added, decided or modified since.
    pub fn check(&self, digest: &str) -> Result<(), String> {
        if self.digest == digest {
            return Ok(());
        }
        Err("nothing was approved: the pending changes are not those that were shown".to_owned())
    }

    /// Decides on each change of the batch.
    ///
    /// # Errors
    /// Stops at the first decision that cannot be recorded.
    pub async fn decide(
        self,
        owner: &OwnerContext<'_>,
        note: Option<&str>,
        verb: OwnerDecision,
    ) -> Result<Vec<DecidedChange>, String> {
        let mut decided = Vec::new();
        for change in self.changes {
            decided.push(decide_change(owner, change, note, verb).await?);
        }
        Ok(decided)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gatewren_base::sys::Scratch;
    use gatewren_store::vault::{NewChange, OpenChangeLimits, ProposalOutcome};

    async fn propose(vault: &Vault, command: &str) -> Change {
        let arguments = json!({ "command": command });
        let new = NewChange {
            agent: "a".into(),
            space: "*".into(),
            tool: "system_shell".into(),
            target: None,
            arguments: arguments.as_object().unwrap().clone(),
            rests_on: Vec::new(),
            revision: 1,
            reason: None,
            expires_ms: u64::MAX >> 1,
            proposed_in: None,
        };
        let room = OpenChangeLimits {
            per_agent: 9,
            total: 9,
        };
        match vault.changes().add(new, room).await.unwrap() {
            ProposalOutcome::New(change) => change,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_batch_is_another_one_when_a_change_comes_in_or_is_shown_or_goes() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let first = propose(&vault, "uptime").await;
        propose(&vault, "df").await;
        let shown = ChangeBatch::all_of(&vault, "a").unwrap();
        assert_eq!(shown.changes.len(), 2);
        assert_eq!(
            ChangeBatch::all_of(&vault, "a").unwrap().digest,
            shown.digest
        );
        let part = ChangeBatch::of(shown.changes.clone(), |change| change.id != first.id);
        assert_eq!(part.changes.len(), 1);
        assert_ne!(part.digest, shown.digest, "one of them was not shown");
        propose(&vault, "rm -rf /srv").await;
        let more = ChangeBatch::all_of(&vault, "a").unwrap();
        assert!(more.check(&shown.digest).is_err(), "one came in since");
        let owner = OwnerContext {
            vault: &vault,
            by: "owner".into(),
            from: "local".into(),
        };
        decide_change(&owner, first, None, OwnerDecision::Reject)
            .await
            .unwrap();
        let fewer = ChangeBatch::all_of(&vault, "a").unwrap();
        assert!(fewer.check(&more.digest).is_err(), "one was decided");
    }
}
