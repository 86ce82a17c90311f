//! `state_get` and `state_blame`: the state document and its authors.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::public_pointer::{PublicPointer, view_for};
use super::state_summary::with_time;

use gatewren_store::state::{Pointer, StateViews};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(views: Arc<StateViews>) -> Toolset<StateViews> {
    Toolset::new(views)
        .with_name("state")
        .tool("state_get", Risk::Read, get)
        .about(Scope::Within)
        .titled("Read the state")
        .startos("db.dump", &[])
        .tool("state_blame", Risk::Read, blame)
        .about(Scope::Within)
        .titled("Show who wrote a value")
}

/// Read the state document, the current description of the server, or a part of it, with its revision:
/// /public/serverInfo is the host, /public/packageData the containers. Of a value above 40 kB it returns the parts with
/// their sizes. `changes_since` shows later changes.
///
/// Fails for a missing path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// JSON Pointer (RFC 6901) to the part to read; default: all.
    #[serde(default)]
    pointer: PublicPointer,
}

#[derive(Serialize, JsonSchema)]
struct Part {
    /// The value's revision, for `changes_since`.
    revision: u64,
    /// The database of the revision, for `changes_since`.
    database: String,
    /// The pointer that was read.
    pointer: String,
    /// The value there, up to 40 kB.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The size of a larger value as JSON, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// The parts of a larger value, the largest first, at most 100. Read one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<StatePartSize>,
}

/// A part of a value.
#[derive(Serialize, JsonSchema)]
struct StatePartSize {
    /// Its pointer.
    pointer: String,
    /// Its size as JSON, in bytes.
    bytes: usize,
}

/// The largest value in an answer, as JSON.
const MAX_VALUE_BYTES: usize = 40 << 10;

/// The most parts in an answer; smaller ones are left out.
const MAX_PARTS: usize = 100;

async fn get(views: Arc<StateViews>, Get { pointer }: Get, cx: Cx) -> Result<Part> {
    let view = view_for(&views, &cx);
    let part = view.at(pointer.pointer(), |value, revision| {
        let bytes = json_bytes(value);
        let fits = bytes <= MAX_VALUE_BYTES;
        Part {
            revision,
            database: view.database_id().to_owned(),
            pointer: pointer.pointer().to_string(),
            value: fits.then(|| value.clone()),
            bytes: (!fits).then_some(bytes),
            parts: if fits {
                Vec::new()
            } else {
                parts(pointer.pointer(), value)
            },
        }
    });
    Ok(part.ok_or_else(|| nothing_at(&pointer))?)
}

/// Returns the parts of a value that is too large.
fn parts(at: &Pointer, value: &Value) -> Vec<StatePartSize> {
    let part = |key: String, value: &Value| StatePartSize {
        pointer: at.child(key).to_string(),
        bytes: json_bytes(value),
    };
    let mut parts: Vec<StatePartSize> = match value {
        Value::Object(all) => all
            .iter()
            .map(|(key, value)| part(key.clone(), value))
            .collect(),
        Value::Array(all) => {
            let numbered = all.iter().enumerate();
            numbered
                .map(|(key, value)| part(key.to_string(), value))
                .collect()
        }
        // A text has no parts; the resource has all of it.
        _ => Vec::new(),
    };
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    parts.truncate(MAX_PARTS);
    parts
}

fn json_bytes(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

/// Show which revision last wrote each value, when, by whom (`observer`, `owner`, `agent:ID`, `local:PROGRAM`) and in
/// which call. `changes_since` shows other revisions.
///
/// `claims to be` marks an unproven name. Values older than the log are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Blamed {
    /// JSON Pointer (RFC 6901) to a value, or to a part with values.
    pointer: PublicPointer,
}

/// The maximum number of values in an answer; `left_out` counts the others.
const MOST_VALUES: usize = 200;

#[derive(Serialize, JsonSchema)]
struct Authors {
    /// The revision of the document.
    revision: u64,
    /// The oldest revision in the log, if the caller sees all of it. Older values have no author.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<u64>,
    /// The last write at or below the pointer: `revision`, `at`, `actor`, `cause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Value>,
    /// Each value's `pointer` and how it was last `written`; null if before the log begins.
    leaves: Vec<Value>,
    /// How many more values there are; ask for a part.
    left_out: usize,
}

async fn blame(views: Arc<StateViews>, Blamed { pointer }: Blamed, cx: Cx) -> Result<Authors> {
    let (view, place) = (view_for(&views, &cx), pointer.pointer().clone());
    // Reads the log from the disk.
    let look = move || {
        let found = view.blame(&place, MOST_VALUES);
        found.map(|found| found.map(|blame| (view.floor(blame.floor), blame)))
    };
    let found = spawn_blocking(look).await;
    let found = found.map_err(|error| ToolError::new(error.to_string()))?;
    let (floor, blame) = found
        .map_err(|error| ToolError::new(error.to_string()))?
        .ok_or_else(|| nothing_at(&pointer))?;
    Ok(Authors {
        revision: blame.revision,
        floor,
        last: blame.last.map(|last| with_time(json!(last))),
        leaves: blame.leaves.iter().map(|one| leaf(json!(one))).collect(),
        left_out: blame.left_out,
    })
}

/// Returns a value of the document as the answer has it.
fn leaf(mut shown: Value) -> Value {
    if let Some(written) = shown.get_mut("written") {
        *written = with_time(written.take());
    }
    shown
}

fn nothing_at(pointer: &PublicPointer) -> ToolError {
    ToolError::new(format!("path not found: {}", pointer.pointer()))
        .hint("Read its parent to see what exists.")
}
