//! Properties of every history, checked on random ones: the document, the cursors and the log agree.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::time::timeout;

use gatewren_base::sys::Scratch;

use super::author::Author;
use super::changes::{Revision, RevisionsSince};
use super::integrity::{ReplayedDatabase, TestRng, rounds};
use super::log::StateLogRetention;
use super::operation::PatchOperation;
use super::patch::Patch;
use super::pointer::Pointer;
use super::store::State;

/// Longer than any step takes on any machine.
const LONG: Duration = Duration::from_mins(5);

/// The writes in one history.
const STEPS: u64 = 80;

/// Small limits, so that every history is compacted and trimmed.
const RETENTION: StateLogRetention = StateLogRetention {
    age: Duration::from_hours(1),
    revisions: 40,
    snapshot_every: 9,
};

/// Rows of other programs that are not patches, or that gatewren rejects.
const GARBAGE: [&str; 6] = [
    "null",
    "[1]",
    r#"{"op":"add","path":"/public/a","value":1}"#,
    r#"[{"op":"add","path":"/public/a","value":1},{"op":"move","from":"/public","path":"/x"}]"#,
    r#"[{"op":"remove","path":""}]"#,
    r#"[{"op":"add","path":"/public/b","value":1e999}]"#,
];

/// A database with random writers.
struct History {
    rng: TestRng,
    scratch: Scratch,
    state: State,
    other: Connection,
    /// Changes after this revision are known exactly.
    known_after: u64,
}

impl History {
    fn new(seed: u64) -> Self {
        let scratch = Scratch::new();
        let path = scratch.join("state.db");
        let state = open(&path);
        let other = Connection::open(&path).unwrap();
        other.busy_timeout(LONG).unwrap();
        Self {
            rng: TestRng::new(seed),
            scratch,
            state,
            other,
            known_after: 0,
        }
    }

    async fn step(&mut self) {
        let document = self.state.document();
        match self.rng.below(10) {
            0..4 => {
                let patch = Patch::from_value(self.rng.patch(&document.root)).unwrap();
                // Whether it fails or not: the log decides.
                let _ = self.state.apply(&Author::observer(), patch).await;
            }
            4 | 5 => {
                let at = Pointer::parse(&self.rng.place(&document.root)).unwrap();
                let value = match self.rng.below(3) {
                    0 => None,
                    _ => Some(self.rng.value(3)),
                };
                let _ = self.state.put(&Author::observer(), &at, value).await;
            }
            6..9 => {
                let patch = self.rng.patch(&document.root).to_string();
                self.write_foreign(&patch);
            }
            _ => {
                let patch = *self.rng.pick(&GARBAGE);
                self.write_foreign(patch);
            }
        }
        if self.rng.below(25) == 0 {
            self.reopen().await;
        }
    }

    fn write_foreign(&self, patch: &str) {
        let sql = "INSERT INTO revision (at_ms, actor, patch) VALUES (?1, 'local:test', ?2)";
        let now = gatewren_base::sys::now_ms().cast_signed();
        self.other.execute(sql, (now, patch)).unwrap();
    }

    /// Reopens as after a restart: fewer revisions are in memory.
    async fn reopen(&mut self) {
        // Waits until no compaction is pending before the newest snapshot is looked up.
        self.replay_settled().await;
        let sql = "SELECT max(revision) FROM snapshot";
        let snapshot = self.other.query_row(sql, [], |row| row.get::<_, i64>(0));
        self.known_after = u64::try_from(snapshot.unwrap()).unwrap();
        self.state = open(&self.scratch.join("state.db"));
    }

    /// Replays the rows, once the state has read the newest.
    async fn replay_settled(&self) -> ReplayedDatabase {
        let newest = "SELECT max(coalesce((SELECT max(id) FROM revision), 0),
                                 (SELECT max(revision) FROM snapshot))";
        let newest = self.other.query_row(newest, [], |row| row.get::<_, i64>(0));
        let newest = u64::try_from(newest.unwrap()).unwrap();
        let mut revisions = self.state.watch_revision();
        let heard = timeout(LONG, revisions.wait_for(|known| *known >= newest));
        assert_eq!(*heard.await.unwrap().unwrap(), newest);
        // The put is answered only after a pending compaction is done.
        let (root, same) = (Pointer::root(), self.state.document().root.clone());
        let author = Author::observer();
        let written = self.state.put(&author, &root, Some(same));
        assert_eq!(written.await, Ok(newest));
        ReplayedDatabase::of(self.state.path())
    }

    async fn check(&mut self) {
        let found = self.replay_settled().await;
        let document = self.state.document();
        let (newest, root) = found.newest();
        assert_eq!((document.revision, &document.root), (*newest, root));

        for _ in 0..40 {
            let scope = self.scope(&found);
            let after = self.rng.below(newest + 3);
            self.newest_change_agrees(&found, &scope, after);
            self.changes_agree(&found, &scope, after);
        }
    }

    /// Returns a place that is or was in the document.
    fn scope(&mut self, found: &ReplayedDatabase) -> Pointer {
        let (_, document) = self.rng.pick(&found.documents).clone();
        Pointer::parse(&self.rng.place(&document)).unwrap()
    }

    fn newest_change_agrees(&self, found: &ReplayedDatabase, scope: &Pointer, after: u64) {
        let newest_change = self.state.newest_change(scope, after);
        let newest = found.newest().0;
        if after < found.documents[0].0 {
            // Trimmed: a revision that is no longer in memory causes a needless notification rather than a missed
            // one.
            let known = after >= self.known_after;
            assert!(newest_change.is_some() || known, "{scope} after {after}");
        } else if after > newest {
            assert_eq!(
                newest_change,
                Some(newest),
                "{after} is of another database"
            );
        } else {
            let changed = changed_revisions(found, scope, after).last().copied();
            // A revision that is no longer known exactly may be reported needlessly, but must not be missed.
            assert!(
                newest_change >= changed,
                "{scope} after {after}: {newest_change:?}"
            );
            if after >= self.known_after {
                assert_eq!(newest_change, changed, "{scope} after {after}");
            }
        }
    }

    fn changes_agree(&mut self, found: &ReplayedDatabase, scope: &Pointer, after: u64) {
        let newest = found.newest().0;
        let floor = found.documents[0].0 + 1;
        let most = usize::try_from(1 + self.rng.below(10)).unwrap();
        let mut returned: Vec<Revision> = Vec::new();
        let mut cursor = after;
        loop {
            match self.state.changes_since(cursor, scope, most).unwrap() {
                RevisionsSince::Resync { floor: f, upto } => {
                    let out_of_reach = after + 1 < floor || after > newest;
                    assert!(out_of_reach, "{after} is between {floor} and {newest}");
                    assert_eq!((f, upto), (floor, newest));
                    return;
                }
                RevisionsSince::Revisions {
                    revisions,
                    upto,
                    more,
                } => {
                    assert!(revisions.len() <= most && (upto > cursor || !more));
                    returned.extend(revisions);
                    cursor = upto;
                    if !more {
                        break;
                    }
                }
            }
        }
        assert_eq!(cursor, newest);
        for id in changed_revisions(found, scope, after) {
            let is_returned = returned.iter().any(|revision| revision.id == id);
            assert!(
                is_returned || may_have_moved(found, scope, id),
                "{scope} changed with revision {id}, asked after {after}: {returned:?}"
            );
        }
        for revision in &returned {
            if !may_have_moved(found, scope, revision.id) {
                leads_on(found, scope, revision);
            }
        }
    }
}

