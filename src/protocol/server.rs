//! The server's description of itself, in `server/discover` and in the response to `initialize`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::json::SerializedJson;
use super::key;

/// Name and version of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Implementation {
    /// Its name for programs.
    pub name: String,
    /// Its name for people; 2025-06-18 and later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// What only its introduction has: `server/discover`, and `initialize` of 2025-11-25.
    #[serde(skip)]
    pub profile: Option<ServerProfile>,
}

/// What clients show to people when they list their servers (2025-11-25, schema, `Implementation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerProfile {
    /// What it is for, in one sentence.
    pub description: &'static str,
    /// Its icon, as SVG.
    pub icon: &'static str,
}

impl Implementation {
    /// Returns the description for a client that meets the server: with what people are shown. Every other result only
    /// has the names, because it is sent with each of them (2026-07-28, basic).
    pub fn introduction(&self) -> Value {
        let mut server = json!(self);
        if let (Some(profile), Some(server)) = (self.profile, server.as_object_mut()) {
            let source = format!(
                "data:image/svg+xml;base64,{}",
                STANDARD.encode(profile.icon)
            );
            let icon = json!({ "src": source, "mimeType": "image/svg+xml", "sizes": ["any"] });
            server.insert("description".to_owned(), json!(profile.description));
            server.insert("icons".to_owned(), json!([icon]));
        }
        server
    }

    /// Returns the `_meta` that only names the server, serialized once for all results.
    pub fn signature(&self) -> SerializedJson {
        let meta = json!({ key::SERVER_INFO: self });
        // Only strings: serialization cannot fail.
        SerializedJson::of(&meta).unwrap_or_else(|_| SerializedJson::nothing())
    }

    /// Adds the name of the server to a result's `_meta` (2026-07-28, basic).
    pub fn sign(&self, result: &mut Value) {
        let Some(result) = result.as_object_mut() else {
            return;
        };
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(key::SERVER_INFO.to_owned(), json!(self));
        }
    }
}

/// The features that the server offers; requests for an absent one get -32601.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate feature on the wire"
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: bool,
    /// Resources, with subscriptions.
    pub resources: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completions.
    pub completions: bool,
    /// Log messages to the client.
    pub logging: bool,
    /// The lists may change while the server runs, with a notification.
    pub lists_change: bool,
    /// At least the list of tools may change, with a notification.
    pub tools_change: bool,
    /// Resources can be subscribed to.
    pub subscriptions: bool,
    /// Calls that become tasks: an extension that the stateful revisions do not define.
    pub tasks: bool,
}

impl ServerCapabilities {
    /// What is left on a transport without streams.
    #[must_use]
    pub fn without_streams(self) -> Self {
        Self {
            logging: false,
            lists_change: false,
            tools_change: false,
            subscriptions: false,
            ..self
        }
    }

    /// The capabilities object, without extensions.
    pub fn to_object(self) -> Map<String, Value> {
        let mut object = Map::new();
        let lists = if self.lists_change {
            json!({ "listChanged": true })
        } else {
            json!({})
        };
        if self.tools {
            let changes = self.tools_change || self.lists_change;
            let tools = if changes {
                json!({ "listChanged": true })
            } else {
                json!({})
            };
            object.insert("tools".into(), tools);
        }
        if self.prompts {
            object.insert("prompts".into(), lists.clone());
        }
        if self.resources {
            let mut resources = json!({});
            if self.subscriptions {
                resources = json!({ "subscribe": true });
            }
            if let (Some(resources), Value::Object(lists)) = (resources.as_object_mut(), lists) {
                resources.extend(lists);
            }
            object.insert("resources".into(), resources);
        }
        if self.completions {
            object.insert("completions".into(), json!({}));
        }
        if self.logging {
            object.insert("logging".into(), json!({}));
        }
        object
    }
}
