//! Checks that the target of a proposal exists for its agent, so that other proposals do not reach the inbox.

use serde_json::{Map, Value};

use crate::dispatch::call::Call;
use crate::dispatch::elicitation::surroundings;
use crate::dispatch::engine::Engine;
use crate::dispatch::reference;
use gatewren_base::sys::{Requester, on_behalf_of};
use gatewren_gate::policy::judge_target_check;
use gatewren_wire::protocol::InputAnswers;
use gatewren_wire::registry::{Interruption, Scope, Tool, ToolError};

/// Arguments that name a target, each with a tool that fails if that target does not exist. The first argument that
/// the call has is used: `unit_status` also checks the container of a unit.
const KNOWN_BY: [(&str, &str); 4] = [
    ("unit", "unit_status"),
    ("job", "job_get"),
    ("stack", "stack_info"),
    (CONTAINER, "container_config_get"),
];

const CONTAINER: &str = "container";

/// Refuses a proposal with invalid arguments, and a proposal about a container, a stack, a unit or a job that does not
/// exist or that the agent cannot see. The error is that of a call about the same target. When existence cannot be
/// determined, the proposal is accepted: the owner sees it, and the tool checks again when it runs.
///
/// # Errors
/// An error for the model.
pub(in crate::dispatch) async fn check_target(
    engine: &Engine,
    call: &Call,
    tool: &Tool,
    arguments: &Map<String, Value>,
) -> Result<(), ToolError> {
    tool.check_arguments(arguments.clone())?;
    if tool.makes_target() {
        return check_new(call, tool, arguments);
    }
    if let Scope::HostOr(argument) = tool.scope()
        && !arguments.contains_key(argument)
        && !call.context.who.reach().host()
    {
        return Err(ToolError::new("the host is outside this agent's reach"));
    }
    let is_named = |name: &str| arguments.get(name).is_some_and(Value::is_string);
    let mut known_by = KNOWN_BY.iter();
    let Some(&(argument, name)) = known_by.find(|(argument, _)| is_named(argument)) else {
        return Ok(());
    };
    let asked = engine.catalog.tool(name).filter(|t| engine.catalog.has(t));
    let Some((asked, permit)) =
        asked.and_then(|asked| Some((asked, judge_target_check(&call.context.who, asked)?)))
    else {
        return Ok(());
    };
    let mut question = Map::new();
    for name in [argument, CONTAINER] {
        let value = arguments.get(name).filter(|value| value.is_string());
        question.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    let cx = surroundings(call, reference::next(), InputAnswers::default());
    let requester = Requester::Agent(cx.caller().agent.clone());
    match on_behalf_of(requester, asked.run(permit, question, cx)).await {
        Err(Interruption::Failed(error)) if error.absent => Err(error),
        _ => Ok(()),
    }
}

/// The check for a tool that creates a container: an agent cannot create one outside of its reach.
fn check_new(call: &Call, tool: &Tool, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let (Scope::Container(argument) | Scope::HostOr(argument)) = tool.scope() else {
        return Ok(());
    };
    match arguments.get(argument).and_then(Value::as_str) {
        Some(name) if !call.context.who.reach().container(name) => {
            let words = format!("a container '{name}' would be outside this agent's reach");
            Err(ToolError::new(words))
        }
        _ => Ok(()),
    }
}
