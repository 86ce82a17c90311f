//! A change as a task that waits for the owner: it has the change's id, and so survives a restart.

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::dispatch::engine::Engine;
use crate::dispatch::reference;
use gatewren_base::sys::rfc3339;
use gatewren_store::vault::{CHANGE_KEPT_MS, Change, ChangeStatus, Vault};
use gatewren_wire::protocol::{Content, RpcError, SerializedJson, Task, TaskState, ToolResult};
use gatewren_wire::registry::{Answer, ToolError};

/// The result of a call that became a change, for a client that supports tasks.
pub(in crate::dispatch) fn created_task(change: &Change) -> Value {
    task_of(change).to_created()
}

/// Returns an agent's change as a task; another agent's change is not found.
pub(in crate::dispatch) fn find(
    engine: &Engine,
    agent: &str,
    id: &str,
) -> Result<Option<Task>, RpcError> {
    let Some(vault) = &engine.vault else {
        return Ok(None);
    };
    let found = vault.changes().get_of(agent, id).map_err(|cause| {
        let reference = reference::next();
        tracing::error!(%cause, %reference, "cannot read a change");
        RpcError::internal(&reference)
    })?;
    Ok(found.as_ref().map(task_of))
}

/// A subscription to the end of changes.
pub(in crate::dispatch) struct ChangeWatch {
    vault: Vault,
    agent: String,
    inbox_changes: watch::Receiver<u64>,
    open: Vec<String>,
}

impl ChangeWatch {
    /// Watches the changes in `ids` that exist for this agent, and returns their ids; `None` if there is no inbox.
    pub(in crate::dispatch) fn new<'a>(
        engine: &Engine,
        agent: &str,
        ids: impl Iterator<Item = &'a String>,
    ) -> Option<(Self, Vec<String>)> {
        let vault = engine.vault.clone()?;
        // Subscribed before the changes are read, so that no change that ends in between is missed.
        let inbox_changes = vault.changes().watch_inbox();
        let there = |id: &&String| vault.changes().get_of(agent, id).is_ok_and(|c| c.is_some());
        let open: Vec<String> = ids.filter(there).cloned().collect();
        let honoured = open.clone();
        let watch = Self {
            agent: agent.to_owned(),
            inbox_changes,
            open,
            vault,
        };
        Some((watch, honoured))
    }

    /// Returns a change that has ended and was not reported yet. Changes that no longer exist are dropped.
    pub(in crate::dispatch) fn take_ended(&mut self) -> Option<Task> {
        self.inbox_changes.mark_unchanged();
        let (changes, agent) = (self.vault.changes(), &self.agent);
        let mut ended = None;
        self.open.retain(|id| {
            if ended.is_some() {
                return true;
            }
            match changes.get_of(agent, id) {
                Ok(Some(change)) if change.status.is_open() => true,
                Ok(Some(change)) => {
                    ended = Some(task_of(&change));
                    false
                }
                Ok(None) => false,
                // Retried at the next notification.
                Err(_) => true,
            }
        });
        ended
    }

    /// Waits until a change may have ended.
    pub(in crate::dispatch) async fn wait_for_change(&mut self) {
        if self.open.is_empty() || self.inbox_changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Withdraws an agent's change in the background. A change that is already running runs to its end.
pub(in crate::dispatch) fn cancel(engine: &Engine, agent: &str, id: &str) {
    let Some(vault) = engine.vault.clone() else {
        return;
    };
    let (agent, id) = (agent.to_owned(), id.to_owned());
    tokio::spawn(async move {
        if let Err(cause) = vault.changes().withdraw(&agent, &id).await {
            tracing::error!(%cause, change = id, "cannot withdraw a change");
        }
    });
}

fn task_of(change: &Change) -> Task {
    let life_ms = change.expires_ms.saturating_sub(change.created_ms);
    Task {
        id: change.id.clone(),
        state: state_of(change),
        created_at: rfc3339(change.created_ms),
        updated_at: rfc3339(change.updated_ms),
        ttl_ms: life_ms.saturating_add(CHANGE_KEPT_MS),
    }
}

/// The task completes with the result of the call. If the call never ran, the result is a failure of the tool that
/// states why.
fn state_of(change: &Change) -> TaskState {
    match change.status {
        ChangeStatus::Pending | ChangeStatus::Approved | ChangeStatus::Running => {
            TaskState::Working
        }
        ChangeStatus::Withdrawn => TaskState::Cancelled,
        _ => TaskState::Completed(result_of(change)),
    }
}

fn result_of(change: &Change) -> Value {
    let kept = change.result.as_deref().map(serde_json::from_str::<Value>);
    if let Some(Ok(result)) = kept {
        return result;
    }
    let mut result = Answer::from(ToolError::new(words_of(change)))
        .into_result()
        .to_value();
    if let Some(object) = result.as_object_mut() {
        object.insert("resultType".into(), json!("complete"));
    }
    result
}

/// The same result, for a call that has waited for the change.
pub(in crate::dispatch) fn called_result(change: &Change) -> ToolResult {
    let result = result_of(change);
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten();
    let texts = texts.filter_map(|block| block.get("text")?.as_str());
    ToolResult {
        content: texts.map(Content::text).collect(),
        structured: result
            .get("structuredContent")
            .and_then(|data| SerializedJson::of(data).ok()),
        // The text is already in `content`.
        shows_data: false,
        failed: result.get("isError") == Some(&Value::Bool(true)),
    }
}

/// Describes the status of a change in a sentence for the model.
pub(in crate::dispatch) fn words_of(change: &Change) -> String {
    let Change { id, tool, .. } = change;
    let words = change.words.as_deref().unwrap_or_default();
    let notice = change
        .note
        .as_ref()
        .map_or_else(String::new, |note| format!(" The owner says: {note}"));
    match change.status {
        ChangeStatus::Pending => format!("Change {id} ({tool}) waits for the owner. {words}"),
        ChangeStatus::Approved => format!("The owner has approved change {id} ({tool}).{notice}"),
        ChangeStatus::Running => format!("Change {id} ({tool}) is running."),
        ChangeStatus::Applied => format!("Change {id} ({tool}) was done.{notice}"),
        ChangeStatus::Failed => format!("Change {id} ({tool}) failed. {words}{notice}"),
        ChangeStatus::Rejected => {
            format!("The owner has rejected change {id} ({tool}). Nothing was done.{notice}")
        }
        ChangeStatus::Expired => {
            format!("Change {id} ({tool}) expired before it was run. Nothing was done.")
        }
        ChangeStatus::Withdrawn => {
            format!("Change {id} ({tool}) was withdrawn. Nothing was done. {words}")
        }
        ChangeStatus::Unknown => {
            format!("The outcome of change {id} ({tool}) is unknown. {words}")
        }
    }
    .trim_end()
    .to_owned()
}
