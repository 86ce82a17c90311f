//! Finds the tool that an agent calls by name.

use std::sync::Arc;

use gatewren_gate::auth::Principal;
use gatewren_gate::policy::sees;
use gatewren_wire::protocol::RpcError;
use gatewren_wire::registry::{Catalog, Tool};

/// Returns the tool of this name, if the agent may call it.
///
/// # Errors
/// Fails if there is no such tool on this server, or not for this agent. The error is the same for both: that a tool is
/// there may tell what the server, or another space, has.
pub fn callable(catalog: &Catalog, who: &Principal, name: &str) -> Result<Arc<Tool>, RpcError> {
    let tool = catalog.tool(name).filter(|tool| sees(who, tool)).cloned();
    tool.ok_or_else(|| {
        let policy = who.preset().as_str();
        RpcError::invalid_params(format!(
            "unknown tool: {name}; it does not exist here, or your policy ({policy}) does not allow it, which the \
             owner can change; tools/list shows tools that you may call"
        ))
    })
}
