//! What is seen at a place, and in which document it stands.

use std::sync::{Arc, Weak};

use serde_json::Value;

use super::document::Document;

/// What is seen at a place.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The value.
    pub value: &'a Value,
    /// The revision that it is true for.
    pub revision: u64,
    /// The document that it stands in as it is; none where it is cut down to what is seen.
    pub(super) document: Option<&'a Arc<Document>>,
}

/// One document, to be known again. It keeps nothing of it.
#[derive(Debug, Clone)]
pub struct Edition(Weak<Document>);

impl Seen<'_> {
    /// Whether it stands so in the document, and is not cut down to what is seen.
    pub fn is_whole(&self) -> bool {
        self.document.is_some()
    }

    /// The document that this is a part of; none where it is cut down to what is seen.
    pub fn edition(&self) -> Option<Edition> {
        self.document
            .map(|document| Edition(Arc::downgrade(document)))
    }

    /// Whether it is a part of this document, as it stands there. Of two revisions that number says nothing: the log may
    /// have been cut behind our back, and begin again with lower ones.
    pub fn is_of(&self, edition: &Edition) -> bool {
        let Edition(known) = edition;
        self.document
            .is_some_and(|document| known.as_ptr() == Arc::as_ptr(document))
    }
}
