//! `initialize`: what a stateful client declares, and the answer.

use serde_json::{Map, Value, json};

use crate::dispatch::{Engine, apps_declaration};
use gatewren_wire::protocol::{
    ClientCapabilities, RpcError, RpcRequest, ServerCapabilities, Version,
};

/// A client's `initialize`.
pub struct InitializeRequest<'a> {
    /// The negotiated revision.
    pub version: Version,
    /// The capabilities that the client declares.
    pub declared_capabilities: &'a Map<String, Value>,
}

impl<'a> InitializeRequest<'a> {
    /// Reads the request; fails with -32602 if it lacks a parameter that each stateful revision requires.
    pub fn read(request: &'a RpcRequest) -> Result<Self, RpcError> {
        let params = &request.params;
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| lacks("protocolVersion, a date such as 2025-11-25"))?;
        let declared = params.get("capabilities").and_then(Value::as_object);
        let declared =
            declared.ok_or_else(|| lacks("capabilities, an object, which may be empty"))?;
        let client = params.get("clientInfo");
        let is_text = |field| {
            client
                .and_then(|client| client.get(field)?.as_str())
                .is_some()
        };
        if !is_text("name") || !is_text("version") {
            return Err(lacks(
                "clientInfo, an object with the texts name and version",
            ));
        }
        Ok(Self {
            version: Version::negotiate(asked),
            declared_capabilities: declared,
        })
    }

    /// The result, with the instructions for the model.
    pub fn answer(
        &self,
        engine: &Engine,
        capabilities: ServerCapabilities,
        instructions: Option<String>,
    ) -> Value {
        let catalog = &engine.catalog;
        let mut server = if self.version < Version::V2025_11_25 {
            json!(catalog.server)
        } else {
            catalog.server.introduction()
        };
        if self.version < Version::V2025_06_18
            && let Some(server) = server.as_object_mut()
        {
            server.remove("title");
        }
        let client = ClientCapabilities::new(self.declared_capabilities.clone());
        let mut capabilities = capabilities.to_object();
        if let Some((name, settings)) = apps_declaration(engine, &client) {
            capabilities.insert("extensions".to_owned(), json!({ name: settings }));
        }
        let mut result = json!({
            "protocolVersion": self.version.as_str(),
            "capabilities": capabilities,
            "serverInfo": server,
        });
        if let (Some(text), Some(object)) = (instructions, result.as_object_mut()) {
            object.insert("instructions".into(), json!(text));
        }
        result
    }
}

fn lacks(parameter: &str) -> RpcError {
    RpcError::invalid_params(format!("initialize requires params.{parameter}"))
}
