//! Read-only polling of the vault: the new calls and the pending changes.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::vault::audit::table::RUN_AFTER;
use crate::vault::error::VaultError;
use crate::vault::open;

/// The maximum number of audit rows in one read. Earlier rows are skipped.
const MOST_ROWS: i64 = 20_000;

/// The maximum number of pending changes in the list. The total is counted.
const MOST_WAITING: i64 = 50;

/// A vault that is polled.
pub struct VaultPoller {
    path: PathBuf,
    connection: Connection,
}

/// The columns of an audit row that are needed here. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolledRow {
    /// The row's number.
    pub seq: i64,
    /// When the call began, or in an outcome row when it ended.
    pub at_ms: i64,
    /// The call's id.
    pub call: String,
    /// Whether it begins the call. The only row of a call that only read begins and ends it.
    pub begins: bool,
    /// The outcome and the duration, in a row that ends the call.
    pub ended: Option<(String, i64)>,
    /// The agent's id. Only intent rows have it, and likewise the fields below.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The target.
    pub target: Option<String>,
}

/// A change that waits for the owner's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingChange {
    /// Its id.
    pub id: String,
    /// The agent's id.
    pub agent: String,
    /// The tool to run.
    pub tool: String,
    /// The target.
    pub target: Option<String>,
    /// When it was proposed, in milliseconds since 1970.
    pub since_ms: i64,
}

impl VaultPoller {
    /// Opens the vault at `path` read-only.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        Ok(Self {
            connection: open::looking(path)?,
            path: path.to_owned(),
        })
    }

    /// Returns the rows after `seq`, oldest first. If there are too many, returns the newest.
    pub fn since(&self, seq: i64) -> Result<Vec<PolledRow>, VaultError> {
        let query =
            "SELECT seq, at_ms, call, kind, agent, tool, target, outcome, duration_ms FROM audit
            WHERE seq > max(?1, (SELECT coalesce(max(seq), 0) FROM audit) - ?2) ORDER BY seq";
        self.read(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            statement.query_map([seq, MOST_ROWS], step)?.collect()
        })
    }

    /// Returns the last row before the start of the newest run of the server.
    pub fn run_after(&self) -> Result<i64, VaultError> {
        let noted = self.read(|connection| {
            let note = "SELECT value FROM meta WHERE key = ?1";
            let noted = connection.query_row(note, [RUN_AFTER], |row| row.get::<_, String>(0));
            noted.optional()
        })?;
        Ok(noted.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// Returns the id and the name of each agent.
    pub fn names(&self) -> Result<Vec<(String, String)>, VaultError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT id, name FROM agent")?;
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            statement.query_map([], row)?.collect()
        })
    }

    /// Returns the changes that wait for the owner, oldest first, and their total number.
    pub fn waiting(&self) -> Result<(Vec<WaitingChange>, i64), VaultError> {
        self.read(|connection| {
            let query = "SELECT id, agent, tool, target, created_ms FROM change
                WHERE status = 'pending' ORDER BY created_ms LIMIT ?1";
            let mut statement = connection.prepare_cached(query)?;
            let row = |row: &Row<'_>| {
                Ok(WaitingChange {
                    id: row.get(0)?,
                    agent: row.get(1)?,
                    tool: row.get(2)?,
                    target: row.get(3)?,
                    since_ms: row.get(4)?,
                })
            };
            let all = statement.query_map([MOST_WAITING], row)?;
            let all = all.collect::<rusqlite::Result<_>>()?;
            let count = "SELECT count(*) FROM change WHERE status = 'pending'";
            let count = connection.query_row(count, [], |row| row.get(0))?;
            Ok((all, count))
        })
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, VaultError> {
        work(&self.connection)
            .map_err(|cause| VaultError::from_sqlite(&self.path, "read the calls", &cause))
    }
}

fn step(row: &Row<'_>) -> rusqlite::Result<PolledRow> {
    let kind: String = row.get(3)?;
    let text = |at: usize| row.get::<_, Option<String>>(at);
    Ok(PolledRow {
        seq: row.get(0)?,
        at_ms: row.get(1)?,
        call: row.get(2)?,
        begins: kind == "intent",
        ended: match text(7)? {
            Some(outcome) => Some((outcome, row.get::<_, Option<i64>>(8)?.unwrap_or_default())),
            None => None,
        },
        agent: text(4)?.unwrap_or_default(),
        tool: text(5)?.unwrap_or_default(),
        target: text(6)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::poll::*;
    use crate::vault::audit::entry::{AuditEntry, AuditOutcome};
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn what_was_called_since_is_told_once() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        vault.audit().begin_run().await.unwrap();
        let arguments = json!({ "container": "web" });
        let entry = AuditEntry {
            agent: "agent_1",
            token: None,
            space: None,
            session: None,
            request: None,
            address: "local",
            tool: "container_start",
            risk: "write",
            arguments: &arguments,
            reason: None,
            target: Some("web"),
            mode: None,
            decision: "allow",
            change: None,
        };
        let id = vault.audit().intent(entry).await.unwrap();
        let glance = VaultPoller::open(&path).unwrap();
        let steps = glance.since(0).unwrap();
        let [begun] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        assert_eq!(
            (begun.tool.as_str(), begun.target.as_deref()),
            ("container_start", Some("web"))
        );
        assert_eq!((begun.begins, &begun.ended), (true, &None));
        let outcome = AuditOutcome {
            outcome: "ok",
            duration_ms: 7,
            revision_before: None,
            revision: None,
            error: None,
        };
        vault.audit().outcome(&id, outcome).unwrap();
        vault.probe().await.unwrap();
        let steps = glance.since(begun.seq).unwrap();
        let [ended] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        assert_eq!((&ended.call, ended.begins), (&begun.call, false));
        assert_eq!(ended.ended, Some(("ok".to_owned(), 7)));
        assert_eq!(glance.since(ended.seq).unwrap(), []);
        assert_eq!(glance.run_after().unwrap(), 0);
        assert_eq!(glance.waiting().unwrap(), (Vec::new(), 0));
    }
}
