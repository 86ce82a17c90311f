//! Makes a real call like a client: with a token, over TLS, at an address of the local network.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::sleep;

use super::super::console::listener::{LocalServer, in_url};
use super::super::owner_action::owner_context;
use super::finding::Finding;
use gatewren_base::config::{Mode, Overrides, Policy, Preset};
use gatewren_base::sys::{Secret, now_ms};
use gatewren_gate::auth::AgentSpec;
use gatewren_gate::owner_actions::{DOCTOR_AGENT, admit, edit, rotate};
use gatewren_store::vault::{Agent, Vault};

/// The tool that it calls, and the only one that it may.
const TOOL: &str = "whoami";

/// How long the token is valid.
const HOLDS_MS: u64 = 60_000;

/// The number of tries: a server notices a new agent within a second.
const TRIES: u32 = 8;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(400);

/// Makes the call, then expires the token that it was made with.
pub async fn look(server: &LocalServer, vault: &Vault, at: IpAddr) -> Finding {
    const CHECK: &str = "call";
    let (agent, token) = match token(vault).await {
        Ok(made) => made,
        Err(cause) => {
            return Finding::skipped(CHECK, format!("cannot create a token for it: {cause}"));
        }
    };
    let outcome = make_call(server, at, &token).await;
    let ended = Agent {
        expires_ms: Some(now_ms()),
        ..agent.clone()
    };
    let ended = edit(&owner_context(vault), &agent, &ended).await;
    match (outcome, ended) {
        (Err(cause), _) => Finding::problem(
            CHECK,
            format!("a call of {TOOL} at {} failed: {cause}", in_url(at)),
            "journalctl -u gatewren -n 30",
        ),
        (Ok(()), Err(cause)) => Finding::warning(
            CHECK,
            format!("the call worked, but its token stays valid for another minute: {cause}"),
            format!("gatewren agent revoke {DOCTOR_AGENT}"),
        ),
        (Ok(()), Ok(_)) => {
            let seen = format!(
                "{TOOL} was called over TLS at {}, port {}",
                in_url(at),
                server.port
            );
            Finding::good(CHECK, seen)
        }
    }
}

async fn make_call(server: &LocalServer, at: IpAddr, token: &Secret) -> Result<(), String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match server.call(at, token, TOOL).await {
            Ok(result) => {
                let name = result.pointer("/structuredContent/name");
                return match name.and_then(serde_json::Value::as_str) {
                    Some(DOCTOR_AGENT) => Ok(()),
                    _ => Err(format!("unexpected result {result}")),
                };
            }
            Err(cause) if tries >= TRIES || !cause.contains("401") => return Err(cause),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Returns the agent with a valid token.
async fn token(vault: &Vault) -> Result<(Agent, Secret), String> {
    let owner = owner_context(vault);
    let agents = vault.agents().list().map_err(|e| e.to_string())?;
    let found = agents
        .into_iter()
        .find(|agent| agent.name == DOCTOR_AGENT && agent.revoked_ms.is_none());
    let until = Some(now_ms().saturating_add(HOLDS_MS));
    let Some(before) = found else {
        return admit(&owner, admission(until)).await;
    };
    let after = Agent {
        expires_ms: until,
        ..before.clone()
    };
    edit(&owner, &before, &after).await?;
    let token = rotate(&owner, &after).await?;
    let agents = vault.agents().list().map_err(|e| e.to_string())?;
    let agent = agents.into_iter().find(|agent| agent.id == after.id);
    agent
        .map(|agent| (agent, token))
        .ok_or_else(|| "its agent was removed".to_owned())
}

fn admission(until: Option<u64>) -> AgentSpec {
    let overrides = Overrides {
        toolsets: Some(Vec::new()),
        tools: [(TOOL.to_owned(), Mode::Allow)].into(),
        ..Overrides::default()
    };
    AgentSpec {
        name: DOCTOR_AGENT.to_owned(),
        policy: Policy {
            preset: Preset::Observe,
            overrides,
        },
        space: "*".to_owned(),
        expires_ms: until,
    }
}
