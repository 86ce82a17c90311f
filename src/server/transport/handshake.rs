//! `initialize`: what a stateful client declares, and the answer.

use serde_json::{Map, Value, json};

use crate::dispatch::Engine;
use gatewren_wire::protocol::{Params, RpcError, RpcRequest, Version};

/// A client's `initialize`.
pub struct InitializeRequest<'a> {
    /// The negotiated revision.
    pub version: Version,
    params: &'a Params,
}

impl<'a> InitializeRequest<'a> {
    /// Reads the request; fails with -32602 if it names no revision.
    pub fn read(request: &'a RpcRequest) -> Result<Self, RpcError> {
        let params = &request.params;
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| {
            let words = "initialize requires params.protocolVersion, a date such as 2025-11-25";
            RpcError::invalid_params(words)
        })?;
        let version = Version::negotiate(asked);
        Ok(Self { version, params })
    }

    /// The capabilities that the client declares.
    pub fn declared_capabilities(&self) -> Map<String, Value> {
        let declared = self.params.get("capabilities").and_then(Value::as_object);
        declared.cloned().unwrap_or_default()
    }

    /// The result, with the instructions for the model.
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
