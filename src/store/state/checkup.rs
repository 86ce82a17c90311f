//! Checks the state database against its rules, read-only.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use super::error::StateError;
use super::external_open::differences;
use super::history::{History, KeptRevisions, kept_revisions};
use super::log;
use super::migration;
use super::patch::Patch;
use super::replay::{ReplayStep, oldest_snapshot, replay, snapshot_before};

/// The most findings of one kind that are reported one by one.
const MAX_TOLD: usize = 20;

/// The result of checking a database.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Checkup {
    /// Violations of the rules; empty if the database is sound.
    pub problems: Vec<String>,
    /// What the rules allow but an owner may want to know.
    pub remarks: Vec<String>,
    /// The version of the schema.
    pub schema: u64,
    /// The id that the database got when it was created.
    pub database: String,
    /// The range of revisions that is kept.
    pub kept: Option<KeptRevisions>,
    /// Rows of the log.
    pub revisions: u64,
    /// Rows that do not apply and so change nothing.
    pub refused: u64,
    /// Snapshots that are kept.
    pub snapshots: u64,
    /// The size of the newest document as JSON, in bytes.
    pub document_bytes: u64,
    /// The total size of all patches, in bytes.
    pub patch_bytes: u64,
    /// The size of the file, in bytes.
    pub file_bytes: u64,
    /// The size of the write-ahead log that SQLite keeps beside it, in bytes.
    pub wal_bytes: u64,
}

/// Checks the whole database at `path`, with or without a running server.
///
/// An error means that the database cannot be read. Damage inside it is among the problems.
pub fn checkup(path: &Path) -> Result<Checkup, StateError> {
    let mut checkup = Checkup {
        file_bytes: bytes(path, ""),
        wal_bytes: bytes(path, "-wal"),
        ..Checkup::default()
    };
    match History::open(path).and_then(|history| checkup.examine(&history)) {
        Err(StateError::Damaged { cause, .. }) => checkup.problems.push(cause),
        looked => looked?,
    }
    Ok(checkup)
}

