//! The revisions since a cursor.

use serde::Serialize;
use serde_json::Value;

use super::log::LogRow;
use super::operation::PatchOperation;
use super::patch::Patch;
use super::pointer::{Pointer, array_index};
use super::visibility::Visibility;

/// What happened after the revision of a cursor.
#[derive(Debug, Clone, PartialEq)]
pub enum RevisionsSince {
    /// The log reaches back to the cursor.
    Revisions {
        /// The revisions that touch the scope, oldest first.
        revisions: Vec<Revision>,
        /// The next cursor: everything up to it has been examined.
        upto: u64,
        /// Whether more revisions after `upto` are already available.
        more: bool,
    },
    /// The log does not reach back to the cursor, or the cursor is of another database. The client reads the
    /// document again and continues from its revision.
    Resync {
        /// The oldest revision that is kept.
        floor: u64,
        /// The current revision of the document.
        upto: u64,
    },
}

/// Where to begin for everything since a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeCursor {
    /// The revision after which to look.
    pub after: u64,
    /// Whether the log reaches back to the time; otherwise older revisions of that time may have been trimmed.
    pub is_complete: bool,
}

/// One revision, limited to a scope.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Revision {
    /// Its number.
    pub id: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who wrote it: `observer`, `owner`, `agent:<id>` or `local:<program>`.
    pub actor: String,
    /// The audit id of the call that led to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The operations that touch the scope.
    pub patch: Patch,
}

impl Revision {
    /// Returns the part of the revision in `row` that touches `scope` and is visible; `None` if there is no such
    /// part.
    ///
    /// `document` is the current document. It decides whether a key of digits is a list index.
    pub fn in_scope(
        visibility: &Visibility,
        scope: &Pointer,
        row: LogRow,
        document: &Value,
    ) -> Option<Self> {
        let patch = Patch::parse(&row.patch).ok()?;
        let touching = patch
            .operations()
            .iter()
            .filter_map(|op| narrow_operation(op, scope, document))
            .filter_map(|op| visibility.operation(op));
        let patch = Patch::new(touching.collect());
        (!patch.is_empty()).then_some(Self {
            id: row.id,
            at_ms: row.at_ms,
            actor: visibility.author(row.actor),
            cause: visibility.cause(row.cause),
            patch,
        })
    }
}

impl Revision {
    /// Returns the row with its operations that touch `scope`, as they were written; `None` if none does.
    pub fn touching(scope: &Pointer, row: LogRow, document: &Value) -> Option<Self> {
        let patch = Patch::parse(&row.patch).ok()?;
        let operations = patch.operations().iter();
        let touching = operations.filter(|op| narrow_operation(op, scope, document).is_some());
        let patch = Patch::new(touching.cloned().collect());
        (!patch.is_empty()).then_some(Self {
            id: row.id,
            at_ms: row.at_ms,
            actor: row.actor,
            cause: row.cause,
            patch,
        })
    }
}

/// Limits an operation to `scope`. If it writes above the scope, it is cut down to the value that it puts there, so
/// that nothing outside is revealed. An operation cut down to a `remove` may find nothing to remove.
fn narrow_operation(
    operation: &PatchOperation,
    scope: &Pointer,
    document: &Value,
) -> Option<PatchOperation> {
    let at = operation.path();
    let value = match operation {
        PatchOperation::Test { .. } => return None,
        PatchOperation::Add { value, .. } | PatchOperation::Replace { value, .. } => Some(value),
        PatchOperation::Remove { .. } => None,
    };
    if scope.covers(at) || moves_others(operation, scope, document) {
        return Some(operation.clone());
    }
    let way = at.way_to(scope)?;
    let path = scope.clone();
    Some(match value.and_then(|value| way.get(value)) {
        Some(value) => PatchOperation::Add {
            path,
            value: value.clone(),
        },
        None => PatchOperation::Remove { path },
    })
}

/// Returns whether an insertion into a list, or a removal from it, moves or creates the element that contains
/// `scope`.
///
/// A value that is an object now counts as one at the time of the operation. Any other value may have been a list.
fn moves_others(operation: &PatchOperation, scope: &Pointer, document: &Value) -> bool {
    let Some((list, key)) = operation.path().split_last() else {
        return false;
    };
    if matches!(operation, PatchOperation::Replace { .. })
        || list.get(document).is_some_and(Value::is_object)
    {
        return false;
    }
    let way = list.way_to(scope);
    let element = way
        .as_ref()
        .and_then(|way| array_index(way.tokens().first()?));
    // The length of the list at that time, and so the element that `-` created, is not known.
    element.is_some_and(|element| key == "-" || array_index(key).is_some_and(|key| key <= element))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn in_scope(scope: &str, patch: &Value) -> Option<Value> {
        let row = LogRow {
            id: 1,
            at_ms: 0,
            actor: "owner".into(),
            cause: None,
            patch: patch.to_string(),
            oversize: false,
        };
        let document = json!({"public": {"list": [0, 1, 2], "jobs": {"1": 0, "2": 0}}});
        let scope = Pointer::parse(scope).unwrap();
        let revision = Revision::in_scope(&Visibility::whole(), &scope, row, &document)?;
        Some(serde_json::to_value(revision.patch).unwrap())
    }

    #[test]
    fn only_operations_that_touch_the_scope_are_shown() {
        let patch = json!([
            {"op": "test", "path": "/public/a", "value": 0},
            {"op": "add", "path": "/public/a/x", "value": 1},
            {"op": "add", "path": "/public/ab", "value": 2},
            {"op": "remove", "path": "/vault"}
        ]);
        let first = json!([{"op": "add", "path": "/public/a/x", "value": 1}]);
        assert_eq!(in_scope("/public/a", &patch), Some(first));
        assert_eq!(in_scope("/public/b", &patch), None);
    }

    #[test]
    fn what_is_written_above_the_scope_shows_nothing_outside_it() {
        let whole = json!([{"op": "replace", "path": "", "value":
            {"public": {"a": {"x": 1}}, "private": "key"}}]);
        let public = json!([{"op": "add", "path": "/public", "value": {"a": {"x": 1}}}]);
        assert_eq!(in_scope("/public", &whole), Some(public));
        let gone = json!([{"op": "remove", "path": "/public/b"}]);
        assert_eq!(in_scope("/public/b", &whole), Some(gone));
    }

    #[test]
    fn an_insertion_into_a_list_touches_what_stands_behind_it() {
        let insert = json!([{"op": "add", "path": "/public/list/1", "value": 9}]);
        assert_eq!(in_scope("/public/list/2", &insert), Some(insert.clone()));
        assert_eq!(in_scope("/public/list/0", &insert), None);
        let append = json!([{"op": "add", "path": "/public/list/-", "value": 9}]);
        assert_eq!(in_scope("/public/list/3", &append), Some(append.clone()));
        let key = json!([{"op": "add", "path": "/public/jobs/1", "value": 9}]);
        assert_eq!(in_scope("/public/jobs/2", &key), None);
        let gone = json!([{"op": "remove", "path": "/public/gone/0"}]);
        assert_eq!(in_scope("/public/gone/1", &gone), Some(gone.clone()));
    }
}
