//! A change that an agent proposes: the call, its status, and the state that it depends on.

use ring::digest::{Context, SHA256, digest};
use rusqlite::Row;
use rusqlite::types::Type;
use serde_json::{Map, Value};

use crate::vault::error::UnknownStatus;
use crate::vault::row::{from_column, from_optional};

/// The status of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeStatus {
    /// It waits for the owner's decision.
    Pending,
    /// The owner has approved it; it has not started.
    Approved,
    /// It is running.
    Running,
    /// It was applied.
    Applied,
    /// It was started and failed, or could not be started.
    Failed,
    /// The owner has rejected it.
    Rejected,
    /// It expired before it started.
    Expired,
    /// The agent withdrew it, or the agent was revoked.
    Withdrawn,
    /// The server ended while the change was running. It may be partly or completely done, and is never run again.
    Unknown,
}

impl ChangeStatus {
    /// All statuses, in the order of a change's life.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Approved,
        Self::Running,
        Self::Applied,
        Self::Failed,
        Self::Rejected,
        Self::Expired,
        Self::Withdrawn,
        Self::Unknown,
    ];

    /// Returns the word for it in the vault, in answers and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Running => "running",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether the change is not finished yet.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Approved | Self::Running)
    }
}

/// A change as stored in the vault. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The id: `chg_` and 16 hexadecimal digits.
    pub id: String,
    /// The agent that proposed it.
    pub agent: String,
    /// The space of the agent at that time.
    pub space: String,
    /// The tool to run.
    pub tool: String,
    /// The target, such as a container's name.
    pub target: Option<String>,
    /// The exact arguments as canonical JSON: keys sorted, no spaces. They are not redacted, because the call runs
    /// with them.
    pub arguments: String,
    /// The SHA-256 of [`Self::arguments`].
    pub arguments_sha256: [u8; 32],
    /// The JSON Pointers of the parts of the state that it depends on. If one of them changes after
    /// [`Self::revision`], the owner is asked again.
    pub rests_on: Vec<String>,
    /// The revision of the state when it was proposed or the owner was last asked.
    pub revision: u64,
    /// The reason that the agent gave.
    pub reason: Option<String>,
    /// When it was proposed.
    pub created_ms: u64,
    /// When it expires. An expired change is not started.
    pub expires_ms: u64,
    /// When it last changed.
    pub updated_ms: u64,
    /// The status.
    pub status: ChangeStatus,
    /// The revision at which a dependency of the approved change was found to have changed.
    pub moved: Option<u64>,
    /// Who decided on it.
    pub decided_by: Option<String>,
    /// When that was.
    pub decided_ms: Option<u64>,
    /// The note of the person who decided.
    pub note: Option<String>,
    /// An explanation of the status.
    pub words: Option<String>,
    /// The result of the call, as JSON.
    pub result: Option<String>,
    /// The audit id of the call that proposed it.
    pub proposed_in: Option<String>,
    /// The audit id of the call that ran it.
    pub ran_in: Option<String>,
    /// Grows with each update of any row: a higher serial is newer.
    pub serial: u64,
}

/// A change to propose.
#[derive(Debug, Clone)]
pub struct NewChange {
    /// The agent.
    pub agent: String,
    /// The space of the agent.
    pub space: String,
    /// The tool.
    pub tool: String,
    /// The target.
    pub target: Option<String>,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The JSON Pointers of the parts of the state that it depends on.
    pub rests_on: Vec<String>,
    /// The revision of the state.
    pub revision: u64,
    /// The reason that the agent gave.
    pub reason: Option<String>,
    /// When it expires, in milliseconds since 1970. An expired change is not started.
    pub expires_ms: u64,
    /// The audit id of the call that proposes it.
    pub proposed_in: Option<String>,
}

impl Change {
    /// Returns the arguments, if their hash is the one that was proposed.
    pub fn proven_arguments(&self) -> Option<Map<String, Value>> {
        let proven = sha256(&self.arguments) == self.arguments_sha256;
        let arguments = proven.then(|| serde_json::from_str(&self.arguments));
        arguments.and_then(Result::ok)
    }

