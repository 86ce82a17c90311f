//! `state_get`, `changes_since`, `state_blame`: the state document, its history and its authors.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::bounded_number::BoundedNumber;

use gatewren_store::state::{Pointer, RevisionsSince, StateView, StateViews};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(views: Arc<StateViews>) -> Toolset<StateViews> {
    Toolset::new(views)
        .with_name("state")
        .tool("state_get", Risk::Read, get)
        .about(Scope::Within)
        .titled("Read the state")
        .startos("db.dump", &[])
        .tool("changes_since", Risk::Read, changes)
        .about(Scope::Within)
        .titled("List state changes")
        .tool("state_blame", Risk::Read, blame)
        .about(Scope::Within)
        .titled("Show who wrote a value")
}

/// A pointer into the public state.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^/public(/.*)?$"))]
struct Public(Pointer);

impl TryFrom<String> for Public {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let pointer = Pointer::parse(&text).map_err(|error| error.to_string())?;
        if pointer.tokens().first().map(String::as_str) == Some("public") {
            Ok(Self(pointer))
        } else {
            Err(
                "must be a JSON Pointer that begins with /public, such as /public/packageData"
                    .to_owned(),
            )
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

/// Read the state document, the current description of the server, or a part of it, with its revision:
/// /public/serverInfo is the host, /public/packageData the containers. Fails if the path does not exist.
/// `changes_since` shows later changes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// JSON Pointer (RFC 6901) to the part to read; default: all.
    #[serde(default)]
    pointer: Public,
}

#[derive(Serialize, JsonSchema)]
struct Part {
    /// The value's revision, for `changes_since`.
    revision: u64,
    /// The database of the revision, for `changes_since`.
    database: String,
    /// The pointer that was read.
    pointer: String,
    /// The value there.
    value: Value,
}

async fn get(views: Arc<StateViews>, Get { pointer }: Get, cx: Cx) -> Result<Part> {
    let view = view_for(&views, &cx);
    let part = view.at(&pointer.0, |value, revision| Part {
        revision,
        database: view.database_id().to_owned(),
        pointer: pointer.0.to_string(),
        value: value.clone(),
    });
    Ok(part.ok_or_else(|| nothing_at(&pointer))?)
}

/// Returns the caller's view of the state.
fn view_for(views: &StateViews, cx: &Cx) -> StateView {
    let caller = cx.caller();
    views.view_for(&caller.agent, &caller.reach)
}

/// List changes after a revision: who, when, why, and the patch (RFC 6902). To poll instead of subscribing, save the
/// returned revision and ask again from it. If the log does not go back that far, returns `resync` and the current
/// value, as `state_get`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Since {
    /// The last revision you have, from `state_get` or an earlier answer.
    revision: u64,
    /// Only changes at or below this JSON Pointer (RFC 6901); default: all.
    #[serde(default)]
    pointer: Public,
    /// Maximum revisions; `more` means there are others.
    #[serde(default)]
    limit: Limit,
    /// The database of that revision, from the same answer.
    #[serde(default)]
    database: String,
}

/// The number of revisions in an answer.
type Limit = BoundedNumber<1, 200, 200>;

#[derive(Serialize, JsonSchema)]
struct History {
    /// The last revision in this answer; continue from here.
    revision: u64,
    /// The database of the revisions.
    database: String,
    /// Oldest first: `id`, `at_ms`, `actor`, `cause` (an audit id) and the part of the `patch` below the pointer.
    revisions: Vec<Value>,
    /// Whether there are more; ask again from `revision`.
    more: bool,
    /// True when the log does not go back that far: `value` is then the value at `revision`, absent if none.
    resync: bool,
    /// The oldest revision in the log, for those who see all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<u64>,
    /// With `resync`: the value there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

async fn changes(views: Arc<StateViews>, since: Since, cx: Cx) -> Result<History> {
    let view = view_for(&views, &cx);
    // Reads the log from the disk.
    let found = spawn_blocking(move || changes_in(&view, &since)).await;
    found.map_err(|error| ToolError::new(error.to_string()))?
}

fn changes_in(view: &StateView, since: &Since) -> Result<History> {
    let scope = &since.pointer.0;
    let database = view.database_id().to_owned();
    // A cursor of another database is detected by the database's name, even if its number exists here by chance.
    let after = if since.database.is_empty() || since.database == database {
        since.revision
    } else {
        u64::MAX
    };
    let most = usize::try_from(since.limit.get()).unwrap_or(usize::MAX);
    let found = view.changes(after, u64::MAX, scope, most);
    match found.map_err(|error| ToolError::new(error.to_string()))? {
        RevisionsSince::Revisions {
            revisions,
            upto,
            more,
        } => Ok(History {
            revision: upto,
            database,
            revisions: revisions
                .iter()
                .filter_map(|r| serde_json::to_value(r).ok())
                .collect(),
            more,
            resync: false,
            floor: None,
            value: None,
        }),
        RevisionsSince::Resync { floor, .. } => {
            // Value and revision from the same document, whatever its current revision is.
            let now = view.at(scope, |value, revision| (revision, Some(value.clone())));
            let (revision, value) = now.unwrap_or_else(|| (view.revision(), None));
            Ok(History {
                revision,
                database,
                revisions: Vec::new(),
                more: false,
                resync: true,
                floor: view.floor(floor),
                value,
            })
        }
    }
}

/// Show which revision last wrote each value, when, by whom (`observer`, `owner`, `agent:ID`, `local:PROGRAM`) and in
/// which call. `claims to be` marks an unproven name. Values older than the log are left out. `changes_since` shows
/// other revisions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Blamed {
    /// JSON Pointer (RFC 6901) to a value, or to a part with values.
    pointer: Public,
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
    /// The last write at or below the pointer: `revision`, `at_ms`, `actor`, `cause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Value>,
    /// Each value's `pointer` and how it was last `written`; null if before the log begins.
    leaves: Vec<Value>,
    /// How many more values there are; ask for a part.
    left_out: usize,
}

async fn blame(views: Arc<StateViews>, Blamed { pointer }: Blamed, cx: Cx) -> Result<Authors> {
    let (view, place) = (view_for(&views, &cx), pointer.0.clone());
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
        last: blame.last.map(|last| json!(last)),
        leaves: blame.leaves.iter().map(|leaf| json!(leaf)).collect(),
        left_out: blame.left_out,
    })
}

fn nothing_at(pointer: &Public) -> ToolError {
    ToolError::new(format!("path not found: {}", pointer.0))
        .hint("Read its parent to see what exists.")
}
