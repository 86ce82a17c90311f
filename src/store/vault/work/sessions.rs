//! The open sessions, one row each, so that they survive a restart.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::{session_changes, subscriptions};
use crate::vault::error::VaultError;
use crate::vault::row::{from_column, from_optional, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::now_ms;

/// A session as stored in the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// The session's name, which is not the id that its client sends.
    pub id: String,
    /// The agent that it belongs to.
    pub agent: String,
    /// The time since its last use, according to the last [`SessionUse`].
    pub idle: Duration,
    /// The revision up to which it was notified of all changes; `None` before the first notification.
    pub heard: Option<u64>,
    /// The minimum severity of log messages that its client wants.
    pub level: Option<String>,
}

/// A use of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionUse {
    /// The session's name.
    pub id: String,
    /// The time since the use.
    pub idle: Duration,
    /// The revision up to which it was notified of all changes, if it has subscriptions.
    pub heard: Option<u64>,
}

/// A history of the state, and its newest revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRevision {
    /// The id of the state database.
    pub database: String,
    /// Its newest revision.
    pub revision: u64,
}

/// Access to the table.
pub struct SessionTable<'a>(&'a SharedVault);

impl<'a> SessionTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Returns all sessions that were not ended.
    pub fn list(&self) -> Result<Vec<StoredSession>, VaultError> {
        self.0.read("list the sessions", |connection| {
            connection
                .prepare("SELECT id, agent, used_ms, heard, level FROM session")?
                .query_map([], session)?
                .collect()
        })
    }

    /// Returns a number that differs after a session was ended, its level was set or its subscriptions were changed, by
    /// any front. New sessions and uses do not change it.
    pub fn changes(&self) -> Result<i64, VaultError> {
        self.0
            .read("count the changes of sessions", session_changes::read)
    }

    /// Returns the session with this name, unless it was ended.
    pub fn find(&self, id: &str) -> Result<Option<StoredSession>, VaultError> {
        self.0.read("find a session", |connection| {
            connection
                .prepare_cached(
                    "SELECT id, agent, used_ms, heard, level FROM session WHERE id = ?1",
                )?
                .query_row([id], session)
                .optional()
        })
    }

    /// Adds a session. It survives a restart once this returns.
    pub async fn add(&self, id: &str, agent: &str) -> Result<(), VaultError> {
        let row = (id.to_owned(), agent.to_owned(), to_column(now_ms()));
        self.0
            .write("add a session", move |connection| {
                connection
                    .prepare_cached("INSERT INTO session (id, agent, used_ms) VALUES (?1, ?2, ?3)")?
                    .execute(row)
                    .map(drop)
            })
            .await
    }

    /// Removes a session and its subscriptions; durable once this returns.
    pub async fn remove(&self, id: &str) -> Result<(), VaultError> {
        let id = id.to_owned();
        self.0
            .write("end a session", move |connection| remove(connection, &id))
            .await
    }

    /// Removes sessions and their subscriptions asynchronously. Name each session only once, which bounds the
    /// queue.
    pub fn enqueue_removal(&self, ids: Vec<String>) {
        let work =
            move |connection: &Connection| ids.iter().try_for_each(|id| remove(connection, id));
        // Fails only when gatewren is stopping. The next start ends the sessions again.
        let _ = self.0.writer.enqueue_uncounted("end sessions", work);
    }

    /// Returns the newest revision at the time of the last `SessionTable::note`; `None` before the first one.
    pub fn state_seen(&self) -> Result<Option<SeenRevision>, VaultError> {
        self.0.read("read the last known revision of the state", |connection| {
            let known = "SELECT d.value AS database, CAST(r.value AS INTEGER) AS revision
                         FROM meta d JOIN meta r ON d.key = 'state.database' AND r.key = 'state.revision'";
            let seen = |row: &Row<'_>| {
                Ok(SeenRevision {
                    database: row.get("database")?,
                    revision: from_column(row, "revision")?,
                })
            };
            connection.query_row(known, [], seen).optional()
        })
    }

    /// Starts another history of the state. Notifications of the previous history do not count any more.
    pub fn enqueue_new_history(&self, seen: SeenRevision) {
        let work = move |connection: &Connection| {
            // Higher than any revision, so it is recognized as belonging to a previous history.
            connection.execute("UPDATE session SET heard = ?1", [i64::MAX])?;
            note_state(connection, &seen)
        };
        // Fails only when gatewren is stopping. The next start detects the new history again.
        let _ = self
            .0
            .writer
            .enqueue_uncounted("record a new state database", work);
    }

    /// Records uses of sessions and the newest revision, in one commit. Call it about once a minute.
    pub async fn note(&self, uses: Vec<SessionUse>, state: SeenRevision) -> Result<(), VaultError> {
        self.0
            .write("record the use of sessions", move |connection| {
                note_state(connection, &state)?;
                let mut update = connection.prepare_cached(
                    "UPDATE session SET used_ms = ?2, heard = coalesce(?3, heard) WHERE id = ?1",
                )?;
                for each in uses {
                    let heard = each.heard.map(to_column);
                    update.execute((each.id, to_column(time_before(each.idle)), heard))?;
                }
                Ok(())
            })
            .await
    }

    /// Stores the minimum severity of log messages for a session's client.
    pub async fn set_level(&self, id: &str, level: &str) -> Result<(), VaultError> {
        let row = (id.to_owned(), level.to_owned());
        self.0
            .write("record a log level", move |connection| {
                connection
                    .prepare_cached("UPDATE session SET level = ?2 WHERE id = ?1")?
                    .execute(row)?;
                session_changes::count(connection)
            })
            .await
    }
}

