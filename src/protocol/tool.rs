//! A tool's definition on the wire, and the rules for its name and its header parameters.

use serde::Serialize;
use serde_json::{Map, Value};

/// A tool as `tools/list` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The name that `tools/call` takes.
    pub name: String,
    /// Its name for people; 2025-06-18 and later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description, for the model.
    pub description: String,
    /// Its arguments: JSON Schema 2020-12, `type: object` at the root.
    pub input_schema: Value,
    /// Its structured result; 2025-06-18 and later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints.
    pub annotations: ToolAnnotations,
    /// Further metadata; 2025-06-18 and later.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The possible effects of calling a tool: hints, not promises. The specification gives the two in the middle no
/// meaning for a tool that changes nothing, so they are left out.
#[expect(clippy::struct_field_names, reason = "the specification's four hints")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// It changes nothing. Absent means that it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy or interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice has the same effect as calling it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond this host.
    pub open_world_hint: bool,
}

/// The only supported dialect of schemas, whether a schema names it or not.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns whether a tool may have this name (2025-11-25, server/tools). The specification's limit is 128; the
/// conformance suite's is 64, and so is ours.
pub fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// Returns whether every client accepts this name: dots, hyphens and long names break some of them.
pub fn is_portable_name(name: &str) -> bool {
    (1..=48).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Returns the parameters that clients repeat as `Mcp-Param-*`: header name and the path of property names to it.
///
/// By the specification, clients drop a tool whose annotations are invalid, so an invalid one is an error here. The
/// name must be a token, unique regardless of case. It must be on a string, integer or boolean that is reached only
/// through `properties`.
pub fn header_parameters(schema: &Value) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    if count_annotations(schema) != found.len() {
        return Err("x-mcp-header is allowed only on (nested) `properties`".to_owned());
    }
    for (index, (name, _)) in found.iter().enumerate() {
        if found
            .iter()
            .skip(index + 1)
            .any(|(other, _)| other.eq_ignore_ascii_case(name))
        {
            return Err(format!("duplicate x-mcp-header {name:?}"));
        }
    }
    Ok(found)
}

/// Checks that a schema can be shown to clients. It must be in the dialect JSON Schema 2020-12, and must not refer
/// to a document that would have to be fetched (2026-07-28, basic).
pub fn check_dialect(schema: &Value) -> Result<(), String> {
    match schema {
        Value::Object(object) => {
            // An object would be the schema of a property with that name.
            let named = object.get("$schema").filter(|named| !named.is_object());
            if let Some(other) = named.filter(|named| **named != DIALECT) {
                return Err(format!("unsupported dialect {other}; use {DIALECT}"));
            }
            for name in ["$ref", "$dynamicRef"] {
                let target = object.get(name).and_then(Value::as_str);
                if let Some(away) = target.filter(|target| !target.starts_with('#')) {
                    return Err(format!("{name} {away:?} refers to another document"));
                }
            }
            object.values().try_for_each(check_dialect)
        }
        Value::Array(items) => items.iter().try_for_each(check_dialect),
        _ => Ok(()),
    }
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<(String, Vec<String>)>,
) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (property, inner) in properties {
        path.push(property.clone());
        if let Some(annotation) = inner.get("x-mcp-header") {
            let name = annotation.as_str().filter(|n| is_token(n));
            let name =
                name.ok_or_else(|| format!("x-mcp-header of {property:?} is not a header token"))?;
            let kind = inner.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Err(format!(
                    "x-mcp-header of {property:?} requires the type string, integer or boolean"
                ));
            }
            found.push((name.to_owned(), path.clone()));
        }
        collect(inner, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Counts every annotation, anywhere. In doubt it counts, because a client may treat it as one.
fn count_annotations(schema: &Value) -> usize {
    match schema {
        Value::Object(object) => {
            let inside = object.iter().map(|(keyword, inner)| match inner {
                _ if keyword == "x-mcp-header" => 1,
                Value::Object(named) if HOLD_NAMES.contains(&keyword.as_str()) => {
                    named.values().map(count_annotations).sum()
                }
                _ => count_annotations(inner),
            });
            inside.sum()
        }
        Value::Array(items) => items.iter().map(count_annotations).sum(),
        _ => 0,
    }
}

/// Keywords whose object holds schemas by name: there `x-mcp-header` is a name like any other.
const HOLD_NAMES: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

impl ToolDefinition {
    /// Returns the argument at a path of property names; absent and null are the same.
    pub fn argument<'a>(arguments: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        let start = arguments.get(first)?;
        rest.iter()
            .try_fold(start, |at, name| at.get(name))
            .filter(|v| !v.is_null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn j11_j12_a_schema_of_another_dialect_or_from_elsewhere_is_refused() {
        for good in [
            json!({"type": "object"}),
            json!({"$schema": DIALECT, "$defs": {"a": {"$anchor": "a"}}, "$ref": "#a"}),
            json!({"properties": {"$schema": {"type": "string"}, "$ref": {"type": "string"}}}),
        ] {
            assert_eq!(check_dialect(&good), Ok(()), "{good}");
        }
        for bad in [
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            json!({"$schema": 7}),
            json!({"properties": {"a": {"items": [{"$ref": "https://example.com/a.json"}]}}}),
            json!({"allOf": [{"$dynamicRef": "other.json#a"}]}),
        ] {
            assert!(check_dialect(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn m8_header_parameters_are_found_through_properties_only() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}}});
        let mut found = header_parameters(&schema).unwrap();
        found.sort();
        assert_eq!(found[0], ("N".into(), vec!["deep".into(), "n".into()]));
        assert_eq!(found[1], ("Region".into(), vec!["region".into()]));
        for bad in [
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "X"}, "b": {"type": "string", "x-mcp-header": "x"}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"properties": {"a": {"type": "array", "items": {"x-mcp-header": {}}}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "a\r\nb"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": 7}}}),
            json!({"properties": {"a": {"x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}}),
            json!({"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]}),
            json!({"if": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}}),
        ] {
            assert!(header_parameters(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_property_may_be_called_like_the_annotation() {
        for named in [json!(true), json!({"type": "string"})] {
            let schema = json!({"properties": {"x-mcp-header": named}});
            assert_eq!(header_parameters(&schema), Ok(Vec::new()), "{schema}");
        }
    }
}
