//! Computes a small patch between two values, so that writing an unchanged value makes no revision.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::operation::PatchOperation;
use super::pointer::Pointer;

/// The most operations of a difference; a larger one becomes a single replacement.
const MAX_DIFFERENCES: usize = 1000;

/// Returns the operations that turn `old`, the value at `at`, into `new`; none if they are equal.
pub fn diff(at: &Pointer, old: &Value, new: &Value) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    values(at, old, new, &mut operations);
    if operations.len() > MAX_DIFFERENCES {
        return vec![replacement(at.clone(), new)];
    }
    operations
}

/// Returns the operations that set the value at `at` in `document`, or remove it if `value` is absent. Missing
/// parents are created as objects.
pub fn put(document: &Value, at: &Pointer, value: Option<Value>) -> Vec<PatchOperation> {
    match (at.get(document), value) {
        (Some(old), Some(new)) => diff(at, old, &new),
        (Some(_), None) => vec![PatchOperation::Remove { path: at.clone() }],
        (None, Some(new)) => vec![addition(document, at, new)],
        (None, None) => Vec::new(),
    }
}

/// Adds at the highest missing place.
fn addition(document: &Value, at: &Pointer, value: Value) -> PatchOperation {
    let mut path = at.clone();
    let mut value = value;
    while let Some((above, key)) = path.split_last() {
        if above.get(document).is_some() {
            break;
        }
        value = Value::Object(Map::from_iter([(key.to_owned(), value)]));
        path = above;
    }
    PatchOperation::Add { path, value }
}

fn values(at: &Pointer, old: &Value, new: &Value, operations: &mut Vec<PatchOperation>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => objects(at, old, new, operations),
        (Value::Array(old), Value::Array(new)) => lists(at, old, new, operations),
        _ if old == new => {}
        _ => operations.push(replacement(at.clone(), new)),
    }
}

fn objects(
    at: &Pointer,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    operations: &mut Vec<PatchOperation>,
) {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => values(&at.child(key), old, new, operations),
            (Some(_), None) => operations.push(PatchOperation::Remove {
                path: at.child(key),
            }),
            (None, Some(new)) => operations.push(PatchOperation::Add {
                path: at.child(key),
                value: new.clone(),
            }),
            (None, None) => {}
        }
    }
}

/// Keeps the common head and tail. Elements between them are changed in place; surplus elements are removed from
/// the back, and missing ones are added.
fn lists(at: &Pointer, old: &[Value], new: &[Value], operations: &mut Vec<PatchOperation>) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (
        old.get(head..).unwrap_or_default(),
        new.get(head..).unwrap_or_default(),
    );
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old_len, new_len) = (old.len() - tail, new.len() - tail);
    let both = old_len.min(new_len);

    let place = |index: usize| at.child((head + index).to_string());
    for (index, (old, new)) in old.iter().zip(new).take(both).enumerate() {
        values(&place(index), old, new, operations);
    }
    let removals = (both..old_len)
        .rev()
        .map(|index| PatchOperation::Remove { path: place(index) });
    operations.extend(removals);
    for (index, value) in new.iter().enumerate().take(new_len).skip(both) {
        let value = value.clone();
        operations.push(PatchOperation::Add {
            path: place(index),
            value,
        });
    }
}

fn replacement(path: Pointer, value: &Value) -> PatchOperation {
    let value = value.clone();
    PatchOperation::Replace { path, value }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::integrity::TestRng;
    use super::super::patch::Patch;
    use super::*;

    #[test]
    fn a_difference_applied_gives_the_other_document() {
        for seed in 1_u64..4000 {
            let mut rng = TestRng::new(seed);
            let old = Value::Object(rng.object(4));
            let new = Value::Object(rng.object(4));
            let patch = Patch::new(diff(&Pointer::root(), &old, &new));
            let mut document = old.clone();
            let changes = patch.apply(&mut document).unwrap();
            assert_eq!(document, new, "seed {seed}: {patch:?}");
            assert_eq!(patch.is_empty(), old == new, "seed {seed}");

            changes
                .into_iter()
                .rev()
                .for_each(|change| change.undo(&mut document));
            assert_eq!(document, old, "seed {seed}: undone {patch:?}");
        }
    }

    #[test]
    fn a_difference_is_small() {
        let count = |old: Value, new: Value| diff(&Pointer::root(), &old, &new).len();
        assert_eq!(
            count(json!({"l": [1, 2, 3, 4]}), json!({"l": [1, 3, 4]})),
            1
        );
        assert_eq!(
            count(json!({"l": [1, 3, 4]}), json!({"l": [1, 2, 3, 4]})),
            1
        );
        assert_eq!(
            count(
                json!({"l": [{"a": 1, "b": 2}]}),
                json!({"l": [{"a": 1, "b": 3}]})
            ),
            1
        );
        assert_eq!(count(json!({"a": null}), json!({})), 1);
        assert_eq!(
            count(
                json!({"a": 1, "b": {"c": 2}}),
                json!({"a": 1, "b": {"c": 2}})
            ),
            0
        );
        let many: Vec<u32> = (0..5000).collect();
        assert_eq!(count(json!({"l": []}), json!({ "l": many })), 1);
    }

    #[test]
    fn missing_places_above_are_made() {
        let mut document = json!({"public": {}});
        let at = Pointer::parse("/public/packageData/alpha/status").unwrap();
        let patch = Patch::new(put(&document, &at, Some(json!("running"))));
        patch.apply(&mut document).unwrap();
        assert_eq!(
            document,
            json!({"public": {"packageData": {"alpha": {"status": "running"}}}})
        );
        assert_eq!(put(&document, &at, Some(json!("running"))), []);
        assert_eq!(
            put(&document, &Pointer::parse("/public/x").unwrap(), None),
            []
        );
        let patch = Patch::new(put(&document, &at, None));
        patch.apply(&mut document).unwrap();
        assert_eq!(document, json!({"public": {"packageData": {"alpha": {}}}}));
    }
}
