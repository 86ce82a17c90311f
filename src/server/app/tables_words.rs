//! Tests of the words of all tools: errors about arguments are in JSON's terms, and times have one form.

use serde_json::{Map, Value, json};

use super::tables::tables;

/// Values of each kind, of which most are wrong for any argument.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-7),
        json!(7),
        json!(4_294_967_296_u64),
        json!(1.5),
        json!(""),
        json!("\u{7} x"),
        json!([]),
        json!([1, [2]]),
        json!([null]),
        json!({}),
        json!({ "x": 1 }),
    ]
}

/// Rust's words, which a message must not have.
const RUST: &[&str] = &[
    "bool", "borrowed", "char", "enum", "f32", "f64", "i16", "i32", "i64", "i8", "map", "newtype",
    "nonzero", "sequence", "struct", "tuple", "u16", "u32", "u64", "u8", "untagged", "usize",
    "variant",
];

/// Returns the words of a message without what it quotes, which are names and values.
fn words(message: &str) -> Vec<String> {
    let mut plain = String::new();
    for (place, part) in message.split(['`', '"']).enumerate() {
        if place % 2 == 0 {
            plain.push_str(part);
        }
        plain.push(' ');
    }
    let words = plain.split(|letter: char| !letter.is_alphanumeric());
    words.map(str::to_owned).collect()
}

/// Calls with one wrong argument, at the top or one level below it.
fn wrong_calls(schema: &Value) -> Vec<Map<String, Value>> {
    let mut calls = vec![Map::new()];
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        for value in values() {
            calls.push(Map::from_iter([(name.clone(), value.clone())]));
            if inner.get("items").is_some() {
                calls.push(Map::from_iter([(name.clone(), json!([value]))]));
            }
            let members = inner.get("properties").and_then(Value::as_object);
            for member in members.into_iter().flatten().map(|(member, _)| member) {
                let inside = Map::from_iter([(member.clone(), value.clone())]);
                calls.push(Map::from_iter([(name.clone(), inside.into())]));
            }
        }
    }
    calls
}

#[test]
fn no_error_about_an_argument_has_a_word_of_rust() {
    let (mut found, mut errors) = (Vec::new(), 0);
    for tool in tables().unwrap().tools() {
        for call in wrong_calls(&tool.definition().input_schema) {
            let Err(error) = tool.check_arguments(call.clone()) else {
                continue;
            };
            errors += 1;
            if words(&error.message)
                .iter()
                .any(|word| RUST.contains(&word.as_str()))
            {
                found.push(format!("{} {call:?}: {}", tool.name(), error.message));
            }
        }
    }
    assert!(errors > 1000, "{errors}");
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_optional_argument_that_is_null_counts_as_absent() {
    let (mut found, mut optional) = (Vec::new(), 0);
    for tool in tables().unwrap().tools() {
        let schema = &tool.definition().input_schema;
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let names = schema["properties"].as_object().into_iter().flatten();
        let names = names.filter(|(name, _)| !required.contains(&json!(name)));
        let without = tool.check_arguments(Map::new()).map_err(|e| e.message);
        for (name, _) in names {
            optional += 1;
            let with = Map::from_iter([(name.clone(), Value::Null)]);
            let with = tool.check_arguments(with).map_err(|e| e.message);
            if with != without {
                found.push(format!("{} {name}: {with:?}", tool.name()));
            }
        }
    }
    assert!(optional > 150, "{optional}");
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_empty_argument_counts_as_absent_where_it_can_mean_nothing_else() {
    let catalog = tables().unwrap();
    let check = |tool: &str, arguments: Value| {
        let Value::Object(arguments) = arguments else {
            panic!("no object");
        };
        let tool = catalog.tool(tool).unwrap();
        tool.check_arguments(arguments).map_err(|e| e.message)
    };
    let accepted = [
        (
            "logs_query",
            json!({ "unit": "", "priority": "", "grep": "", "since": "", "cursor": "" }),
        ),
        ("backup_list", json!({ "target": "" })),
        (
            "notify_send",
            json!({ "message": "hi", "title": "", "priority": "" }),
        ),
        ("state_get", json!({ "pointer": "" })),
    ];
    for (tool, arguments) in accepted {
        assert_eq!(check(tool, arguments), Ok(()), "{tool}");
    }
    // These would mean another target, or all of them.
    let refused = [
        ("logs_query", json!({ "container": "" })),
        (
            "unit_restart",
            json!({ "unit": "a.service", "container": "" }),
        ),
        ("firmware_update", json!({ "device": "" })),
        (
            "container_rebuild",
            json!({ "container": "web", "snapshot": "" }),
        ),
        ("container_info", json!({ "container": "" })),
    ];
    for (tool, arguments) in refused {
        assert!(check(tool, arguments).is_err(), "{tool}");
    }
    // An empty file is a file.
    assert_eq!(
        check("file_write", json!({ "path": "/srv/x", "text": "" })),
        Ok(())
    );
}

#[test]
fn a_pattern_of_an_optional_argument_excludes_the_empty_text() {
    let begins = [
        "^[",
        "^(0|",
        "^((lxc:)?[",
        "^(_host|",
        "^0*[0-7]{1,3}",
        "^snap",
        "^/",
    ];
    let mut count = 0;
    for tool in tables().unwrap().tools() {
        let schema = &tool.definition().input_schema;
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let names = schema["properties"].as_object().into_iter().flatten();
        for (name, schema) in names.filter(|(name, _)| !required.contains(&json!(name))) {
            let Some(pattern) = schema["pattern"].as_str() else {
                continue;
            };
            count += 1;
            let begins_so = begins.iter().any(|begin| pattern.starts_with(begin));
            let is_optional = pattern.matches('[').count() == 1 && pattern.ends_with("]*$");
            assert!(
                begins_so && !is_optional,
                "{} {name}: {pattern}",
                tool.name()
            );
        }
    }
    assert!(count > 20, "{count}");
}

/// Durations in answers, as opposed to points in time.
const DURATIONS: &[&str] = &[
    "age_s",
    "busy_ms",
    "down_s",
    "duration_ms",
    "gatewren_uptime_s",
    "idle_s",
    "in_s",
    "max_ms",
    "mean_ms",
    "min_ms",
    "start_delay_s",
    "step_s",
    "time_ms",
    "timeout_s",
    "ttl_s",
    "up_s",
    "uptime_s",
];

/// Collects the names of all fields.
fn fields(schema: &Value, found: &mut Vec<(String, Value)>) {
    match schema {
        Value::Object(members) => {
            for (key, inner) in members {
                if let ("properties", Some(properties)) = (key.as_str(), inner.as_object()) {
                    found.extend(
                        properties
                            .iter()
                            .map(|(name, inner)| (name.clone(), inner.clone())),
                    );
                }
                fields(inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[test]
fn a_point_in_time_is_never_a_number_in_an_answer() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for tool in tables().unwrap().tools() {
        let Some(schema) = tool.full_definition().output_schema else {
            continue;
        };
        let mut all = Vec::new();
        fields(&schema, &mut all);
        count += all.len();
        for (name, field) in all {
            let is_count = name.ends_with("_ms") || name.ends_with("_s");
            let is_time = (name.ends_with("_at") && name != "looked_at")
                || name == "at"
                || name == "modified"
                || name == "made";
            let is_text = field.to_string().contains("string");
            if (is_count && !DURATIONS.contains(&name.as_str())) || (is_time && !is_text) {
                wrong.push(format!("{}: {name}", tool.name()));
            }
        }
    }
    assert!(count > 300, "{count}");
    assert_eq!(wrong, [""; 0]);
}
