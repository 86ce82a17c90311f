//! The tools that an agent may propose, and the call that a proposal names.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::dispatch::call_reason::take_reason;
use crate::dispatch::container_names::{
    NameRequest, NamedContainer, resolve_container_now, resolve_inside,
};
use crate::dispatch::engine::Engine;
use crate::dispatch::host_rights::judge_call;
use crate::dispatch::reference;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{Verdict, proposes};
use gatewren_wire::registry::{ProposableTool, ProposedCall, Tool, ToolError};

/// The tools that an agent may propose to call.
pub(in crate::dispatch) fn offers(engine: &Engine, who: &Principal) -> Vec<ProposableTool> {
    let tools = engine.catalog.tools();
    let offered = tools.filter(|tool| engine.catalog.has(tool) && proposes(who, tool));
    let offer = |tool: &Arc<Tool>| ProposableTool {
        definition: tool.definition().clone(),
        risk: tool.risk(),
    };
    offered.map(offer).collect()
}

/// A call that may be proposed.
pub(in crate::dispatch) struct ProposableCall {
    /// The tool.
    pub tool: Arc<Tool>,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The reason, as the agent gave it.
    pub reason: String,
}

/// Returns the tool that a proposal names, and its arguments by this server's names. A tool that the agent may not
/// propose is not found.
pub(in crate::dispatch) async fn resolve_call(
    engine: &Engine,
    who: &Principal,
    asked: ProposedCall,
) -> Result<ProposableCall, ToolError> {
    let ProposedCall {
        tool: name,
        mut arguments,
        reason,
    } = asked;
    let tool = engine.catalog.tool(&name).filter(|t| proposes(who, t));
    let shown: String = name.chars().take(64).collect();
    let tool = tool.ok_or_else(|| {
        ToolError::new(format!(
            "You cannot propose a call of the tool {shown}, or it does not exist. Nothing was proposed."
        ))
        .hint("context lists the tools that you can propose.")
    })?;
    // Its reason is beside its arguments.
    take_reason(tool, &mut arguments).map_err(ToolError::new)?;
    let alias = tool.alias(&name);
    let inside = alias.and_then(|alias| alias.name_inside(&arguments));
    Tool::translate(alias, &mut arguments)?;
    let name_request = NameRequest {
        who,
        reference: &reference::next(),
    };
    resolve_container_now(engine, name_request, tool, &mut arguments).await?;
    let named = NamedContainer {
        arguments: &mut arguments,
        inside,
    };
    resolve_inside(engine, who, tool, named)?;
    tool.check_arguments(arguments.clone())?;
    if let Verdict::Deny = judge_call(engine, who, tool, &arguments) {
        return Err(ToolError::new(format!(
            "The target of these arguments of {shown} was not found. Nothing was proposed."
        ))
        .hint("search finds what exists."));
    }
    Ok(ProposableCall {
        tool: tool.clone(),
        arguments,
        reason,
    })
}
