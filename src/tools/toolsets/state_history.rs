//! `changes_since`: the history of the state after a revision, or what changed since a time, in words.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::bounded_number::BoundedNumber;
use super::changes_words::{ChangingCalls, call_lines, file_lines, login_lines, package_lines};
use super::logins::{LoginSources, find_logins};
use super::public_pointer::{PublicPointer, view_for};
use super::state_summary::{LINE_OVERHEAD, StateSummary, with_time};
use gatewren_base::sys::now_ms;
use gatewren_host::backends::{LogMoment, LoginPeriod, LoginsFound, MachineChanges, UnreadSource};
use gatewren_store::state::{Revision, RevisionsSince, StateError, StateView, StateViews};
use gatewren_wire::registry::{Cx, Page, Result, Risk, Scope, ToolError, Toolset};

/// The longest patch in an answer, in bytes of JSON. A longer one is left out, and its size is given.
const MAX_PATCH_BYTES: usize = 16 << 10;

/// The most revisions that are read for a summary. If there are more, the summary says so.
const MAX_SUMMARISED: usize = 20_000;

/// The longest text of all lines of a summary, in bytes of JSON: an answer has at most 8 kB, and the rest of it needs less
/// than 1.5 kB.
const SUMMARY_BYTES: usize = 6400;

/// The most sources that could not be read that are named, and the longest text of each in characters.
const MAX_UNREAD: usize = 5;
const UNREAD_CHARS: usize = 100;

/// The default period of a summary.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How many revisions are read at once for a summary.
const READ_AT_ONCE: usize = 1000;

/// Returns the calls since a time, of one agent or of all.
pub type ReadChangingCalls =
    Box<dyn Fn(u64, Option<&str>) -> std::result::Result<Vec<ChangingCalls>, String> + Send + Sync>;

/// What the tool reads.
pub struct ChangeSources {
    /// The state.
    pub views: StateViews,
    /// Packages and files.
    pub machine: MachineChanges,
    /// Logins.
    pub logins: Arc<LoginSources>,
    /// Calls of agents.
    pub calls: ReadChangingCalls,
}

/// The toolset.
pub fn tools(sources: Arc<ChangeSources>) -> Toolset<ChangeSources> {
    Toolset::new(sources)
        .with_name("state")
        .tool("changes_since", Risk::Read, changes)
        .about(Scope::Within)
        .includes("login_list")
        .titled("List changes")
}

/// Say what changed since a time, default a day ago: containers, units, settings, packages, files of /etc, logins, and
/// the calls behind it. With `revision`, list the state's patches (RFC 6902) after it.
///
/// If the log does not go back that far: `resync` and the value as in `state_get`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangesSince {
    /// The last revision you have, from `state_get` or an earlier answer.
    revision: Option<u64>,
    /// Start of the summary: RFC 3339, or an age such as `30min` or `7d`; default: a day ago.
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
struct StateHistory {
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
    /// In words: logins, calls, packages and files, then a line for each value of the state, containers first.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Vec<String>>,
    /// With `since`: how many lines are left out; ask with `pointer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    /// With `since`: whether the log goes back that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    /// What could not be read: changes may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<UnreadSource>,
}

async fn changes(sources: Arc<ChangeSources>, since: ChangesSince, cx: Cx) -> Result<StateHistory> {
    let view = view_for(&sources.views, &cx);
    let (revision, moment) = (since.revision, since.since);
    if let (Some(revision), None) = (revision, moment) {
        // Reads the log from the disk.
        let found = spawn_blocking(move || changes_in(&view, &since, revision));
        return found.await.map_err(unreadable)?;
    }
    let day_ago = now_ms().saturating_sub(DAY_MS);
    let begins = SummaryStart {
        after: revision.unwrap_or_default(),
        at_ms: moment.map_or(day_ago, LogMoment::ms),
    };
    // A pointer asks only about a part of the state.
    let is_whole = since.pointer.pointer().tokens().len() <= 1;
    let beside = if is_whole {
        changes_beside_state(&sources, begins.at_ms, &cx).await?
    } else {
        ChangesBesideState::default()
    };
    let bytes = |line: &String| line.len() + LINE_OVERHEAD;
    let used: usize = beside.lines.iter().map(bytes).sum();
    let most = SUMMARY_BYTES.saturating_sub(used);
    let found = spawn_blocking(move || summary_since(&view, &since, begins, most));
    let mut history = found.await.map_err(unreadable)?.map_err(unreadable)?;
    let of_state = history.summary.take().unwrap_or_default();
    history.summary = Some([beside.lines, of_state].concat());
    history.unread = beside.unread;
    Ok(history)
}

/// What changed that the state does not have.
#[derive(Default)]
struct ChangesBesideState {
    lines: Vec<String>,
    unread: Vec<UnreadSource>,
}

async fn changes_beside_state(
    sources: &Arc<ChangeSources>,
    since_ms: u64,
    cx: &Cx,
) -> Result<ChangesBesideState> {
    let caller = cx.caller();
    let period = LoginPeriod {
        since_ms,
        until_ms: None,
    };
    let (machine, logins) = tokio::join!(
        sources
            .machine
            .find(&caller.reach, since_ms, cx.reference()),
        logins(&sources.logins, period, cx),
    );
    let logins = logins?;
    // As in the state, only an agent that reaches everything learns what others did elsewhere.
    let own = (!caller.reach.is_everything()).then(|| caller.agent.clone());
    let read = sources.clone();
    let calls = spawn_blocking(move || (read.calls)(since_ms, own.as_deref())).await;
    let calls = calls.unwrap_or_else(|cause| Err(cause.to_string()));
    let mut unread = [machine.unread.clone(), logins.unread.clone()].concat();
    let calls = calls.unwrap_or_else(|why| {
        unread.push(UnreadSource::new("calls of agents", &why));
        Vec::new()
    });
    let left_out = unread.len().saturating_sub(MAX_UNREAD);
    unread.truncate(MAX_UNREAD);
    for one in &mut unread {
        one.why = one.why.chars().take(UNREAD_CHARS).collect();
    }
    if left_out > 0 {
        let why = format!("{left_out} more could not be read; login_list names them");
        unread.push(UnreadSource::new("further sources", &why));
    }
    let parts = [
        login_lines(&logins),
        call_lines(&calls),
        package_lines(&machine),
        file_lines(&machine),
    ];
    Ok(ChangesBesideState {
        lines: parts.concat(),
        unread,
    })
}

/// The logins, for a caller that may call `login_list`.
async fn logins(sources: &Arc<LoginSources>, period: LoginPeriod, cx: &Cx) -> Result<LoginsFound> {
    if cx.may_include() {
        return find_logins(sources, None, period, cx).await;
    }
    let mut none = LoginsFound::default();
    let why = "your policy does not allow login_list";
    none.unread.push(UnreadSource::new("logins", why));
    Ok(none)
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
    most: usize,
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
    let (lines, left_out) = summary.lines(most);
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
            unread: Vec::new(),
        }
    }
}
