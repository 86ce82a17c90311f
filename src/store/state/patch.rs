//! Patches (RFC 6902 without `move` and `copy`): the change of one revision, applied whole or not at all.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::operation::{AppliedChange, PatchOperation, PatchOperationError};

/// The most operations of one patch; larger patches are rejected.
const MAX_OPERATIONS: usize = 10_000;

/// A list of operations that belong together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch {
    operations: Vec<PatchOperation>,
}

/// Why a patch is invalid or does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchError {
    /// It is not a JSON array of operations.
    NotAList,
    /// It has more than 10,000 operations.
    TooMany,
    /// Its text has more bytes than this.
    TooLong(usize),
    /// It would make the document too large.
    Outgrown {
        /// The size that the document would have as JSON text, in bytes.
        bytes: i64,
        /// The largest size that is allowed.
        most: i64,
    },
    /// One operation is invalid or cannot be applied.
    Operation {
        /// Its position, from 0.
        index: usize,
        /// The operation, such as `remove /public/a`; empty if it could not be parsed.
        operation: String,
        /// What is wrong with it.
        obstacle: PatchOperationError,
    },
}

impl Patch {
    /// Returns a patch of these operations.
    pub fn new(operations: Vec<PatchOperation>) -> Self {
        Self { operations }
    }

    /// Reads a patch from its JSON text.
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        let value = serde_json::from_str(text).map_err(|_| PatchError::NotAList)?;
        Self::from_value(value)
    }

    /// Reads a patch from its JSON value.
    pub fn from_value(value: Value) -> Result<Self, PatchError> {
        let Value::Array(list) = value else {
            return Err(PatchError::NotAList);
        };
        if list.len() > MAX_OPERATIONS {
            return Err(PatchError::TooMany);
        }
        let read = |(index, value): (usize, Value)| {
            PatchOperation::from_value(value).map_err(|obstacle| PatchError::Operation {
                index,
                operation: String::new(),
                obstacle,
            })
        };
        let operations = list
            .into_iter()
            .enumerate()
            .map(read)
            .collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }

    /// The operations in their order.
    pub fn operations(&self) -> &[PatchOperation] {
        &self.operations
    }

    /// Returns whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies every operation to `document` and returns the changes. If one operation fails, `document` is left
    /// unchanged.
    pub fn apply(&self, document: &mut Value) -> Result<Vec<AppliedChange>, PatchError> {
        let mut changes = Vec::with_capacity(self.operations.len());
        for (index, operation) in self.operations.iter().enumerate() {
            match operation.apply(document) {
                Ok(change) => changes.extend(change),
                Err(obstacle) => {
                    changes
                        .into_iter()
                        .rev()
                        .for_each(|change| change.undo(document));
                    return Err(PatchError::Operation {
                        index,
                        operation: operation.to_string(),
                        obstacle,
                    });
                }
            }
        }
        Ok(changes)
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAList => f.write_str("a patch is a JSON array of operations (RFC 6902)"),
            Self::TooMany => write!(f, "a patch has at most {MAX_OPERATIONS} operations"),
            Self::TooLong(most) => write!(f, "a patch has at most {most} bytes of JSON: split it"),
            Self::Outgrown { bytes, most } => write!(
                f,
                "the document would have {bytes} bytes as JSON, the limit is {most}: remove something first"
            ),
            Self::Operation {
                index,
                operation,
                obstacle,
            } if operation.is_empty() => {
                write!(f, "operation {index}: {obstacle}")
            }
            Self::Operation {
                index,
                operation,
                obstacle,
            } => {
                write!(f, "operation {index} ({operation}): {obstacle}")
            }
        }
    }
}

