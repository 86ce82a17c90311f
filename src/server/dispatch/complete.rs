//! `completion/complete`: values for a prompt's argument or a template's variable.

use serde_json::{Map, Value, json};

use super::{
    call::{Call, CallOutcome},
    engine::Engine,
    prompts::is_there,
    results::CachePolicy,
};
use gatewren_wire::protocol::{Params, RpcError};
use gatewren_wire::registry::{Completion, CompletionReference, Viewer};

/// The specification's limit for one answer; further values are counted but not sent.
const MAX_VALUES: usize = 100;

/// Answers `completion/complete`.
pub fn complete(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let completion = read(&call.params)?;
    let viewer = call.context.viewer();
    check(engine, call, &viewer, &completion.reference)?;
    let mut values = engine
        .catalog
        .completer()
        .map(|c| c(&viewer, &completion))
        .unwrap_or_default();
    let total = values.len();
    values.truncate(MAX_VALUES);
    let result = json!({ "completion": {
        "values": values, "total": total, "hasMore": total > MAX_VALUES } });
    Ok(engine.complete(result, CachePolicy::None))
}

fn read(params: &Params) -> Result<Completion, RpcError> {
    let text = |object: Option<&Value>, name: &str| {
        object
            .and_then(|o| o.get(name))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let place = params.get("ref");
    let reference = match text(place, "type").as_deref() {
        Some("ref/prompt") => text(place, "name").map(CompletionReference::Prompt),
        Some("ref/resource") => text(place, "uri").map(CompletionReference::Template),
        _ => None,
    };
    let argument = params.get("argument");
    let context = read_context(params)?;
    match (reference, text(argument, "name"), text(argument, "value")) {
        (Some(reference), Some(argument), Some(typed)) => Ok(Completion {
            reference,
            argument,
            typed,
            context,
        }),
        _ => Err(RpcError::invalid_params(
            "completion/complete requires ref (ref/prompt with name, or ref/resource with uri) and argument \
             {name, value}",
        )),
    }
}

/// Returns the arguments that the client has filled in before, if it sends any.
fn read_context(params: &Params) -> Result<Map<String, Value>, RpcError> {
    let wrong = || {
        RpcError::invalid_params(
            "context of completion/complete must be an object {arguments}, and arguments an object of texts",
        )
    };
    let object = |value: &Value| match value {
        Value::Null => Ok(Map::new()),
        Value::Object(fields) => Ok(fields.clone()),
        _ => Err(wrong()),
    };
    let context = params.get("context").map_or(Ok(Map::new()), object)?;
    let arguments = context.get("arguments").map_or(Ok(Map::new()), object)?;
    if arguments.values().all(Value::is_string) {
        Ok(arguments)
    } else {
        Err(wrong())
    }
}

fn check(
    engine: &Engine,
    call: &Call,
    viewer: &Viewer,
    reference: &CompletionReference,
) -> Result<(), RpcError> {
    let known = match reference {
        CompletionReference::Prompt(name) => {
            let prompt = engine.catalog.prompt(name);
            prompt.is_some_and(|prompt| is_there(engine, &call.context.who, prompt))
        }
        CompletionReference::Template(uri) => engine.catalog.resources().is_some_and(|source| {
            source
                .templates(viewer)
                .iter()
                .any(|t| t.uri_template == *uri)
                || source.resources(viewer).iter().any(|r| r.uri == *uri)
        }),
    };
    if known {
        Ok(())
    } else {
        Err(RpcError::invalid_params(
            "ref names an unknown prompt or resource",
        ))
    }
}
