//! The effects of the last revisions, kept in memory: decides within microseconds whether a subscriber must be
//! notified.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use serde_json::Value;

use super::effect::Effect;
use super::pointer::Pointer;
use super::visibility::{Visibility, VisibleExtent};

/// The most revisions that are remembered; the oldest is dropped first, and the log is queried instead.
const MAX_REVISIONS: usize = 4096;

/// The most memory for their effects, in bytes, approximately; the oldest is dropped first.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The effects of the revisions after `known_after`.
///
/// Fast path without a figure of its own: subscribers ask it and not the log.
#[derive(Debug)]
pub struct RecentEffects {
    known_after: u64,
    revisions: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    effects: Vec<Effect>,
    bytes: usize,
}

/// Whether something changed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeLookup {
    /// Yes; the newest revision that changed it.
    At(u64),
    /// No.
    No,
    /// Not since this revision; earlier revisions are no longer in memory.
    ForgottenBefore(u64),
}

impl RecentEffects {
    /// Creates a memory without the revisions up to `revision`.
    pub fn since(revision: u64) -> Self {
        Self {
            known_after: revision,
            revisions: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Records the effects of revision `id`.
    pub fn push(&mut self, id: u64, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        let bytes = effects.iter().map(weight).sum();
        self.bytes += bytes;
        self.revisions.push_back(Entry { id, effects, bytes });
        while self.revisions.len() > MAX_REVISIONS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.revisions.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
            self.known_after = oldest.id;
        }
    }

    /// The revisions up to this one are not in memory.
    pub fn known_after(&self) -> u64 {
        self.known_after
    }

    /// Returns whether a revision after `after` changed the value at `scope` or below it.
    pub fn find_change(&self, scope: &Pointer, after: u64) -> ChangeLookup {
        self.newest(after..=u64::MAX, &|effect| affects(effect, scope))
    }

    /// Like `find_change`, limited to what `visibility` covers.
    pub fn find_visible_change(
        &self,
        visibility: &Visibility,
        scope: &Pointer,
        ids: RangeInclusive<u64>,
    ) -> ChangeLookup {
        self.newest(ids, &|effect| shows(visibility, effect, scope))
    }

    /// Returns the newest revision after the start of `ids`, up to its end, for which `holds` is true.
    fn newest(&self, ids: RangeInclusive<u64>, holds: &dyn Fn(&Effect) -> bool) -> ChangeLookup {
        let (after, last) = ids.into_inner();
        let newest = self
            .revisions
            .iter()
            .rev()
            .skip_while(|entry| entry.id > last)
            .take_while(|entry| entry.id > after)
            .find(|entry| entry.effects.iter().any(holds));
        match newest {
            Some(entry) => ChangeLookup::At(entry.id),
            None if after >= self.known_after => ChangeLookup::No,
            None => ChangeLookup::ForgottenBefore(self.known_after),
        }
    }
}

fn below<'v>(value: Option<&'v Value>, way: &Pointer) -> Option<&'v Value> {
    value.and_then(|value| way.get(value))
}

/// Returns whether the effect changes the value that is visible at `scope`.
fn shows(visibility: &Visibility, effect: &Effect, scope: &Pointer) -> bool {
    let part =
        |at: &Pointer, value: Option<&Value>| value.and_then(|value| visibility.part(at, value));
    match (visibility.extent(scope), visibility.extent(&effect.at)) {
        (VisibleExtent::Nothing, _) | (_, VisibleExtent::Nothing) => false,
        (VisibleExtent::Whole, _) | (_, VisibleExtent::Whole) => affects(effect, scope),
        (VisibleExtent::Part, VisibleExtent::Part) if scope.covers(&effect.at) => {
            part(&effect.at, effect.old.as_ref()) != part(&effect.at, effect.new.as_ref())
        }
        (VisibleExtent::Part, VisibleExtent::Part) => effect.at.way_to(scope).is_some_and(|way| {
            let (old, new) = (
                below(effect.old.as_ref(), &way),
                below(effect.new.as_ref(), &way),
            );
            part(scope, old) != part(scope, new)
        }),
    }
}

/// Returns whether the effect changes the value at `scope`.
fn affects(effect: &Effect, scope: &Pointer) -> bool {
    if scope.covers(&effect.at) {
        return true;
    }
    let way = effect.at.way_to(scope);
    way.is_some_and(|way| below(effect.old.as_ref(), &way) != below(effect.new.as_ref(), &way))
}

