//! Prompts: the list, and writing one.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    call::{Call, Outcome, Reply},
    engine::Engine,
    reference,
    resources::cursor,
    results::Caching,
    rounds,
};
use crate::protocol::{RpcError, page};
use crate::registry::{Interruption, PromptRow};

const LIST_TTL_MS: u64 = 300_000;

/// `prompts/list`.
pub fn list(engine: &Engine, call: &Call) -> Result<Outcome, RpcError> {
    let all: Vec<&_> = engine
        .catalog
        .prompts()
        .map(|prompt| &prompt.definition)
        .collect();
    let page = page(&call.method, &all, cursor(&call.params)?)?;
    let mut result = Map::from_iter([("prompts".to_owned(), json!(page.items))]);
    if let Some(next) = page.next {
        result.insert("nextCursor".into(), json!(next));
    }
    Ok(engine.complete(Value::Object(result), Caching::Private(LIST_TTL_MS)))
}

/// `prompts/get`.
pub fn get(engine: Arc<Engine>, call: Call) -> Reply {
    Reply {
        notes: None,
        outcome: Box::pin(async move { write(&engine, call).await }),
    }
}

async fn write(engine: &Engine, mut call: Call) -> Result<Outcome, RpcError> {
    let name = rounds::name(&call.params)?;
    let row = engine.catalog.prompt(name).cloned().ok_or_else(|| {
        RpcError::invalid_params(format!("unknown prompt: {name}; prompts/list names them"))
    })?;
    let (inputs, binding) = rounds::inputs(engine, &mut call, true)?;
    let arguments = rounds::arguments(&mut call.params)?;
    required(&row, &arguments)?;
    let cx = rounds::surroundings(&call, reference::next(), inputs);
    match (row.function)(arguments, cx).await {
        Ok(answer) => {
            let mut result = Map::from_iter([("messages".to_owned(), json!(answer.messages))]);
            if let Some(description) = answer.description {
                result.insert("description".into(), json!(description));
            }
            Ok(engine.complete(Value::Object(result), Caching::None))
        }
        Err(Interruption::Ask(question)) => rounds::ask(engine, &call, &binding, question),
        Err(Interruption::Failed(error)) => Err(RpcError::invalid_params(error.to_string())),
        Err(Interruption::Propose(_)) => Err(RpcError::internal(&reference::next())),
        Err(Interruption::Rpc(error)) => Err(error),
    }
}

fn required(row: &PromptRow, given: &Map<String, Value>) -> Result<(), RpcError> {
    let missing = row
        .definition
        .arguments
        .iter()
        .find(|a| a.required && !given.contains_key(&a.name));
    missing.map_or(Ok(()), |argument| {
        Err(RpcError::invalid_params(format!(
            "the prompt needs the argument {}",
            argument.name
        )))
    })
}
