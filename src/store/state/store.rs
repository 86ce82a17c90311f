//! The public interface of the state.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, warn};

use gatewren_base::sys::{FileWaiter, FileWaker, move_aside, now_ms};

use super::author::Author;
use super::author_seal::AuthorKey;
#[cfg(any(test, feature = "testing"))]
use super::changes::RevisionsSince;
#[cfg(any(test, feature = "testing"))]
use super::cursor::RevisionQuery;
use super::document::Document;
use super::error::StateError;
use super::follow::load;
use super::log::StateLogRetention;
use super::migration::{RebuiltLog, STEPS};
use super::patch::Patch;
use super::pointer::Pointer;
use super::schema;
use super::shared::SharedState;
#[cfg(any(test, feature = "testing"))]
use super::visibility::Visibility;
use super::writer::{StateWriter, WriteJob, WriteRequest};

/// The most changes that are queued for the writer; further callers wait for room in the queue.
const MAX_WAITING: usize = 256;

/// The state document with its log. Clones share it; the writer stops when the last one is dropped.
#[derive(Debug, Clone)]
pub struct State {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<SharedState>,
    database_id: String,
    retention: Arc<Mutex<StateLogRetention>>,
    /// `Some` until it is dropped.
    line: Option<Line>,
    writer: Option<thread::JoinHandle<()>>,
}

/// The queue to the writer.
#[derive(Debug)]
struct Line {
    // The order matters: when the waker is dropped, the writer must already see that the channel is closed.
    jobs: mpsc::Sender<WriteJob>,
    waker: FileWaker,
}

impl Drop for Inner {
    /// Waits for the writer, which finally folds the write-ahead log into the file.
    fn drop(&mut self) {
        self.line = None;
        if let Some(writer) = self.writer.take() {
            // A panic in the thread was reported when it happened.
            let _ = writer.join();
        }
    }
}

impl State {
    /// Opens the database at `path` like [`Self::open_keeping`], with the default retention.
    #[cfg(any(test, feature = "testing"))]
    pub fn open(path: &Path) -> Result<Self, StateError> {
        Self::open_keeping(path, StateLogRetention::default())
    }

    /// Opens the database at `path`, creates it if there is none, and starts its writer, which trims the log.
    ///
    /// A damaged database is moved aside to `<path>.damaged-<ms>`, and an empty one is created in its place.
    pub fn open_keeping(path: &Path, retention: StateLogRetention) -> Result<Self, StateError> {
        let cause = match Self::open_sound(path, retention, None) {
            Err(StateError::Damaged { cause, .. }) => cause,
            Err(StateError::NotADatabase(_)) => {
                "its first page is not that of a SQLite database".into()
            }
            result => return result,
        };
        let now = now_ms();
        let aside = move_aside(path, now).map_err(|error| StateError::io(path, &error))?;
        error!(path = %path.display(), aside = %aside.display(), %cause,
            "the state database is damaged: it was moved aside, and a new one is created");
        let note = json!({ "at_ms": now, "aside": aside.display().to_string(), "cause": cause });
        let rebuilt = RebuiltLog {
            // Above every earlier revision, so that older cursors get a resync.
            revision: now,
            note: note.to_string(),
        };
        Self::open_sound(path, retention, Some(&rebuilt))
    }

    /// Seals revisions from now on with a key of these bytes, which other programs do not have. A second key is
    /// ignored.
    pub fn seal_with(&self, key: &[u8; 32]) {
        let key = AuthorKey::new(key, self.database_id());
        self.inner.shared.set_author_key(key);
    }

    /// Sets how much of the log is kept from now on.
    pub fn set_retention(&self, retention: StateLogRetention) {
        let kept = self.inner.retention.lock();
        *kept.unwrap_or_else(PoisonError::into_inner) = retention;
    }

    /// The newest document. Never accesses the disk and never waits.
    pub fn document(&self) -> Arc<Document> {
        self.inner.shared.document()
    }

    /// Sets the value at `pointer`, or removes it if `value` is absent. Returns the revision that contains the
    /// result.
    ///
    /// Missing parents are created as objects. An unchanged value makes no revision.
    pub async fn put(
        &self,
        author: &Author,
        pointer: &Pointer,
        value: Option<Value>,
    ) -> Result<u64, StateError> {
        self.request_write(author, WriteRequest::Put(pointer.clone(), value))
            .await
    }

