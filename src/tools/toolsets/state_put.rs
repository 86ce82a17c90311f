//! `state_put`: writes to the part of the state that is for user interfaces.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use gatewren_store::state::{Actor, Author, Pointer, Ui, UiError};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(ui: Arc<Ui>) -> Toolset<Ui> {
    Toolset::new(ui)
        .with_name("state")
        .tool("state_put", Risk::Write, put)
        // It belongs to no container: a user interface shows all of it.
        .about(Scope::Server)
        .titled("Write to the state")
        .startos("db.put.ui", &[])
}

/// Write a value to /public/ui, the part of the state for user interfaces, and return its revision; without `value`,
/// remove the value there. `state_get` reads it.
///
/// Other paths are rejected, as is more than 256 KiB or 16 levels in total. Does not change the server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Put {
    /// JSON Pointer (RFC 6901), such as /public/ui/notes, or /notes relative to it.
    ///
    /// Missing parent objects are created.
    pointer: String,
    /// The JSON value to write, of any type; absent or null: remove.
    // Some clients reject a schema without a type, and most values are objects.
    #[schemars(with = "Option<Map<String, Value>>")]
    value: Option<Value>,
    /// The value as JSON text, which can also be null.
    // The name until `value` took any type.
    #[schemars(skip)]
    json: Option<Json>,
}

/// JSON text.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "")]
struct Json(Value);

impl TryFrom<String> for Json {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let value = serde_json::from_str(&text);
        value
            .map(Self)
            .map_err(|error| format!("invalid JSON: {error}"))
    }
}

#[derive(Serialize, JsonSchema)]
struct Written {
    /// The revision: a new one, unless the value was already there.
    revision: u64,
    /// The pointer, from the whole document.
    pointer: String,
}

async fn put(ui: Arc<Ui>, asked: Put, cx: Cx) -> Result<Written> {
    let place = place(&asked.pointer)?;
    let value = match (asked.value, asked.json) {
        (Some(_), Some(_)) => {
            let words = "give either `value` or `json`, not both. Nothing was changed.";
            return Err(ToolError::new(words).into());
        }
        (Some(value), None) => Some(value),
        (None, json) => json.map(|Json(value)| value),
    };
    let author =
        Author::from(Actor::Agent(cx.caller().agent.to_string())).because(&**cx.reference());
    let revision = ui.put(&author, &place, value).await.map_err(failed)?;
    Ok(Written {
        revision,
        pointer: place.to_string(),
    })
}

/// Parses a pointer into the document or, as in `StartOS`, relative to `/public/ui`. A pointer that begins with
/// `/public` is never relative.
fn place(pointer: &str) -> std::result::Result<Pointer, ToolError> {
    let pointer = Pointer::parse(pointer).map_err(|error| ToolError::new(error.to_string()))?;
    let is_whole = pointer.tokens().first().map(String::as_str) == Some("public");
    Ok(if is_whole {
        pointer
    } else {
        Ui::place().join(&pointer)
    })
}

fn failed(error: UiError) -> ToolError {
    match error {
        UiError::State(state) if state.is_of_the_file() => ToolError {
            retry: true,
            ..ToolError::new("The state cannot be written at the moment. Nothing was changed.")
        },
        other => ToolError::new(other.to_string()).hint("Nothing was changed."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_from_the_top_or_from_there() {
        for (said, meant) in [
            ("/public/ui/a", "/public/ui/a"),
            ("/public/ui", "/public/ui"),
            ("/a/b", "/public/ui/a/b"),
            ("", "/public/ui"),
            ("/ui", "/public/ui/ui"),
            ("/public/serverInfo", "/public/serverInfo"),
        ] {
            assert_eq!(place(said).unwrap().to_string(), meant);
        }
        assert!(place("public").is_err());
    }

    #[test]
    fn the_value_has_any_type_or_is_given_as_text() {
        let read = |text: &str| serde_json::from_str::<Put>(text);
        for value in ["{}", "1", "\"dark\"", "[null]", "false"] {
            let put = read(&format!(r#"{{"pointer":"/a","value":{value}}}"#)).unwrap();
            assert_eq!(put.value.unwrap().to_string(), value);
        }
        let null = read(r#"{"pointer":"/a","value":null}"#).unwrap();
        assert!(null.value.is_none() && null.json.is_none());
        let null = read(r#"{"pointer":"/a","json":"null"}"#).unwrap();
        assert_eq!(null.json.unwrap().0, Value::Null);
        for bad in [
            r#"{"pointer":"/a","json":"dark"}"#,
            r#"{"pointer":"/a","json":1}"#,
            r#"{"value":{}}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
