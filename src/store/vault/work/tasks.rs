//! Tasks: calls whose results the client fetches later, kept until they expire.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::{from_column, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::now_ms;

/// The status of a task that has not ended.
pub const WORKING: &str = "working";

/// A task as stored in the vault. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// The id, which cannot be guessed.
    pub id: String,
    /// The agent that made it. No other agent can see it.
    pub agent: String,
    /// The tool of the call.
    pub tool: String,
    /// The reference of the call in the audit and the journal.
    pub request: String,
    /// [`WORKING`], or the final status.
    pub status: String,
    /// The data that belongs to the final status, as JSON.
    pub payload: Option<String>,
    /// When it was created.
    pub created_ms: u64,
    /// When it ended; until then the time of its creation.
    pub updated_ms: u64,
    /// When it expires.
    pub expires_ms: u64,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// The final status.
    pub status: &'static str,
    /// The data that belongs to it, as JSON.
    pub payload: Option<String>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The limits of stored tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTaskLimits {
    /// The limit for one agent.
    pub per_agent: u32,
    /// The limit for all agents together.
    pub total: u32,
}

/// Access to the table.
pub struct TaskTable<'a>(&'a SharedVault);

const COLUMNS: &str =
    "id, agent, tool, request, status, payload, created_ms, updated_ms, expires_ms";

impl<'a> TaskTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Adds a task, which is durable once this returns. Returns false and adds nothing if a limit is reached.
    /// Expired tasks are deleted first.
    pub async fn add(&self, task: TaskRow, room: StoredTaskLimits) -> Result<bool, VaultError> {
        let work = move |connection: &Connection| {
            sweep(connection)?;
            let (total, of_agent): (u32, u32) = connection
                .prepare_cached("SELECT count(*), count(*) FILTER (WHERE agent = ?1) FROM task")?
                .query_row([&task.agent], |row| row.try_into())?;
            if total >= room.total || of_agent >= room.per_agent {
                return Ok(false);
            }
            connection
                .prepare_cached(&format!(
                    "INSERT INTO task ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                ))?
                .execute(params![
                    task.id,
                    task.agent,
                    task.tool,
                    task.request,
                    task.status,
                    task.payload,
                    to_column(task.created_ms),
                    to_column(task.updated_ms),
                    to_column(task.expires_ms),
                ])?;
            Ok(true)
        };
        let writer = &self.0.writer;
        writer
            .write("add a task", Durability::Power, work, |_| ())
            .await
    }

    /// Records the end of a task. A task that has ended or expired stays unchanged.
    pub async fn end(&self, id: String, end: TaskEnd) -> Result<(), VaultError> {
        let work = move |connection: &Connection| {
            let ended = "UPDATE task SET status = ?2, payload = ?3, updated_ms = ?4
                         WHERE id = ?1 AND status = 'working'";
            let at_ms = to_column(end.at_ms);
            connection
                .prepare_cached(ended)?
                .execute((id, end.status, end.payload, at_ms))?;
            Ok(())
        };
        // A client that has seen the end must see the same end after a power cut.
        let writer = &self.0.writer;
        writer
            .write("end a task", Durability::Power, work, |()| ())
            .await
    }

    /// Ends the tasks that an earlier run left running, of the front with this name, or of all fronts. Returns their
    /// number. The ids of tasks name their front, see [`task_id`].
    ///
    /// A task that already has a payload gets the status `completed`: its work continues elsewhere, and the payload
    /// is its result.
    pub async fn end_abandoned(
        &self,
        end: TaskEnd,
        instance: Option<&str>,
    ) -> Result<usize, VaultError> {
        let of_front = instance.map_or_else(|| "*".to_owned(), |name| task_id(name, "*"));
        let without_name = instance == Some("");
        let work = move |connection: &Connection| {
            sweep(connection)?;
            let ended = "UPDATE task SET status = iif(payload IS NULL, ?1, 'completed'),
                         payload = ifnull(payload, ?2), updated_ms = ?3
                         WHERE status = 'working' AND id GLOB ?4
                         AND NOT (?5 AND id GLOB 'task_*_*')";
            let at_ms = to_column(end.at_ms);
            connection.execute(
                ended,
                (end.status, end.payload, at_ms, of_front, without_name),
            )
        };
        let doing = "end the tasks of the last run";
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, |_| ()).await
    }

    /// Returns a task of this agent. A task of another agent and an expired task are treated as absent.
    pub fn find(&self, agent: &str, id: &str) -> Result<Option<TaskRow>, VaultError> {
        let select =
            format!("SELECT {COLUMNS} FROM task WHERE id = ?1 AND agent = ?2 AND expires_ms > ?3");
        self.0.read("find a task", |connection| {
            connection
                .prepare_cached(&select)?
                .query_row((id, agent, to_column(now_ms())), read)
                .optional()
        })
    }

    /// Deletes the expired tasks.
    pub async fn sweep(&self) -> Result<(), VaultError> {
        self.0.write("delete old tasks", sweep).await
    }
}

