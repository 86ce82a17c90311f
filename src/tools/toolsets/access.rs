//! `whoami`: the caller's own identity and permissions.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_host::backends::HelperCapabilities;
use gatewren_wire::registry::{Cx, Result, Risk, Scope, Toolset};

/// Returns how many changes of an agent, by its id, have not ended; `None` if that cannot be read.
pub type CountOpenChanges = Box<dyn Fn(&str) -> Option<usize> + Send + Sync>;

/// What `whoami` reads.
pub struct AccessSources {
    /// The helper's capabilities.
    pub bounds: HelperCapabilities,
    /// Returns the limits of every agent.
    pub limits: Box<dyn Fn() -> AgentLimits + Send + Sync>,
    /// Counts an agent's proposals.
    pub open_changes: CountOpenChanges,
}

/// The limits of every agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentLimits {
    /// Calls per minute.
    pub calls_per_minute: u32,
    /// Calls at once, and as many of read-only tools.
    pub concurrent_calls: u32,
    /// Changes that have not ended.
    pub open_changes: u32,
}

/// The toolset.
pub fn tools(sources: Arc<AccessSources>) -> Toolset<AccessSources> {
    Toolset::new(sources)
        .with_name("access")
        .tool("whoami", Risk::Read, whoami)
        .about(Scope::Within)
        .titled("Who am I")
        .startos("auth.get-pubkey", &[])
}

/// Show which agent you are on this server, your policy, which part of the server you may see, your limits, how many
/// of your proposals wait, and what is disabled for all agents. Call it when a tool is missing or rejected. `state_get`
/// describes what you may see.
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
    /// Calls per minute.
    calls_per_minute: u32,
    /// Calls at once; read-only calls have as many places of their own.
    concurrent_calls: u32,
    /// Your proposals that have not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_proposals: Option<usize>,
    /// How many of them there may be.
    max_proposals: u32,
    /// Keys of /etc/gatewren/helper.toml that the owner has disabled for all agents, regardless of policy. The tools
    /// that need them are missing, and only the owner can change that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    off_on_this_box: Vec<String>,
}

async fn whoami(sources: Arc<AccessSources>, WhoAmI {}: WhoAmI, cx: Cx) -> Result<Identity> {
    let caller = cx.caller();
    let limits = (sources.limits)();
    Ok(Identity {
        agent: caller.agent.clone(),
        name: caller.name.clone(),
        policy: caller.policy,
        space: caller.space.clone(),
        calls_per_minute: limits.calls_per_minute,
        concurrent_calls: limits.concurrent_calls,
        open_proposals: (sources.open_changes)(&caller.agent),
        max_proposals: limits.open_changes,
        off_on_this_box: sources
            .bounds
            .off()
            .iter()
            .map(ToString::to_string)
            .collect(),
    })
}
