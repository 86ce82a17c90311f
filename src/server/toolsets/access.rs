//! `whoami`: the caller's own identity and permissions.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_host::backends::HelperCapabilities;
use gatewren_wire::registry::{Cx, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(bounds: Arc<HelperCapabilities>) -> Toolset<HelperCapabilities> {
    Toolset::new(bounds)
        .with_name("access")
        .tool("whoami", Risk::Read, whoami)
        .about(Scope::Within)
        .titled("Who am I")
        .startos("auth.get-pubkey", &[])
}

/// Show which agent you are on this server, your policy, which part of the server you may see, and what is disabled for
/// all agents. Call it when a tool is missing or rejected. `state_get` describes what you may see.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhoAmI {}

#[derive(Serialize, JsonSchema)]
struct Identity {
    /// The agent's id, as in the audit log.
    agent: Arc<str>,
    /// The name that the owner gave it.
    name: Arc<str>,
    /// `observe`, `suggest`, `operate` or `admin`.
    policy: &'static str,
    /// The space that it is limited to; `*` is the whole server.
    space: Arc<str>,
    /// Keys of /etc/gatewren/helper.toml that the owner has disabled for all agents, regardless of policy. The tools
    /// that need them are missing, and only the owner can change that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    off_on_this_box: Vec<String>,
}

async fn whoami(bounds: Arc<HelperCapabilities>, WhoAmI {}: WhoAmI, cx: Cx) -> Result<Identity> {
    let caller = cx.caller();
    Ok(Identity {
        agent: caller.agent.clone(),
        name: caller.name.clone(),
        policy: caller.policy,
        space: caller.space.clone(),
        off_on_this_box: bounds.off().iter().map(ToString::to_string).collect(),
    })
}
