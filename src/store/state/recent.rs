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

/// The most memory that they take, in bytes, with what the allocator adds; the oldest is dropped first.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The size of a node of a B-tree of members: 11 names, 11 values, and 16 bytes.
const NODE_BYTES: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;

/// The fewest members that a node has, unless it is the only one.
const NODE_MEMBERS: usize = 5;

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
    pub fn push(&mut self, id: u64, mut effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        // Room for four is made when the first one is added.
        effects.shrink_to_fit();
        let bytes = entry_bytes(&effects);
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

/// The memory of a revision's effects. The queue of entries has at most twice the places that it needs.
fn entry_bytes(effects: &Vec<Effect>) -> usize {
    let below = effects.iter().map(effect_bytes);
    2 * size_of::<Entry>() + list_bytes(effects) + below.sum::<usize>()
}

/// The memory that an effect refers to.
fn effect_bytes(effect: &Effect) -> usize {
    let values = effect.old.iter().chain(&effect.new).map(value_bytes);
    let tokens = effect.at.tokens();
    let texts = tokens.iter().map(|token| allocated(token.capacity()));
    // A pointer is read token by token, into a list that doubles.
    let list = allocated(tokens.len().next_power_of_two().max(4) * size_of::<String>());
    list + texts.sum::<usize>() + values.sum::<usize>()
}

/// The memory that a value refers to.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => allocated(text.capacity()),
        Value::Array(list) => list_bytes(list) + list.iter().map(value_bytes).sum::<usize>(),
        Value::Object(map) => {
            let below = map
                .iter()
                .map(|(key, value)| allocated(key.capacity()) + value_bytes(value));
            let nodes = map.len().div_ceil(NODE_MEMBERS);
            nodes * allocated(NODE_BYTES) + below.sum::<usize>()
        }
        _ => 0,
    }
}

fn list_bytes<T>(list: &Vec<T>) -> usize {
    allocated(list.capacity() * size_of::<T>())
}

/// What the allocator takes for this many bytes: its sizes are at most an eighth apart.
fn allocated(bytes: usize) -> usize {
    (bytes + bytes / 8).next_multiple_of(8)
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

    #[test]
    fn what_is_counted_is_what_the_allocator_gave() {
        let shapes = [
            json!(1),
            json!("a text that somebody may have written"),
            json!({ "one": "member" }),
            json!([1, 2, 3]),
            json!({ "state": "running", "addresses": ["10.0.3.5"], "ports": [{ "port": 80 }] }),
            json!((0..300).map(|n| n.to_string()).collect::<Vec<_>>()),
        ];
        for shape in shapes {
            let mut document = json!({ "public": { "packageData": { "a": null } } });
            let mut kept = RecentEffects::since(0);
            let taken = allocation_counter::measure(|| {
                for id in 1..=500 {
                    let value = if id % 2 == 0 { &shape } else { &Value::Null };
                    let patch = json!([
                        { "op": "replace", "path": "/public/packageData/a", "value": value }
                    ]);
                    let changes = Patch::from_value(patch).unwrap().apply(&mut document);
                    kept.push(id, effects(changes.unwrap(), &document));
                }
            });
            let taken = usize::try_from(taken.bytes_current).unwrap();
            // The allocator of a release adds up to an eighth, which this one does not count.
            let counted = kept.bytes;
            assert!(
                counted >= taken && counted <= taken * 3 / 2,
                "{shape}: {counted} for {taken}"
            );
        }
    }
}
