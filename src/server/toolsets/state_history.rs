//! `changes_since`: the history of the state after a revision, or since a time in words.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::bounded_number::BoundedNumber;
use super::public_pointer::{PublicPointer, view_for};
use super::state_summary::{StateSummary, with_time};
use gatewren_base::sys::now_ms;
use gatewren_host::backends::LogMoment;
use gatewren_store::state::{Revision, RevisionsSince, StateError, StateView, StateViews};
use gatewren_wire::registry::{Cx, Page, Result, ToolError};

/// The longest patch in an answer, in bytes of JSON. A longer one is left out, and its size is given.
const MAX_PATCH_BYTES: usize = 16 << 10;

/// The most revisions that are read for a summary. If there are more, the summary says so.
const MAX_SUMMARISED: usize = 20_000;

/// What a summary covers if nothing is said.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How many revisions are read at once for a summary.
const READ_AT_ONCE: usize = 1000;

/// List changes after a revision: who, when, why, and the patch (RFC 6902). Save the returned revision to ask again
/// from it. If the log does not go back that far, returns `resync` and the value, as `state_get`. Without `revision`,
/// or with `since`, a time, returns what changed, in words.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesSince {
    /// The last revision you have, from `state_get` or an earlier answer.
    revision: Option<u64>,
    /// Start of the summary: a time such as `2026-07-28T09:30:00Z`, or an age such as `30min`, `2h` or `7d`; default: a
    /// day ago.
    since: Option<LogMoment>,
    /// Only changes at or below this JSON Pointer (RFC 6901); default: all.
    #[serde(default)]
    pointer: PublicPointer,
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
pub struct StateHistory {
    /// The last revision in this answer; continue from here.
    revision: u64,
    /// The database of the revisions.
    database: String,
    /// Oldest first: `id`, `at`, `actor`, `cause` (an audit id) and the part of the `patch` below the pointer; for
    /// a long patch `patch_bytes` instead.
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
    /// With `since`: a line for each value that changed, containers first.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Vec<String>>,
    /// With `since`: how many lines are left out; ask with `pointer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    /// With `since`: whether the log goes back that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
}

/// `changes_since`.
pub async fn changes(views: Arc<StateViews>, since: ChangesSince, cx: Cx) -> Result<StateHistory> {
    let view = view_for(&views, &cx);
    // Reads the log from the disk.
    let found = spawn_blocking(move || match (since.revision, &since.since) {
        (Some(revision), None) => changes_in(&view, &since, revision),
        (revision, moment) => {
            let day_ago = now_ms().saturating_sub(DAY_MS);
            let begins = SummaryStart {
                after: revision.unwrap_or_default(),
                at_ms: moment.as_ref().map_or(day_ago, |moment| moment.ms()),
            };
            Ok(summary_since(&view, &since, begins).map_err(unreadable)?)
        }
    });
    found.await.map_err(unreadable)?
}

fn unreadable(cause: impl std::error::Error) -> ToolError {
    ToolError::new(cause.to_string())
}

fn changes_in(view: &StateView, since: &ChangesSince, revision: u64) -> Result<StateHistory> {
    let scope = since.pointer.pointer();
    let database = view.database_id();
    // A cursor of another database is detected by the database's name, even if its number exists here by chance.
    let after = if since.database.is_empty() || since.database == database {
        revision
    } else {
        u64::MAX
    };
    let most = usize::try_from(since.limit.get()).unwrap_or(usize::MAX);
    let found = view.changes(after, u64::MAX, scope, most);
    match found.map_err(unreadable)? {
        RevisionsSince::Revisions {
            revisions,
            upto,
            more,
        } => {
            let page = Page::of(revisions.iter().map(shown), 0, since.limit.get());
            // The page ends early if the answer is full.
            let last = page.items.last().and_then(|last| last.get("id")?.as_u64());
            let cut = last.filter(|_| page.truncated);
            Ok(StateHistory {
                revisions: page.items,
                more: more || page.truncated,
                ..StateHistory::upto(view, cut.unwrap_or(upto))
            })
        }
        RevisionsSince::Resync { floor, .. } => {
            // Value and revision from the same document, whatever its current revision is.
            let now = view.at(scope, |value, revision| (revision, Some(value.clone())));
            let (revision, value) = now.unwrap_or_else(|| (view.revision(), None));
            Ok(StateHistory {
                resync: true,
                floor: view.floor(floor),
                value,
                ..StateHistory::upto(view, revision)
            })
        }
    }
}

/// Returns a revision as the answer has it.
fn shown(revision: &Revision) -> Value {
    let mut shown = with_time(json!(revision));
    let bytes = shown
        .get("patch")
        .map_or(0, |patch| patch.to_string().len());
    if let Some(fields) = shown.as_object_mut().filter(|_| bytes > MAX_PATCH_BYTES) {
        fields.remove("patch");
        fields.insert("patch_bytes".to_owned(), json!(bytes));
    }
    shown
}

/// Where a summary begins: at the later of both.
#[derive(Clone, Copy)]
struct SummaryStart {
    /// The revision after which.
    after: u64,
    /// The time, in milliseconds since 1970.
    at_ms: u64,
}

fn summary_since(
    view: &StateView,
    since: &ChangesSince,
    begins: SummaryStart,
) -> std::result::Result<StateHistory, StateError> {
    let scope = since.pointer.pointer();
    let cursor = view.cursor_at(begins.at_ms)?;
    let (mut after, mut read, mut more) = (cursor.after.max(begins.after), 0, true);
    let mut summary = StateSummary::default();
    while more && read < MAX_SUMMARISED {
        let found = view.changes(after, u64::MAX, scope, READ_AT_ONCE)?;
        let RevisionsSince::Revisions {
            revisions,
            upto,
            more: others,
        } = found
        else {
            // For a view of a part, a revision that it does not see may be the newest.
            break;
        };
        read += revisions.len();
        for revision in &revisions {
            summary.add(revision);
        }
        (after, more) = (upto, others);
    }
    let (lines, left_out) = summary.lines();
    Ok(StateHistory {
        more,
        summary: Some(lines),
        left_out: Some(left_out),
        complete: Some(cursor.is_complete),
        ..StateHistory::upto(view, after.min(view.revision()))
    })
}

impl StateHistory {
    /// An empty one up to this revision.
    fn upto(view: &StateView, revision: u64) -> Self {
        Self {
            revision,
            database: view.database_id().to_owned(),
            revisions: Vec::new(),
            more: false,
            resync: false,
            floor: None,
            value: None,
            summary: None,
            left_out: None,
            complete: None,
        }
    }
}
