//! `state_get` and `changes_since`: the box as one document, and what has become of it.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::registry::{Cx, Result, Risk, ToolError, Toolset};
use crate::state::{Changes, Pointer, State};

/// The group, as a table.
pub fn tools(state: Arc<State>) -> Toolset<State> {
    Toolset::over(state)
        .tool("state_get", Risk::Read, get)
        .titled("Read the state")
        .startos("db.dump", &[])
        .tool("changes_since", Risk::Read, changes)
        .titled("What has changed")
}

/// A place in the public part of the state.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
struct Public(Pointer);

impl TryFrom<String> for Public {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let pointer = Pointer::parse(&text).map_err(|error| error.to_string())?;
        if pointer.tokens().first().map(String::as_str) == Some("public") {
            Ok(Self(pointer))
        } else {
            Err("a JSON Pointer that begins with /public, such as /public/packageData".to_owned())
        }
    }
}

impl From<Public> for String {
    fn from(place: Public) -> Self {
        place.0.to_string()
    }
}

impl Default for Public {
    fn default() -> Self {
        Self(Pointer::root().child("public"))
    }
}

impl JsonSchema for Public {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pointer".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^/public(/.*)?$" })
    }
}

/// Reads the description of the box that the server keeps up to date, or a part of it, with the
/// revision that it is true for. /public/serverInfo is the host, /public/packageData the containers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// JSON Pointer (RFC 6901) to the part to read; all of it when absent.
    #[serde(default)]
    pointer: Public,
}

#[derive(Serialize, JsonSchema)]
struct Part {
    /// The revision that the value is true for; `changes_since` takes it.
    revision: u64,
    /// The pointer that was read.
    pointer: String,
    /// The value there.
    value: Value,
}

async fn get(state: Arc<State>, Get { pointer }: Get, _: Cx) -> Result<Part> {
    let document = state.document();
    let value = pointer.0.get(&document.root).cloned().ok_or_else(|| {
        ToolError::new(format!("there is nothing at {}", pointer.0))
            .hint("Read the part above it to see what is there.")
    })?;
    Ok(Part {
        revision: document.revision,
        pointer: pointer.0.to_string(),
        value,
    })
}

/// Says what has changed after a revision: who changed it, when, and the patch (RFC 6902). Use it
/// instead of waiting for notifications: keep the revision that it returns and ask again from there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Since {
    /// The revision after which to look, from `state_get` or an earlier answer.
    revision: u64,
    /// Only changes at or below this JSON Pointer (RFC 6901); everywhere when absent.
    #[serde(default)]
    pointer: Public,
}

/// One answer holds so many revisions; `more` says that there are further ones.
const MOST_REVISIONS: usize = 200;

#[derive(Serialize, JsonSchema)]
struct History {
    /// The revision that this answer reaches to; ask from here next time.
    revision: u64,
    /// Oldest first.
    revisions: Vec<Value>,
    /// Whether there are further ones; ask again from `revision`.
    more: bool,
    /// True when the log no longer reaches back so far: read the state anew with `state_get`.
    resync: bool,
}

async fn changes(state: Arc<State>, Since { revision, pointer }: Since, _: Cx) -> Result<History> {
    let found = state.changes_since(revision, &pointer.0, MOST_REVISIONS);
    match found.map_err(|error| ToolError::new(error.to_string()))? {
        Changes::Revisions {
            revisions,
            upto,
            more,
        } => Ok(History {
            revision: upto,
            revisions: revisions
                .iter()
                .filter_map(|r| serde_json::to_value(r).ok())
                .collect(),
            more,
            resync: false,
        }),
        Changes::Resync { upto, .. } => Ok(History {
            revision: upto,
            revisions: Vec::new(),
            more: false,
            resync: true,
        }),
    }
}