fn note_state(connection: &Connection, seen: &SeenRevision) -> Result<(), rusqlite::Error> {
    let revision = seen.revision.to_string();
    for (key, value) in [
        ("state.database", &seen.database),
        ("state.revision", &revision),
    ] {
        connection
            .prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?
            .execute((key, value))?;
    }
    Ok(())
}

fn remove(connection: &Connection, id: &str) -> Result<(), rusqlite::Error> {
    subscriptions::remove_all(connection, id)?;
    connection
        .prepare_cached("DELETE FROM session WHERE id = ?1")?
        .execute([id])?;
    session_changes::count(connection)
}

/// Returns the time `idle` ago, in milliseconds since 1970.
fn time_before(idle: Duration) -> u64 {
    let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
    now_ms().saturating_sub(idle)
}

fn session(row: &Row<'_>) -> Result<StoredSession, rusqlite::Error> {
    Ok(StoredSession {
        id: row.get("id")?,
        agent: row.get("agent")?,
        idle: Duration::from_millis(now_ms().saturating_sub(from_column(row, "used_ms")?)),
        heard: from_optional(row, "heard")?,
        level: row.get("level")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::sessions::*;
    use super::super::subscriptions::Subscription;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn the_changes_that_other_fronts_must_know_are_counted() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let (sessions, subscriptions) = (vault.sessions(), vault.subscriptions());
        let subscription = Subscription {
            session: "s1".to_owned(),
            uri: "u".to_owned(),
            since: 1,
        };
        let state = SeenRevision {
            database: "d".to_owned(),
            revision: 1,
        };
        sessions.add("s1", "a").await.unwrap();
        sessions.note(Vec::new(), state).await.unwrap();
        assert_eq!(sessions.changes().unwrap(), 0);
        sessions.set_level("s1", "error").await.unwrap();
        assert_eq!(sessions.changes().unwrap(), 1);
        subscriptions.add(subscription).await.unwrap();
        assert_eq!(sessions.changes().unwrap(), 2);
        subscriptions.remove("s1", "u").await.unwrap();
        assert_eq!(sessions.changes().unwrap(), 3);
        sessions.remove("s1").await.unwrap();
        assert_eq!(sessions.changes().unwrap(), 4);
    }

    #[tokio::test]
    async fn a_session_is_kept_as_it_was_last_noted_until_it_is_removed() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        vault.sessions().add("s1", "a").await.unwrap();
        vault.sessions().add("s2", "b").await.unwrap();
        vault.sessions().set_level("s1", "error").await.unwrap();
        let hour = Duration::from_hours(1);
        let noted = |id: &str, heard| SessionUse {
            id: id.to_owned(),
            idle: hour,
            heard,
        };
        let uses = vec![noted("s1", Some(7)), noted("s3", None)];
        let state = |revision| SeenRevision {
            database: "d".to_owned(),
            revision,
        };
        assert_eq!(vault.sessions().state_seen().unwrap(), None);
        vault.sessions().note(uses, state(7)).await.unwrap();
        let uses = vec![noted("s1", None)];
        vault.sessions().note(uses, state(8)).await.unwrap();
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        let mut listed = vault.sessions().list().unwrap();
        listed.sort_by(|one, other| one.id.cmp(&other.id));
        let [first, second] = listed.try_into().unwrap();
        assert!(first.idle >= hour && second.idle < hour);
        assert_eq!((first.agent.as_str(), second.agent.as_str()), ("a", "b"));
        assert_eq!((first.heard, second.heard), (Some(7), None));
        assert_eq!(
            (first.level.as_deref(), second.level),
            (Some("error"), None)
        );
        assert_eq!(vault.sessions().state_seen().unwrap(), Some(state(8)));
        vault.sessions().enqueue_new_history(state(2));
        vault.sessions().remove("s1").await.unwrap();
        assert_eq!(vault.sessions().state_seen().unwrap(), Some(state(2)));
        let others = vault.sessions().list().unwrap();
        assert!(others[0].heard > Some(u64::from(u32::MAX)), "{others:?}");
        vault.sessions().enqueue_removal(vec!["s2".to_owned()]);
        vault.probe().await.unwrap();
        assert_eq!(vault.sessions().list().unwrap(), []);
    }
}
