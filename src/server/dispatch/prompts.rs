//! Prompts: the list, and rendering one.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::{Call, CallOutcome, CallReply};
use super::container_names::{NameRequest, resolve_prompt_container};
use super::cursor::cursor;
use super::engine::Engine;
use super::results::CachePolicy;
use super::tools::call_read_only;
use super::{elicitation, reference};
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::sees;
use gatewren_wire::protocol::{RpcError, page};
use gatewren_wire::registry::{Interruption, PromptRow};

const LIST_TTL_MS: u64 = 300_000;

/// `prompts/list`.
pub fn list(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let all: Vec<&_> = engine
        .catalog
        .prompts()
        .filter(|prompt| is_there(engine, &call.context.who, prompt))
        .map(|prompt| &prompt.definition)
        .collect();
    let page = page(
        &call.method,
        &all,
        |prompt| &prompt.name,
        cursor(&call.params)?,
    )?;
    let mut result = Map::from_iter([("prompts".to_owned(), json!(page.items))]);
    if let Some(next) = page.next {
        result.insert("nextCursor".into(), json!(next));
    }
    Ok(engine.complete(Value::Object(result), CachePolicy::Private(LIST_TTL_MS)))
}

/// `prompts/get`.
pub fn get(engine: Arc<Engine>, call: Call) -> CallReply {
    CallReply {
        notes: None,
        outcome: Box::pin(async move { write(&engine, call).await }),
    }
}

/// Whether an agent can see a prompt: it must see every tool that the prompt needs.
pub(super) fn is_there(engine: &Engine, who: &Principal, prompt: &PromptRow) -> bool {
    let tool = |name| {
        engine
            .catalog
            .tool(name)
            .is_some_and(|tool| sees(who, tool))
    };
    prompt.needs.iter().all(|name| tool(name))
}

async fn write(engine: &Arc<Engine>, mut call: Call) -> Result<CallOutcome, RpcError> {
    let name = elicitation::name(&call.params)?;
    let row = engine.catalog.prompt(name).cloned();
    let row = row.filter(|row| is_there(engine, &call.context.who, row));
    let row = row.ok_or_else(|| {
        RpcError::invalid_params(format!("unknown prompt: {name}; prompts/list lists them"))
    })?;
    let (inputs, binding) = elicitation::inputs(engine, &mut call, true)?;
    let mut arguments = elicitation::arguments(&mut call.params)?;
    check_required(&row, &arguments)?;
    let cx = elicitation::surroundings(&call, reference::next(), inputs);
    let name_request = NameRequest {
        who: &call.context.who,
        reference: cx.reference(),
    };
    let resolved = resolve_prompt_container(engine, name_request, &mut arguments).await;
    resolved.map_err(|error| RpcError::invalid_params(error.to_string()))?;
    let call = Arc::new(call);
    let (fixture, asked) = (engine.clone(), call.clone());
    let cx = cx.with_looks(move |tool, arguments| {
        call_read_only(fixture.clone(), asked.clone(), tool, arguments)
    });
    match (row.function)(arguments, cx).await {
        Ok(answer) => {
            let mut result = Map::from_iter([("messages".to_owned(), json!(answer.messages))]);
            if let Some(description) = answer.description {
                result.insert("description".into(), json!(description));
            }
            Ok(engine.complete(Value::Object(result), CachePolicy::None))
        }
        Err(Interruption::Ask(question)) => elicitation::ask(engine, &call, &binding, question),
        Err(Interruption::Failed(error)) => Err(RpcError::invalid_params(error.to_string())),
        Err(Interruption::Propose(_)) => Err(RpcError::internal(&reference::next())),
        Err(Interruption::Rpc(error)) => Err(error),
    }
}

fn check_required(row: &PromptRow, given: &Map<String, Value>) -> Result<(), RpcError> {
    let missing = row
        .definition
        .arguments
        .iter()
        .find(|a| a.required && !given.contains_key(&a.name));
    missing.map_or(Ok(()), |argument| {
        Err(RpcError::invalid_params(format!(
            "the prompt requires the argument {}",
            argument.name
        )))
    })
}