impl Checkup {
    /// Returns whether nothing violates the rules.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn examine(&mut self, history: &History) -> Result<(), StateError> {
        let to_error = |error: rusqlite::Error| history.read_error(&error);
        history.database_id().clone_into(&mut self.database);
        // One transaction gives a consistent view: a server may be writing.
        let view = history.view()?;
        self.schema = migration::version(&view)
            .map_err(to_error)?
            .unwrap_or_default();
        let pages = run_quick_check(&view).map_err(to_error)?;
        let pages_are_sound = pages.is_empty();
        self.problems.extend(pages);
        if !pages_are_sound {
            return Ok(());
        }
        self.problems.extend(differences(&view).map_err(to_error)?);
        self.kept = Some(kept_revisions(&view).map_err(to_error)?);
        self.count(&view).map_err(to_error)?;
        self.problems.extend(gaps(&view).map_err(to_error)?);
        self.read_old_rows(&view).map_err(to_error)?;
        self.replay(history.path(), &view)
    }

    fn count(&mut self, view: &Connection) -> rusqlite::Result<()> {
        let count = |sql: &str| -> rusqlite::Result<u64> {
            let count: i64 = view.query_row(sql, [], |row| row.get(0))?;
            Ok(u64::try_from(count).unwrap_or_default())
        };
        self.revisions = count("SELECT count(*) FROM revision")?;
        self.snapshots = count("SELECT count(*) FROM snapshot")?;
        self.patch_bytes =
            count("SELECT coalesce(sum(length(CAST(patch AS BLOB))), 0) FROM revision")?;
        Ok(())
    }

    /// Reads the rows before the oldest snapshot; their documents are no longer available.
    fn read_old_rows(&mut self, view: &Connection) -> rusqlite::Result<()> {
        let oldest = self.kept.map_or(0, |kept| kept.oldest_document);
        let mut none = Vec::new();
        log::walk(view, 0..=oldest, &mut |row| {
            let is_patch = !row.oversize && Patch::parse(&row.patch).is_ok();
            none.extend((!is_patch).then_some(row.id));
            ControlFlow::Continue(())
        })?;
        for id in none {
            self.refuse(id, "it is not a patch");
        }
        Ok(())
    }

    /// Applies every revision from the oldest snapshot on, and compares the result with each later snapshot.
    fn replay(&mut self, path: &Path, view: &Connection) -> Result<(), StateError> {
        let to_error = |error: rusqlite::Error| StateError::sqlite(path, &error);
        let oldest = oldest_snapshot(path, view)?;
        let others = snapshots_after(view, oldest.revision).map_err(to_error)?;
        let noted = noted_refusals(view, oldest.revision).map_err(to_error)?;
        let mut differ = Vec::new();
        let mut applied_after_all = Vec::new();
        let newest = replay(path, view, &oldest, u64::MAX, &mut |step| {
            let ReplayStep {
                row,
                outcome,
                document,
            } = step;
            match outcome {
                Err(why) => self.refuse(row.id, &why.to_string()),
                Ok(_) if noted.contains(&row.id) => applied_after_all.push(row.id),
                Ok(_) => {}
            }
            if others.contains(&row.id) {
                let snapshot = snapshot_before(path, view, row.id);
                let same = matches!(snapshot, Ok(Some(s)) if s.root == document.root);
                differ.extend((!same).then_some(row.id));
            }
        })?;
        self.problems.extend(differ.iter().map(|id| {
            format!(
                "the snapshot of revision {id} differs from the result of the revisions before it"
            )
        }));
        let after_all = applied_after_all.iter().take(MAX_TOLD);
        self.problems.extend(
            after_all.map(|id| format!("revision {id} is recorded as invalid, but it applies")),
        );
        let text = newest.root.to_string();
        self.document_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn refuse(&mut self, id: u64, why: &str) {
        self.refused += 1;
        if self.remarks.len() < MAX_TOLD {
            let remark = format!("revision {id} is invalid and was skipped: {why}");
            self.remarks.push(remark);
        }
    }
}

fn bytes(path: &Path, end: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    fs::metadata(name).map_or(0, |file| file.len())
}

fn run_quick_check(view: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!("PRAGMA quick_check({MAX_TOLD})");
    let mut lines = view.prepare(&sql)?;
    let lines = lines.query_map([], |row| row.get::<_, String>(0))?;
    let mut lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    lines.retain(|line| line != "ok");
    Ok(lines)
}

/// Finds missing revisions: between two rows, or between a snapshot and the row after it.
fn gaps(view: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!(
        "SELECT id FROM (SELECT id, lag(id) OVER (ORDER BY id) AS before FROM revision)
         WHERE id <> before + 1 OR id < 1 LIMIT {MAX_TOLD}"
    );
    let mut found = view.prepare(&sql)?;
    let found = found.query_map([], |row| row.get::<_, i64>(0))?;
    let found: Vec<i64> = found.collect::<Result<_, _>>()?;
    Ok(found
        .iter()
        .map(|id| format!("the revision before {id} is missing"))
        .collect())
}

fn snapshots_after(view: &Connection, revision: u64) -> rusqlite::Result<BTreeSet<u64>> {
    let mut ids = view.prepare("SELECT revision FROM snapshot WHERE revision > ?1")?;
    let after = i64::try_from(revision).unwrap_or(i64::MAX);
    let ids = ids.query_map([after], |row| row.get::<_, i64>(0))?;
    let ids: Vec<i64> = ids.collect::<Result<_, _>>()?;
    Ok(ids
        .into_iter()
        .filter_map(|id| u64::try_from(id).ok())
        .collect())
}

