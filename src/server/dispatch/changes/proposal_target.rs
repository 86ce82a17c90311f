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
    (CONTAINER, CONTAINER_KNOWN_BY),
];

const CONTAINER: &str = "container";

/// The argument for the name of a container that a call creates beside its target, and the older name for it.
const NEW_CONTAINER: [&str; 2] = ["new_container", "new_name"];

/// The tool that fails if a container does not exist.
const CONTAINER_KNOWN_BY: &str = "container_config_get";

/// What the ids of backups of the host begin with, before the `@`.
const HOST_BACKUP: &str = "_host";

/// The most containers that are looked up beside the target. The tools accept no longer lists.
const MAX_LOOKED_UP: usize = 64;

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
    check_beside(call, arguments)?;
    for name in containers_beside(arguments).take(MAX_LOOKED_UP) {
        let question = Map::from_iter([(CONTAINER.to_owned(), Value::from(name))]);
        look_up(engine, call, CONTAINER_KNOWN_BY, question).await?;
    }
    let is_named = |name: &str| arguments.get(name).is_some_and(Value::is_string);
    let mut known_by = KNOWN_BY.iter();
    let Some(&(argument, name)) = known_by.find(|(argument, _)| is_named(argument)) else {
        return Ok(());
    };
    let mut question = Map::new();
    for name in [argument, CONTAINER] {
        let value = arguments.get(name).filter(|value| value.is_string());
        question.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    look_up(engine, call, name, question).await
}

/// Calls a tool that fails if the target does not exist, within the agent's access.
async fn look_up(
    engine: &Engine,
    call: &Call,
    by: &str,
    question: Map<String, Value>,
) -> Result<(), ToolError> {
    let asked = engine.catalog.tool(by).filter(|t| engine.catalog.has(t));
    let Some((asked, permit)) =
        asked.and_then(|asked| Some((asked, judge_target_check(&call.context.who, asked)?)))
    else {
        return Ok(());
    };
    let cx = surroundings(call, reference::next(), InputAnswers::default());
    let requester = Requester::Agent(cx.caller().agent.clone());
    match on_behalf_of(requester, asked.run(permit, question, cx)).await {
        Err(Interruption::Failed(error)) if error.absent => Err(error),
        _ => Ok(()),
    }
}

/// The containers that lists in the arguments name: of an update, and those with a snapshot to delete.
fn containers_beside(arguments: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let list = |name: &str| arguments.get(name).and_then(Value::as_array);
    let named = list("containers").into_iter().flatten();
    let updated = list("targets").into_iter().flatten();
    let deleted = list("items").into_iter().flatten();
    named
        .filter_map(Value::as_str)
        .chain(updated.filter_map(|target| target.get(CONTAINER)?.as_str()))
        .chain(deleted.filter_map(snapshot_container))
}

/// The container of an item `snapshot:CONTAINER/SNAPSHOT`.
fn snapshot_container(item: &Value) -> Option<&str> {
    let snapshot = item.get("id")?.as_str()?.strip_prefix("snapshot:")?;
    snapshot.rsplit_once('/').map(|(container, _)| container)
}

/// Refuses a new name, and a backup of a container, outside of the agent's reach. A backup may outlive its container,
/// so only the name counts.
fn check_beside(call: &Call, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let reach = call.context.who.reach();
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let new = NEW_CONTAINER.iter().find_map(|name| text(name));
    if let Some(name) = new.filter(|name| !reach.container(name)) {
        return Err(outside(name));
    }
    let Some(backup) = text("backup") else {
        return Ok(());
    };
    let is_seen = match backup.rsplit_once('@') {
        Some((HOST_BACKUP, _)) => reach.host(),
        Some((container, _)) => reach.container(container),
        None => false,
    };
    if is_seen {
        return Ok(());
    }
    Err(ToolError::new(format!("there is no backup '{backup}'")))
}

fn outside(name: &str) -> ToolError {
    ToolError::new(format!(
        "a container '{name}' would be outside this agent's reach"
    ))
}

/// The check for a tool that creates a container: an agent cannot create one outside of its reach.
fn check_new(call: &Call, tool: &Tool, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let (Scope::Container(argument) | Scope::HostOr(argument)) = tool.scope() else {
        return Ok(());
    };
    match arguments.get(argument).and_then(Value::as_str) {
        Some(name) if !call.context.who.reach().container(name) => Err(outside(name)),
        _ => Ok(()),
    }
}
