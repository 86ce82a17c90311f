//! Finds the tool that an agent calls by name.

use std::sync::Arc;

use gatewren_base::config::nearest;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::sees;
use gatewren_wire::protocol::RpcError;
use gatewren_wire::registry::{Catalog, Dialect, Tool};

/// Returns the tool of this name, if the agent may call it.
///
/// # Errors
/// Fails if there is no such tool on this server, or not for this agent. The error is the same for both: that a tool
/// exists may reveal what the server, or another space, has. Only for an agent that may see the whole server, the error
/// names the key of `helper.toml` that switches the tool off.
pub fn callable(catalog: &Catalog, who: &Principal, name: &str) -> Result<Arc<Tool>, RpcError> {
    let tool = catalog.tool(name).filter(|tool| sees(who, tool)).cloned();
    tool.ok_or_else(|| {
        let off = catalog.switched_off(name);
        let off = off.filter(|(tool, _)| who.reach().is_everything() && sees(who, tool));
        RpcError::invalid_params(match off {
            Some((_, class)) => format!(
                "{name} is switched off on this server: it needs {class} in helper.toml, which only the owner can \
                 change"
            ),
            None => unknown(catalog, who, name),
        })
    })
}

/// The words about a name that the agent cannot call, with the most similar one that it can.
fn unknown(catalog: &Catalog, who: &Principal, name: &str) -> String {
    let policy = who.preset().as_str();
    let tools = catalog.tools();
    let there = tools.filter(|tool| catalog.has(tool) && sees(who, tool));
    let names: Vec<&str> = if catalog.dialect == Dialect::StartOs {
        let aliases = there.flat_map(|tool| tool.aliases());
        aliases.map(|alias| alias.name).collect()
    } else {
        there.map(|tool| tool.name()).collect()
    };
    let near = nearest(name, names.into_iter()).map_or_else(
        || ";".to_owned(),
        |near| format!("; did you mean {near:?}? If not:"),
    );
    format!(
        "unknown tool {name:?}{near} it does not exist here, or your policy ({policy}) does not allow it, which the \
         owner can change; tools/list shows tools that you may call"
    )
}
