//! Patches (RFC 6902): applied completely or not at all, undone exactly, and the same when read again from the
//! log.

use serde_json::{Map, Number, Value};

use super::input::{parts, text};
use gatewren_store::state::{Patch, PatchOperation, Pointer, diff, put};

/// First part: a document; second part: a patch.
pub fn change_whole_or_nothing(data: &[u8]) {
    let [document, patch] = parts(data);
    let Some(document) = object(document) else {
        return;
    };
    let Some(Ok(patch)) = text(patch).map(Patch::parse) else {
        return;
    };
    is_read_again(&patch);
    let mut result = document.clone();
    match patch.apply(&mut result) {
        Ok(changes) => {
            assert_eq!(by_the_book(&document, &patch), Some(result.clone()));
            assert!(result.is_object(), "the document stays an object");
            survives_the_log(&result);
            let back = changes.into_iter().rev();
            back.for_each(|change| change.undo(&mut result));
        }
        Err(_) => assert!(by_the_book(&document, &patch).is_none(), "{patch:?}"),
    }
    assert_eq!(result, document, "reverted, or never applied");
}

/// Input parts: two documents, and a path.
pub fn lead_from_one_to_the_other(data: &[u8]) {
    let [old, new, place] = parts(data);
    let (Some(old), Some(new)) = (object(old), object(new)) else {
        return;
    };
    let patch = Patch::new(diff(&Pointer::root(), &old, &new));
    is_read_again(&patch);
    let mut changed = old.clone();
    assert!(patch.apply(&mut changed).is_ok(), "{patch:?}");
    assert_eq!(changed, new);
    assert_eq!(
        patch.is_empty(),
        old == new,
        "a patch is empty exactly if nothing changed"
    );
    if let Some(Ok(place)) = text(place).map(Pointer::parse) {
        written_there(&old, &new, &place);
    }
}

/// Asserts that a value put at a path is found there, unless a parent on the path is not an object.
fn written_there(old: &Value, value: &Value, place: &Pointer) {
    let mut changed = old.clone();
    let patch = Patch::new(put(old, place, Some(value.clone())));
    if patch.apply(&mut changed).is_ok() {
        // An index after the end of a list, or `-`, names another element once the value is there.
        let inserted = patch
            .operations()
            .iter()
            .any(|o| matches!(o, PatchOperation::Add { .. }));
        let stands = place.get(&changed) == Some(value);
        assert!(stands || inserted && place.get(old).is_none(), "{place}");
    } else {
        assert_eq!(changed, *old);
        assert!(
            place.get(old).is_none() && place.split_last().is_some(),
            "{place}"
        );
    }
    let patch = Patch::new(put(&changed, place, None));
    if !place.tokens().is_empty() {
        assert!(patch.apply(&mut changed).is_ok(), "{place}");
    }
}

/// A document within our depth limit.
fn object(data: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(data).ok()?;
    (value.is_object() && depth(&value) <= 100).then_some(value)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The log stores patches as text, and the document is rebuilt from them after a restart.
fn is_read_again(patch: &Patch) {
    let written = serde_json::to_string(patch).unwrap_or_default();
    assert_eq!(Patch::parse(&written).as_ref(), Ok(patch), "{written}");
}

fn survives_the_log(document: &Value) {
    let again = serde_json::from_str::<Value>(&document.to_string()).ok();
    assert_eq!(
        again.as_ref(),
        Some(document),
        "it differs when it is read again"
    );
}

/// RFC 6902 section 4, written only for clarity; `None` if one operation fails.
fn by_the_book(document: &Value, patch: &Patch) -> Option<Value> {
    let mut document = document.clone();
    for operation in patch.operations() {
        let at = operation.path().to_string();
        match operation {
            PatchOperation::Test { value, .. } => {
                let there = document.pointer(&at)?;
                same(there, value).then_some(())?;
            }
            PatchOperation::Replace { value, .. } => {
                fits(operation.path(), value)?;
                *document.pointer_mut(&at)? = value.clone();
            }
            PatchOperation::Remove { path } => drop(take(&mut document, path)?),
            PatchOperation::Add { path, value } => {
                fits(path, value)?;
                place(&mut document, path, value.clone())?;
            }
        }
    }
    Some(document)
}

/// Our two limits: the document is an object, and at most 100 levels deep.
fn fits(path: &Pointer, value: &Value) -> Option<()> {
    let at_root = path.tokens().is_empty();
    let fits = path.tokens().len() + depth(value) <= 100 && (!at_root || value.is_object());
    fits.then_some(())
}

fn above<'d>(document: &'d mut Value, path: &Pointer) -> Option<(&'d mut Value, String)> {
    let (above, key) = path.split_last()?;
    Some((document.pointer_mut(&above.to_string())?, key.to_owned()))
}

fn take(document: &mut Value, path: &Pointer) -> Option<Value> {
    let there = document.pointer(&path.to_string())?.clone();
    match above(document, path)? {
        (Value::Object(map), key) => map.remove(&key),
        (Value::Array(list), key) => Some(list.remove(key.parse().ok()?)),
        _ => Some(there),
    }
}

fn place(document: &mut Value, path: &Pointer, value: Value) -> Option<()> {
    if path.tokens().is_empty() {
        *document = value;
        return Some(());
    }
    match above(document, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
            Some(())
        }
        (Value::Array(list), key) => {
            let index = match key.as_str() {
                "-" => list.len(),
                "0" => 0,
                digits if digits.starts_with(|c: char| matches!(c, '1'..='9')) => {
                    digits.parse().ok().filter(|index| *index <= list.len())?
                }
                _ => return None,
            };
            list.insert(index, value);
            Some(())
        }
        _ => None,
    }
}

/// RFC 6902 section 4.6: numbers are equal if their values are.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => match (whole(a), whole(b)) {
            (None, None) => a.as_f64() == b.as_f64(),
            (a, b) => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let in_b = |(key, value): (&String, &Value)| b.get(key).is_some_and(|b| same(value, b));
            a.len() == b.len() && Map::iter(a).all(in_b)
        }
        _ => one == other,
    }
}

/// A number without a fraction, exactly: two different large integers can be equal as floats.
fn whole(number: &Number) -> Option<i128> {
    let digits = match number.as_f64() {
        Some(float) if number.is_f64() => format!("{float:.0}"),
        _ => number.to_string(),
    };
    let fraction = number.as_f64().is_some_and(|float| float.fract() != 0.0);
    digits.parse().ok().filter(|_| !fraction)
}