/// Returns the id of a task with this random part: it names the front that runs it, if the front has a name.
pub fn task_id(instance: &str, random: &str) -> String {
    match instance {
        "" => format!("task_{random}"),
        name => format!("task_{name}_{random}"),
    }
}

fn sweep(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mut delete = connection.prepare_cached("DELETE FROM task WHERE expires_ms <= ?1")?;
    delete.execute([to_column(now_ms())])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<TaskRow, rusqlite::Error> {
    Ok(TaskRow {
        id: row.get("id")?,
        agent: row.get("agent")?,
        tool: row.get("tool")?,
        request: row.get("request")?,
        status: row.get("status")?,
        payload: row.get("payload")?,
        created_ms: from_column(row, "created_ms")?,
        updated_ms: from_column(row, "updated_ms")?,
        expires_ms: from_column(row, "expires_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tasks::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    const ROOM: StoredTaskLimits = StoredTaskLimits {
        per_agent: 2,
        total: 3,
    };

    fn task(id: &str, agent: &str) -> TaskRow {
        TaskRow {
            id: id.into(),
            agent: agent.into(),
            tool: "system_shell".into(),
            request: "r".into(),
            status: WORKING.into(),
            payload: None,
            created_ms: now_ms(),
            updated_ms: now_ms(),
            expires_ms: now_ms() + 3_600_000,
        }
    }

    fn completed_end() -> TaskEnd {
        TaskEnd {
            status: "completed",
            payload: Some("{}".into()),
            at_ms: now_ms(),
        }
    }

    fn failed() -> TaskEnd {
        TaskEnd {
            status: "failed",
            payload: Some("{\"code\":-32603}".into()),
            at_ms: now_ms(),
        }
    }

    fn status(vault: &Vault, agent: &str, id: &str) -> Option<String> {
        let found = vault.tasks().find(agent, id).unwrap();
        found.map(|task| task.status)
    }

    #[tokio::test]
    async fn after_a_restart_what_ended_is_there_and_what_ran_has_failed() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        for id in ["done", "runs"] {
            assert!(vault.tasks().add(task(id, "a"), ROOM).await.unwrap());
        }
        let elsewhere = TaskRow {
            payload: Some("{\"job\":1}".into()),
            ..task("goes on", "b")
        };
        assert!(vault.tasks().add(elsewhere, ROOM).await.unwrap());
        vault
            .tasks()
            .end("done".into(), completed_end())
            .await
            .unwrap();
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        assert_eq!(
            vault.tasks().end_abandoned(failed(), None).await.unwrap(),
            2
        );
        let elsewhere = vault.tasks().find("b", "goes on").unwrap().unwrap();
        assert_eq!(
            (&*elsewhere.status, elsewhere.payload.as_deref()),
            ("completed", Some("{\"job\":1}"))
        );
        assert_eq!(status(&vault, "a", "done").unwrap(), "completed");
        assert_eq!(status(&vault, "a", "runs").unwrap(), "failed");
    }

    #[tokio::test]
    async fn a_front_ends_its_own_tasks_beside_another() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let room = StoredTaskLimits {
            per_agent: 9,
            total: 9,
        };
        let ids = ["", "b", "b2"].map(|name| task_id(name, "0f"));
        assert_eq!(ids, ["task_0f", "task_b_0f", "task_b2_0f"]);
        for id in &ids {
            vault.tasks().add(task(id, "a"), room).await.unwrap();
        }
        let running = || {
            ids.clone()
                .map(|id| status(&vault, "a", &id).unwrap() == WORKING)
        };
        let end = async |name| vault.tasks().end_abandoned(failed(), name).await.unwrap();
        assert_eq!((end(Some("b")).await, running()), (1, [true, false, true]));
        assert_eq!((end(Some("")).await, running()), (1, [false, false, true]));
        assert_eq!((end(None).await, running()), (1, [false; 3]));
    }

    #[tokio::test]
    async fn an_end_is_final_and_nobody_elses() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        vault.tasks().add(task("t", "a"), ROOM).await.unwrap();
        vault
            .tasks()
            .end("t".into(), completed_end())
            .await
            .unwrap();
        vault.tasks().end("t".into(), failed()).await.unwrap();
        assert_eq!(status(&vault, "a", "t").unwrap(), "completed");
        assert_eq!(status(&vault, "b", "t"), None);
        assert_eq!(status(&vault, "a", "other"), None);
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_and_time_makes_room() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let add = async |task| vault.tasks().add(task, ROOM).await.unwrap();
        let over = TaskRow {
            expires_ms: now_ms(),
            ..task("over", "a")
        };
        assert!(add(over).await);
        assert_eq!(status(&vault, "a", "over"), None, "its time is over");
        assert!(add(task("1", "a")).await && add(task("2", "a")).await);
        assert!(
            !add(task("3", "a")).await,
            "the agent has as many as it may"
        );
        assert!(add(task("4", "b")).await);
        assert!(!add(task("5", "c")).await, "all have as many as they may");
        vault.tasks().sweep().await.unwrap();
        assert!(status(&vault, "a", "1").is_some());
    }
}