    /// Returns the digest that an approval is bound to. It covers everything that determines the call: arguments,
    /// agent, space, tool and state.
    pub fn binding(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let revision = self.revision.to_string();
        let parts = [
            &self.id,
            &self.agent,
            &self.space,
            &self.tool,
            &self.arguments,
            &revision,
        ];
        for part in parts.into_iter().chain(&self.rests_on) {
            // The length prefix prevents two different lists of parts from having the same encoding.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        whole(context.finish().as_ref())
    }
}

/// Returns the arguments as canonical JSON (RFC 8785: keys sorted, no spaces) with their SHA-256.
pub(in crate::vault) fn canonical(arguments: Map<String, Value>) -> (String, [u8; 32]) {
    // `serde_json::Map` keeps its keys sorted at every depth.
    let text = Value::Object(arguments).to_string();
    let sha256 = sha256(&text);
    (text, sha256)
}

/// Returns the SHA-256 of arguments as canonical JSON. Spacing and key order in the request do not matter.
pub fn arguments_sha256(arguments: &Map<String, Value>) -> [u8; 32] {
    canonical(arguments.clone()).1
}

fn sha256(text: &str) -> [u8; 32] {
    whole(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Converts a SHA-256 to an array. The length is always 32.
fn whole(digest: &[u8]) -> [u8; 32] {
    digest.try_into().unwrap_or_default()
}

/// Reads a row with all columns.
pub(in crate::vault) fn read(row: &Row<'_>) -> Result<Change, rusqlite::Error> {
    let rests_on: String = row.get("rests_on")?;
    Ok(Change {
        id: row.get("id")?,
        agent: row.get("agent")?,
        space: row.get("space")?,
        tool: row.get("tool")?,
        target: row.get("target")?,
        arguments: row.get("arguments")?,
        arguments_sha256: row.get("arguments_sha256")?,
        rests_on: serde_json::from_str(&rests_on).map_err(unreadable)?,
        revision: from_column(row, "revision")?,
        reason: row.get("reason")?,
        created_ms: from_column(row, "created_ms")?,
        expires_ms: from_column(row, "expires_ms")?,
        updated_ms: from_column(row, "updated_ms")?,
        status: status(&row.get::<_, String>("status")?)?,
        moved: from_optional(row, "moved")?,
        decided_by: row.get("decided_by")?,
        decided_ms: from_optional(row, "decided_ms")?,
        note: row.get("note")?,
        words: row.get("words")?,
        result: row.get("result")?,
        proposed_in: row.get("proposed_in")?,
        ran_in: row.get("ran_in")?,
        serial: from_column(row, "serial")?,
    })
}

fn status(word: &str) -> Result<ChangeStatus, rusqlite::Error> {
    let known = ChangeStatus::ALL.into_iter().find(|s| s.as_str() == word);
    known.ok_or_else(|| unreadable(UnknownStatus(word.to_owned())))
}

fn unreadable(cause: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(cause))
}

#[cfg(any(test, feature = "testing"))]
impl Change {
    /// A pending change without a target, for tests.
    pub fn waiting(id: &str, tool: &str, arguments: String) -> Self {
        Self {
            id: id.into(),
            agent: "agent_1".into(),
            space: "*".into(),
            tool: tool.into(),
            target: None,
            arguments,
            arguments_sha256: [0; 32],
            rests_on: Vec::new(),
            revision: 1,
            reason: None,
            created_ms: 0,
            expires_ms: 0,
            updated_ms: 0,
            status: ChangeStatus::Pending,
            moved: None,
            decided_by: None,
            decided_ms: None,
            note: None,
            words: None,
            result: None,
            proposed_in: None,
            ran_in: None,
            serial: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::change::*;

    #[test]
    fn arguments_are_canonical_however_they_were_written() {
        let map = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let one = canonical(map(r#"{"b": [1, {"z": 1, "a": 2}], "a": "x"}"#));
        let other = canonical(map(r#"{"a":"x","b":[1,{"a":2,"z":1}]}"#));
        assert_eq!(one.0, r#"{"a":"x","b":[1,{"a":2,"z":1}]}"#);
        assert_eq!(one, other);
        let value = json!({ "n": 1.0, "big": 9_007_199_254_740_993_u64, "f": 0.1 });
        let (text, _) = canonical(value.as_object().unwrap().clone());
        let again: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(again, value, "what is kept is what runs");
    }
}
