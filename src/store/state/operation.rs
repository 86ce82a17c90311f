//! One operation of a patch, what it changed, and how to undo it.

use std::fmt;
use std::mem;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::pointer::{InvalidPointer, MAX_DEPTH, Pointer, array_index};
use super::size::{entry_len, key_len, text_len};

/// One step of a patch (RFC 6902, section 4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Set a key, or insert into a list.
    Add {
        /// The place; its parent must exist.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Remove a value.
    Remove {
        /// The place; it must exist.
        path: Pointer,
    },
    /// Replace a value.
    Replace {
        /// The place; it must exist.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Continue only if the place has this value.
    Test {
        /// The place.
        path: Pointer,
        /// The value; numbers are compared by value.
        value: Value,
    },
}

/// What one operation changed.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedChange {
    /// The place, with `-` resolved to an index.
    pub at: Pointer,
    /// The value before.
    pub old: Option<Value>,
    /// The value after.
    pub new: Option<Value>,
    /// Whether the later elements of a list moved by one.
    pub moved_others: bool,
    /// The growth of the document in bytes as compact JSON text; negative if it shrank.
    pub growth: i64,
}

/// Why an operation is invalid or cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchOperationError {
    /// It is not a JSON object with an `op`.
    NotAnOperation,
    /// `move` or `copy`.
    MoveOrCopy,
    /// An `op` that RFC 6902 does not define.
    UnknownOp,
    /// It lacks this member.
    Lacks(&'static str),
    /// Its path is not a valid pointer.
    Path(InvalidPointer),
    /// It would remove the whole document, or turn it into something other than an object.
    Root,
    /// The value to remove or replace does not exist.
    Missing,
    /// The object or list to write into does not exist.
    NoParent,
    /// The parent is neither an object nor a list.
    Scalar,
    /// The list has no such index.
    Index,
    /// A test failed.
    Differs,
    /// The document would be deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl PatchOperation {
    /// Reads an operation from its JSON value; members that RFC 6902 does not name are ignored.
    pub fn from_value(value: Value) -> Result<Self, PatchOperationError> {
        let Value::Object(mut members) = value else {
            return Err(PatchOperationError::NotAnOperation);
        };
        let op = members
            .get("op")
            .and_then(Value::as_str)
            .ok_or(PatchOperationError::NotAnOperation)?;
        let op = op.to_owned();
        if op == "move" || op == "copy" {
            return Err(PatchOperationError::MoveOrCopy);
        }
        let path = members
            .get("path")
            .and_then(Value::as_str)
            .ok_or(PatchOperationError::Lacks("path"))?;
        let path = Pointer::parse(path).map_err(PatchOperationError::Path)?;
        let value = members
            .remove("value")
            .ok_or(PatchOperationError::Lacks("value"));
        match op.as_str() {
            "add" => Ok(Self::Add {
                path,
                value: value?,
            }),
            "remove" => Ok(Self::Remove { path }),
            "replace" => Ok(Self::Replace {
                path,
                value: value?,
            }),
            "test" => Ok(Self::Test {
                path,
                value: value?,
            }),
            _ => Err(PatchOperationError::UnknownOp),
        }
    }

    /// The place of the operation.
    pub fn path(&self) -> &Pointer {
        match self {
            Self::Add { path, .. }
            | Self::Remove { path }
            | Self::Replace { path, .. }
            | Self::Test { path, .. } => path,
        }
    }

    /// Applies the operation and returns the change; a test changes nothing.
    pub fn apply(
        &self,
        document: &mut Value,
    ) -> Result<Option<AppliedChange>, PatchOperationError> {
        match self {
            Self::Add { path, value } => {
                shallow_enough(path, value)?;
                add(document, path, value.clone()).map(Some)
            }
            Self::Remove { path } => remove(document, path).map(Some),
            Self::Replace { path, value } => {
                shallow_enough(path, value)?;
                replace(document, path, value.clone()).map(Some)
            }
            Self::Test { path, value } => match path.get(document) {
                Some(found) if same(found, value) => Ok(None),
                _ => Err(PatchOperationError::Differs),
            },
        }
    }
}

impl AppliedChange {
    /// A change that moves nothing else.
    fn in_place(at: &Pointer, old: Option<Value>, new: Option<Value>, growth: i64) -> Self {
        Self {
            at: at.clone(),
            old,
            new,
            moved_others: false,
            growth,
        }
    }

    /// Undoes the change; all later changes must have been undone already.
    pub fn undo(self, document: &mut Value) {
        let undone = match (self.old, self.new) {
            (Some(old), Some(_)) => replace(document, &self.at, old),
            (Some(old), None) => add(document, &self.at, old),
            (None, _) => remove(document, &self.at),
        };
        debug_assert!(undone.is_ok(), "an applied change can be undone");
    }
}

