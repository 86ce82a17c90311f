//! Puts gatewren's members into the text of a JSON file, and keeps its other members and comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

/// The name of gatewren's own entry, which is replaced as a whole.
const OWN_ENTRY: &str = "gatewren";

/// What the clients' own parsers accept: JSON, comments and trailing commas.
const ACCEPTED: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Returns `text` with the members of the object `addition`; `None` if it has them.
pub fn merge_json(text: &str, addition: &str) -> Result<Option<String>, String> {
    let addition: Value = serde_json::from_str(addition).map_err(|cause| cause.to_string())?;
    let parsed = CstRootNode::parse(text, &ACCEPTED);
    let root = parsed.map_err(|cause| format!("it is not JSON ({cause})"))?;
    let before = root.to_serde_value();
    let object = root.object_value_or_create();
    put_members(&object.ok_or("it is not a JSON object")?, &addition)?;
    let after = root.to_serde_value();
    if after == before {
        return Ok(None);
    }
    // Of two members with one name, a client reads the last, and the first was edited.
    if !after.is_some_and(|after| has_all(&after, &addition)) {
        return Err("it has two members with the same name".to_owned());
    }
    let mut merged = root.to_string();
    if before.is_none() && !merged.ends_with('\n') {
        merged.push('\n');
    }
    Ok(Some(merged))
}

/// Puts the members of `addition` into an object; objects and lists in both are merged.
fn put_members(object: &CstObject, addition: &Value) -> Result<(), String> {
    for (name, value) in addition.as_object().into_iter().flatten() {
        let Some(member) = object.get(name) else {
            object.append(name, input(value));
            continue;
        };
        let wrong = || format!("its member \"{name}\" has an unknown form");
        match value {
            _ if name == OWN_ENTRY => {
                let same = member.value().and_then(|old| old.to_serde_value());
                if same.as_ref() != Some(value) {
                    member.set_value(input(value));
                }
            }
            Value::Object(_) => put_members(&member.object_value().ok_or_else(wrong)?, value)?,
            Value::Array(more) => put_elements(&member.array_value().ok_or_else(wrong)?, more),
            _ if member.value().and_then(|old| old.to_serde_value()).as_ref() == Some(value) => {}
            // The only such member names a file of authorities.
            _ => {
                return Err(format!(
                    "its \"{name}\" names another file; add gatewren's certificate to that file and name it with \
                     --authority"
                ));
            }
        }
    }
    Ok(())
}

/// Puts elements into a list, in place of those that have the same `id`.
fn put_elements(array: &CstArray, addition: &[Value]) {
    for value in addition {
        let is_old = |old: &Value| old.get("id") == value.get("id");
        let elements = array.elements().into_iter();
        let mut old = elements.filter(|old| old.to_serde_value().as_ref().is_some_and(is_old));
        match old
            .next()
            .map(|old| (old.to_serde_value(), old.as_object()))
        {
            Some((same, _)) if same.as_ref() == Some(value) => {}
            Some((_, Some(object))) => drop(object.replace_with(input(value))),
            _ => drop(array.append(input(value))),
        }
    }
}

/// Whether a value has all that was added to it.
fn has_all(value: &Value, addition: &Value) -> bool {
    match addition {
        Value::Object(members) => members
            .iter()
            .all(|(name, more)| value.get(name).is_some_and(|value| has_all(value, more))),
        Value::Array(more) => value
            .as_array()
            .is_some_and(|value| more.iter().all(|one| value.contains(one))),
        _ => value == addition,
    }
}

/// The same value, as the editor takes it.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(is_true) => CstInputValue::Bool(*is_true),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter();
            CstInputValue::Object(
                members
                    .map(|(name, value)| (name.clone(), input(value)))
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDITION: &str = r#"{
        "mcpServers": { "gatewren": { "url": "u\"\\" } },
        "env": { "CA": "x" },
        "inputs": [{ "id": "gatewren", "password": true }]
    }"#;

    fn merged(text: &str) -> String {
        merge_json(text, ADDITION).unwrap().unwrap()
    }

    #[test]
    fn an_empty_file_gets_the_members() {
        for text in ["", " \n", "{}", "{ \n }", "// mine\n"] {
            let merged = merged(text);
            let root = CstRootNode::parse(&merged, &ACCEPTED).unwrap();
            let expected: Value = serde_json::from_str(ADDITION).unwrap();
            assert_eq!(root.to_serde_value(), Some(expected), "{text:?}: {merged}");
            assert_eq!(merge_json(&merged, ADDITION), Ok(None), "{text:?}");
            assert_eq!(merged.contains("// mine"), text.contains("// mine"));
        }
        assert!(merged("").ends_with("}\n"));
    }

    #[test]
    fn other_members_and_comments_keep_their_order_and_form() {
        let text = "// first\n{\n\t\"z\": 1.0, // why\n\t\"mcpServers\": {\n\t\t/* other */\n\t\t\"other\": {\"url\":\"o\"},\n\t},\n\
                    \t\"a\": [1,2],\n\t// last\n}\n// end\n";
        let merged = merged(text);
        let mut rest = merged.as_str();
        // Every piece of the file before is there, in the order that it had.
        for piece in text.lines().map(|line| line.trim_end_matches(',')) {
            let at = rest.find(piece);
            let at = at.unwrap_or_else(|| panic!("{piece:?} is not in {rest}"));
            rest = rest.get(at + piece.len()..).unwrap();
        }
        assert!(
            merged.contains("\n\t\t\"gatewren\": {\n\t\t\t\"url\": "),
            "{merged}"
        );
        assert_eq!(merge_json(&merged, ADDITION), Ok(None));
    }

    #[test]
    fn an_old_entry_is_replaced_as_a_whole_and_in_its_place() {
        let text = "{\"mcpServers\":{\"a\":1,\"gatewren\":{\"command\":\"old\"},\"b\":2},\n\
                    \"inputs\":[{\"id\":\"gatewren\",\"old\":1},{\"id\":\"other\"}],\"env\":{\"CA\":\"x\"}}";
        let merged = merged(text);
        assert!(
            !merged.contains("command") && !merged.contains("old"),
            "{merged}"
        );
        let mut rest = merged.as_str();
        for part in [
            "\"a\":1",
            "\"gatewren\":{",
            "\"b\":2",
            "\"gatewren\"",
            "\"other\"",
        ] {
            let after = rest.split_once(part).map(|(_, after)| after);
            rest = after.unwrap_or_else(|| panic!("{part} is not in {rest}"));
        }
        assert!(merged.contains("\"env\":{\"CA\":\"x\"}"), "{merged}");
    }

    #[test]
    fn what_it_cannot_edit_is_rejected() {
        for (text, why) in [
            ("{", "is not JSON (Unterminated object on line 1 column 1)"),
            ("{\"a\": 1 \"b\": 2}", "is not JSON"),
            ("{a: 1}", "is not JSON"),
            ("{} {}", "is not JSON"),
            ("[]", "not a JSON object"),
            ("null", "not a JSON object"),
            ("{\"mcpServers\": []}", "\"mcpServers\" has an unknown form"),
            ("{\"inputs\": {}}", "\"inputs\" has an unknown form"),
            ("{\"env\": {\"CA\": \"mine\"}}", "\"CA\" names another file"),
            ("{\"env\": {}, \"env\": {\"b\": 1}}", "two members"),
        ] {
            let words = merge_json(text, ADDITION).unwrap_err();
            assert!(words.contains(why), "{text:?}: {words}");
        }
        let deep = "[".repeat(100_000);
        assert!(merge_json(&deep, ADDITION).unwrap_err().contains("nesting"));
    }
}
