//! What the front sends on a connection to the helper: the request, and the release of a held command.

use serde::{Deserialize, Serialize};

use super::audit_head::AuditHead;
use super::limits::OperationLimits;
use super::operation::Operation;
use gatewren_base::sys::Requester;

/// The first frame of a connection: one operation and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperRequest {
    /// The operation to run.
    pub operation: Operation,
    /// The limits of the operation.
    pub limits: OperationLimits,
    /// The reference of the call, as in the journal and the audit.
    pub reference: String,
    /// On whose behalf the front asks. Requests without a requester share the slots of one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
    /// The last row of the front's audit; absent if the front keeps none or has written none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditHead>,
    /// Whether the helper only prepares a command, and runs it after a [`Release`]: the call's intent is still on its
    /// way to the disk. Only commands can be held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// The second frame of a connection, for a held command: it may run. Without it the command never runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The last row of the front's audit, which is the command's own intent or a later row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditHead>,
}
