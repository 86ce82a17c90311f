//! The table of tasks: the running ones in memory, and all of them in a store that may outlive the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::live_task::LiveTask;
use super::store::TaskStore;
use crate::dispatch::reference;
use gatewren_base::sys::{lock, now_ms, random_bytes, rfc3339};
use gatewren_store::vault::{
    StoredTaskLimits, TASK_WORKING, TaskEnd, TaskRow, Vault, VaultError, task_id,
};
use gatewren_wire::protocol::{RpcError, Task, TaskState, code};

/// The maximum size of a stored result in bytes; a larger one is replaced by an error that states this.
const MAX_RESULT_BYTES: usize = 256 << 10;

/// The error of a task that expired before it ended.
const EXPIRED: &str = "this task expired (ttlMs) before it was done, and was stopped";

/// The error of a task that ended because the server ended.
const ABANDONED: &str = "the server stopped or restarted during this task, which ended it; its work may be \
                         partly done, so check before you call the tool again";

/// When calls become tasks, and how many are stored for how long.
#[derive(Debug, Clone, Copy)]
pub struct TaskLimits {
    /// The time after which a running call becomes a task, if its tool offers it.
    pub after: Duration,
    /// The lifetime of a task and its result, counted from its creation.
    pub ttl: Duration,
    /// The maximum number of stored tasks; without room, a call is answered when it ends.
    pub room: StoredTaskLimits,
}

#[cfg(test)]
impl TaskLimits {
    /// Room for two tasks.
    pub(in crate::dispatch) const TWO: Self = Self {
        after: Duration::from_secs(45),
        ttl: Duration::from_hours(1),
        room: StoredTaskLimits {
            per_agent: 2,
            total: 2,
        },
    };
}

/// All tasks. Only this type decides which tasks are visible to which agent.
pub(in crate::dispatch) struct Tasks {
    limits: Mutex<TaskLimits>,
    /// The name of this front, which is in the ids.
    instance: OnceLock<String>,
    store: Box<dyn TaskStore>,
    live: Mutex<HashMap<String, Arc<LiveTask>>>,
    /// Notified when any task has changed.
    changes: watch::Sender<u64>,
}

/// The agent and the call that create a task.
pub(in crate::dispatch) struct TaskCreator<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The call's id in the audit and the journal.
    pub request: &'a str,
    /// The task's result if this server ends first and the work continues without it.
    pub job: Option<Value>,
}

