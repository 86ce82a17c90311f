//! What the audit is told of a call: who is about to do what, and what came of it.

use std::fmt;

use super::ids::Id;

/// A call that is about to run.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The id of the agent that calls.
    pub agent: &'a str,
    /// What tells its token from its other ones, and is no secret.
    pub token: Option<&'a str>,
    /// The space that it is kept in.
    pub space: Option<&'a str>,
    /// The session it calls in, in the eras that have them.
    pub session: Option<&'a str>,
    /// The id that its request has in our log.
    pub request: Option<&'a str>,
    /// Where it calls from.
    pub address: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The tool's class of risk.
    pub risk: &'a str,
    /// The exact arguments: the row keeps their redacted form and their hash, and seals them if redaction changes them.
    pub arguments: &'a serde_json::Value,
    /// What it is about, such as a container's name.
    pub target: Option<&'a str>,
    /// What the policy says of such a call: one of its modes.
    pub mode: Option<&'a str>,
    /// What was decided of this one.
    pub decision: &'a str,
    /// The change of the inbox that it carries out.
    pub change: Option<&'a str>,
}

/// What came of a call.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// One word, such as `ok`, `failed`, `refused`, `cancelled`.
    pub status: &'static str,
    /// How long it took.
    pub duration_ms: u64,
    /// The revision of the state before it; those that it caused come after this one.
    pub revision_before: Option<u64>,
    /// The revision of the state that shows what it did.
    pub revision: Option<u64>,
}

/// Joins the two rows of a call: 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuditId(Id);

impl AuditId {
    pub(super) fn new(id: Id) -> Self {
        Self(id)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        // They are digits.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
