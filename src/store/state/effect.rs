//! The net effect of a revision: its operations combined, without changes that were undone.

use std::iter;
use std::mem;

use serde_json::Value;

use super::operation::AppliedChange;
use super::pointer::Pointer;

/// A place whose value after a revision differs from the value before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The place; no other effect of the same revision is above or below it.
    pub at: Pointer,
    /// The value before.
    pub old: Option<Value>,
    /// The value after; always different.
    pub new: Option<Value>,
}

/// The key under which [`before`] rebuilds an earlier part of the document.
const PART: &str = "part";

/// Returns the net effects of `changes`, in their order, on a document that is now `after`.
///
/// If an element of a list moved, the effect is on the list.
pub fn effects(changes: Vec<AppliedChange>, after: &Value) -> Vec<Effect> {
    let mut places: Vec<Pointer> = changes.iter().map(place).collect();
    // A place sorts right before the places below it.
    places.sort();
    places.dedup_by(|below, above| above.covers(below));

    let mut groups: Vec<Vec<AppliedChange>> =
        iter::repeat_with(Vec::new).take(places.len()).collect();
    for change in changes {
        let behind = places.partition_point(|top| *top <= change.at);
        if let Some(group) = behind.checked_sub(1).and_then(|at| groups.get_mut(at)) {
            group.push(change);
        }
    }
    let effect = |(at, group)| effect(at, group, after);
    let effects = places.into_iter().zip(groups).map(effect);
    effects.filter(|effect| effect.old != effect.new).collect()
}

/// The place whose value a change affects.
fn place(change: &AppliedChange) -> Pointer {
    match change.at.split_last() {
        Some((list, _)) if change.moved_others => list,
        _ => change.at.clone(),
    }
}

/// Combines the changes at and below `at`.
fn effect(at: Pointer, mut changes: Vec<AppliedChange>, after: &Value) -> Effect {
    if let [change] = changes.as_mut_slice()
        && !change.moved_others
    {
        let (old, new) = (mem::take(&mut change.old), mem::take(&mut change.new));
        return Effect { at, old, new };
    }
    let new = at.get(after).cloned();
    let old = before(&at, changes, new.clone());
    Effect { at, old, new }
}

/// Returns the value at `at` before `changes`, which are all at or below it, given the current value `now`.
fn before(at: &Pointer, changes: Vec<AppliedChange>, now: Option<Value>) -> Option<Value> {
    let top = Pointer::root().child(PART);
    let mut past: Value = now.into_iter().map(|now| (PART.to_owned(), now)).collect();
    for mut change in changes.into_iter().rev() {
        change.at = top.join(&at.way_to(&change.at).unwrap_or_default());
        change.undo(&mut past);
    }
    past.get_mut(PART).map(Value::take)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::patch::Patch;
    use super::*;

    /// Returns the places and values of a patch's effects on a document with a list and an object.
    fn of(patch: Value) -> Vec<(String, Option<Value>, Option<Value>)> {
        let mut document = json!({"l": [1, 2, 3], "o": {"a": 1, "b": {"c": 1}}, "n": null});
        let patch = Patch::from_value(patch).unwrap();
        let changes = patch.apply(&mut document).unwrap();
        let found = effects(changes, &document).into_iter();
        found
            .map(|effect| (effect.at.to_string(), effect.old, effect.new))
            .collect()
    }

    fn effect(at: &str, old: Value, new: Value) -> (String, Option<Value>, Option<Value>) {
        (at.to_owned(), Some(old), Some(new))
    }

    #[test]
    fn what_goes_back_and_forth_is_nothing() {
        for patch in [
            json!([{"op": "replace", "path": "/o/a", "value": 1}]),
            json!([{"op": "replace", "path": "/o/a", "value": 2},
                   {"op": "replace", "path": "/o/a", "value": 1}]),
            json!([{"op": "add", "path": "/x", "value": {"y": 1}}, {"op": "remove", "path": "/x/y"},
                   {"op": "remove", "path": "/x"}]),
            json!([{"op": "remove", "path": "/o"},
                   {"op": "add", "path": "/o", "value": {"a": 1, "b": {"c": 1}}}]),
            json!([{"op": "replace", "path": "/o/b/c", "value": 2},
                   {"op": "replace", "path": "/o/b", "value": {"c": 1}}]),
            json!([{"op": "add", "path": "/l/0", "value": 9}, {"op": "remove", "path": "/l/0"}]),
            json!([{"op": "add", "path": "/l/-", "value": 9}, {"op": "remove", "path": "/l/3"}]),
            json!([{"op": "add", "path": "/l/1", "value": 2}, {"op": "remove", "path": "/l/2"}]),
            json!([{"op": "remove", "path": "/n"}, {"op": "add", "path": "/n", "value": null}]),
            json!([{"op": "add", "path": "", "value": {}},
                   {"op": "add", "path": "", "value":
                       {"l": [1, 2, 3], "o": {"a": 1, "b": {"c": 1}}, "n": null}}]),
        ] {
            assert_eq!(of(patch.clone()), [], "{patch}");
        }
    }

    #[test]
    fn what_overlaps_is_one_effect_and_what_does_not_is_several() {
        let patch = json!([
            {"op": "replace", "path": "/o/a", "value": 2},
            {"op": "replace", "path": "/o/b/c", "value": 5},
            {"op": "replace", "path": "/o/b", "value": {"d": 1}},
            {"op": "replace", "path": "/n", "value": 1},
            {"op": "replace", "path": "/n", "value": null},
        ]);
        let both = [
            effect("/o/a", json!(1), json!(2)),
            effect("/o/b", json!({"c": 1}), json!({"d": 1})),
        ];
        assert_eq!(of(patch), both);
    }

    #[test]
    fn where_elements_move_the_list_has_changed() {
        let patch = json!([
            {"op": "replace", "path": "/l/2", "value": 9},
            {"op": "remove", "path": "/l/0"},
            {"op": "add", "path": "/l/-", "value": 10},
        ]);
        let list = effect("/l", json!([1, 2, 3]), json!([2, 9, 10]));
        assert_eq!(of(patch), [list]);
    }

    #[test]
    fn null_is_not_nothing() {
        let gone = ("/n".to_owned(), Some(Value::Null), None);
        assert_eq!(of(json!([{"op": "remove", "path": "/n"}])), [gone]);
    }
}
