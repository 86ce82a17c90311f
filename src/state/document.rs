//! The document at one revision, and the draft of the next.

use serde_json::Value;

use super::effect::{Effect, effects};
use super::log::{LogRow, MAX_PATCH_BYTES};
use super::operation::Change;
use super::patch::{Patch, PatchError};
use super::size::text_len;

/// The largest document as compact JSON text, in bytes. A patch that makes a larger one of it does not apply:
/// its writer hears so, and written by another program it is a revision that changes nothing.
pub const MAX_DOCUMENT_BYTES: i64 = 16 * 1024 * 1024;

/// The document as it was at one revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The revision that it is true for.
    pub revision: u64,
    /// The document itself, always an object.
    pub root: Value,
    /// When that revision was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its size as compact JSON text.
    bytes: i64,
}

impl Document {
    /// The document that is `root` at `revision`.
    pub fn new(revision: u64, root: Value, at_ms: u64) -> Self {
        let bytes = text_len(&root);
        Self {
            revision,
            root,
            at_ms,
            bytes,
        }
    }
}

/// A document being taken forward by one or more revisions.
#[derive(Debug)]
pub struct Draft {
    /// The document as far as it has come.
    pub document: Document,
    /// What each revision changed.
    pub changed: Vec<(u64, Vec<Effect>)>,
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
        let changes = self.step(id, at_ms, patch)?;
        self.changed
            .push((id, effects(changes, &self.document.root)));
        Ok(())
    }

    /// Takes the document forward by a row of the log; says why if the row does not apply.
    pub fn follow(&mut self, row: &LogRow) -> Result<(), PatchError> {
        let changes = self.step_by(row)?;
        self.changed
            .push((row.id, effects(changes, &self.document.root)));
        Ok(())
    }

    /// The same, but what each operation changed is given to the caller and not kept.
    pub fn step_by(&mut self, row: &LogRow) -> Result<Vec<Change>, PatchError> {
        let patch = if row.oversize {
            Err(PatchError::TooLong(MAX_PATCH_BYTES))
        } else {
            Patch::parse(&row.patch)
        };
        match patch {
            Ok(patch) => self.step(row.id, row.at_ms, &patch),
            Err(why) => {
                self.document.revision = row.id;
                self.document.at_ms = row.at_ms;
                Err(why)
            }
        }
    }

    /// Whether a revision was taken that changed anything.
    pub fn differs(&self) -> bool {
        self.changed.iter().any(|(_, effects)| !effects.is_empty())
    }

    fn step(&mut self, id: u64, at_ms: u64, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        let document = &mut self.document;
        document.revision = id;
        document.at_ms = at_ms;
        let changes = patch.apply(&mut document.root)?;
        let growth: i64 = changes.iter().map(|change| change.growth).sum();
        // One that is too large already, because an older gatewren knew no bound, may still shrink.
        if growth > 0 && document.bytes + growth > MAX_DOCUMENT_BYTES {
            take_back(changes, &mut document.root);
            return Err(PatchError::Outgrown {
                bytes: document.bytes + growth,
                most: MAX_DOCUMENT_BYTES,
            });
        }
        document.bytes += growth;
        Ok(changes)
    }
}

fn take_back(changes: Vec<Change>, document: &mut Value) {
    let backwards = changes.into_iter().rev();
    backwards.for_each(|change| change.undo(document));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(value: Value) -> Patch {
        Patch::from_value(value).unwrap()
    }

    #[test]
    fn a_document_that_would_be_too_large_stays_as_it_is() {
        let megabyte = "x".repeat(1024 * 1024);
        let mut draft = Draft::of(&Document::new(0, json!({"public": {}}), 0));
        let fill = (1..).find_map(|id| {
            let add = json!([{"op": "add", "path": format!("/public/{id}"), "value": megabyte}]);
            let before = draft.document.root.clone();
            let refused = draft.advance(id, 0, &patch(add)).err()?;
            assert_eq!(draft.document.root, before);
            assert_eq!(draft.document.revision, id);
            Some((id, refused.to_string()))
        });
        let (id, said) = fill.unwrap();
        assert_eq!(id, 16);
        let words = "bytes as JSON, at most 16777216: remove something first";
        assert!(said.ends_with(words), "{said}");

        let less = json!([{"op": "replace", "path": "/public/1", "value": "x"}]);
        assert_eq!(draft.advance(17, 0, &patch(less)), Ok(()));
        assert_eq!(draft.document.bytes, text_len(&draft.document.root));
    }

    #[test]
    fn one_that_is_too_large_already_may_shrink() {
        let mut large = Document::new(0, json!({"a": 1, "b": 1}), 0);
        large.bytes += MAX_DOCUMENT_BYTES;
        let mut draft = Draft::of(&large);
        let less = patch(json!([{"op": "remove", "path": "/a"}]));
        let more = patch(json!([{"op": "add", "path": "/c", "value": 1}]));
        assert_eq!(draft.advance(1, 0, &less), Ok(()));
        assert!(draft.advance(2, 0, &more).is_err());
        assert_eq!(draft.document.root, json!({"b": 1}));
    }
}
