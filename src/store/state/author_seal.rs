//! Seals on the revisions that the server wrote, made with a key that other programs do not have.

use std::fmt;

use ring::hmac;
use rusqlite::{Connection, OptionalExtension as _};

use super::log::LogRow;

/// The step to the schema's third version. Seals have their own table, so other programs write revisions as before.
pub const SCHEMA: &str = "
CREATE TABLE author (revision INTEGER PRIMARY KEY, seal BLOB NOT NULL) STRICT;
CREATE TRIGGER author_goes_with_its_revision AFTER DELETE ON revision
BEGIN DELETE FROM author WHERE revision = OLD.id; END;
";

/// The key that seals the revisions that the server writes, for one database.
#[derive(Clone)]
pub struct AuthorKey {
    key: hmac::Key,
    database_id: String,
}

/// A revision as it is written into the log.
pub struct NewRevision<'r> {
    /// Its number.
    pub id: u64,
    /// When it is written, in milliseconds since 1970.
    pub at_ms: u64,
    /// The author's actor.
    pub actor: &'r str,
    /// The author's cause.
    pub cause: Option<&'r str>,
    /// The patch as JSON text.
    pub patch: &'r str,
}

impl fmt::Debug for AuthorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorKey")
            .field("database_id", &self.database_id)
            .finish_non_exhaustive()
    }
}

