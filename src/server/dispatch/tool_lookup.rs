//! Finds the tool that an agent calls by name.

use std::sync::Arc;

use gatewren_gate::auth::Principal;
use gatewren_gate::policy::sees;
use gatewren_wire::protocol::RpcError;
use gatewren_wire::registry::{Catalog, Tool};

/// Returns the tool of this name, if the agent may call it.
///
/// # Errors
/// Fails if there is no such tool on this server, or not for this agent.
pub fn callable(catalog: &Catalog, who: &Principal, name: &str) -> Result<Arc<Tool>, RpcError> {
    let tool = catalog.tool(name);
    if let Some(tool) = tool.filter(|tool| sees(who, tool)) {
        return Ok(tool.clone());
    }
    // The names of the tools are no secret: that one is denied by the policy may be said. What another space has may not.
    let reason = match tool {
        Some(tool) if tool.scope().is_within(who.reach()) => format!(
            "{name} is not allowed by your policy ({}); the owner can allow it with `gatewren agent edit`",
            who.preset().as_str()
        ),
        _ => format!("unknown tool: {name}"),
    };
    Err(RpcError::invalid_params(format!(
        "{reason}; tools/list shows tools that you may call"
    )))
}
