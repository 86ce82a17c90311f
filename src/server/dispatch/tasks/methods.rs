//! `tasks/get`, `tasks/update` and `tasks/cancel`, for clients that declare in the request that they support tasks.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::dispatch::call::{Call, CallOutcome};
use crate::dispatch::changes::task;
use crate::dispatch::engine::Engine;
use crate::dispatch::results::CachePolicy;
use gatewren_wire::protocol::{RpcError, TASKS_EXTENSION, Task};

/// `tasks/get`.
pub fn get(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let (_, task) = find(engine, call)?;
    Ok(engine.complete(task.to_detailed(), CachePolicy::None))
}

/// `tasks/update`: answers to a task's questions. Answers to questions that are not open are ignored.
pub fn update(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let (agent, task) = find(engine, call)?;
    let Some(Value::Object(responses)) = call.params.get("inputResponses") else {
        return Err(RpcError::invalid_params(
            "tasks/update requires params.inputResponses, an object of answers by key",
        ));
    };
    if let Some(live) = engine.tasks.live(agent, &task.id)
        && live.answer(responses.clone())
    {
        engine.tasks.notify_change();
    }
    Ok(acknowledge(engine))
}

/// `tasks/cancel`. A task that has ended stays as it is. Work that must not be interrupted runs to its end; a job
/// is cancelled. A change that waits for the owner is withdrawn.
pub fn cancel(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let (agent, task) = find(engine, call)?;
    if let Some(live) = engine.tasks.live(agent, &task.id) {
        live.cancel.notify_one();
    } else if !task.state.is_terminal() {
        task::cancel(engine, agent, &task.id);
    }
    Ok(acknowledge(engine))
}

/// Checks that the client has declared support for tasks in this request.
pub fn check_declared(call: &Call) -> Result<(), RpcError> {
    let capabilities = &call.context.capabilities;
    capabilities
        .require_extension(TASKS_EXTENSION)
        .map_err(|required| RpcError::missing_capability(&required))
}

fn find<'a>(engine: &Engine, call: &'a Call) -> Result<(&'a str, Arc<Task>), RpcError> {
    check_declared(call)?;
    let id = call.params.get("taskId").and_then(Value::as_str);
    let id = id.ok_or_else(|| {
        RpcError::invalid_params(format!("{} requires params.taskId, a string", call.method))
    })?;
    let agent = call.context.who.agent_id().as_str();
    let task = match task::find(engine, agent, id)? {
        Some(change) => Arc::new(change),
        None => engine.tasks.find(agent, id)?,
    };
    Ok((agent, task))
}

fn acknowledge(engine: &Engine) -> CallOutcome {
    engine.complete(Value::Object(Map::new()), CachePolicy::None)
}