fn add(
    document: &mut Value,
    path: &Pointer,
    value: Value,
) -> Result<AppliedChange, PatchOperationError> {
    let Some((above, key)) = path.split_last() else {
        return replace(document, path, value);
    };
    let new = Some(value.clone());
    match find_mut(document, &above).ok_or(PatchOperationError::NoParent)? {
        Value::Object(map) => {
            let old = map.insert(key.to_owned(), value);
            let grown = match &old {
                Some(old) => text_len(&new) - text_len(old),
                None => key_len(key) + entry_len(&new, map.len()),
            };
            Ok(AppliedChange::in_place(path, old, new, grown))
        }
        Value::Array(list) => {
            let end = list.len();
            let index = if key == "-" {
                Some(end)
            } else {
                array_index(key)
            };
            let index = index
                .filter(|i| *i <= end)
                .ok_or(PatchOperationError::Index)?;
            list.insert(index, value);
            let at = above.child(index.to_string());
            let growth = entry_len(&new, list.len());
            let moved_others = index < end;
            Ok(AppliedChange {
                moved_others,
                ..AppliedChange::in_place(&at, None, new, growth)
            })
        }
        _ => Err(PatchOperationError::Scalar),
    }
}

fn remove(document: &mut Value, path: &Pointer) -> Result<AppliedChange, PatchOperationError> {
    let (above, key) = path.split_last().ok_or(PatchOperationError::Root)?;
    match find_mut(document, &above).ok_or(PatchOperationError::Missing)? {
        Value::Object(map) => {
            let entries = map.len();
            let old = Some(map.remove(key).ok_or(PatchOperationError::Missing)?);
            let shrunk = key_len(key) + entry_len(&old, entries);
            Ok(AppliedChange::in_place(path, old, None, -shrunk))
        }
        Value::Array(list) => {
            let index = array_index(key)
                .filter(|i| *i < list.len())
                .ok_or(PatchOperationError::Missing)?;
            let entries = list.len();
            let old = Some(list.remove(index));
            let shrunk = entry_len(&old, entries);
            let moved_others = index < list.len();
            Ok(AppliedChange {
                moved_others,
                ..AppliedChange::in_place(path, old, None, -shrunk)
            })
        }
        _ => Err(PatchOperationError::Missing),
    }
}

fn replace(
    document: &mut Value,
    path: &Pointer,
    value: Value,
) -> Result<AppliedChange, PatchOperationError> {
    if path.tokens().is_empty() && !value.is_object() {
        return Err(PatchOperationError::Root);
    }
    let place = find_mut(document, path).ok_or(PatchOperationError::Missing)?;
    let new = Some(value.clone());
    let old = Some(mem::replace(place, value));
    let growth = text_len(&new) - text_len(&old);
    Ok(AppliedChange::in_place(path, old, new, growth))
}

fn find_mut<'v>(document: &'v mut Value, path: &Pointer) -> Option<&'v mut Value> {
    path.tokens()
        .iter()
        .try_fold(document, |value, token| match value {
            Value::Object(map) => map.get_mut(token),
            Value::Array(list) => list.get_mut(array_index(token)?),
            _ => None,
        })
}

fn shallow_enough(path: &Pointer, value: &Value) -> Result<(), PatchOperationError> {
    let deep = path.tokens().len() + depth(value) > MAX_DEPTH;
    if deep {
        Err(PatchOperationError::TooDeep)
    } else {
        Ok(())
    }
}

/// The nesting depth of lists and objects in a value.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Equality by RFC 6902: numbers are compared by value, so that 1 and 1.0 are equal.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let found = |(key, a)| b.get(key).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(found)
        }
        _ => a == b,
    }
}

/// Compares as floats only if one of them is a float: different large integers can be the same float.
fn same_number(a: &Number, b: &Number) -> bool {
    match (a.is_f64(), b.is_f64()) {
        (false, false) => false,
        (true, true) => a.as_f64() == b.as_f64(),
        (true, false) => is_float(b, a),
        (false, true) => is_float(a, b),
    }
}

/// Returns whether an integer is exactly a float's value, by its digits.
fn is_float(integer: &Number, float: &Number) -> bool {
    let same = integer.as_f64() == float.as_f64();
    // Adding 0.0 turns a negative zero into a positive one.
    same && float.as_f64().map(|f| format!("{:.0}", f + 0.0)) == Some(integer.to_string())
}

impl fmt::Display for PatchOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self {
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
            Self::Replace { .. } => "replace",
            Self::Test { .. } => "test",
        };
        write!(f, "{op} \"{}\"", self.path())
    }
}

impl fmt::Display for PatchOperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnOperation => {
                f.write_str("an operation is an object with a string member `op`")
            }
            Self::MoveOrCopy => f.write_str(
                "`move` and `copy` are not supported: use `remove` and `add` with the value",
            ),
            Self::UnknownOp => f.write_str("the operations are add, remove, replace and test"),
            Self::Lacks(member) => write!(f, "it has no `{member}`"),
            Self::Path(why) => write!(f, "its path is not a JSON Pointer: {why}"),
            Self::Root => {
                f.write_str("the whole document must remain an object and cannot be removed")
            }
            Self::Missing => f.write_str("path not found"),
            Self::NoParent => f.write_str("parent path not found: add the parent first"),
            Self::Scalar => f.write_str("the parent is neither an object nor a list"),
            Self::Index => f.write_str("the list has no such index"),
            Self::Differs => f.write_str("the value differs from the value of the test"),
            Self::TooDeep => write!(
                f,
                "the document would exceed the limit of {MAX_DEPTH} levels"
            ),
        }
    }
}