    /// Applies `patch` as one revision, whole or not at all. Returns the revision that contains it.
    ///
    /// A patch that changes nothing makes no revision.
    pub async fn apply(&self, author: &Author, patch: Patch) -> Result<u64, StateError> {
        self.request_write(author, WriteRequest::Apply(patch)).await
    }

    /// Returns the revisions after `after` that touch `scope`, at most `most`.
    ///
    /// Reads the log from the disk, for some milliseconds at most.
    #[cfg(any(test, feature = "testing"))]
    pub fn changes_since(
        &self,
        after: u64,
        scope: &Pointer,
        most: usize,
    ) -> Result<RevisionsSince, StateError> {
        self.shared().changes(&RevisionQuery {
            after,
            upto: u64::MAX,
            visibility: &Visibility::whole(),
            scope,
            most,
        })
    }

    /// The number of the newest revision; the receiver wakes on every change.
    pub fn watch_revision(&self) -> watch::Receiver<u64> {
        self.inner.shared.watch_revision()
    }

    /// Returns the newest revision after `after` that changed the value at `scope`; `None` if none did.
    ///
    /// For the last few thousand revisions the answer comes from memory. For an older `after` it comes from the
    /// log, which may name a revision that rewrote the same value. For a much older one it is the last revision
    /// that is not in memory.
    pub fn newest_change(&self, scope: &Pointer, after: u64) -> Option<u64> {
        self.inner.shared.newest_change(scope, after)
    }

    /// The shared part from which views are made.
    pub(super) fn shared(&self) -> &SharedState {
        &self.inner.shared
    }

    /// The id that the database got when it was created. If it differs, cursors are void.
    pub fn database_id(&self) -> &str {
        &self.inner.database_id
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.inner.shared.path()
    }

    /// Reads once through SQLite and checks that the writer is alive; for the watchdog.
    pub async fn probe(&self) -> Result<(), StateError> {
        if self
            .inner
            .line
            .as_ref()
            .is_none_or(|line| line.jobs.is_closed())
        {
            return Err(StateError::Stopped);
        }
        let shared = Arc::clone(&self.inner.shared);
        tokio::task::spawn_blocking(move || shared.read_once())
            .await
            .unwrap_or(Err(StateError::Stopped))
    }

    async fn request_write(
        &self,
        author: &Author,
        request: WriteRequest,
    ) -> Result<u64, StateError> {
        let (answer, answered) = oneshot::channel();
        let author = author.clone();
        let job = WriteJob {
            author,
            request,
            answer,
        };
        let line = self.inner.line.as_ref().ok_or(StateError::Stopped)?;
        line.jobs.send(job).await.map_err(|_| StateError::Stopped)?;
        line.waker.wake();
        answered.await.unwrap_or(Err(StateError::Stopped))
    }

