//! The contents of the audit's rows: the intent of a call and its outcome.

use std::fmt;

use crate::vault::ids::HexId;

/// A call that is about to run.
#[derive(Debug, Clone)]
pub struct AuditEntry<'a> {
    /// The id of the calling agent.
    pub agent: &'a str,
    /// The identifier of its token: part of its hash, no secret.
    pub token: Option<&'a str>,
    /// The agent's space.
    pub space: Option<&'a str>,
    /// The session, in the protocol revisions that have sessions.
    pub session: Option<&'a str>,
    /// The id of the request in our log.
    pub request: Option<&'a str>,
    /// The address that the request came from.
    pub address: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The tool's risk class.
    pub risk: &'a str,
    /// The exact arguments. The row keeps their redacted form and their hash. If redaction changes them, the exact
    /// form is sealed.
    pub arguments: &'a serde_json::Value,
    /// The reason that the agent gave for the call. The row keeps its first [`MAX_REASON`] characters, without secrets.
    pub reason: Option<&'a str>,
    /// The target of the call, such as a container's name.
    pub target: Option<&'a str>,
    /// The mode that the policy sets for such a call.
    pub mode: Option<&'a str>,
    /// The decision about this call.
    pub decision: &'a str,
    /// The change of the inbox that this call applies, or the schedule that it is a run of.
    pub change: Option<&'a str>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy)]
pub struct AuditOutcome<'a> {
    /// The outcome as one word. Of a call: `ok`, `failed`, `refused`, `asked`, `proposed`, `timeout`, `cancelled`, or
    /// `job` if it continues as one. Of a job: `ok`, `failed`, `killed` or `lost`.
    pub outcome: &'static str,
    /// The duration of the call.
    pub duration_ms: u64,
    /// The revision of the state before the call. Revisions that the call caused are higher.
    pub revision_before: Option<u64>,
    /// The revision of the state that includes the effect of the call.
    pub revision: Option<u64>,
    /// The reason for which the call failed. The row keeps its first [`MAX_ERROR`] characters, without secrets.
    pub error: Option<&'a str>,
}

/// The length of an error in the audit, in characters. A longer one is cut and ends with `…`.
pub(in crate::vault) const MAX_ERROR: usize = 300;

/// The length of a reason in the audit, in characters. A longer one is cut and ends with `…`.
pub(in crate::vault) const MAX_REASON: usize = 300;

/// The id that joins the two rows of a call: 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuditId(HexId);

impl AuditId {
    pub(in crate::vault) fn new(id: HexId) -> Self {
        Self(id)
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        // The bytes are ASCII digits.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
