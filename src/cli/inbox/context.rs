//! The shared context of the inbox commands: the vault and the names of the agents.

use std::collections::HashMap;
use std::process::ExitCode;

use super::super::console::output::{conclude, fail};
use super::super::console::runtime;
use super::super::console::selected::SelectedKind;
use super::super::console::target::InstanceArgs;
use gatewren_store::vault::{Agent, Change, Vault};

pub const CHANGE: SelectedKind = SelectedKind {
    tag: "chg_",
    noun: "change",
    list: "inbox list --all",
};

/// The open vault and the agents in it.
pub struct InboxContext {
    /// The vault.
    pub vault: Vault,
    agents: HashMap<String, Agent>,
}

impl InboxContext {
    /// Reads the agents of an open vault.
    pub fn new(vault: Vault) -> Result<Self, String> {
        let agents = vault.agents().list().map_err(|e| e.to_string())?;
        let agents = agents.into_iter().map(|agent| (agent.id.clone(), agent));
        Ok(Self {
            agents: agents.collect(),
            vault,
        })
    }

    /// The owner's name for an agent, or its id if the agent no longer exists.
    pub fn name<'a>(&'a self, agent: &'a str) -> &'a str {
        self.agents.get(agent).map_or(agent, |agent| &agent.name)
    }

    /// Returns the id of the agent with this id, or of the only active agent with this name.
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

    /// Returns the changes with these ids; fails if one of them does not exist.
    pub fn changes(&self, named: &[String]) -> Result<Vec<Change>, String> {
        named.iter().map(|named| self.change(named)).collect()
    }

    /// Returns the change with this id, or the only one whose id has this prefix.
    pub fn change(&self, named: &str) -> Result<Change, String> {
        let changes = self.vault.changes();
        if let Some(change) = changes.get(named).map_err(|e| e.to_string())? {
            return Ok(change);
        }
        let all = changes.list(false).map_err(|e| e.to_string())?;
        let found = all
            .into_iter()
            .filter(|change| CHANGE.begins(&change.id, named));
        CHANGE.only(found, named)
    }
}

/// Opens the vault of that gatewren, and prints what the work returns; no server has to run.
pub fn run_on_vault(
    place: &InstanceArgs,
    work: impl AsyncFnOnce(&InboxContext) -> Result<String, String>,
) -> ExitCode {
    let runtime = match runtime::build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    match place.vault().and_then(InboxContext::new) {
        Ok(context) => conclude(runtime.block_on(work(&context))),
        Err(words) => fail(&words),
    }
}
