//! What `init` has done, for a terminal and as JSON.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::runtimes::HostRuntimes;
use gatewren_base::config::{Preset, RuntimeKind};
use gatewren_base::sys::{Secret, rfc3339};
use gatewren_gate::owner_actions::{sanitize, valid_until};
use gatewren_store::vault::Agent;

/// What the command has done.
#[derive(Default)]
pub struct InitReport {
    /// The changes, in words.
    pub changed: Vec<String>,
    /// The URL for clients.
    pub url: String,
    /// The URL of the owner's page.
    pub page: String,
    /// The certificate that clients trust.
    pub authority: Option<PathBuf>,
    /// The agent, and its token if it is new.
    pub agent: Option<(Agent, Option<Secret>)>,
    /// The policy that was asked for an agent that exists.
    pub asked_policy: Option<Preset>,
    /// The keys of `helper.toml` that the profile `minimal` leaves as they are.
    pub kept: Vec<&'static str>,
    /// The number of agents with a valid token.
    pub agents: usize,
    /// Whether the owner has a password.
    pub has_password: bool,
    /// The runtimes of this host.
    pub runtimes: Option<HostRuntimes>,
}

impl InitReport {
    /// Returns the report for a terminal.
    pub fn words(&self) -> String {
        let mut lines = vec![format!("gatewren serves MCP at {}", self.url)];
        lines.extend(
            self.changed
                .iter()
                .map(|changed| format!("  changed: {changed}")),
        );
        if self.changed.is_empty() {
            lines.push("  nothing was changed".to_owned());
        }
        if let Some(authority) = &self.authority {
            lines.push(format!("  clients trust {}", authority.display()));
        }
        lines.extend(self.agent_lines());
        if !self.kept.is_empty() {
            lines.push(format!(
                "  helper.toml still sets {}: remove these lines, then systemctl reload gatewren-helper",
                self.kept.join(", ")
            ));
        }
        lines.extend(
            self.runtimes
                .as_ref()
                .map(HostRuntimes::unserved_words)
                .unwrap_or_default(),
        );
        lines.push("Next:".to_owned());
        if self.agents == 0 {
            lines.push(
                "  gatewren agent add NAME --policy observe   a token for an AI client".to_owned(),
            );
        }
        lines.push(
            "  gatewren client-config                     what to paste into each client"
                .to_owned(),
        );
        if !self.has_password {
            lines.push(format!(
                "  gatewren owner setup                       the owner's page, {}",
                self.page
            ));
        }
        lines.push("  gatewren doctor                            check everything".to_owned());
        lines.join("\n")
    }

    fn agent_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.agent {
            Some((agent, Some(token))) => lines.push(format!(
                "  {} has the policy {}. Its token, {} and not shown again:\n{}",
                sanitize(&agent.name),
                agent.preset,
                valid_until(agent.expires_ms),
                token.expose()
            )),
            Some((agent, None)) => lines.push(format!(
                "  {name} already exists, with the policy {}; gatewren agent rotate {name} gives it a new token",
                agent.preset,
                name = sanitize(&agent.name)
            )),
            None => {}
        }
        if let (Some((agent, None)), Some(asked)) = (&self.agent, self.asked_policy)
            && agent.preset != asked
        {
            lines.push(format!(
                "  to give it the policy {asked}: gatewren agent edit {} --policy {asked}",
                sanitize(&agent.name)
            ));
        }
        lines
    }

    /// Returns the report as one JSON object.
    pub fn json(&self) -> String {
        let agent = self.agent.as_ref().map(|(agent, token)| {
            json!({
                "id": agent.id, "name": agent.name, "policy": agent.preset.as_str(),
                "expires": agent.expires_ms.map(rfc3339), "token": token.as_ref().map(Secret::expose),
            })
        });
        let runtimes = self.runtimes.as_ref().map(|runtimes| {
            let words =
                |kinds: &[RuntimeKind]| kinds.iter().map(|kind| kind.word()).collect::<Vec<_>>();
            json!({ "found": words(&runtimes.found()), "served": words(runtimes.served()) })
        });
        let fields: Value = json!({
            "url": self.url, "page": self.page, "changed": self.changed, "authority": self.authority,
            "agent": agent, "agents": self.agents, "owner_password": self.has_password, "runtimes": runtimes,
        });
        fields.to_string()
    }
}
