//! The store of tasks: the vault, or memory if there is no vault.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use gatewren_base::sys::{lock, now_ms};
use gatewren_store::vault::{StoredTaskLimits, TASK_WORKING, TaskEnd, TaskRow, Vault, VaultError};
use gatewren_wire::registry::BoxFuture;

/// Stores tasks until they expire.
pub(in crate::dispatch) trait TaskStore: Send + Sync {
    /// Adds a task, which can be found once this returns; returns false if there is no room for it.
    fn add(&self, task: TaskRow, room: StoredTaskLimits) -> BoxFuture<Result<bool, VaultError>>;

    /// Records how a task ended. A task that has already ended, or is gone, stays as it is.
    fn end(&self, id: String, end: TaskEnd) -> BoxFuture<Result<(), VaultError>>;

    /// Returns an agent's task, unless it has expired.
    fn find(&self, agent: &str, id: &str) -> Result<Option<TaskRow>, VaultError>;

    /// Deletes expired tasks.
    fn sweep(&self) -> BoxFuture<Result<(), VaultError>>;
}

impl TaskStore for Vault {
    fn add(&self, task: TaskRow, room: StoredTaskLimits) -> BoxFuture<Result<bool, VaultError>> {
        let vault = self.clone();
        Box::pin(async move { vault.tasks().add(task, room).await })
    }

    fn end(&self, id: String, end: TaskEnd) -> BoxFuture<Result<(), VaultError>> {
        let vault = self.clone();
        Box::pin(async move { vault.tasks().end(id, end).await })
    }

    fn find(&self, agent: &str, id: &str) -> Result<Option<TaskRow>, VaultError> {
        self.tasks().find(agent, id)
    }

    fn sweep(&self) -> BoxFuture<Result<(), VaultError>> {
        let vault = self.clone();
        Box::pin(async move { vault.tasks().sweep().await })
    }
}

/// Tasks that end with the process.
#[derive(Default)]
pub(in crate::dispatch) struct MemoryTasks(Arc<Mutex<HashMap<String, TaskRow>>>);

impl MemoryTasks {
    fn rows(&self) -> MutexGuard<'_, HashMap<String, TaskRow>> {
        lock(&self.0)
    }

    fn add_now(&self, task: TaskRow, room: StoredTaskLimits) -> bool {
        self.sweep_now();
        let mut rows = self.rows();
        let of_agent = rows.values().filter(|row| row.agent == task.agent).count();
        if rows.len() >= room.total as usize || of_agent >= room.per_agent as usize {
            return false;
        }
        rows.insert(task.id.clone(), task);
        true
    }

    fn end_now(&self, id: &str, end: TaskEnd) {
        let mut rows = self.rows();
        if let Some(row) = rows.get_mut(id).filter(|row| row.status == TASK_WORKING) {
            end.status.clone_into(&mut row.status);
            row.payload = end.payload;
            row.updated_ms = end.at_ms;
        }
    }

    fn sweep_now(&self) {
        let now = now_ms();
        self.rows().retain(|_, row| row.expires_ms > now);
    }
}

impl TaskStore for MemoryTasks {
    fn add(&self, task: TaskRow, room: StoredTaskLimits) -> BoxFuture<Result<bool, VaultError>> {
        Box::pin(std::future::ready(Ok(self.add_now(task, room))))
    }

    fn end(&self, id: String, end: TaskEnd) -> BoxFuture<Result<(), VaultError>> {
        self.end_now(&id, end);
        Box::pin(std::future::ready(Ok(())))
    }

    fn find(&self, agent: &str, id: &str) -> Result<Option<TaskRow>, VaultError> {
        let now = now_ms();
        let rows = self.rows();
        let row = rows.get(id);
        let row = row.filter(|row| row.agent == agent && row.expires_ms > now);
        Ok(row.cloned())
    }

    fn sweep(&self) -> BoxFuture<Result<(), VaultError>> {
        self.sweep_now();
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::*;

    fn row(id: &str, agent: &str, expires_ms: u64) -> TaskRow {
        TaskRow {
            id: id.into(),
            agent: agent.into(),
            tool: "t".into(),
            request: "r".into(),
            status: TASK_WORKING.into(),
            payload: None,
            created_ms: 0,
            updated_ms: 0,
            expires_ms,
        }
    }

    #[test]
    fn memory_keeps_tasks_as_the_vault_does() {
        let tasks = MemoryTasks::default();
        let room = StoredTaskLimits {
            per_agent: 1,
            total: 2,
        };
        let later = now_ms() + 60_000;
        assert!(tasks.add_now(row("over", "a", now_ms()), room));
        assert!(tasks.find("a", "over").unwrap().is_none());
        assert!(tasks.add_now(row("1", "a", later), room));
        assert!(!tasks.add_now(row("2", "a", later), room));
        assert!(tasks.add_now(row("3", "b", later), room));
        assert!(!tasks.add_now(row("4", "c", later), room));
        assert!(tasks.find("b", "1").unwrap().is_none());
        let end = |status| TaskEnd {
            status,
            payload: None,
            at_ms: 1,
        };
        tasks.end_now("1", end("completed"));
        tasks.end_now("1", end("failed"));
        assert_eq!(tasks.find("a", "1").unwrap().unwrap().status, "completed");
    }
}
