//! `initialize`: what a stateful client says of itself, and what it is answered.

use serde_json::{Map, Value, json};

use crate::dispatch::Engine;
use crate::protocol::{Params, Request, RpcError, Version};

/// A client's `initialize`.
pub struct Hello<'a> {
    /// The revision settled on.
    pub version: Version,
    params: &'a Params,
}

impl<'a> Hello<'a> {
    /// Reads it; -32602 when it names no revision.
    pub fn read(request: &'a Request) -> Result<Self, RpcError> {
        let params = &request.params;
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| {
            let words = "initialize needs params.protocolVersion, a date such as 2025-11-25";
            RpcError::invalid_params(words)
        })?;
        let version = Version::negotiate(asked);
        Ok(Self { version, params })
    }

    /// What the client says that it can do.
    pub fn declared(&self) -> Map<String, Value> {
        let declared = self.params.get("capabilities").and_then(Value::as_object);
        declared.cloned().unwrap_or_default()
    }

    /// The result, with what the model is told first.
    pub fn answer(&self, engine: &Engine, instructions: Option<String>) -> Value {
        let catalog = &engine.catalog;
        let mut server = json!(catalog.server);
        if self.version < Version::V2025_06_18
            && let Some(server) = server.as_object_mut()
        {
            server.remove("title");
        }
        let mut result = json!({
            "protocolVersion": self.version.as_str(),
            "capabilities": catalog.capabilities().to_object(),
            "serverInfo": server,
        });
        if let (Some(text), Some(object)) = (instructions, result.as_object_mut()) {
            object.insert("instructions".into(), json!(text));
        }
        result
    }
}
