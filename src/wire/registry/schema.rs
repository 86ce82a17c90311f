//! JSON Schemas of argument structs, in a plain form that every client's validator accepts.

use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments, and its description.
pub fn of_arguments<A: JsonSchema>() -> (Value, Option<String>) {
    arguments(A::json_schema)
}

/// The schema of a tool's structured answer: fields that are omitted when empty are optional.
pub fn of_answer<R: JsonSchema>() -> Value {
    of(R::json_schema, Contract::Serialize).0
}

/// The schema function of a type. It is a function pointer, so that its callers are compiled once and not for each
/// type.
type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

fn arguments(schema_fn: SchemaFn) -> (Value, Option<String>) {
    let (mut schema, description) = of(schema_fn, Contract::Deserialize);
    if let Some(object) = schema.as_object_mut() {
        object.insert("type".into(), json!("object"));
        object.entry("properties").or_insert_with(|| json!({}));
        object.insert("additionalProperties".into(), json!(false));
    }
    (schema, description)
}

fn of(schema_fn: SchemaFn, contract: Contract) -> (Value, Option<String>) {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = contract;
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut schema: Value = schema_fn(&mut generator).into();
    // Only a recursive type has a definition.
    let definitions = generator.take_definitions(false);
    if let Some(root) = schema.as_object_mut().filter(|_| !definitions.is_empty()) {
        root.insert("$defs".to_owned(), definitions.into());
    }
    let description = schema
        .as_object_mut()
        .and_then(|root| root.remove("description"))
        .and_then(|text| text.as_str().map(join_lines));
    simplify(&mut schema);
    (schema, description)
}

/// Renames a property.
pub fn rename(schema: &mut Value, from: &str, to: &str) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(properties) = properties
        && let Some(property) = properties.remove(from)
    {
        properties.insert(to.to_owned(), property);
    }
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    for name in required.into_iter().flatten() {
        if name == from {
            *name = json!(to);
        }
    }
}

/// Adds an unused property of this type.
pub fn add(schema: &mut Value, name: &str, kind: &str) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(properties) = properties {
        let unused = json!({ "type": kind, "description": "Is not used." });
        properties.entry(name).or_insert(unused);
    }
}

/// Removes a property.
pub fn take_out(schema: &mut Value, name: &str) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(properties) = properties {
        properties.remove(name);
    }
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    if let Some(required) = required {
        required.retain(|other| other != name);
    }
}

/// Removes the descriptions from a schema.
pub fn remove_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // A property may be named `description`, too.
            if object.get("description").is_some_and(Value::is_string) {
                object.remove("description");
            }
            object.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

/// Joins the lines of a paragraph: doc comments are wrapped for the source, but clients wrap text themselves.
fn join_lines(text: &str) -> String {
    text.split("\n\n")
        .map(|p| p.replace('\n', " "))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Removes type arrays, `anyOf` with null, `$schema` and formats, because some clients reject them. None of them
/// adds anything that an optional property does not express.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            simplify_object(object);
            object.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn simplify_object(object: &mut Map<String, Value>) {
    object.remove("$schema");
    if object.get("title").is_some_and(Value::is_string) {
        object.remove("title");
    }
    if object.get("format").is_some_and(Value::is_string) {
        object.remove("format");
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = join_lines(text);
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|t| t != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    // An optional argument is omitted rather than null.
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|c| c.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (name, value) in only {
                object.entry(name).or_insert(value);
            }
        }
    }
    constants_as_enum(object);
}

/// schemars turns documented variants into `oneOf` of constants; an `enum` means the same and is more widely
/// supported.
fn constants_as_enum(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("oneOf") else {
        return;
    };
    let constants: Option<Vec<Value>> = choices.iter().map(|c| c.get("const").cloned()).collect();
    if let Some(constants) = constants {
        object.remove("oneOf");
        object.insert("type".into(), json!("string"));
        object.insert("enum".into(), Value::Array(constants));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Look at a thing
    /// in some way.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Look {
        /// How often.
        times: Option<u32>,
        /// Which way.
        way: Option<Way>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Way {
        /// To the left.
        Left,
        /// To the right.
        Right,
    }

    #[test]
    fn a_schema_is_flat_and_plain() {
        let (schema, description) = of_arguments::<Look>();
        assert_eq!(description.as_deref(), Some("Look at a thing in some way."));
        assert_eq!(
            schema,
            json!({ "type": "object", "additionalProperties": false, "properties": {
                "times": { "type": "integer", "minimum": 0, "description": "How often." },
                "way": { "type": "string", "enum": ["left", "right"], "description": "Which way." } } })
        );
    }

    #[derive(serde::Serialize, JsonSchema)]
    struct Seen {
        /// The visible things.
        things: Vec<String>,
        /// The hidden things.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        off: Vec<String>,
    }

    #[test]
    fn what_an_answer_leaves_out_is_not_required_of_it() {
        let schema = of_answer::<Seen>();
        assert_eq!(schema["required"], json!(["things"]));
        let (things, off) = (Vec::new(), Vec::new());
        assert_eq!(json!(Seen { things, off }), json!({ "things": [] }));
    }
}