    fn open_sound(
        path: &Path,
        retention: StateLogRetention,
        rebuilt: Option<&RebuiltLog>,
    ) -> Result<Self, StateError> {
        let retention = Arc::new(Mutex::new(retention));
        let connection = schema::open(path, STEPS, rebuilt)?;
        let database_id =
            schema::database_id(&connection).map_err(|error| StateError::sqlite(path, &error))?;
        let loaded = load(path, &connection)?;
        let reader = schema::open_for_reading(path)?;
        let shared = Arc::new(SharedState::new(
            path,
            loaded.document,
            loaded.recent,
            reader,
        ));

        let (mut waiter, waker) =
            FileWaiter::new().map_err(|error| StateError::io(path, &error))?;
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        if let Err(cause) = waiter.watch(Path::new(&wal)) {
            warn!(%cause, "inotify is not available: changes by other programs are noticed within a second");
        }
        let writer = StateWriter::new(
            connection,
            Arc::clone(&shared),
            loaded.since_snapshot,
            Arc::clone(&retention),
        );
        let (jobs, waiting) = mpsc::channel(MAX_WAITING);
        let writer = thread::Builder::new()
            .name("state-writer".into())
            .spawn(move || writer.run(waiting, &waiter))
            .map_err(|error| StateError::io(path, &error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                database_id,
                retention,
                line: Some(Line { jobs, waker }),
                writer: Some(writer),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use rusqlite::Connection;
    use serde_json::json;
    use tokio::time::timeout;

    use gatewren_base::sys::{Scratch, skip};

    use super::super::author::Actor;
    use super::super::changes::Revision;
    use super::*;

    const LONG: Duration = Duration::from_mins(2);

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    fn open(scratch: &Scratch) -> State {
        State::open(&scratch.join("state.db")).unwrap()
    }

    /// Puts a value. Retries when another program holds the lock for longer than a write waits, as on a busy
    /// machine.
    async fn put(state: &State, pointer: &str, value: Value) -> u64 {
        loop {
            let value = Some(value.clone());
            match state.put(&Author::observer(), &at(pointer), value).await {
                Err(StateError::Busy(_)) => {}
                written => return written.unwrap(),
            }
        }
    }

    /// Opens another program's connection.
    fn foreign(scratch: &Scratch) -> Connection {
        let connection = Connection::open(scratch.join("state.db")).unwrap();
        connection.busy_timeout(LONG).unwrap();
        connection
    }

    /// Runs SQL as a program that first drops the triggers.
    fn without_rules(scratch: &Scratch, sql: &str) {
        let other = foreign(scratch);
        let drops = "SELECT 'DROP TRIGGER ' || name FROM sqlite_schema WHERE type = 'trigger'";
        let mut drops = other.prepare(drops).unwrap();
        let drops = drops.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let drops: Vec<_> = drops.map(Result::unwrap).collect();
        other
            .execute_batch(&format!("{}; {sql}", drops.join("; ")))
            .unwrap();
    }

    fn insert(connection: &Connection, patch: &Value) -> rusqlite::Result<usize> {
        connection.execute(
            "INSERT INTO revision (at_ms, actor, patch) VALUES (7, 'local:test', ?1)",
            [patch.to_string()],
        )
    }

    async fn document_at(state: &State, revision: u64) -> Arc<Document> {
        let mut revisions = state.watch_revision();
        timeout(LONG, revisions.wait_for(|newest| *newest >= revision))
            .await
            .unwrap()
            .unwrap();
        state.document()
    }

    fn revisions(changes: RevisionsSince) -> Vec<Revision> {
        match changes {
            RevisionsSince::Revisions { revisions, .. } => revisions,
            RevisionsSince::Resync { .. } => panic!("{changes:?}"),
        }
    }

    #[tokio::test]
    async fn how_much_is_kept_changes_while_it_is_open() {
        let scratch = Scratch::new();
        let much = StateLogRetention {
            snapshot_every: 3,
            ..StateLogRetention::default()
        };
        let state = State::open_keeping(&scratch.join("state.db"), much).unwrap();
        let oldest = || -> i64 {
            let sql = "SELECT min(id) FROM revision";
            foreign(&scratch)
                .query_row(sql, [], |row| row.get(0))
                .unwrap()
        };
        let write = async |count: std::ops::Range<u64>| {
            for n in count {
                put(&state, "/public/n", json!(n)).await;
            }
        };
        write(0..20).await;
        assert_eq!(oldest(), 1);
        state.set_retention(StateLogRetention {
            revisions: 2,
            ..much
        });
        let mut n = 20;
        while oldest() == 1 {
            assert!(n < 1_000, "nothing is trimmed");
            write(n..n + 1).await;
            n += 1;
        }
    }

    #[tokio::test]
    async fn a_new_database_holds_the_empty_document() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        let document = state.document();
        assert_eq!(
            (document.revision, &document.root),
            (0, &json!({"public": {}}))
        );
        assert_eq!(*state.watch_revision().borrow(), 0);
        let mode = fs::metadata(state.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        state.probe().await.unwrap();
    }

    #[tokio::test]
    async fn a_put_makes_a_revision_only_if_something_changes() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        assert_eq!(
            put(&state, "/public/a/b", json!({"c": 1, "d": null})).await,
            1
        );
        assert_eq!(
            put(&state, "/public/a/b", json!({"c": 1, "d": null})).await,
            1
        );
        assert_eq!(put(&state, "/public/a/b/c", json!(1)).await, 1);
        assert_eq!(put(&state, "/public/a/b/c", json!(2)).await, 2);
        let author = Author::from(Actor::Agent("7".into())).because("call-9");
        assert_eq!(state.put(&author, &at("/public/a/b/d"), None).await, Ok(3));
        assert_eq!(state.put(&author, &at("/public/a/b/d"), None).await, Ok(3));
        assert_eq!(
            state.document().root,
            json!({"public": {"a": {"b": {"c": 2}}}})
        );

        let last = revisions(state.changes_since(2, &Pointer::root(), 10).unwrap());
        assert_eq!(last.len(), 1);
        assert_eq!((last[0].id, last[0].actor.as_str()), (3, "agent:7"));
        assert_eq!(last[0].cause.as_deref(), Some("call-9"));
    }

    #[tokio::test]
    async fn a_patch_that_does_not_apply_changes_nothing() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        let patch = Patch::parse(
            r#"[{"op":"add","path":"/public/a","value":1},{"op":"remove","path":"/public/b"}]"#,
        )
        .unwrap();
        let error = state.apply(&Author::observer(), patch).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the patch was rejected, nothing was changed: \
             operation 1 (remove \"/public/b\"): path not found"
        );
        let nothing =
            r#"[{"op":"add","path":"/public/a","value":1},{"op":"remove","path":"/public/a"}]"#;
        let nothing = Patch::parse(nothing).unwrap();
        assert_eq!(state.apply(&Author::observer(), nothing).await, Ok(0));
        assert_eq!(state.document().root, json!({"public": {}}));
    }

    #[tokio::test]
    async fn the_document_is_there_again_after_a_restart() {
        let scratch = Scratch::new();
        let (id, document) = {
            let state = open(&scratch);
            for n in 0..20 {
                put(&state, "/public/n", json!(n)).await;
            }
            (state.database_id().to_owned(), state.document())
        };
        let state = open(&scratch);
        assert_eq!(state.document(), document);
        assert_eq!(state.database_id(), id);
        assert_eq!(state.newest_change(&at("/public/n"), 19), Some(20));
        assert_eq!(put(&state, "/public/n", json!(20)).await, 21);
    }

    #[tokio::test]
    async fn the_bell_rings_for_another_connection() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        let other = foreign(&scratch);
        insert(
            &other,
            &json!([{"op": "add", "path": "/public/x", "value": 1}]),
        )
        .unwrap();
        let document = document_at(&state, 1).await;
        assert_eq!(document.root, json!({"public": {"x": 1}}));
        assert_eq!(put(&state, "/public/x", json!(2)).await, 2);
        assert_eq!(state.newest_change(&at("/public/x"), 0), Some(2));
    }

