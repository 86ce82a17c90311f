//! `gatewren agent`: who may come in.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{place::Place, runtime, say::conclude};
use crate::auth::{Admission, add_agent};
use crate::config::{Preset, WHOLE_BOX};
use crate::sys::rfc3339;
use crate::vault::{Agent, Vault};

/// Give out, list and revoke the tokens of AI clients.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make an agent and show its token, this once
    Add {
        /// What you call it
        name: String,
        /// What it may do: observe, suggest, operate or admin
        #[arg(long, value_name = "PRESET", default_value = "observe")]
        policy: Preset,
    },
    /// List the agents
    List,
    /// End an agent's token
    Revoke {
        /// Its id, as `list` shows it
        id: String,
    },
}

/// Runs the command; 1 when it could not be done.
pub fn run(args: &Args) -> ExitCode {
    conclude(act(args))
}

fn act(args: &Args) -> Result<String, String> {
    let vault = args.place.vault()?;
    let runtime = runtime::build().map_err(|e| e.to_string())?;
    match &args.what {
        What::Add { name, policy } => runtime.block_on(add(&vault, name, *policy, args.json)),
        What::Revoke { id } => runtime.block_on(revoke(&vault, id, args.json)),
        What::List => {
            let agents = vault.agents().list().map_err(|e| e.to_string())?;
            Ok(if args.json {
                listed(&agents)
            } else {
                table(&agents)
            })
        }
    }
}

async fn add(vault: &Vault, name: &str, preset: Preset, json: bool) -> Result<String, String> {
    let admission = Admission {
        name: name.to_owned(),
        policy: preset.into(),
        space: WHOLE_BOX.to_owned(),
        expires_ms: None,
    };
    let added = add_agent(vault, admission).await;
    let (agent, token) = added.map_err(|e| e.to_string())?;
    let token = token.expose();
    Ok(if json {
        json!({ "id": agent.id, "name": agent.name, "policy": preset.as_str(), "token": token })
            .to_string()
    } else {
        format!(
            "{} ({}) has the policy {preset}. Its token, which is not shown again:\n{token}",
            agent.name, agent.id
        )
    })
}

async fn revoke(vault: &Vault, id: &str, json: bool) -> Result<String, String> {
    if !vault.agents().revoke(id).await.map_err(|e| e.to_string())? {
        return Err(format!(
            "no agent {id} has a token to revoke; `gatewren agent list` shows them"
        ));
    }
    Ok(if json {
        json!({ "revoked": id }).to_string()
    } else {
        format!("{id} is revoked")
    })
}

fn listed(agents: &[Agent]) -> String {
    let row = |agent: &Agent| {
        json!({
            "id": agent.id, "name": agent.name, "policy": agent.preset.as_str(), "space": agent.space,
            "created": rfc3339(agent.created_ms), "expires": time(agent.expires_ms),
            "revoked": time(agent.revoked_ms), "last_used": time(agent.last_used_ms),
        })
    };
    Value::Array(agents.iter().map(row).collect()).to_string()
}

fn time(ms: Option<u64>) -> Option<String> {
    ms.map(rfc3339)
}

fn table(agents: &[Agent]) -> String {
    if agents.is_empty() {
        return "there are no agents; make one with: gatewren agent add NAME --policy observe"
            .to_owned();
    }
    let mut lines = vec![format!(
        "{:<24} {:<16} {:<8} {:<8} last used",
        "id", "name", "policy", "state"
    )];
    lines.extend(agents.iter().map(|agent| {
        let state = if agent.revoked_ms.is_some() {
            "revoked"
        } else {
            "active"
        };
        let used = time(agent.last_used_ms).unwrap_or_else(|| "never".to_owned());
        format!(
            "{:<24} {:<16} {:<8} {state:<8} {used}",
            agent.id,
            agent.name,
            agent.preset.as_str()
        )
    }));
    lines.join("\n")
}
