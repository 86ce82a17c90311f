//! Writes one revision from a short-lived program, as the man page describes.

use std::path::Path;

use rusqlite::TransactionBehavior;

use gatewren_base::sys::now_ms;

use super::author::Author;
use super::author_seal::{AuthorKey, NewRevision};
use super::document::Draft;
use super::error::StateError;
use super::external_open::open_to_add;
use super::log::{self, MAX_PATCH_BYTES};
use super::patch::Patch;
use super::replay::{damaged, replay, snapshot_before};
use super::schema;

/// Where a change is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRevision {
    /// The revision that contains it.
    pub revision: u64,
    /// The id of the database.
    pub database_id: String,
}

/// Applies `patch` to the database in `file` as one revision, whole or not at all, with or without a running
/// server. A patch that changes nothing makes no revision.
///
/// The file is neither created nor repaired: moving a damaged one aside is up to the server.
pub fn apply_once(
    file: &Path,
    author: &Author,
    patch: &Patch,
    key: Option<&[u8; 32]>,
) -> Result<WrittenRevision, StateError> {
    let to_error = |error| StateError::sqlite(file, &error);
    let mut connection = open_to_add(file)?;
    let database_id = schema::database_id(&connection).map_err(to_error)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(to_error)?;
    let snapshot = snapshot_before(file, &transaction, u64::MAX)?
        .ok_or_else(|| damaged(file, "it has no snapshot"))?;
    let document = replay(file, &transaction, &snapshot, u64::MAX, &mut |_| {})?;
    let (before, at_ms) = (document.revision, now_ms());
    let id = before + 1;
    let mut draft = Draft::of(document);
    draft.advance(id, at_ms, patch.clone())?;
    if !draft.differs() {
        return Ok(WrittenRevision {
            revision: before,
            database_id,
        });
    }
    let text = serde_json::to_string(patch).unwrap_or_default();
    if text.len() > MAX_PATCH_BYTES {
        return Err(StateError::TooLarge {
            bytes: text.len(),
            most: MAX_PATCH_BYTES,
        });
    }
    log::insert(&transaction, id, at_ms, author, &text).map_err(to_error)?;
    if let Some(key) = key {
        let revision = NewRevision {
            id,
            at_ms,
            actor: &author.actor.to_string(),
            cause: author.cause.as_deref(),
            patch: &text,
        };
        let key = AuthorKey::new(key, &database_id);
        key.seal(&transaction, &revision).map_err(to_error)?;
    }
    transaction.commit().map_err(to_error)?;
    Ok(WrittenRevision {
        revision: id,
        database_id,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use gatewren_base::sys::Scratch;

    use super::super::author::Actor;
    use super::super::history::History;
    use super::super::testing::database;
    use super::*;

    fn write_once(file: &Path, patch: &str) -> Result<u64, String> {
        let author = Author::from(Actor::Local("test".into()));
        let written = apply_once(file, &author, &Patch::parse(patch).unwrap(), None);
        written.map(|w| w.revision).map_err(|e| e.to_string())
    }

    #[test]
    fn a_patch_is_one_revision_or_nothing() {
        let scratch = Scratch::new();
        let file = database(&scratch);
        let add = r#"[{"op":"add","path":"/public/a","value":1}]"#;
        assert_eq!(write_once(&file, add), Ok(1));
        assert_eq!(write_once(&file, add), Ok(1), "nothing to change");
        let refused = write_once(&file, r#"[{"op":"remove","path":"/public/b"}]"#).unwrap_err();
        assert!(refused.contains("nothing was changed"), "{refused}");
        let document = History::open(&file).unwrap().document().unwrap();
        assert_eq!(
            (document.revision, document.root),
            (1, json!({"public": {"a": 1}}))
        );
    }

    #[test]
    fn a_file_that_is_damaged_or_not_there_stays_so() {
        let scratch = Scratch::new();
        let file = scratch.join("state.db");
        assert!(write_once(&file, "[]").is_err());
        assert!(!file.exists());
        let file = database(&scratch);
        let mut bytes = fs::read(&file).unwrap();
        bytes[100..].fill(0x5a);
        fs::write(&file, &bytes).unwrap();
        assert!(write_once(&file, "[]").is_err());
        assert_eq!(fs::read(&file).unwrap(), bytes);
        let beside = fs::read_dir(scratch.path()).unwrap().flatten();
        let mut names = beside.map(|entry| entry.file_name().into_string().unwrap());
        assert!(names.all(|name| !name.contains("damaged")));
    }
}
