//! Checks tool definitions against the known limits of the validators of model providers, one rule for each.
//!
//! Clients pass tools on to their model's provider. If it rejects one tool, it rejects the whole request with all
//! tools. The rules come from reports; each rule names one.

use serde_json::{Map, Value};

use crate::protocol;

/// Keywords that every provider reads or ignores. Deliberately left out are those that some provider rejects:
/// `$ref`, `$defs`, `oneOf`, `allOf`, `not`, `const`, `if`, `prefixItems`, `patternProperties`, `exclusiveMinimum`,
/// `uniqueItems` (Gemini until 2025-11-05: samchon.github.io/openapi, `IGeminiSchema`), and `format`, of which
/// Gemini knows only `enum` and `date-time` (Firebase AI reference, `SchemaInterface.format`).
const KEYWORDS: &[&str] = &[
    "additionalProperties",
    "default",
    "description",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
];

/// `OpenAI`'s limit for the description of a function (API reference, `tools[].function`); a longer one fails the
/// request.
const MAX_DESCRIPTION: usize = 1024;

/// `OpenAI`'s limit for nested objects in schemas of functions (Structured Outputs, "Objects have limitations").
const MAX_DEPTH: usize = 5;

/// The reasons why some client could not use this tool; empty if every client can.
pub fn complaints(tool: &protocol::ToolDefinition) -> Vec<String> {
    let mut found = Vec::new();
    let Some(root) = tool.input_schema.as_object() else {
        return vec!["its schema is not an object".to_owned()];
    };
    // "schema must be a JSON Schema of type: object" (OpenAI; vercel/ai issue 1485).
    if root.get("type").and_then(Value::as_str) != Some("object") {
        found.push("the root is not of type object".to_owned());
    }
    // `properties` must be present and an object, even if it is empty (OpenAI; laravel-gpt issue 8).
    if !root.get("properties").is_some_and(Value::is_object) {
        found.push("the root has no properties".to_owned());
    }
    if root.get("additionalProperties") != Some(&Value::Bool(false)) {
        found.push("it accepts arguments that it does not declare".to_owned());
    }
    if tool.description.chars().count() > MAX_DESCRIPTION {
        found.push(format!("its description is longer than {MAX_DESCRIPTION}"));
    }
    if !protocol::is_portable_name(&tool.name) {
        found.push("some clients reject its name".to_owned());
    }
    look(root, "", 0, &mut found);
    found
}

fn look(schema: &Map<String, Value>, place: &str, depth: usize, found: &mut Vec<String>) {
    let mut complain = |what: String| found.push(format!("{place}: {what}"));
    for keyword in schema.keys().filter(|k| !KEYWORDS.contains(&k.as_str())) {
        complain(format!("some clients do not support {keyword}"));
    }
    if depth > MAX_DEPTH {
        complain(format!("it is nested deeper than {MAX_DEPTH} levels"));
    }
    // Gemini rejects a list of types, and a missing type (zereight/gitlab-mcp issue 166).
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("");
    if !["array", "boolean", "integer", "number", "object", "string"].contains(&kind) {
        complain("it has no type, or more than one".to_owned());
    }
    // Gemini: "only allowed for OBJECT type" (opencode issue 11889).
    if kind != "object" && (schema.contains_key("properties") || schema.contains_key("required")) {
        complain("properties are allowed only in an object".to_owned());
    }
    // OpenAI: "array schema missing items" (sigoden/aichat pull request 1049).
    if (kind == "array") != schema.get("items").is_some_and(Value::is_object) {
        complain("an array must have items, and no other type may".to_owned());
    }
    // Gemini accepts only strings as values, and no empty string.
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let good = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        if values.is_empty() || !values.iter().all(good) || kind != "string" {
            complain("an enum must be a list of strings".to_owned());
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(required) = schema.get("required").and_then(Value::as_array) {
        // Gemini: "property is not defined".
        for name in required.iter().filter_map(Value::as_str) {
            if !properties.is_some_and(|all| all.contains_key(name)) {
                complain(format!("{name} is required but not declared"));
            }
        }
    }
    for (name, inner) in properties.into_iter().flatten() {
        let place = format!("{place}/{name}");
        match inner.as_object() {
            // "True is not of type object" (OpenAI).
            None => found.push(format!("{place}: it is not an object")),
            Some(inner) => {
                if !inner.get("description").is_some_and(Value::is_string) {
                    found.push(format!("{place}: it has no description"));
                }
                look(inner, &place, depth + 1, found);
            }
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(keyword).and_then(Value::as_object) {
            look(inner, &format!("{place}/{keyword}"), depth + 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::ToolAnnotations;

    fn of(property: &Value) -> Vec<String> {
        complaints(&protocol::ToolDefinition {
            name: "a".to_owned(),
            title: None,
            description: String::new(),
            input_schema: json!({ "type": "object", "additionalProperties": false, "properties": { "p": property } }),
            output_schema: None,
            annotations: ToolAnnotations {
                read_only_hint: Some(true),
                destructive_hint: None,
                idempotent_hint: None,
                open_world_hint: false,
            },
            meta: None,
        })
    }

    #[test]
    fn what_is_refused_somewhere_is_found() {
        let good = json!({ "type": "array", "items": { "type": "string" }, "description": "d" });
        assert_eq!(of(&good), [""; 0]);
        for bad in [
            json!(true),
            json!({ "type": "string" }),
            json!({ "description": "d" }),
            json!({ "type": ["string", "null"], "description": "d" }),
            json!({ "type": "array", "description": "d" }),
            json!({ "type": "string", "format": "uint32", "description": "d" }),
            json!({ "type": "string", "enum": ["", "a"], "description": "d" }),
            json!({ "type": "integer", "enum": [1], "description": "d" }),
            json!({ "type": "string", "properties": {}, "description": "d" }),
            json!({ "type": "object", "properties": {}, "required": ["x"], "description": "d" }),
            json!({ "anyOf": [{ "type": "string" }], "description": "d" }),
        ] {
            assert!(!of(&bad).is_empty(), "{bad}");
        }
    }
}
