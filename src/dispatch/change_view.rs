//! A change as its agent is shown it: by tools, and as a resource.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::change_task::words_of;
use crate::sys::rfc3339;
use crate::telemetry::redact;
use crate::vault::{Change, ChangeStatus};

/// A change.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChangeView {
    /// Its id.
    pub change: String,
    /// `pending`, `approved`, `running`, `applied`, `failed`, `rejected`, `expired`, `withdrawn`, or `unknown` when the
    /// server ended while it ran.
    pub status: String,
    /// Whether it was done.
    pub applied: bool,
    /// How it stands, in a sentence.
    pub words: String,
    /// The tool that would run.
    pub tool: String,
    /// Its arguments; secrets are left out.
    pub arguments: Value,
    /// What it is about, such as a container's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Why it was proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent that proposed it.
    pub agent: String,
    /// The space that this agent was kept in.
    pub space: String,
    /// When it was proposed.
    pub proposed: String,
    /// When it last changed.
    pub updated: String,
    /// From when on it is begun no more.
    pub expires: String,
    /// What the call answered, once it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

impl ChangeView {
    /// The whole of it.
    pub(super) fn of(change: &Change) -> Self {
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

    /// The same without what the call answered.
    pub(super) fn in_short(change: &Change) -> Self {
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
