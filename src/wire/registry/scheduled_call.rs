//! A call that another call schedules: it is checked by the dispatch before it is stored.

use serde_json::{Map, Value};

use super::error::ToolError;
use super::resource::BoxFuture;

/// A call to make later.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduledCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// A call that may be made later, with what each run is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedCall {
    /// The target, such as a container's name.
    pub target: Option<String>,
    /// The preset of the caller's policy.
    pub preset: String,
    /// The differences from this preset, as a JSON object.
    pub overrides: String,
    /// The change of the inbox in which the owner approved the call that schedules it, if it needed approval.
    pub approval: Option<String>,
}

/// Checks a call that will be made later, with the caller's permissions.
pub type CallCheck =
    dyn Fn(ScheduledCall) -> BoxFuture<Result<CheckedCall, ToolError>> + Send + Sync;