impl Tasks {
    /// Creates an empty table over this store.
    pub(in crate::dispatch) fn new(store: Box<dyn TaskStore>, limits: TaskLimits) -> Self {
        Self {
            limits: Mutex::new(limits),
            instance: OnceLock::new(),
            store,
            live: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Has the ids of tasks contain the name of this front.
    pub(in crate::dispatch) fn set_instance(&self, name: &str) {
        // It is set once, where the server is built.
        let _ = self.instance.set(name.to_owned());
    }

    /// The current limits.
    pub(in crate::dispatch) fn limits(&self) -> TaskLimits {
        *lock(&self.limits)
    }

    /// Sets the limits; existing tasks keep their expiry.
    pub(in crate::dispatch) fn set_limits(&self, limits: TaskLimits) {
        *lock(&self.limits) = limits;
    }

    /// Creates a task, which can be found once this returns. Returns `None` if there is no room, or if the task
    /// cannot be stored; that error is logged.
    pub(in crate::dispatch) async fn create(
        &self,
        maker: TaskCreator<'_>,
    ) -> Option<Arc<LiveTask>> {
        let row = self.new_row(&maker)?;
        let live = Arc::new(LiveTask::new(task_of(&row), maker.agent, row.expires_ms));
        match self.store.add(row, self.limits().room).await {
            Ok(true) => {
                let TaskCreator {
                    agent,
                    tool,
                    request,
                    ..
                } = maker;
                tracing::info!(
                    task = live.id,
                    tool,
                    agent,
                    request,
                    "{tool} has become a task"
                );
                lock(&self.live).insert(live.id.clone(), live.clone());
                Some(live)
            }
            Ok(false) => {
                let (agent, tool) = (maker.agent, maker.tool);
                tracing::warn!(
                    agent,
                    tool,
                    "the task limit is reached; the call is answered when it ends"
                );
                None
            }
            Err(cause) => {
                tracing::error!(%cause, "cannot store a task; the call is answered when it ends");
                None
            }
        }
    }

    fn new_row(&self, maker: &TaskCreator<'_>) -> Option<TaskRow> {
        let random = random_bytes::<16>()
            .map_err(|cause| tracing::error!("cannot create a task id: {cause}"));
        let created_ms = now_ms();
        let ttl_ms = u64::try_from(self.limits().ttl.as_millis()).unwrap_or(u64::MAX);
        Some(TaskRow {
            id: task_id(
                self.instance.get().map_or("", String::as_str),
                &format!("{:032x}", u128::from_be_bytes(random.ok()?)),
            ),
            agent: maker.agent.to_owned(),
            tool: maker.tool.to_owned(),
            request: maker.request.to_owned(),
            status: TASK_WORKING.to_owned(),
            payload: maker.job.as_ref().map(Value::to_string),
            created_ms,
            updated_ms: created_ms,
            expires_ms: created_ms.saturating_add(ttl_ms),
        })
    }

    /// An agent's running task, unless it has expired.
    pub(in crate::dispatch) fn live(&self, agent: &str, id: &str) -> Option<Arc<LiveTask>> {
        let live = lock(&self.live).get(id).cloned();
        live.filter(|live| live.agent == agent && live.expires_ms > now_ms())
    }

    /// Returns an agent's task. The error is the same for another agent's task, an expired one and one that never
    /// existed.
    pub(in crate::dispatch) fn find(&self, agent: &str, id: &str) -> Result<Arc<Task>, RpcError> {
        if let Some(live) = self.live(agent, id) {
            return Ok(live.task());
        }
        let found = self.store.find(agent, id).map_err(|cause| {
            let reference = reference::next();
            tracing::error!(%cause, %reference, "cannot read a task");
            RpcError::internal(&reference)
        })?;
        found
            .map(|row| Arc::new(task_of(&row)))
            .ok_or_else(unknown_task)
    }

    /// Returns a receiver that is notified when any task changes.
    pub(in crate::dispatch) fn watch_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Notifies the receivers that a task has changed.
    pub(in crate::dispatch) fn notify_change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Ends a task permanently: the end is stored before any listener is notified.
    pub(in crate::dispatch) async fn end(&self, live: &LiveTask, state: TaskState) {
        let state = bound_result(state);
        let end = end_of(&state);
        let at_ms = end.at_ms;
        tracing::info!(task = live.id, status = end.status, "a task has ended");
        let written = self.store.end(live.id.clone(), end).await;
        live.end(state, at_ms);
        match written {
            Ok(()) => drop(lock(&self.live).remove(&live.id)),
            // It stays in memory, where it can be found until the server ends.
            Err(cause) => tracing::error!(%cause, "cannot store the end of a task"),
        }
        self.notify_change();
    }

    /// Deletes expired tasks.
    pub(in crate::dispatch) async fn sweep(&self) {
        let now = now_ms();
        lock(&self.live)
            .retain(|_, live| live.expires_ms > now || !live.task().state.is_terminal());
        if let Err(cause) = self.store.sweep().await {
            tracing::error!(%cause, "cannot remove expired tasks");
        }
    }
}

/// Ends the tasks that the previous run of this server left behind, of one front or of all. A task whose work is in a job completes with
/// that job as its result; the others fail. Must be called before any task is created.
pub async fn end_abandoned_tasks(vault: &Vault, instance: Option<&str>) -> Result<(), VaultError> {
    let end = end_of(&abandoned());
    let ended = vault.tasks().end_abandoned(end, instance).await?;
    if ended > 0 {
        tracing::warn!(
            ended,
            "tasks were running when the previous server ended; they have failed, except for those that continue \
             as jobs"
        );
    }
    Ok(())
}

/// The state of a task that ended because the server ended.
pub(in crate::dispatch) fn abandoned() -> TaskState {
    TaskState::failed(&RpcError::new(code::INTERNAL, ABANDONED))
}

/// The state of a task that expired before it ended.
pub(in crate::dispatch) fn expired() -> TaskState {
    TaskState::failed(&RpcError::new(code::INTERNAL, EXPIRED))
}

/// The same error for an id that never existed, an expired task and another agent's task.
fn unknown_task() -> RpcError {
    RpcError::invalid_params("unknown or expired task")
}

/// Replaces a result that is too large by an error: truncated JSON is invalid, and half a result is a wrong one.
fn bound_result(state: TaskState) -> TaskState {
    match state {
        TaskState::Completed(result) => TaskState::Completed(bounded_result(result)),
        other => other,
    }
}

/// The same limit, for a result that is stored for later.
pub(in crate::dispatch) fn bounded_result(result: Value) -> Value {
    let bytes = result.to_string().len();
    if bytes <= MAX_RESULT_BYTES {
        return result;
    }
    let words = format!(
        "The tool has ended, but its result has {bytes} bytes; at most {MAX_RESULT_BYTES} are stored, so it was \
         discarded.\nCall it again with arguments that return less."
    );
    let mut small = Map::from_iter([
        (
            "content".to_owned(),
            json!([{ "type": "text", "text": words }]),
        ),
        ("isError".to_owned(), json!(true)),
    ]);
    for name in ["resultType", "_meta"] {
        let kept = result.get(name);
        small.extend(kept.map(|value| (name.to_owned(), value.clone())));
    }
    Value::Object(small)
}

/// Returns the end of a task that ends now in this state.
fn end_of(state: &TaskState) -> TaskEnd {
    TaskEnd {
        status: state.name(),
        payload: match state {
            TaskState::Completed(payload) | TaskState::Failed(payload) => Some(payload.to_string()),
            _ => None,
        },
        at_ms: now_ms(),
    }
}

fn task_of(row: &TaskRow) -> Task {
    let payload = || {
        let text = row.payload.as_deref().unwrap_or("null");
        serde_json::from_str(text).unwrap_or(Value::Null)
    };
    let state = match row.status.as_str() {
        "completed" => TaskState::Completed(payload()),
        "failed" => TaskState::Failed(payload()),
        "cancelled" => TaskState::Cancelled,
        _ => TaskState::Working,
    };
    Task {
        id: row.id.clone(),
        state,
        created_at: rfc3339(row.created_ms),
        updated_at: rfc3339(row.updated_ms),
        ttl_ms: row.expires_ms.saturating_sub(row.created_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::*;

    #[test]
    fn a_result_that_is_too_large_makes_way_for_words() {
        let result = |bytes: usize| {
            let text = "x".repeat(bytes);
            TaskState::Completed(json!({ "content": [text], "resultType": "complete" }))
        };
        let small = result(MAX_RESULT_BYTES - 100);
        assert_eq!(bound_result(small.clone()), small);
        let TaskState::Completed(words) = bound_result(result(MAX_RESULT_BYTES)) else {
            panic!("it has completed all the same");
        };
        assert_eq!(
            (&words["isError"], &words["resultType"]),
            (&json!(true), &json!("complete"))
        );
        let text = words["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("arguments that return less"), "{text}");
    }
}
