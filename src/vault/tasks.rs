//! Tasks: calls whose results are asked for later, kept until their time is over.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::VaultError;
use super::job::Durability;
use super::row::{from_column, to_column};
use super::shared::Shared;
use crate::sys::now_ms;

/// The status of a task that has not ended.
pub const WORKING: &str = "working";

/// A task as the vault knows it. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its id, which nobody can guess.
    pub id: String,
    /// The agent that made it, and the only one that it exists for.
    pub agent: String,
    /// The tool that it is a call of.
    pub tool: String,
    /// What the audit and the journal know that call by.
    pub request: String,
    /// [`WORKING`], or the word for how it ended.
    pub status: String,
    /// What belongs to its end, as JSON.
    pub payload: Option<String>,
    /// When it was made.
    pub created_ms: u64,
    /// When it ended, or was made.
    pub updated_ms: u64,
    /// From when on it is gone.
    pub expires_ms: u64,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// The word for it.
    pub status: &'static str,
    /// What belongs to it, as JSON.
    pub payload: Option<String>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// How many tasks may be kept at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRoom {
    /// Of one agent.
    pub per_agent: u32,
    /// Of all agents.
    pub total: u32,
}

/// The door to the table.
pub struct Tasks<'a>(&'a Shared);

const COLUMNS: &str =
    "id, agent, tool, request, status, payload, created_ms, updated_ms, expires_ms";

impl<'a> Tasks<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self(shared)
    }

    /// Adds a task, which is there for good when the answer comes; false, and nothing is added, when
    /// there is no room. Those whose time is over make room first.
    pub async fn add(&self, task: TaskRow, room: TaskRoom) -> Result<bool, VaultError> {
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

    /// Writes down how a task ended. What has ended, or is gone, stays as it is.
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
        // A client that has seen the end must see the same one after a power cut.
        let writer = &self.0.writer;
        writer
            .write("end a task", Durability::Power, work, |()| ())
            .await
    }

    /// Ends all tasks that a server which is no more left running; how many there were. One with a payload already
    /// has completed with it: its work goes on elsewhere, and that is what is to be said of it.
    pub async fn end_abandoned(&self, end: TaskEnd) -> Result<usize, VaultError> {
        let work = move |connection: &Connection| {
            sweep(connection)?;
            let ended = "UPDATE task SET status = iif(payload IS NULL, ?1, 'completed'),
                         payload = ifnull(payload, ?2), updated_ms = ?3
                         WHERE status = 'working'";
            let at_ms = to_column(end.at_ms);
            connection.execute(ended, (end.status, end.payload, at_ms))
        };
        let doing = "end the tasks of the last run";
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, |_| ()).await
    }

    /// An agent's task; another agent's is as if it were not there, and so is one whose time is over.
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

    /// Takes away the tasks whose time is over.
    pub async fn sweep(&self) -> Result<(), VaultError> {
        self.0.write("take away old tasks", sweep).await
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
    use super::super::store::Vault;
    use super::*;
    use crate::sys::Scratch;

    const ROOM: TaskRoom = TaskRoom {
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

    fn completed() -> TaskEnd {
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
        vault.tasks().end("done".into(), completed()).await.unwrap();
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        assert_eq!(vault.tasks().end_abandoned(failed()).await.unwrap(), 2);
        let elsewhere = vault.tasks().find("b", "goes on").unwrap().unwrap();
        assert_eq!(
            (&*elsewhere.status, elsewhere.payload.as_deref()),
            ("completed", Some("{\"job\":1}"))
        );
        assert_eq!(status(&vault, "a", "done").unwrap(), "completed");
        assert_eq!(status(&vault, "a", "runs").unwrap(), "failed");
    }

    #[tokio::test]
    async fn an_end_is_final_and_nobody_elses() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        vault.tasks().add(task("t", "a"), ROOM).await.unwrap();
        vault.tasks().end("t".into(), completed()).await.unwrap();
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