    #[tokio::test]
    async fn the_bell_rings_for_the_sqlite3_program() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        let sql = "BEGIN IMMEDIATE;
            INSERT INTO revision (id, at_ms, actor, patch)
            SELECT coalesce(max(id), 0) + 1, 7, 'local:shell',
                   '[{\"op\":\"add\",\"path\":\"/public/hello\",\"value\":null}]' FROM revision;
            COMMIT;";
        let ran = Command::new("sqlite3").arg(state.path()).arg(sql).output();
        let Ok(ran) = ran else {
            skip("the program sqlite3 is not installed");
            return;
        };
        assert!(ran.status.success(), "{ran:?}");
        let document = document_at(&state, 1).await;
        assert_eq!(document.root, json!({"public": {"hello": null}}));
        assert_eq!(document.at_ms, 7);
    }

    #[tokio::test]
    async fn a_foreign_revision_that_does_not_apply_is_a_number_and_nothing_else() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        let other = foreign(&scratch);
        for patch in [
            json!([{"op": "add", "path": "/public/x", "value": 1}]),
            json!([{"op": "add", "path": "/public/y", "value": 1},
                   {"op": "test", "path": "/public/x", "value": 2}]),
            json!({"not": "a patch"}),
            json!([{"op": "move", "from": "/public/x", "path": "/public/z"}]),
            json!([{"op": "remove", "path": ""}]),
        ] {
            insert(&other, &patch).unwrap();
        }
        let bytes = "INSERT INTO revision (at_ms, actor, patch)
                     VALUES (-1, CAST(x'ff' AS TEXT), CAST(x'5b22ff225d' AS TEXT))";
        other.execute(bytes, []).unwrap();
        insert(
            &other,
            &json!([{"op": "replace", "path": "/public/x", "value": 3}]),
        )
        .unwrap();

        let document = document_at(&state, 7).await;
        assert_eq!(document.root, json!({"public": {"x": 3}}));
        assert_eq!(state.newest_change(&at("/public/y"), 0), None);
        let answer = revisions(state.changes_since(0, &at("/public"), 10).unwrap());
        assert_eq!(answer.iter().map(|r| r.id).collect::<Vec<_>>(), [1, 7]);

        drop(state);
        assert_eq!(*open(&scratch).document(), *document);
    }

    #[test]
    fn the_rules_of_the_log_hold_for_every_program() {
        let scratch = Scratch::new();
        let _state = open(&scratch);
        let other = foreign(&scratch);
        let patch = json!([{"op": "add", "path": "/public/x", "value": 1}]);
        insert(&other, &patch).unwrap();
        insert(&other, &patch).unwrap();
        for sql in [
            "INSERT INTO revision VALUES (4, 0, 'local:x', NULL, '[]')",
            "INSERT INTO revision VALUES (2, 0, 'local:x', NULL, '[]')",
            "INSERT OR REPLACE INTO revision VALUES (2, 0, 'local:x', NULL, '[]')",
            "INSERT INTO revision VALUES (3, 0, 'local:x', NULL, 'no json')",
            "INSERT INTO revision VALUES (3, 'today', 'local:x', NULL, '[]')",
            "UPDATE revision SET actor = 'owner'",
            "UPDATE snapshot SET document = '{}'",
            "INSERT INTO snapshot VALUES (99, '{}')",
            "INSERT OR REPLACE INTO snapshot VALUES (0, '{}')",
            "DELETE FROM snapshot",
            "DELETE FROM revision",
            "DELETE FROM revision WHERE id = 1",
            "DELETE FROM revision WHERE id = 2",
            "INSERT INTO revision VALUES (3, 0, 'local:x', NULL, json_quote(hex(zeroblob(2200000))))",
            "INSERT INTO revision VALUES (3, 0, hex(zeroblob(200)), NULL, '[]')",
            "INSERT INTO revision VALUES (3, 0, 'local:x', hex(zeroblob(200)), '[]')",
        ] {
            assert!(other.execute(sql, []).is_err(), "{sql}");
        }
        insert(&other, &patch).unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_writers_leave_no_gap_and_lose_nothing() {
        const EACH: u64 = 1000;
        let scratch = Scratch::new();
        let state = open(&scratch);
        let other = foreign(&scratch);
        let theirs = tokio::task::spawn_blocking(move || {
            for n in 0..EACH {
                let path = format!("/public/theirs{}", n % 50);
                insert(&other, &json!([{"op": "add", "path": path, "value": n}])).unwrap();
            }
        });
        for n in 0..EACH {
            put(&state, &format!("/public/ours{}", n % 50), json!(n)).await;
        }
        theirs.await.unwrap();
        let document = document_at(&state, 2 * EACH).await;
        assert_eq!(document.revision, 2 * EACH);
        for n in 0..50 {
            for whose in ["ours", "theirs"] {
                let found = at(&format!("/public/{whose}{n}"))
                    .get(&document.root)
                    .cloned();
                assert_eq!(found, Some(json!(EACH - 50 + n)), "{whose}{n}");
            }
        }
        let mut replayed = json!({"public": {}});
        let all = revisions(
            state
                .changes_since(0, &Pointer::root(), usize::MAX)
                .unwrap(),
        );
        for (revision, id) in all.iter().zip(1..) {
            assert_eq!(revision.id, id);
            revision.patch.apply(&mut replayed).unwrap();
        }
        assert_eq!(replayed, document.root);
    }

    #[tokio::test]
    async fn a_cursor_goes_on_or_is_told_to_begin_again() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        for n in 0..10 {
            put(&state, "/public/a", json!(n)).await;
            put(&state, "/public/b", json!(n)).await;
        }
        let first = state.changes_since(0, &at("/public/b"), 4).unwrap();
        let RevisionsSince::Revisions {
            revisions: found,
            upto,
            more,
        } = first
        else {
            panic!("{first:?}")
        };
        assert_eq!(found.iter().map(|r| r.id).collect::<Vec<_>>(), [2, 4, 6, 8]);
        assert!(more && (8..10).contains(&upto), "{upto}");
        let rest = state.changes_since(upto, &at("/public/b"), 100).unwrap();
        assert!(
            matches!(
                rest,
                RevisionsSince::Revisions {
                    upto: 20,
                    more: false,
                    ..
                }
            ),
            "{rest:?}"
        );
        assert_eq!(revisions(rest).len(), 6);
        let none = state.changes_since(20, &at("/public/b"), 100).unwrap();
        assert!(
            matches!(
                none,
                RevisionsSince::Revisions {
                    upto: 20,
                    more: false,
                    ..
                }
            ),
            "{none:?}"
        );

        let later = state.changes_since(21, &at("/public"), 1).unwrap();
        assert_eq!(later, RevisionsSince::Resync { floor: 1, upto: 20 });
        without_rules(&scratch, "DELETE FROM revision WHERE id <= 15");
        let trimmed = state.changes_since(14, &at("/public"), 1).unwrap();
        assert_eq!(
            trimmed,
            RevisionsSince::Resync {
                floor: 16,
                upto: 20
            }
        );
        assert!(matches!(
            state.changes_since(15, &at("/public"), 1),
            Ok(RevisionsSince::Revisions { .. })
        ));
    }

    #[tokio::test]
    async fn the_log_is_compacted_and_the_document_stays() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        let other = foreign(&scratch);
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        for n in 0..9000 {
            insert(
                &other,
                &json!([{"op": "add", "path": "/public/n", "value": n}]),
            )
            .unwrap();
        }
        other.execute_batch("COMMIT").unwrap();
        document_at(&state, 9000).await;
        put(&state, "/public/n", json!("mine")).await;
        let count = |sql: &str| {
            other
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        assert_eq!(count("SELECT max(revision) FROM snapshot"), 9000);
        // By the old timestamps of the test's rows they are due, but not the ones after the older snapshot.
        assert_eq!(count("SELECT min(id) FROM revision"), 1);
        drop(state);
        let state = open(&scratch);
        assert_eq!(state.document().revision, 9001);
        for n in 0..5000 {
            insert(
                &other,
                &json!([{"op": "add", "path": "/public/n", "value": n}]),
            )
            .unwrap();
        }
        let document = document_at(&state, 14_001).await;
        put(&state, "/public/n", json!("mine")).await;
        assert_eq!(count("SELECT min(id) FROM revision"), 9001);
        assert_eq!(count("SELECT count(*) FROM snapshot"), 2);
        drop(state);
        let again = open(&scratch).document();
        assert_eq!(
            (again.revision, &again.root),
            (14_002, &json!({"public": {"n": "mine"}}))
        );
        assert_eq!(document.root, json!({"public": {"n": 4999}}));
    }

    #[test]
    fn a_file_that_is_no_use_says_why_and_stays_as_it_is() {
        let scratch = Scratch::new();
        let path = scratch.join("state.db");

        foreign(&scratch)
            .execute_batch("CREATE TABLE photos (id)")
            .unwrap();
        let error = State::open(&path).unwrap_err();
        assert_eq!(error, StateError::NotOurs(path.clone()));
        fs::remove_file(&path).unwrap();

        drop(open(&scratch));
        foreign(&scratch)
            .execute("UPDATE meta SET value = '99' WHERE key = 'schema'", [])
            .unwrap();
        let error = State::open(&path).unwrap_err().to_string();
        let known = STEPS.len();
        let words = format!(
            "the database was written by a newer gatewren (schema 99, this version supports up to \
             {known}): install that version or move the file away"
        );
        assert!(error.ends_with(&words), "{error}");

        let error = State::open(&scratch.join("missing/state.db")).unwrap_err();
        assert!(matches!(error, StateError::Unreadable { .. }), "{error}");
        fs::create_dir(scratch.join("directory")).unwrap();
        let error = State::open(&scratch.join("directory")).unwrap_err();
        assert!(matches!(error, StateError::Unreadable { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_damaged_database_is_moved_aside_and_built_anew() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        put(&state, "/public/a", json!("x".repeat(100_000))).await;
        let old_id = state.database_id().to_owned();
        drop(state);
        let path = scratch.join("state.db");
        let emptied = foreign(&scratch);
        emptied
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        drop(emptied);
        let mut bytes = fs::read(&path).unwrap();
        bytes[4096..60_000].fill(0x5a);
        fs::write(&path, bytes).unwrap();

        let state = open(&scratch);
        assert_eq!(state.document().root, json!({"public": {}}));
        assert_ne!(state.database_id(), old_id);
        let aside = fs::read_dir(scratch.path()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("state.db.damaged-")
        });
        assert!(aside.count() >= 1);
        let first = state.document().revision;
        assert!(
            first > 1_700_000_000_000,
            "above every number that was given"
        );
        assert_eq!(put(&state, "/public/a", json!(1)).await, first + 1);
        let (floor, upto) = (first, first + 1);
        for old in [1, 500, first - 2] {
            let answer = state.changes_since(old, &Pointer::root(), 10).unwrap();
            assert_eq!(
                answer,
                RevisionsSince::Resync { floor, upto },
                "after {old}"
            );
            assert!(state.newest_change(&at("/public/b"), old).is_some());
        }
        insert(&foreign(&scratch), &json!([])).unwrap();
        let note = "SELECT value FROM meta WHERE key = 'rebuilt'";
        let note: String = foreign(&scratch)
            .query_row(note, [], |row| row.get(0))
            .unwrap();
        let note: Value = serde_json::from_str(&note).unwrap();
        assert!(Path::new(note["aside"].as_str().unwrap()).exists());
        assert!(note["cause"].is_string() && note["at_ms"] == json!(first));
    }

    #[tokio::test]
    async fn what_is_no_database_is_moved_aside_as_it_is() {
        let scratch = Scratch::new();
        let text = "a torn first page, long enough to be read as a header. ".repeat(9);
        fs::write(scratch.join("state.db"), &text).unwrap();
        let state = open(&scratch);
        assert_eq!(state.document().root, json!({"public": {}}));
        let names = fs::read_dir(scratch.path()).unwrap();
        let aside = names
            .map(|entry| entry.unwrap().path())
            .find(|path| path.to_string_lossy().contains(".damaged-"));
        assert_eq!(fs::read_to_string(aside.unwrap()).unwrap(), text);
    }

    #[tokio::test]
    async fn a_log_with_a_hole_is_damaged() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        for n in 0..5 {
            put(&state, "/public/a", json!(n)).await;
        }
        drop(state);
        without_rules(&scratch, "DELETE FROM revision WHERE id = 3");
        let state = open(&scratch);
        assert_eq!(state.document().root, json!({"public": {}}));
        assert!(
            state.document().revision > 5,
            "numbers are never given twice"
        );
    }

    /// Not a measurement, only a bound: `--nocapture` prints the figures. Without the file notification, a commit
    /// would be found only by polling, within a second, and most of these would take nearly that long.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn another_programs_commit_is_heard_at_once() {
        let scratch = Scratch::new();
        let state = open(&scratch);
        let other = foreign(&scratch);
        let mut revisions = state.watch_revision();
        let mut waits = Vec::new();
        for n in 1..=200_u64 {
            insert(
                &other,
                &json!([{"op": "add", "path": "/public/n", "value": n}]),
            )
            .unwrap();
            let committed = Instant::now();
            timeout(LONG, revisions.wait_for(|newest| *newest >= n))
                .await
                .unwrap()
                .unwrap();
            waits.push(committed.elapsed());
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        waits.sort();
        eprintln!(
            "commit to bell: median {:?}, p99 {:?}",
            waits[100], waits[198]
        );
        assert!(waits[100] < Duration::from_millis(500), "{:?}", waits[100]);
    }
}
