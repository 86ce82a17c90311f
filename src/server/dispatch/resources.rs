//! Resources: lists, templates, reading.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    apps,
    call::{Call, CallOutcome, CallReply},
    cursor::cursor,
    engine::Engine,
    results::CachePolicy,
    skills,
};
use gatewren_base::sys::{Requester, on_behalf_of};
use gatewren_wire::protocol::{ReadResult, RpcError, page};

/// The list of resources changes only with an upgrade; their contents may change at any time.
const LIST_TTL_MS: u64 = 300_000;

/// `resources/list`.
pub fn list(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let mut all = engine
        .catalog
        .resources()
        .map(|s| s.resources(&call.context.viewer()))
        .unwrap_or_default();
    all.extend(apps::list(engine, &call.context.capabilities));
    all.extend(skills::manifests(engine, &call.context.who));
    page_result(engine, call, "resources", &all, |one| &one.uri)
}

/// `resources/templates/list`.
pub fn templates(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let all = engine
        .catalog
        .resources()
        .map(|s| s.templates(&call.context.viewer()))
        .unwrap_or_default();
    page_result(engine, call, "resourceTemplates", &all, |one| {
        &one.uri_template
    })
}

fn page_result<T: Serialize>(
    engine: &Engine,
    call: &Call,
    name: &str,
    all: &[T],
    key: impl Fn(&T) -> &str,
) -> Result<CallOutcome, RpcError> {
    let page = page(&call.method, all, key, cursor(&call.params)?)?;
    let mut result = Map::from_iter([(name.to_owned(), json!(page.items))]);
    if let Some(next) = page.next {
        result.insert("nextCursor".into(), json!(next));
    }
    Ok(engine.complete(Value::Object(result), CachePolicy::Private(LIST_TTL_MS)))
}

/// `resources/read`.
pub fn read(engine: Arc<Engine>, call: Call) -> CallReply {
    CallReply {
        notes: None,
        outcome: Box::pin(async move { read_one(&engine, &call).await }),
    }
}

async fn read_one(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let uri = call
        .params
        .get("uri")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("resources/read requires params.uri, a string"))?;
    let source = engine
        .catalog
        .resources()
        .ok_or_else(|| RpcError::method_not_found(&call.method))?;
    let viewer = call.context.viewer();
    if let Some(document) = source.document(&viewer, uri) {
        return Ok(CallOutcome::Read(ReadResult::Document(document)));
    }
    let own = apps::read(engine, &call.context.capabilities, uri);
    if let Some(file) = own.or_else(|| skills::read(engine, &call.context.who, uri)) {
        return Ok(CallOutcome::Read(ReadResult::Contents(vec![file])));
    }
    let requester = Requester::Agent(viewer.agent.clone());
    let contents = on_behalf_of(requester, source.read(&viewer, uri)).await?;
    let contents = contents.ok_or_else(|| RpcError::resource_not_found(uri))?;
    Ok(CallOutcome::Read(ReadResult::Contents(contents)))
}