impl std::error::Error for PatchError {}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use gatewren_base::sys::skip;

    fn apply_patch(mut document: Value, patch: &Value) -> Result<Value, String> {
        Patch::from_value(patch.clone())
            .and_then(|patch| patch.apply(&mut document))
            .map(|_| document)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (document, patch, result) in [
            (
                json!({"foo": "bar"}),
                json!([{"op": "add", "path": "/baz", "value": "qux"}]),
                json!({"foo": "bar", "baz": "qux"}),
            ),
            (
                json!({"foo": ["bar", "baz"]}),
                json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
                json!({"foo": ["bar", "qux", "baz"]}),
            ),
            (
                json!({"foo": ["bar", "qux", "baz"]}),
                json!([{"op": "remove", "path": "/foo/1"}]),
                json!({"foo": ["bar", "baz"]}),
            ),
            (
                json!({"foo": ["bar"]}),
                json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]),
                json!({"foo": ["bar", ["abc", "def"]]}),
            ),
            (
                json!({"foo": 1}),
                json!([{"op": "replace", "path": "/foo", "value": 2, "xyz": 123}]),
                json!({"foo": 2}),
            ),
            (
                json!({"/": 9, "~1": 10}),
                json!([{"op": "test", "path": "/~01", "value": 10.0}]),
                json!({"/": 9, "~1": 10}),
            ),
        ] {
            assert_eq!(apply_patch(document, &patch), Ok(result), "{patch}");
        }
    }

    /// The cases of <https://github.com/json-patch/json-patch-tests> (Apache-2.0), which `tests/run` installs and
    /// names in `JSON_PATCH_SUITE`; also the cases that are disabled there.
    #[test]
    fn the_suite_of_the_rfcs_community() {
        let Some(folder) = std::env::var_os("JSON_PATCH_SUITE") else {
            skip("JSON_PATCH_SUITE names no folder with the cases; tests/run installs it");
            return;
        };
        let (mut applied, mut refused) = (0, 0);
        for name in ["tests.json", "spec_tests.json"] {
            let path = Path::new(&folder).join(name);
            let cases = std::fs::read_to_string(path).unwrap();
            for case in serde_json::from_str::<Vec<Value>>(&cases).unwrap() {
                match check_case(&case) {
                    Some(true) => applied += 1,
                    Some(false) => refused += 1,
                    None => {}
                }
            }
        }
        assert_eq!((applied, refused), (61, 34));
    }

    /// Asserts the expectation of a case and returns whether the patch was applied; `None` for a comment between
    /// cases.
    fn check_case(case: &Value) -> Option<bool> {
        let (document, patch) = (case.get("doc")?.clone(), case.get("patch")?);
        let before = document.clone();
        let found = apply_patch(document, patch);
        let ops = patch.as_array().into_iter().flatten();
        let mut ops = ops.filter_map(|operation| operation["op"].as_str());
        let expected = case.get("expected");
        if case.get("error").is_some() || ops.any(|op| op == "move" || op == "copy") {
            assert!(found.is_err(), "{case}");
        } else if expected.is_some_and(|expected| !expected.is_object() && before.is_string()) {
            // The whole document stays an object.
            assert!(found.unwrap_err().contains("the whole document"), "{case}");
            return Some(false);
        } else {
            // Without `expected`, the case only asserts that a test operation succeeds.
            assert_eq!(found.as_ref().ok(), expected.or(Some(&before)), "{case}");
        }
        Some(found.is_ok())
    }

    #[test]
    fn a_fraction_is_read_from_the_log_as_it_was_written() {
        let value = json!([122.964_214_033_786_59, 5e-324, 1e308, 0.1]);
        let patch = Patch::new(vec![PatchOperation::Add {
            path: "/f".parse().unwrap(),
            value,
        }]);
        let written = serde_json::to_string(&patch).unwrap();
        assert_eq!(Patch::parse(&written), Ok(patch));
    }

    #[test]
    fn large_numbers_that_a_float_cannot_tell_apart_differ() {
        let tested = |document: Value, value: Value| {
            let patch = json!([{"op": "test", "path": "/n", "value": value}]);
            apply_patch(document, &patch).is_ok()
        };
        let large = json!({"n": 9_007_199_254_740_993_u64});
        assert!(tested(large.clone(), json!(9_007_199_254_740_993_u64)));
        assert!(!tested(large.clone(), json!(9_007_199_254_740_992_u64)));
        assert!(!tested(large, json!(9_007_199_254_740_992.0)));
        assert!(!tested(
            json!({"n": u64::MAX}),
            json!(18_446_744_073_709_551_616.0)
        ));
        assert!(tested(json!({"n": 0}), json!(-0.0)));
        assert!(tested(json!({"n": 2.0}), json!(2)));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let document = json!({"a": {"b": [1, 2]}, "n": null, "s": "x"});
        for (patch, words) in [
            (json!({}), "JSON array"),
            (json!([1]), "operation 0: an operation is an object"),
            (
                json!([{"op": "move", "from": "/a", "path": "/b"}]),
                "`move` and `copy`",
            ),
            (
                json!([{"op": "copy", "from": "/a", "path": "/b"}]),
                "`move` and `copy`",
            ),
            (
                json!([{"op": "delete", "path": "/a"}]),
                "add, remove, replace and test",
            ),
            (json!([{"op": "add", "path": "/x"}]), "has no `value`"),
            (json!([{"op": "remove"}]), "has no `path`"),
            (json!([{"op": "remove", "path": "a"}]), "begins with '/'"),
            (json!([{"op": "remove", "path": ""}]), "the whole document"),
            (
                json!([{"op": "add", "path": "", "value": 1}]),
                "the whole document",
            ),
            (json!([{"op": "remove", "path": "/x"}]), "path not found"),
            (
                json!([{"op": "replace", "path": "/x", "value": 1}]),
                "path not found",
            ),
            (
                json!([{"op": "add", "path": "/x/y", "value": 1}]),
                "parent path not found",
            ),
            (
                json!([{"op": "add", "path": "/s/y", "value": 1}]),
                "neither an object nor a list",
            ),
            (
                json!([{"op": "add", "path": "/a/b/3", "value": 1}]),
                "no such index",
            ),
            (
                json!([{"op": "add", "path": "/a/b/x", "value": 1}]),
                "no such index",
            ),
            (
                json!([{"op": "test", "path": "/n", "value": 0}]),
                "differs from the value",
            ),
            (
                json!([{"op": "test", "path": "/m", "value": null}]),
                "differs from the value",
            ),
        ] {
            let error = apply_patch(document.clone(), &patch).unwrap_err();
            assert!(error.contains(words), "{patch}: {error}");
        }
    }

    #[test]
    fn null_is_a_value() {
        let set = json!([{"op": "add", "path": "/a", "value": null}]);
        assert_eq!(apply_patch(json!({}), &set), Ok(json!({"a": null})));
        let test = json!([{"op": "test", "path": "/a", "value": null}]);
        assert!(apply_patch(json!({"a": null}), &test).is_ok());
    }

    #[test]
    fn a_patch_applies_whole_or_not_at_all() {
        let before = json!({"a": {"b": 1}, "list": [1, 2, 3], "n": null});
        let mut document = before.clone();
        let patch = Patch::from_value(json!([
            {"op": "add", "path": "/new", "value": {"x": 1}},
            {"op": "replace", "path": "/a/b", "value": 2},
            {"op": "remove", "path": "/n"},
            {"op": "remove", "path": "/list/0"},
            {"op": "add", "path": "/list/1", "value": 9},
            {"op": "add", "path": "/list/-", "value": 10},
            {"op": "add", "path": "/a", "value": "other"},
            {"op": "add", "path": "", "value": {"fresh": true}},
            {"op": "test", "path": "/fresh", "value": false}
        ]))
        .unwrap();
        let error = patch.apply(&mut document).unwrap_err();
        assert!(
            matches!(error, PatchError::Operation { index: 8, .. }),
            "{error}"
        );
        assert_eq!(document, before);
    }

    #[test]
    fn the_document_stays_readable_by_ordinary_json_readers() {
        let deep = |depth: usize| {
            let mut value = json!(1);
            for _ in 0..depth {
                value = json!([value]);
            }
            json!([{"op": "add", "path": "/a/b", "value": value}])
        };
        assert!(apply_patch(json!({"a": {}}), &deep(98)).is_ok());
        let error = apply_patch(json!({"a": {}}), &deep(99)).unwrap_err();
        assert!(error.contains("100"), "{error}");
    }

    #[test]
    fn a_patch_is_written_as_it_was_read() {
        let text = r#"[{"op":"add","path":"/a~1b","value":null},{"op":"remove","path":"/c"}]"#;
        let patch = Patch::parse(text).unwrap();
        assert_eq!(serde_json::to_string(&patch).unwrap(), text);
    }
}
