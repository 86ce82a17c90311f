//! A container that a page is about, as the state has it.

use std::sync::Arc;

use serde_json::Value;

use super::page_error::PageError;
use super::site::OwnerSite;
use gatewren_host::backends::ContainerRef;
use gatewren_store::state::{Document, Pointer};

/// A container that the state has.
pub struct ContainerInState {
    /// Its name.
    pub id: ContainerRef,
    /// The state.
    pub document: Arc<Document>,
}

impl ContainerInState {
    /// Finds the container of a part of the path.
    pub fn of(site: &OwnerSite, part: &str) -> Result<Self, PageError> {
        // A plus is no space in a path.
        let encoded = format!("name={}", part.replace('+', "%2B"));
        let name = form_urlencoded::parse(encoded.as_bytes()).next();
        let id = name.and_then(|(_, name)| name.parse().ok());
        let found = Self {
            id: id.ok_or(PageError::Absent)?,
            document: site.state.document(),
        };
        found.entry().ok_or(PageError::Absent)?;
        Ok(found)
    }

    /// The place of its entry in the state.
    pub fn place(&self) -> Pointer {
        let all = Pointer::root().child("public").child("packageData");
        all.child(self.id.as_str())
    }

    /// Its entry.
    pub fn entry(&self) -> Option<&Value> {
        self.place().get(&self.document.root)
    }

    /// Its status in a word.
    pub fn status(&self) -> &str {
        let status = self.entry().and_then(|entry| entry.get("status"));
        status.and_then(Value::as_str).unwrap_or("-")
    }
}
