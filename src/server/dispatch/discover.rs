//! `server/discover`: the server's identity, its capabilities and its instructions for a model.

use serde_json::{Map, Value, json};

use super::apps;
use super::call::{Call, CallOutcome};
use super::engine::Engine;
use super::instructions::instructions;
use super::results::CachePolicy;
use super::skills::SKILLS_EXTENSION;
use gatewren_wire::protocol::{MODERN_VERSIONS, RpcError, TASKS_EXTENSION, key};
use gatewren_wire::registry::LogOffer;

/// A client may cache the answer for an hour, because it changes only with an upgrade.
const TTL_MS: u64 = 3_600_000;

/// Answers `server/discover`.
#[expect(clippy::unnecessary_wraps, reason = "every row has this signature")]
pub fn discover(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let mut offered = engine.catalog.capabilities();
    // A pipe, which has no address, has messages in both directions in any case.
    if !engine.streams() && call.context.address.is_some() {
        offered = offered.without_streams();
    }
    let mut capabilities = offered.to_object();
    // Log messages are requested per request in this revision and are deprecated; sessions still support them.
    if engine.catalog.log_offer() != LogOffer::Everyone {
        capabilities.remove("logging");
    }
    let mut extensions = Map::new();
    if engine.catalog.capabilities().tasks {
        extensions.insert(TASKS_EXTENSION.into(), json!({}));
    }
    if engine.catalog.capabilities().resources {
        let settings = json!({ "directoryRead": true });
        extensions.insert(SKILLS_EXTENSION.into(), settings);
    }
    extensions.extend(apps::declaration(engine, &call.context.capabilities));
    if !extensions.is_empty() {
        capabilities.insert("extensions".into(), Value::Object(extensions));
    }
    let mut result = Map::new();
    result.insert("supportedVersions".into(), json!(MODERN_VERSIONS));
    result.insert("capabilities".into(), Value::Object(capabilities));
    if let Some(instructions) = instructions(&engine.catalog, &call.context.who) {
        result.insert("instructions".into(), json!(instructions));
    }
    let mut result = engine.complete_result(Value::Object(result), CachePolicy::Private(TTL_MS));
    let meta = result.get_mut("_meta").and_then(Value::as_object_mut);
    if let Some(meta) = meta {
        meta.insert(
            key::SERVER_INFO.to_owned(),
            engine.catalog.server.introduction(),
        );
    }
    Ok(CallOutcome::Complete(result))
}
