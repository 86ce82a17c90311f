//! A real call, as a client makes it: with a token, over TLS, at an address of the local network.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::sleep;

use super::super::deed::hand;
use super::super::door::{Door, in_url};
use super::finding::Finding;
use crate::auth::Admission;
use crate::config::{Mode, Overrides, Policy, Preset};
use crate::deeds::{admit, edit, rotate};
use crate::sys::{Secret, now_ms};
use crate::vault::{Agent, Vault};

/// The agent that calls; between two runs its time is over.
const NAME: &str = "gatewren-doctor";

/// What it calls, and all that it may.
const TOOL: &str = "whoami";

/// So long it may come in.
const HOLDS_MS: u64 = 60_000;

/// A server learns of a new agent within a second; so often it is asked.
const TRIES: u32 = 8;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(400);

/// Makes the call and takes back what it was made with.
pub async fn look(door: &Door, vault: &Vault, at: IpAddr) -> Finding {
    const CHECK: &str = "call";
    let (agent, token) = match token(vault).await {
        Ok(made) => made,
        Err(cause) => {
            return Finding::skipped(CHECK, format!("no token could be made for it: {cause}"));
        }
    };
    let outcome = called(door, at, &token).await;
    let ended = Agent {
        expires_ms: Some(now_ms()),
        ..agent.clone()
    };
    let ended = edit((vault, &hand()), &agent, &ended).await;
    match (outcome, ended) {
        (Err(cause), _) => Finding::problem(
            CHECK,
            format!("a call of {TOOL} at {} failed: {cause}", in_url(at)),
            "journalctl -u gatewren -n 30",
        ),
        (Ok(()), Err(cause)) => Finding::warning(
            CHECK,
            format!("it was answered, but the token made for it lives a minute longer: {cause}"),
            format!("gatewren agent revoke {NAME}"),
        ),
        (Ok(()), Ok(_)) => {
            let seen = format!(
                "{TOOL} was called over TLS at {}, port {}",
                in_url(at),
                door.port
            );
            Finding::good(CHECK, seen)
        }
    }
}

async fn called(door: &Door, at: IpAddr, token: &Secret) -> Result<(), String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match door.call(at, token, TOOL).await {
            Ok(result) => {
                let name = result.pointer("/structuredContent/name");
                return match name.and_then(serde_json::Value::as_str) {
                    Some(NAME) => Ok(()),
                    _ => Err(format!("it answered {result}")),
                };
            }
            Err(cause) if tries >= TRIES || !cause.contains("401") => return Err(cause),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// The agent with a token that is good now.
async fn token(vault: &Vault) -> Result<(Agent, Secret), String> {
    let hand = hand();
    let agents = vault.agents().list().map_err(|e| e.to_string())?;
    let found = agents
        .into_iter()
        .find(|agent| agent.name == NAME && agent.revoked_ms.is_none());
    let until = Some(now_ms().saturating_add(HOLDS_MS));
    let Some(before) = found else {
        return admit((vault, &hand), admission(until)).await;
    };
    let after = Agent {
        expires_ms: until,
        ..before.clone()
    };
    edit((vault, &hand), &before, &after).await?;
    let token = rotate((vault, &hand), &after).await?;
    let agents = vault.agents().list().map_err(|e| e.to_string())?;
    let agent = agents.into_iter().find(|agent| agent.id == after.id);
    agent
        .map(|agent| (agent, token))
        .ok_or_else(|| "its agent is gone".to_owned())
}

fn admission(until: Option<u64>) -> Admission {
    let overrides = Overrides {
        toolsets: Some(Vec::new()),
        tools: [(TOOL.to_owned(), Mode::Allow)].into(),
        ..Overrides::default()
    };
    Admission {
        name: NAME.to_owned(),
        policy: Policy {
            preset: Preset::Observe,
            overrides,
        },
        space: "*".to_owned(),
        expires_ms: until,
    }
}