fn open(path: &Path) -> State {
    State::open_keeping(path, RETENTION).unwrap()
}

fn document(found: &ReplayedDatabase, id: u64) -> &Value {
    let at = usize::try_from(id - found.documents[0].0).unwrap();
    assert_eq!(found.documents[at].0, id);
    &found.documents[at].1
}

/// Returns the revisions after `after` that changed the value at `scope`, by comparing the documents.
fn changed_revisions(found: &ReplayedDatabase, scope: &Pointer, after: u64) -> Vec<u64> {
    (after + 1..=found.newest().0)
        .filter(|id| scope.get(document(found, id - 1)) != scope.get(document(found, *id)))
        .collect()
}

/// Returns whether the revision may have moved elements of a list above `scope` that is an object now. Keys and
/// indexes look alike in the log, and a value that is an object now counts as one then.
fn may_have_moved(found: &ReplayedDatabase, scope: &Pointer, id: u64) -> bool {
    let at = usize::try_from(id - found.patches[0].0).unwrap();
    let patch = Patch::parse(&found.patches[at].1).unwrap();
    patch.operations().iter().any(|operation| {
        let Some((list, key)) = operation.path().split_last() else {
            return false;
        };
        let is_object = list.get(&found.newest().1).is_some_and(Value::is_object);
        let is_index = key == "-" || key.bytes().all(|byte| byte.is_ascii_digit());
        is_object && is_index && list.covers(scope)
    })
}

/// Asserts that the scoped patch turns the old value at `scope` into the new one, unless elements of a list above
/// have moved.
fn leads_on(found: &ReplayedDatabase, scope: &Pointer, revision: &Revision) {
    if scope.tokens().iter().any(|token| token == "-") {
        // `-` is a key like any other, or the end of a list, which never has a value.
        return;
    }
    let part = |id| {
        let value = scope.get(document(found, id)).cloned();
        let part = value.map(|value| ("part".to_owned(), value));
        part.into_iter().collect::<Value>()
    };
    let top = Pointer::root().child("part");
    let mut held = part(revision.id - 1);
    for operation in revision.patch.operations() {
        let Some(way) = scope.way_to(operation.path()) else {
            return;
        };
        let removes = matches!(operation, PatchOperation::Remove { .. });
        if removes && way.tokens().is_empty() && is_element(found, scope, revision.id) {
            return;
        }
        let path = top.join(&way);
        let operation = match operation.clone() {
            // An operation that was cut down to the scope may find nothing there.
            PatchOperation::Remove { .. } if way.tokens().is_empty() && held == json!({}) => {
                continue;
            }
            PatchOperation::Remove { .. } => PatchOperation::Remove { path },
            PatchOperation::Add { value, .. } => PatchOperation::Add { path, value },
            PatchOperation::Replace { value, .. } => PatchOperation::Replace { path, value },
            PatchOperation::Test { .. } => panic!("a test changes nothing: {revision:?}"),
        };
        operation.apply(&mut held).unwrap();
    }
    assert_eq!(held, part(revision.id), "{scope}: {revision:?}");
}

/// Returns whether `scope` may have been in a list around a revision: when it is removed, another element takes its
/// place.
fn is_element(found: &ReplayedDatabase, scope: &Pointer, id: u64) -> bool {
    let list = scope.split_last().map(|(list, _)| list).unwrap_or_default();
    let is_list = |id| list.get(document(found, id)).is_some_and(Value::is_array);
    is_list(id - 1) || is_list(id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn document_cursors_and_log_tell_the_same_of_any_history() {
    let (rounds, seed) = rounds("GATEWREN_HISTORIES", 6);
    for round in 0..rounds {
        let mut history = History::new(seed + round);
        for step in 1..=STEPS {
            history.step().await;
            if step % 20 == 0 {
                history.check().await;
            }
        }
    }
}
