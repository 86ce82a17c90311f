//! The document at one revision, and the draft of the next.

use serde_json::Value;

use super::log::LogRow;
use super::operation::Change;
use super::patch::{Patch, PatchError};

/// The longest patch of one revision as text, in bytes; a longer one is refused, by its reader too.
pub const MAX_PATCH_BYTES: usize = 4 * 1024 * 1024;

/// The document as it was at one revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The revision that it is true for.
    pub revision: u64,
    /// The document itself, always an object.
    pub root: Value,
    /// When that revision was written, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A document being taken forward by one or more revisions.
#[derive(Debug)]
pub struct Draft {
    /// The document as far as it has come.
    pub document: Document,
    /// What each revision changed.
    pub changed: Vec<(u64, Vec<Change>)>,
}

impl Draft {
    /// Begins with `document`.
    ///
    /// This clones it: the whole cost of a revision that grows with the document, about 0.1 ms per 100 kB.
    /// Consecutive revisions of other programs share one draft.
    pub fn of(document: &Document) -> Self {
        let document = document.clone();
        Self {
            document,
            changed: Vec::new(),
        }
    }

    /// Takes the document to revision `id` by `patch`; one that does not apply changes nothing but the
    /// number.
    pub fn advance(&mut self, id: u64, at_ms: u64, patch: &Patch) -> Result<(), PatchError> {
        let changes = patch.apply(&mut self.document.root);
        self.document.revision = id;
        self.document.at_ms = at_ms;
        self.changed.push((id, changes?));
        Ok(())
    }

    /// Takes the document forward by a row of the log; says why if the row does not apply.
    pub fn follow(&mut self, row: &LogRow) -> Result<(), PatchError> {
        match patch_of(row) {
            Ok(patch) => self.advance(row.id, row.at_ms, &patch),
            Err(why) => {
                self.document.revision = row.id;
                self.document.at_ms = row.at_ms;
                Err(why)
            }
        }
    }
}

fn patch_of(row: &LogRow) -> Result<Patch, PatchError> {
    if row.patch.len() > MAX_PATCH_BYTES {
        return Err(PatchError::TooMany);
    }
    Patch::parse(&row.patch)
}
