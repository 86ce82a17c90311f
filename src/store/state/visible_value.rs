//! The value that a view shows at a place, and the document that contains it.

use std::sync::{Arc, Weak};

use serde_json::Value;

use super::document::Document;

/// The value that is visible at a place.
#[derive(Debug, Clone, Copy)]
pub struct VisibleValue<'a> {
    /// The value.
    pub value: &'a Value,
    /// Its revision.
    pub revision: u64,
    /// The document that contains the value unchanged; `None` if the value is cut down to its visible part.
    pub(super) document: Option<&'a Arc<Document>>,
}

/// The identity of a document. It does not keep the document alive.
#[derive(Debug, Clone)]
pub struct DocumentIdentity(Weak<Document>);

impl VisibleValue<'_> {
    /// Returns whether the value is part of the document unchanged, not cut down to its visible part.
    pub fn is_whole(&self) -> bool {
        self.document.is_some()
    }

    /// The document that contains the value; `None` if it is cut down to its visible part.
    pub fn edition(&self) -> Option<DocumentIdentity> {
        self.document
            .map(|document| DocumentIdentity(Arc::downgrade(document)))
    }

    /// Returns whether the value is an unchanged part of this document. Comparing revision numbers is not enough:
    /// another program may have cut the log, and lower numbers may follow.
    pub fn is_of(&self, edition: &DocumentIdentity) -> bool {
        let DocumentIdentity(known) = edition;
        self.document
            .is_some_and(|document| known.as_ptr() == Arc::as_ptr(document))
    }
}
