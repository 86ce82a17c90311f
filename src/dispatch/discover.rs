//! `server/discover`: who answers, what is offered, what a model is told first.

use serde_json::{Map, Value, json};

use super::{
    call::{Call, Outcome},
    engine::Engine,
    results::Caching,
    welcome::instructions,
};
use crate::protocol::{MODERN_VERSIONS, RpcError, TASKS_EXTENSION};

/// A client may keep the answer for an hour: it changes with an upgrade.
const TTL_MS: u64 = 3_600_000;

/// Answers `server/discover`.
#[expect(clippy::unnecessary_wraps, reason = "the shape of every row")]
pub fn discover(engine: &Engine, call: &Call) -> Result<Outcome, RpcError> {
    let mut capabilities = engine.catalog.capabilities().to_object();
    // Log messages are asked for by each request here, and deprecated; a session still can.
    if !engine.catalog.capabilities().logging {
        capabilities.remove("logging");
    }
    if engine.catalog.capabilities().tasks {
        let extensions = json!({ TASKS_EXTENSION: {} });
        capabilities.insert("extensions".into(), extensions);
    }
    let mut result = Map::new();
    result.insert("supportedVersions".into(), json!(MODERN_VERSIONS));
    result.insert("capabilities".into(), Value::Object(capabilities));
    if let Some(instructions) = instructions(&engine.catalog, &call.context.who) {
        result.insert("instructions".into(), json!(instructions));
    }
    Ok(engine.complete(Value::Object(result), Caching::Private(TTL_MS)))
}
