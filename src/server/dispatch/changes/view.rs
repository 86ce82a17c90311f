//! A change as tools and resources show it to its agent.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::task::words_of;
use gatewren_base::sys::rfc3339;
use gatewren_base::telemetry::redact;
use gatewren_store::vault::{Change, ChangeStatus};

/// A change.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::dispatch) struct ChangeView {
    /// Its id.
    pub change: String,
    /// `pending`, `approved`, `running`, `applied`, `failed`, `rejected`, `expired`, `withdrawn`, or `unknown` if
    /// the server ended while it ran.
    pub status: String,
    /// Whether it was applied.
    pub applied: bool,
    /// Its status in a sentence.
    pub words: String,
    /// The tool to call.
    pub tool: String,
    /// The tool's arguments, without secrets.
    pub arguments: Value,
    /// The target, such as a container's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The reason that the agent gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent that proposed it.
    pub agent: String,
    /// The space of this agent.
    pub space: String,
    /// When it was proposed.
    pub proposed: String,
    /// When it last changed.
    pub updated: String,
    /// The time after which it is no longer started.
    pub expires: String,
    /// The result of the call, once it has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

impl ChangeView {
    /// The view with the result of the call.
    pub(in crate::dispatch) fn of(change: &Change) -> Self {
        let result = change.result.as_deref().and_then(|text| {
            let mut result: Value = serde_json::from_str(text).ok()?;
            let data = result.get_mut("structuredContent").map(Value::take);
            data.or_else(|| Some(result.pointer_mut("/content/0/text")?.take()))
        });
        Self {
            result,
            ..Self::in_short(change)
        }
    }

    /// The view without the result of the call.
    pub(in crate::dispatch) fn in_short(change: &Change) -> Self {
        let arguments = serde_json::from_str(&change.arguments);
        Self {
            change: change.id.clone(),
            status: change.status.as_str().to_owned(),
            applied: change.status == ChangeStatus::Applied,
            words: words_of(change),
            tool: change.tool.clone(),
            arguments: redact(&arguments.unwrap_or(Value::Null)),
            target: change.target.clone(),
            reason: change.reason.clone(),
            agent: change.agent.clone(),
            space: change.space.clone(),
            proposed: rfc3339(change.created_ms),
            updated: rfc3339(change.updated_ms),
            expires: rfc3339(change.expires_ms),
            result: None,
        }
    }
}
