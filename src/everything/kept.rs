//! Resources that tools create: kept in memory by name, until newer ones replace them.

use std::collections::VecDeque;

use crate::protocol::{Resource, ResourceContents};

const BASE: &str = "demo://resource/session/";

/// The maximum number of resources; one more removes the oldest.
const MAX_KEPT: usize = 16;

/// The maximum length of a name; a longer one is rejected.
const MAX_NAME: usize = 100;

/// The resources that tools have created, oldest first.
///
/// A stateless client has no session, so these belong to the server: every client that knows a name can read the
/// resource.
#[derive(Default)]
pub struct Kept(VecDeque<(Resource, String)>);

impl Kept {
    /// Stores bytes, as base64, under a name, and replaces an older resource with that name. Returns its entry in
    /// the list.
    pub fn keep(&mut self, name: &str, mime_type: &str, blob: String) -> Resource {
        let resource = Resource {
            uri: format!("{BASE}{name}"),
            name: name.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            ..Resource::default()
        };
        let Self(kept) = self;
        kept.retain(|(older, _)| older.name != name);
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back((resource.clone(), blob));
        resource
    }

    /// The list of these resources.
    pub fn list(&self) -> impl Iterator<Item = Resource> {
        self.0.iter().map(|(resource, _)| resource.clone())
    }

    /// Returns the resource with this URI.
    pub fn find(&self, uri: &str) -> Option<ResourceContents> {
        let (resource, blob) = self.0.iter().find(|(resource, _)| resource.uri == uri)?;
        Some(contents(resource, blob.clone()))
    }
}

/// The contents of a stored resource.
pub fn contents(resource: &Resource, blob: String) -> ResourceContents {
    ResourceContents {
        uri: resource.uri.clone(),
        mime_type: resource.mime_type.clone(),
        blob: Some(blob),
        ..ResourceContents::default()
    }
}

/// Whether a resource may have this name, which is part of its URI without escaping.
pub fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_and_a_name_is_there_once() {
        let mut kept = Kept::default();
        for n in 0..=MAX_KEPT {
            kept.keep(&n.to_string(), "a/b", n.to_string());
        }
        assert!(kept.find("demo://resource/session/0").is_none());
        kept.keep("5", "a/b", "again".to_owned());
        assert_eq!(kept.list().count(), MAX_KEPT);
        let found = kept.find("demo://resource/session/5").unwrap();
        assert_eq!(found.blob.as_deref(), Some("again"));
    }

    #[test]
    fn a_name_says_nothing_else_in_a_uri() {
        assert!(is_name("README.md.gz"));
        for wrong in ["", "a/b", "a b", "a?b", "ä", &"x".repeat(MAX_NAME + 1)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
