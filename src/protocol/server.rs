//! What the server says of itself, in `server/discover` and in the answer to `initialize`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::key;
use super::written::Written;

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
}

impl Implementation {
    /// The `_meta` of a result that says nothing but who answered, written once for all of them.
    pub fn signature(&self) -> Written {
        let meta = json!({ key::SERVER_INFO: self });
        // Texts only: nothing here can fail to be written.
        Written::of(&meta).unwrap_or_else(|_| Written::nothing())
    }

    /// Says in a result's `_meta` who answered (2026-07-28, basic).
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

/// What the server offers; a part that is absent answers -32601.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a feature of its own on the wire"
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
    /// Lists change while the server runs, and it says so.
    pub lists_change: bool,
    /// Of the lists, that of the tools does so at least.
    pub tools_change: bool,
    /// Calls that become tasks: an extension, which the stateful revisions do not know.
    pub tasks: bool,
}

impl ServerCapabilities {
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
            let mut resources = json!({ "subscribe": true });
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
