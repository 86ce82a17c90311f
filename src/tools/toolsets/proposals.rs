//! `context` and `propose_change`: for agents that may only propose changes.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use gatewren_wire::registry::{
    Answer, Cx, Interruption, ProposableTool, ProposedCall, Result, Risk, Scope, ToolError, Toolset,
};

/// Instructions for these agents.
const HOW: &str = "You can read and suggest; your calls change nothing on this server. Use `search` and `read` to \
                   find the current state. To suggest a change, call `context` for the arguments of a tool. Then \
                   pass the tool, its arguments and the reason to `propose_change`. The change is made only if \
                   the owner of the server approves it. Do not report a proposal as done.";

/// The toolset.
pub fn tools() -> Toolset<()> {
    Toolset::new(Arc::new(()))
        .with_name("suggest")
        .tool("context", Risk::Read, context)
        .needs_offers()
        .about(Scope::Within)
        .titled("Show what can be proposed")
        .answering("propose_change", Risk::Read, propose_change)
        .about(Scope::Within)
        .titled("Propose a change")
        .returning::<Proposed>()
}

/// Show which agent you are, which part of the server you see, and what you can propose to the owner, and how. With
/// `tool`, returns that tool's details and argument schema, if it can be proposed; otherwise it fails. Next:
/// `propose_change`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Context {
    /// A proposable tool, as listed without this argument.
    #[serde(default)]
    tool: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Situation {
    /// The agent's id, as in the audit.
    agent: String,
    /// The name that the owner gave it.
    name: String,
    /// Its policy.
    policy: String,
    /// Its space; `*` is the whole server.
    space: String,
    /// How to work here.
    how: String,
    /// What can be proposed.
    proposals: Vec<Proposable>,
}

#[derive(Serialize, JsonSchema)]
struct Proposable {
    /// The tool's name.
    tool: String,
    /// Its risk to the server: `scan`, `write`, `disrupt`, `execute`, `reveal` or `persist`.
    class: String,
    /// What it does.
    description: String,
    /// The JSON Schema of its arguments, if one tool was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
}

async fn context(_: Arc<()>, Context { tool }: Context, cx: Cx) -> Result<Situation> {
    let caller = cx.caller();
    let offers = cx.offers().into_iter();
    let proposals: Vec<Proposable> = match &tool {
        None => offers.map(|offered| proposable(offered, false)).collect(),
        Some(name) => offers
            .filter(|offered| offered.definition.name == *name)
            .map(|offered| proposable(offered, true))
            .collect(),
    };
    if proposals.is_empty() && tool.is_some() {
        let hint = "Call context without `tool` to list what can be proposed.";
        return Err(ToolError::new("Unknown tool, or you cannot propose it.")
            .hint(hint)
            .into());
    }
    Ok(Situation {
        agent: caller.agent.to_string(),
        name: caller.name.to_string(),
        policy: caller.policy.to_owned(),
        space: caller.space.to_string(),
        how: HOW.to_owned(),
        proposals,
    })
}

fn proposable(offered: ProposableTool, in_full: bool) -> Proposable {
    let ProposableTool { definition, risk } = offered;
    Proposable {
        tool: definition.name,
        class: risk.to_string(),
        description: definition.description,
        arguments: in_full.then_some(definition.input_schema),
    }
}

/// Propose a tool call to the owner. Returns the change, which waits in the owner's inbox: nothing is done before the
/// owner approves it. `context` names the tools and their argument schemas.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProposeChange {
    /// The name of the tool.
    tool: String,
    /// Its arguments, as in its schema.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// Why, for the owner: your findings and the goal.
    reason: String,
}

/// The answer to a stored proposal.
#[derive(Serialize, JsonSchema)]
struct Proposed {
    /// The change's id.
    change: String,
    /// Its status: `pending`.
    status: String,
    /// Always false: not applied yet.
    applied: bool,
    /// The tool.
    tool: String,
    /// The agent that proposes it.
    agent: String,
    /// The agent's space.
    space: String,
    /// When the proposal expires.
    expires: String,
}

async fn propose_change(_: Arc<()>, asked: ProposeChange, _: Cx) -> Result<Answer> {
    let ProposeChange {
        tool,
        arguments,
        reason,
    } = asked;
    if reason.trim().is_empty() {
        let words = "`reason` is empty; the owner needs it to decide. Nothing was proposed.";
        return Err(ToolError::new(words).into());
    }
    Err(Interruption::Propose(ProposedCall {
        tool,
        arguments,
        reason,
    }))
}
