//! `gatewren agent add`: a new agent, and its token, this once.

use serde_json::json;

use super::super::deed::hand;
use super::{house::House, limits::Options};
use crate::auth::Admission;
use crate::config::{Overrides, Policy, Preset};
use crate::deeds::{Expiry, admit, chosen_space, fit_name, plain};
use crate::sys::rfc3339;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What you call it
    name: String,

    /// Where its policy starts from: observe, suggest, operate or admin
    #[arg(long, value_name = "PRESET", default_value = "observe")]
    policy: Preset,

    /// The space that it is kept in, or '*' for the whole box; needed where the settings have spaces
    #[arg(long, value_name = "NAME")]
    space: Option<String>,

    /// When its token ends: after 30d, or on 2027-01-31
    #[arg(long, value_name = "WHEN")]
    expires: Option<Expiry>,

    #[command(flatten)]
    options: Options,
}

pub async fn run(house: &House, args: &Args) -> Result<String, String> {
    let mut overrides = Overrides::default();
    args.options.apply(&mut overrides, &house.tools)?;
    let admission = Admission {
        name: fit_name(&args.name)?,
        policy: Policy {
            preset: args.policy,
            overrides,
        },
        space: chosen_space(args.space.as_deref(), &house.spaces)?,
        expires_ms: args.expires.map(|Expiry(ms)| ms),
    };
    let (agent, token) = admit((&house.vault, &hand()), admission).await?;
    let token = token.expose();
    let space = agent.space.unwrap_or_default();
    if house.json {
        return Ok(json!({
            "id": agent.id, "name": agent.name, "policy": agent.preset.as_str(), "space": space,
            "expires": agent.expires_ms.map(rfc3339), "token": token,
        })
        .to_string());
    }
    let within = match space.as_str() {
        "*" => String::new(),
        space => format!(" in the space {space}"),
    };
    let until = agent
        .expires_ms
        .map_or_else(String::new, |ms| format!(" until {}", rfc3339(ms)));
    let (name, id, preset) = (plain(&agent.name), agent.id, agent.preset);
    Ok(format!(
        "{name} ({id}) has the policy {preset}{within}{until}. Its token, which is not shown again:\n{token}"
    ))
}
