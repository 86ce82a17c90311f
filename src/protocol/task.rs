//! Calls that continue after their response: the extension `io.modelcontextprotocol/tasks` (SEP-2663) on the wire.

use serde_json::{Map, Value, json};

use super::{error::RpcError, input::InputRequired};

/// The extension's name, on both sides.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The polling interval suggested to clients, in milliseconds.
const POLL_INTERVAL_MS: u64 = 1_000;

/// The state of a task, with its data.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// It is running.
    Working,
    /// It waits for these answers.
    InputRequired(InputRequired),
    /// It ended with this result of its method, which may have `isError`.
    Completed(Value),
    /// It ended with this JSON-RPC error.
    Failed(Value),
    /// It was cancelled before it was done.
    Cancelled,
}

impl TaskState {
    /// The state's name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired(_) => "input_required",
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the state that an error leads to.
    pub fn failed(error: &RpcError) -> Self {
        Self::Failed(json!(error))
    }

    /// Returns whether the state is final.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired(_))
    }

    /// The additional member of a detailed task.
    fn payload(&self) -> Option<(&'static str, Value)> {
        match self {
            Self::Working | Self::Cancelled => None,
            Self::InputRequired(asked) => Some(("inputRequests", asked.to_requests())),
            Self::Completed(result) => Some(("result", result.clone())),
            Self::Failed(error) => Some(("error", error.clone())),
        }
    }

    /// A sentence for people.
    fn message(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => error.get("message")?.as_str(),
            _ => None,
        }
    }
}

/// A task as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: TaskState,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When its state last changed, RFC 3339.
    pub updated_at: String,
    /// How long it is kept after its creation, in milliseconds.
    pub ttl_ms: u64,
}

impl Task {
    /// Returns the result of a call that became this task: only the common fields.
    pub fn to_created(&self) -> Value {
        let mut result = self.common();
        result.insert("resultType".into(), json!("task"));
        Value::Object(result)
    }

    /// Returns the whole task, for `tasks/get` and `notifications/tasks`.
    pub fn to_detailed(&self) -> Value {
        let mut task = self.common();
        if let Some((name, payload)) = self.state.payload() {
            task.insert(name.into(), payload);
        }
        Value::Object(task)
    }

    fn common(&self) -> Map<String, Value> {
        let mut task = Map::from_iter([
            ("taskId".to_owned(), json!(self.id)),
            ("status".to_owned(), json!(self.state.name())),
            ("createdAt".to_owned(), json!(self.created_at)),
            ("lastUpdatedAt".to_owned(), json!(self.updated_at)),
            ("ttlMs".to_owned(), json!(self.ttl_ms)),
            ("pollIntervalMs".to_owned(), json!(POLL_INTERVAL_MS)),
        ]);
        if let Some(message) = self.state.message() {
            task.insert("statusMessage".to_owned(), json!(message));
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: TaskState) -> Task {
        Task {
            id: "t".into(),
            state,
            created_at: "2026-07-28T00:00:00.000Z".into(),
            updated_at: "2026-07-28T00:00:01.000Z".into(),
            ttl_ms: 60_000,
        }
    }

    #[test]
    fn k3_what_a_call_answers_is_flat_and_says_nothing_of_the_end() {
        let asked = InputRequired::new().ask("k", "elicitation/create", json!({}));
        for state in [
            TaskState::Working,
            TaskState::InputRequired(asked.remember(json!(1))),
            TaskState::Completed(json!({ "content": [] })),
        ] {
            let created = task(state).to_created();
            assert_eq!(created["resultType"], "task");
            for name in ["task", "result", "error", "inputRequests", "requestState"] {
                assert!(created.get(name).is_none(), "{name}: {created}");
            }
            assert!(created["ttlMs"].is_u64() && created["pollIntervalMs"].is_u64());
        }
    }

    #[test]
    fn k5_each_state_carries_what_belongs_to_it_and_nothing_else() {
        let asked = InputRequired::new().ask("k", "roots/list", json!({}));
        let error = RpcError::invalid_params("no");
        for (state, payload) in [
            (TaskState::Working, None),
            (TaskState::Cancelled, None),
            (TaskState::InputRequired(asked), Some("inputRequests")),
            (TaskState::Completed(json!({})), Some("result")),
            (TaskState::failed(&error), Some("error")),
        ] {
            let detailed = task(state).to_detailed();
            for name in ["result", "error", "inputRequests"] {
                assert_eq!(detailed.get(name).is_some(), payload == Some(name));
            }
            assert!(detailed.get("requestState").is_none());
        }
        let failed = task(TaskState::failed(&error)).to_detailed();
        assert_eq!(failed["error"], json!({ "code": -32602, "message": "no" }));
        assert_eq!(failed["statusMessage"], "no");
    }
}
