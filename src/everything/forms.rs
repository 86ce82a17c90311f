//! The longest form: a field of each type, format and kind of choice that a form can have.

use serde_json::{Value, json};

use super::elicitations::form;

/// A form with every kind of field; only the name is required.
pub fn every_field() -> Value {
    let mut fields = texts_and_numbers();
    if let (Some(fields), Value::Object(choices)) = (fields.as_object_mut(), choices()) {
        fields.extend(choices);
    }
    form("Please fill in these fields:", &fields, &["name"])
}

/// A form with three fields; only the name is required.
pub fn few_fields() -> Value {
    let fields = json!({
        "name": { "type": "string", "title": "Name", "description": "What you are called" },
        "favoriteColor": {
            "type": "string", "title": "Favourite colour",
            "enum": ["Red", "Blue", "Green", "Yellow", "Purple"],
        },
        "agreeToTerms": { "type": "boolean", "title": "I agree" },
    });
    form("Please fill in these fields:", &fields, &["name"])
}

fn texts_and_numbers() -> Value {
    json!({
        "name": { "type": "string", "title": "Text", "description": "What you are called" },
        "check": { "type": "boolean", "title": "Yes or no", "description": "Whether you agree" },
        "firstLine": {
            "type": "string", "title": "Text with a default", "description": "How a story begins",
            "default": "Once upon a time.",
        },
        "email": { "type": "string", "title": "E-mail address", "format": "email" },
        "homepage": { "type": "string", "title": "URI", "format": "uri" },
        "birthdate": { "type": "string", "title": "Date", "format": "date" },
        "integer": {
            "type": "integer", "title": "Integer, 1 to 100", "minimum": 1, "maximum": 100, "default": 42,
        },
        "number": {
            "type": "number", "title": "Number, 0 to 1000", "minimum": 0, "maximum": 1000, "default": 3.5,
        },
    })
}

fn choices() -> Value {
    let instruments = json!(["Guitar", "Piano", "Violin", "Drums", "Bass"]);
    let birds = json!([
        { "const": "bird-1", "title": "Wren" },
        { "const": "bird-2", "title": "Robin" },
        { "const": "bird-3", "title": "Blackbird" },
    ]);
    json!({
        "untitledSingleSelectEnum": {
            "type": "string", "title": "One of several", "enum": instruments, "default": "Piano",
        },
        "untitledMultipleSelectEnum": {
            "type": "array", "title": "Some of several", "minItems": 1, "maxItems": 3,
            "items": { "type": "string", "enum": instruments }, "default": ["Guitar"],
        },
        "titledSingleSelectEnum": {
            "type": "string", "title": "One of several, with titles", "oneOf": birds, "default": "bird-1",
        },
        "titledMultipleSelectEnum": {
            "type": "array", "title": "Some of several, with titles", "minItems": 1, "maxItems": 3,
            "items": { "anyOf": birds }, "default": ["bird-1"],
        },
        "legacyTitledEnum": {
            "type": "string", "title": "One of several, with titles in the older form",
            "enum": ["pet-1", "pet-2", "pet-3"], "enumNames": ["Cat", "Dog", "Bird"], "default": "pet-1",
        },
    })
}
