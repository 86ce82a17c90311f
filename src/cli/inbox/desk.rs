//! What every command of the inbox works on: the vault, the names of the agents, and who sits here.

use std::collections::HashMap;

use serde_json::Value;

use crate::sys::{now_ms, own_uid};
use crate::vault::{Agent, Change, Entry, Outcome, Promise, Vault};

/// The open vault and what was read of it.
pub struct Desk {
    /// The vault.
    pub vault: Vault,
    agents: HashMap<String, Agent>,
}

impl Desk {
    /// Over an open vault.
    pub fn new(vault: Vault) -> Result<Self, String> {
        let agents = vault.agents().list().map_err(|e| e.to_string())?;
        let agents = agents.into_iter().map(|agent| (agent.id.clone(), agent));
        Ok(Self {
            agents: agents.collect(),
            vault,
        })
    }

    /// What its owner calls an agent; its id when nobody knows it any more.
    pub fn name<'a>(&'a self, agent: &'a str) -> &'a str {
        self.agents.get(agent).map_or(agent, |agent| &agent.name)
    }

    /// The id of the agent with this id, or with this name if no other has it.
    pub fn agent(&self, named: &str) -> Result<String, String> {
        if self.agents.contains_key(named) {
            return Ok(named.to_owned());
        }
        let held = |agent: &&Agent| agent.name == named && agent.revoked_ms.is_none();
        let mut found = self.agents.values().filter(held);
        match (found.next(), found.next()) {
            (Some(agent), None) => Ok(agent.id.clone()),
            (None, _) => Err(format!(
                "there is no agent {named:?}; `gatewren agent list` shows them"
            )),
            (Some(_), Some(_)) => Err(format!(
                "several agents are called {named:?}; give the id, as `gatewren agent list` shows it"
            )),
        }
    }

    /// The change with this id, or the only one whose id begins so.
    pub fn change(&self, named: &str) -> Result<Change, String> {
        /// Shorter beginnings are more often a slip than a choice.
        const LEAST: usize = 4;
        let changes = self.vault.changes();
        if let Some(change) = changes.get(named).map_err(|e| e.to_string())? {
            return Ok(change);
        }
        let digits = named.strip_prefix("chg_").unwrap_or(named);
        let all = changes.list(false).map_err(|e| e.to_string())?;
        let begins = |change: &Change| {
            let id = change.id.strip_prefix("chg_");
            digits.len() >= LEAST && id.is_some_and(|id| id.starts_with(digits))
        };
        let mut found = all.into_iter().filter(begins);
        match (found.next(), found.next()) {
            (Some(change), None) => Ok(change),
            (None, _) => Err(format!(
                "there is no change {named:?}; `gatewren inbox list --all` shows them"
            )),
            (Some(_), Some(_)) => Err(format!(
                "several changes begin with {named:?}; give more of the id"
            )),
        }
    }

    /// Writes what the owner does here into the audit, and does it only then. `deed` says how it ended in one word.
    pub async fn on_record<T>(
        &self,
        act: Act<'_>,
        deed: impl AsyncFnOnce() -> Result<(T, &'static str), String>,
    ) -> Result<T, String> {
        let by = owner();
        let entry = Entry {
            agent: &by,
            token: None,
            space: None,
            session: None,
            request: None,
            address: "local",
            tool: act.what,
            risk: "persist",
            arguments: &act.arguments,
            target: act.target,
            mode: None,
            decision: "owner",
            change: act.change,
        };
        let audit = self.vault.audit();
        let id = audit.intent(entry, Promise::Committed).await;
        let id = id.map_err(|e| e.to_string())?;
        let begun = now_ms();
        let done = deed().await;
        let outcome = Outcome {
            status: done.as_ref().map_or("failed", |(_, word)| word),
            duration_ms: now_ms().saturating_sub(begun),
            revision_before: None,
            revision: None,
        };
        audit.outcome(id, outcome).map_err(|e| e.to_string())?;
        done.map(|(value, _)| value)
    }
}

/// Something that the owner does here.
pub struct Act<'a> {
    /// Its name in the audit.
    pub what: &'static str,
    /// What belongs to it.
    pub arguments: Value,
    /// What it is about.
    pub target: Option<&'a str>,
    /// The change that is decided on.
    pub change: Option<&'a str>,
}

/// Who sits here: whoever may open the vault is the owner, and under `sudo` has a name of their own.
pub fn owner() -> String {
    let name = |name: &str| std::env::var(name).ok().filter(|name| !name.is_empty());
    let user = name("SUDO_USER").or_else(|| name("USER"));
    let user = user.unwrap_or_else(|| format!("uid {}", own_uid()));
    format!("local:{user}")
}