/// Returns the revisions after `revision` that are noted as not applying.
fn noted_refusals(view: &Connection, revision: u64) -> rusqlite::Result<BTreeSet<u64>> {
    let mut notes = view
        .prepare("SELECT CAST(substr(key, 9) AS INTEGER) FROM meta WHERE key LIKE 'refused:%'")?;
    let notes = notes.query_map([], |row| row.get::<_, i64>(0))?;
    let notes: Vec<i64> = notes.collect::<Result<_, _>>()?;
    let notes = notes.into_iter().filter_map(|id| u64::try_from(id).ok());
    Ok(notes.filter(|id| *id > revision).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use gatewren_base::sys::Scratch;

    use super::super::store::State;
    use super::super::testing::{add, database, foreign, insert, without_rules};
    use super::*;

    /// Returns the problems that the checkup finds after another program has done this to a database of ten
    /// revisions.
    fn problems_after(doing: &str) -> Vec<String> {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        for n in 1..=10 {
            add(&other, "/public/n", &json!(n));
        }
        other
            .execute(
                "INSERT INTO snapshot VALUES (5, '{\"public\":{\"n\":5}}')",
                [],
            )
            .unwrap();
        without_rules(&other);
        other.execute_batch(doing).unwrap();
        checkup(&path).unwrap().problems
    }

    #[test]
    fn a_sound_database_is_sound_and_its_figures_are_told() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/n", &json!(1));
        insert(
            &other,
            "local:x",
            &json!([{"op": "remove", "path": "/public/none"}]),
        );
        insert(&other, "local:x", &json!("no patch"));
        let state = State::open(&path).unwrap();
        let checkup = checkup(&path).unwrap();
        assert!(checkup.is_sound(), "{:?}", checkup.problems);
        assert_eq!(
            (checkup.revisions, checkup.refused, checkup.snapshots),
            (3, 2, 1)
        );
        assert_eq!(checkup.document_bytes, r#"{"public":{"n":1}}"#.len() as u64);
        assert_eq!(checkup.remarks.len(), 2, "{:?}", checkup.remarks);
        assert_eq!(checkup.database, state.database_id());
        assert!(checkup.file_bytes > 0 && checkup.patch_bytes > 50);
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let rules = problems_after("");
        assert!(
            rules
                .iter()
                .all(|problem| problem.contains("trimmed_from_the_oldest")),
            "{rules:?}"
        );
        for (doing, words) in [
            ("DELETE FROM revision WHERE id = 7", "7 is missing"),
            (
                "DELETE FROM revision WHERE id = 3; DELETE FROM snapshot WHERE revision = 0",
                "before 4",
            ),
            (
                "DROP TRIGGER revision_is_never_updated; UPDATE revision SET patch = '[]' WHERE id = 5",
                "the snapshot of revision 5",
            ),
            (
                "DROP TRIGGER revision_has_the_next_id",
                "revision_has_the_next_id",
            ),
            (
                "INSERT INTO meta VALUES ('refused:8', 'x')",
                "revision 8 is recorded",
            ),
            ("DELETE FROM snapshot", "no snapshot"),
            (
                "DROP TRIGGER snapshot_is_never_updated;
              UPDATE snapshot SET document = '[]' WHERE revision = 0",
                "not a JSON object",
            ),
        ] {
            let problems = problems_after(doing);
            assert!(
                problems.iter().any(|problem| problem.contains(words)),
                "{doing}: {problems:?}"
            );
        }
    }

    #[test]
    fn damaged_pages_are_a_problem_and_a_file_of_somebody_else_is_an_error() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/n", &json!("x".repeat(100_000)));
        other
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        drop(other);
        let mut bytes = fs::read(&path).unwrap();
        bytes[4096..60_000].fill(0x5a);
        fs::write(&path, bytes).unwrap();
        let report = checkup(&path);
        assert!(report.is_ok_and(|report| !report.is_sound()));
        fs::write(&path, "text".repeat(999)).unwrap();
        assert!(matches!(checkup(&path), Err(StateError::NotADatabase(_))));
    }
}