impl AuthorKey {
    /// Returns the key made of these bytes, for revisions of the database with this id.
    pub fn new(bytes: &[u8; 32], database_id: &str) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, bytes),
            database_id: database_id.to_owned(),
        }
    }

    /// Seals a revision that was just written, in the same transaction.
    pub fn seal(
        &self,
        connection: &Connection,
        revision: &NewRevision<'_>,
    ) -> rusqlite::Result<()> {
        let seal = hmac::sign(&self.key, &self.bytes(revision));
        // Another program may have inserted a row for this revision before. Such a row proves nothing and is
        // replaced.
        connection
            .prepare_cached("INSERT OR REPLACE INTO author (revision, seal) VALUES (?1, ?2)")?
            .execute((to_signed(revision.id), seal.as_ref()))
            .map(drop)
    }

    /// Returns the author of a revision. The actor counts if the seal is valid or the actor is a local program; any
    /// other actor is an unproven claim of a local program.
    pub fn author(&self, connection: &Connection, row: &LogRow) -> rusqlite::Result<String> {
        if row.actor.starts_with("local:") || self.is_sealed(connection, row)? {
            return Ok(row.actor.clone());
        }
        Ok(format!("local program (claims to be {})", row.actor))
    }

    fn is_sealed(&self, connection: &Connection, row: &LogRow) -> rusqlite::Result<bool> {
        // A database opened read-only may have an older schema without the table.
        let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'author'";
        if !connection.prepare_cached(table)?.exists([])? {
            return Ok(false);
        }
        let seal: Option<Vec<u8>> = connection
            .prepare_cached("SELECT seal FROM author WHERE revision = ?1")?
            .query_row([to_signed(row.id)], |row| row.get(0))
            .optional()?;
        let bytes = self.bytes(&NewRevision {
            id: row.id,
            at_ms: row.at_ms,
            actor: &row.actor,
            cause: row.cause.as_deref(),
            patch: &row.patch,
        });
        Ok(seal.is_some_and(|seal| hmac::verify(&self.key, &bytes, &seal).is_ok()))
    }

    /// The bytes that a seal covers: the whole revision and the id of its database. Each text is prefixed with its
    /// length.
    fn bytes(&self, revision: &NewRevision<'_>) -> Vec<u8> {
        let mut bytes = b"gatewren state author 1\n".to_vec();
        bytes.extend_from_slice(&revision.id.to_be_bytes());
        bytes.extend_from_slice(&revision.at_ms.to_be_bytes());
        bytes.push(u8::from(revision.cause.is_some()));
        let cause = revision.cause.unwrap_or_default();
        for text in [
            self.database_id.as_str(),
            revision.actor,
            cause,
            revision.patch,
        ] {
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

fn to_signed(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::author::{Actor, Author};
    use super::super::history::{History, HistoryFilter};
    use super::super::pointer::Pointer;
    use super::super::store::State;
    use super::super::testing::foreign;
    use super::super::view::StateViews;
    use super::*;
    use gatewren_base::config::Reach;
    use gatewren_base::sys::Scratch;

    const KEY: [u8; 32] = [7; 32];

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    async fn put(state: &State, author: Author, place: &str, value: Value) -> u64 {
        state.put(&author, &at(place), Some(value)).await.unwrap()
    }

    fn agent() -> Author {
        Author::from(Actor::Agent("7".into())).because("call")
    }

    /// Returns the last author at a place. The view of an agent that sees everything and the command line must
    /// agree.
    fn last_author(state: &State, place: &str) -> String {
        let view = StateViews::new(state.clone()).view_for("a", &Reach::everything());
        let blamed = view.blame(&at(place), 9).unwrap().unwrap().last.unwrap();
        let history = History::open(state.path()).unwrap().proving(&KEY);
        let shown = history.blame(&at(place), 9).unwrap().unwrap().last.unwrap();
        assert_eq!(blamed, shown);
        let filter = HistoryFilter {
            scope: at(place),
            most: 1,
            ..HistoryFilter::default()
        };
        let logged = history.log(&filter).unwrap().remove(0);
        assert_eq!(logged.revision.actor, blamed.actor);
        blamed.actor
    }

    #[tokio::test]
    async fn a_local_program_cannot_pass_for_an_agent_the_owner_or_the_observer() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        state.seal_with(&KEY);
        let first = to_signed(put(&state, agent(), "/public/a", json!(1)).await);
        put(&state, Actor::Owner.into(), "/public/o", json!(1)).await;
        put(&state, Author::observer(), "/public/w", json!(1)).await;
        assert_eq!(last_author(&state, "/public/a"), "agent:7");
        assert_eq!(last_author(&state, "/public/o"), "owner");
        assert_eq!(last_author(&state, "/public/w"), "observer");

        let other = foreign(state.path());
        for (claimed, place) in [
            ("agent:7", "/public/x"),
            ("owner", "/public/y"),
            ("observer", "/public/z"),
        ] {
            // Also with the seal of a revision that the agent did write.
            let next =
                "INSERT OR REPLACE INTO author SELECT (SELECT max(id) + 1 FROM revision), seal
                FROM author WHERE revision = ?1";
            other.execute(next, [first]).unwrap();
            let patch = json!([{ "op": "add", "path": place, "value": 1 }]).to_string();
            let write =
                "INSERT INTO revision (at_ms, actor, cause, patch) VALUES (7, ?1, 'call', ?2)";
            other.execute(write, (claimed, patch)).unwrap();
            let expected = format!("local program (claims to be {claimed})");
            assert_eq!(last_author(&state, place), expected);
        }
        let patch = json!([{ "op": "add", "path": "/public/p", "value": 1 }]).to_string();
        let write = "INSERT INTO revision (at_ms, actor, patch) VALUES (7, 'local:backup', ?1)";
        other.execute(write, [patch]).unwrap();
        assert_eq!(last_author(&state, "/public/p"), "local:backup");
    }

    #[tokio::test]
    async fn a_revision_that_was_rewritten_is_no_longer_its_authors() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        state.seal_with(&KEY);
        put(&state, agent(), "/public/a", json!("harmless")).await;
        let other = foreign(state.path());
        other
            .execute_batch(
                "DROP TRIGGER revision_is_never_updated;
                 UPDATE revision SET patch = replace(patch, 'harmless', 'harmful')",
            )
            .unwrap();
        let claims = "local program (claims to be agent:7)";
        assert_eq!(last_author(&state, "/public/a"), claims);
        other
            .execute_batch("UPDATE revision SET patch = replace(patch, 'harmful', 'harmless')")
            .unwrap();
        assert_eq!(last_author(&state, "/public/a"), "agent:7");
        other
            .execute_batch("UPDATE revision SET cause = NULL")
            .unwrap();
        assert_eq!(last_author(&state, "/public/a"), claims);
    }

    #[tokio::test]
    async fn a_seal_goes_with_its_revision() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        state.seal_with(&KEY);
        put(&state, agent(), "/public/a", json!(1)).await;
        let other = foreign(state.path());
        let count = |sql: &str| -> i64 { other.query_row(sql, [], |row| row.get(0)).unwrap() };
        assert_eq!(count("SELECT count(*) FROM author"), 1);
        other
            .execute_batch("DROP TRIGGER revision_is_trimmed_from_the_oldest; DELETE FROM revision")
            .unwrap();
        assert_eq!(count("SELECT count(*) FROM author"), 0);
    }
}
