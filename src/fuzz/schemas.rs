//! `x-mcp-header` in a tool's schema (2026-07-28): a tool that a client would drop is rejected here.

use std::collections::BTreeSet;

use serde_json::Value;

use gatewren_wire::protocol::header_parameters;

/// Input: a tool's schema.
pub fn mark_their_headers(data: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let mut marks = Vec::new();
    collect(&schema, Some(&mut Vec::new()), &mut marks);
    match header_parameters(&schema) {
        Ok(found) => {
            assert!(are_valid(&marks), "a client drops {schema}");
            let found: BTreeSet<_> = found.into_iter().collect();
            let named = marks.iter().filter_map(|mark| {
                let name = mark.name.as_str()?;
                Some((name.to_owned(), mark.way.clone()?))
            });
            assert_eq!(found, named.collect(), "{schema}");
        }
        Err(why) => assert!(!are_valid(&marks), "{why}: {schema}"),
    }
}

/// One annotation.
struct Mark<'s> {
    name: &'s Value,
    /// The path, through `properties` only; `None` if it has other keywords, or for the root.
    way: Option<Vec<String>>,
    kind: Option<&'s str>,
}

fn are_valid(marks: &[Mark<'_>]) -> bool {
    let mut names = BTreeSet::new();
    marks.iter().all(|mark| {
        let token = |name: &&str| {
            let tchar = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            !name.is_empty() && name.bytes().all(tchar)
        };
        let name = mark.name.as_str().filter(token);
        let fresh = name.is_some_and(|name| names.insert(name.to_ascii_lowercase()));
        let primitive = ["string", "integer", "boolean"]
            .map(Some)
            .contains(&mark.kind);
        fresh && primitive && mark.way.is_some()
    })
}

/// Collects every annotation in a schema, also in data, where a client might mistake it for one.
fn collect<'s>(schema: &'s Value, mut way: Option<&mut Vec<String>>, marks: &mut Vec<Mark<'s>>) {
    let Value::Object(keywords) = schema else {
        if let Value::Array(schemas) = schema {
            for inner in schemas {
                collect(inner, None, marks);
            }
        }
        return;
    };
    if let Some(name) = keywords.get("x-mcp-header") {
        let way = way.as_deref().filter(|way| !way.is_empty()).cloned();
        let kind = keywords.get("type").and_then(Value::as_str);
        marks.push(Mark { name, way, kind });
    }
    for (keyword, inner) in keywords {
        match (keyword.as_str(), inner) {
            ("x-mcp-header", _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, inner) in properties {
                    let Some(way) = way.as_deref_mut() else {
                        collect(inner, None, marks);
                        continue;
                    };
                    way.push(name.clone());
                    collect(inner, Some(way), marks);
                    way.pop();
                }
            }
            (
                "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                for inner in named.values() {
                    collect(inner, None, marks);
                }
            }
            _ => collect(inner, None, marks),
        }
    }
}
