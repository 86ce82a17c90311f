//! What the last revisions changed, kept in memory: says in microseconds whether a subscriber has news.

use std::collections::VecDeque;

use serde_json::Value;

use super::operation::Change;
use super::pointer::{Pointer, array_index};

/// The most revisions that are remembered; the oldest is forgotten first, and the log asked instead.
const MAX_REVISIONS: usize = 4096;

/// The most memory for what they changed, in bytes, roughly; the oldest is forgotten first.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The changes of the revisions after `knows_after`.
#[derive(Debug)]
pub struct Recent {
    knows_after: u64,
    revisions: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    changes: Vec<Change>,
    bytes: usize,
}

/// Whether something changed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Yes; the newest revision that did.
    At(u64),
    /// No.
    No,
    /// Not since this revision; what was before it is forgotten.
    ForgottenBefore(u64),
}

impl Recent {
    /// Remembers nothing of the revisions up to `revision`.
    pub fn since(revision: u64) -> Self {
        Self {
            knows_after: revision,
            revisions: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Remembers what revision `id` changed.
    pub fn push(&mut self, id: u64, changes: Vec<Change>) {
        let changes: Vec<_> = changes.into_iter().filter(is_real).collect();
        if changes.is_empty() {
            return;
        }
        let bytes = changes.iter().map(weight).sum();
        self.bytes += bytes;
        self.revisions.push_back(Entry { id, changes, bytes });
        while self.revisions.len() > MAX_REVISIONS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.revisions.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
            self.knows_after = oldest.id;
        }
    }

    /// Whether a revision after `after` changed what stands at `scope` or below it.
    pub fn touched(&self, scope: &Pointer, after: u64) -> Touch {
        let newest = self
            .revisions
            .iter()
            .rev()
            .take_while(|entry| entry.id > after)
            .find(|entry| entry.changes.iter().any(|change| affects(change, scope)));
        match newest {
            Some(entry) => Touch::At(entry.id),
            None if after >= self.knows_after => Touch::No,
            None => Touch::ForgottenBefore(self.knows_after),
        }
    }
}

fn is_real(change: &Change) -> bool {
    change.moved_others || change.old != change.new
}

fn affects(change: &Change, scope: &Pointer) -> bool {
    if scope.covers(&change.at) {
        return true;
    }
    if let Some(way) = change.at.way_to(scope) {
        let at = |value: &Option<Value>| value.as_ref().and_then(|value| way.get(value)).cloned();
        return change.moved_others || at(&change.old) != at(&change.new);
    }
    change.moved_others && stands_behind(scope, &change.at)
}

/// Whether `scope` is in an element behind `at` of the same list.
fn stands_behind(scope: &Pointer, at: &Pointer) -> bool {
    let Some((list, index)) = at.split_last() else {
        return false;
    };
    let way = list.way_to(scope);
    let element = way.as_ref().and_then(|way| way.tokens().first());
    element.and_then(|token| array_index(token)) > array_index(index)
}

/// The memory of a change, roughly.
fn weight(change: &Change) -> usize {
    let values = change.old.iter().chain(&change.new).map(value_weight);
    let tokens = change.at.tokens().iter().map(|token| token.len() + 24);
    100 + values.sum::<usize>() + tokens.sum::<usize>()
}

fn value_weight(value: &Value) -> usize {
    const NODE: usize = 32;
    match value {
        Value::String(text) => NODE + text.len(),
        Value::Array(list) => NODE + list.iter().map(value_weight).sum::<usize>(),
        Value::Object(map) => {
            let members = map
                .iter()
                .map(|(key, value)| NODE + key.len() + value_weight(value));
            NODE + members.sum::<usize>()
        }
        _ => NODE,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::patch::Patch;
    use super::*;

    fn recent(document: &mut Value, patches: &[Value]) -> Recent {
        let mut recent = Recent::since(10);
        for (id, patch) in (11..).zip(patches) {
            let patch = Patch::from_value(patch.clone()).unwrap();
            recent.push(id, patch.apply(document).unwrap());
        }
        recent
    }

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    #[test]
    fn a_change_is_seen_at_it_above_it_and_below_it_where_the_value_differs() {
        let mut document = json!({"public": {"a": {"x": 1, "y": 1}, "list": [1, 2, 3]}});
        let recent = recent(
            &mut document,
            &[
                json!([{"op": "replace", "path": "/public/a", "value": {"x": 2, "y": 1}}]),
                json!([{"op": "remove", "path": "/public/list/1"}]),
                json!([{"op": "add", "path": "/public/b", "value": {"c": null}}]),
                json!([{"op": "replace", "path": "/public/b", "value": {"c": null}}]),
            ],
        );
        for (scope, after, touch) in [
            ("", 10, Touch::At(13)),
            ("/public", 10, Touch::At(13)),
            ("/publicX", 10, Touch::No),
            ("/public/a", 10, Touch::At(11)),
            ("/public/a", 11, Touch::No),
            ("/public/a/x", 10, Touch::At(11)),
            ("/public/a/y", 10, Touch::No),
            ("/public/list", 10, Touch::At(12)),
            ("/public/list/0", 10, Touch::No),
            ("/public/list/1", 10, Touch::At(12)),
            ("/public/list/2", 10, Touch::At(12)),
            ("/public/b/c", 10, Touch::At(13)),
            ("/public/b/d", 10, Touch::No),
            ("/public/b", 13, Touch::No),
            ("/public", 9, Touch::At(13)),
            ("/public/b/d", 9, Touch::ForgottenBefore(10)),
        ] {
            assert_eq!(
                recent.touched(&at(scope), after),
                touch,
                "{scope} after {after}"
            );
        }
    }

    #[test]
    fn memory_is_bounded_by_number_and_by_size() {
        let change = |size: usize| Change {
            at: at("/public/a"),
            old: None,
            new: Some(json!("x".repeat(size))),
            moved_others: false,
        };
        let mut recent = Recent::since(0);
        for id in 1..=5000 {
            recent.push(id, vec![change(10)]);
        }
        assert_eq!(recent.revisions.len(), MAX_REVISIONS);
        assert_eq!(recent.touched(&at("/b"), 903), Touch::ForgottenBefore(904));
        assert_eq!(recent.touched(&at("/b"), 904), Touch::No);

        recent.push(5001, vec![change(MAX_BYTES)]);
        assert!(recent.revisions.is_empty());
        assert_eq!(recent.bytes, 0);
        assert_eq!(
            recent.touched(&at("/public/a"), 5000),
            Touch::ForgottenBefore(5001)
        );
        assert_eq!(recent.touched(&at("/public/a"), 5001), Touch::No);
    }
}