/// The memory of an effect, approximately.
fn weight(effect: &Effect) -> usize {
    let values = effect.old.iter().chain(&effect.new).map(value_weight);
    let tokens = effect.at.tokens().iter().map(|token| token.len() + 24);
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

    use super::super::effect::effects;
    use super::super::patch::Patch;
    use super::*;
    use gatewren_base::config::{Reach, Space};

    fn recent(document: &mut Value, patches: &[Value]) -> RecentEffects {
        let mut recent = RecentEffects::since(10);
        for (id, patch) in (11..).zip(patches) {
            let patch = Patch::from_value(patch.clone()).unwrap();
            let changes = patch.apply(document).unwrap();
            recent.push(id, effects(changes, document));
        }
        recent
    }

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    #[test]
    fn a_change_is_seen_at_it_above_it_and_below_it_where_the_value_differs() {
        let mut document = json!({"public": {"a": {"x": 1, "y": 1}, "list": [1, 2, 3, 3]}});
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
            ("", 10, ChangeLookup::At(13)),
            ("/public", 10, ChangeLookup::At(13)),
            ("/publicX", 10, ChangeLookup::No),
            ("/public/a", 10, ChangeLookup::At(11)),
            ("/public/a", 11, ChangeLookup::No),
            ("/public/a/x", 10, ChangeLookup::At(11)),
            ("/public/a/y", 10, ChangeLookup::No),
            ("/public/list", 10, ChangeLookup::At(12)),
            ("/public/list/0", 10, ChangeLookup::No),
            ("/public/list/1", 10, ChangeLookup::At(12)),
            // Another element is at this index now, but its value is equal.
            ("/public/list/2", 10, ChangeLookup::No),
            ("/public/list/3", 10, ChangeLookup::At(12)),
            ("/public/b/c", 10, ChangeLookup::At(13)),
            ("/public/b/d", 10, ChangeLookup::No),
            ("/public/b", 13, ChangeLookup::No),
            ("/public", 9, ChangeLookup::At(13)),
            ("/public/b/d", 9, ChangeLookup::ForgottenBefore(10)),
        ] {
            assert_eq!(
                recent.find_change(&at(scope), after),
                touch,
                "{scope} after {after}"
            );
        }
    }

    #[test]
    fn a_change_is_seen_by_those_who_see_its_place() {
        let mut document = json!({"public": {"packageData": {"web": 1, "db": 1}, "other": 1}});
        let recent = recent(
            &mut document,
            &[
                json!([{"op": "replace", "path": "/public/packageData/web", "value": 2}]),
                json!([{"op": "replace", "path": "/public/packageData/db", "value": 2}]),
                json!([{"op": "replace", "path": "/public/packageData", "value": {"web": 2}}]),
                json!([{"op": "replace", "path": "/public", "value": {"packageData": {}}}]),
                json!([{"op": "add", "path": "/public/serverInfo", "value": {}}]),
            ],
        );
        let space = |container: &str| Space {
            containers: vec![container.parse().unwrap()],
            host: false,
        };
        let web = Visibility::of("a", &Reach::of(&space("web")));
        let db = Visibility::of("b", &Reach::of(&space("db")));
        for (visibility, scope, ids, touch) in [
            (&web, "", 10..=99, ChangeLookup::At(14)),
            (&web, "", 10..=13, ChangeLookup::At(11)),
            (&web, "", 11..=13, ChangeLookup::No),
            (&web, "/public/packageData", 10..=13, ChangeLookup::At(11)),
            (
                &web,
                "/public/packageData/web",
                10..=99,
                ChangeLookup::At(14),
            ),
            (&web, "/public/packageData/db", 10..=99, ChangeLookup::No),
            (&web, "/public/other", 10..=99, ChangeLookup::No),
            (&db, "/public", 10..=99, ChangeLookup::At(13)),
            (&db, "/public", 13..=99, ChangeLookup::No),
            (&db, "/public/serverInfo", 10..=99, ChangeLookup::No),
            (
                &Visibility::whole(),
                "/public",
                10..=99,
                ChangeLookup::At(15),
            ),
            (&db, "/public", 9..=10, ChangeLookup::ForgottenBefore(10)),
        ] {
            let found = recent.find_visible_change(visibility, &at(scope), ids.clone());
            assert_eq!(found, touch, "{scope} {ids:?}");
        }
    }

    #[test]
    fn memory_is_bounded_by_number_and_by_size() {
        let change = |size: usize| Effect {
            at: at("/public/a"),
            old: None,
            new: Some(json!("x".repeat(size))),
        };
        let mut recent = RecentEffects::since(0);
        for id in 1..=5000 {
            recent.push(id, vec![change(10)]);
        }
        assert_eq!(recent.revisions.len(), MAX_REVISIONS);
        assert_eq!(
            recent.find_change(&at("/b"), 903),
            ChangeLookup::ForgottenBefore(904)
        );
        assert_eq!(recent.find_change(&at("/b"), 904), ChangeLookup::No);

        recent.push(5001, vec![change(MAX_BYTES)]);
        assert!(recent.revisions.is_empty());
        assert_eq!(recent.bytes, 0);
        assert_eq!(
            recent.find_change(&at("/public/a"), 5000),
            ChangeLookup::ForgottenBefore(5001)
        );
        assert_eq!(recent.find_change(&at("/public/a"), 5001), ChangeLookup::No);
    }
}
