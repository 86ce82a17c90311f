//! The reference of tools and resources: their tables as text, for a terminal and for the manual.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::tool_table;
use gatewren_base::config::Reach;
use gatewren_wire::registry::{Catalog, Tool, Viewer};

/// The maximum width of a line.
const WIDTH: usize = 78;

/// A value that a tool takes or returns.
pub struct ReferenceField {
    /// Its name; inside lists and objects a path, such as `disks[].name`.
    pub name: String,
    /// Its type, its bounds, and whether it is required.
    pub kind: String,
    /// Its description.
    pub words: String,
}

/// The toolsets in the order of their names, each with its tools.
pub fn toolsets(catalog: &Catalog) -> Vec<(&'static str, Vec<&Tool>)> {
    let mut sets: Vec<(&str, Vec<&Tool>)> = Vec::new();
    let mut tools: Vec<&Tool> = catalog.tools().map(AsRef::as_ref).collect();
    tools.sort_by_key(|tool| (tool.toolset(), tool.name().to_owned()));
    for tool in tools {
        match sets.last_mut() {
            Some((name, set)) if *name == tool.toolset() => set.push(tool),
            _ => sets.push((tool.toolset(), vec![tool])),
        }
    }
    sets
}

/// The arguments of a tool.
pub fn arguments(tool: &Tool) -> Vec<ReferenceField> {
    let mut found = Vec::new();
    members(&tool.definition().input_schema, "", true, &mut found);
    found
}

/// The members of a tool's result, if its schema is fixed.
pub fn answer(tool: &Tool) -> Vec<ReferenceField> {
    let mut found = Vec::new();
    if let Some(schema) = &tool.full_definition().output_schema {
        members(schema, "", false, &mut found);
    }
    found
}

/// Further facts about a tool, in a line: its class, the class that it needs in helper.toml, its names in
/// `StartOS`.
pub fn remarks(tool: &Tool) -> String {
    let mut parts = vec![format!("class {}", tool.risk())];
    parts.extend(
        tool.needs()
            .map(|class| format!("needs {class} in helper.toml")),
    );
    parts.extend(tool.other_name().map(|name| format!("also called {name}")));
    for alias in tool.aliases() {
        let renamed = alias.parameters.iter();
        let renamed: Vec<String> = renamed
            .map(|(theirs, ours)| format!("{theirs} for {ours}"))
            .collect();
        let with = if renamed.is_empty() {
            String::new()
        } else {
            format!(" with {}", renamed.join(", "))
        };
        parts.push(format!("in StartOS {}{with}", alias.name));
    }
    parts.join("; ")
}

/// The tools as text, then the table of their figures.
pub fn tools(catalog: &Catalog) -> String {
    let mut text = String::new();
    for (toolset, tools) in toolsets(catalog) {
        let _ = writeln!(text, "{}\n", toolset.to_uppercase());
        for tool in tools {
            let _ = write!(text, "{}\n{}", tool.name(), wrap_text(&remarks(tool), 4));
            for paragraph in tool.definition().description.split("\n\n") {
                text.push_str(&wrap_text(paragraph, 4));
            }
            for (title, members) in [("arguments", arguments(tool)), ("result", answer(tool))] {
                if !members.is_empty() {
                    let _ = writeln!(text, "    {title}");
                }
                for member in members {
                    let line = format!("{} ({}): {}", member.name, member.kind, member.words);
                    text.push_str(&wrap_text(&line, 6));
                }
            }
            text.push('\n');
        }
    }
    text.push_str("FIGURES\n\n");
    for paragraph in tool_table::legend() {
        text.push_str(&wrap_text(&paragraph, 0));
    }
    text + "\n" + &tool_table::text(catalog)
}

/// The tools as JSON, with the descriptions of their results and their figures.
pub fn tools_json(catalog: &Catalog) -> Value {
    let tools = toolsets(catalog).into_iter().flat_map(|(_, tools)| tools);
    let described = tools.map(|tool| {
        let mut entry = json!(tool.full_definition());
        let more = [
            ("toolset", Some(tool.toolset().to_owned())),
            ("class", Some(tool.risk().to_string())),
            ("needs", tool.needs().map(|class| class.to_string())),
            ("startos", aliases(tool)),
        ];
        if let Some(entry) = entry.as_object_mut() {
            let more = more.into_iter();
            entry.extend(more.filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))));
            let figures = tool_table::json_members(tool).into_iter();
            entry.extend(figures.map(|(key, value)| (key.to_owned(), value)));
        }
        entry
    });
    described.collect()
}

fn aliases(tool: &Tool) -> Option<String> {
    let names: Vec<&str> = tool.aliases().iter().map(|alias| alias.name).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The resources and templates: each URI with its description.
pub fn resources(catalog: &Catalog) -> Vec<(String, String)> {
    let viewer = Viewer {
        agent: "".into(),
        reach: Reach::everything(),
    };
    let Some(source) = catalog.resources() else {
        return Vec::new();
    };
    let fixed = source.resources(&viewer).into_iter();
    let fixed = fixed.map(|resource| (resource.uri, resource.description));
    let templates = source.templates(&viewer).into_iter();
    let templates = templates.map(|template| (template.uri_template, template.description));
    let all = fixed.chain(templates);
    all.map(|(uri, words)| (uri, words.unwrap_or_default()))
        .collect()
}

/// The resources as text.
pub fn resources_text(catalog: &Catalog) -> String {
    let mut text = String::new();
    for (uri, words) in resources(catalog) {
        let _ = write!(text, "{uri}\n{}", wrap_text(&words, 4));
    }
    text
}

fn members(schema: &Value, place: &str, taken: bool, found: &mut Vec<ReferenceField>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    for (name, inner) in properties {
        let Some(inner) = inner.as_object() else {
            continue;
        };
        let name = format!("{place}{name}");
        let must = required.is_some_and(|names| {
            names
                .iter()
                .any(|n| place.to_owned() + n.as_str().unwrap_or("") == name)
        });
        found.push(ReferenceField {
            kind: kind(inner, taken, must),
            words: inner
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or("")
                .replace("\n\n", " "),
            name: name.clone(),
        });
        if let Some(items) = inner.get("items") {
            members(items, &format!("{name}[]."), taken, found);
        }
        members(
            &Value::Object(inner.clone()),
            &format!("{name}."),
            taken,
            found,
        );
    }
}

fn kind(schema: &Map<String, Value>, taken: bool, always: bool) -> String {
    let word = |key: &str| schema.get(key).and_then(Value::as_str);
    let mut parts = vec![match (word("type"), schema.get("items")) {
        (Some("array"), Some(items)) => {
            let of = items.get("type").and_then(Value::as_str);
            of.map_or("list".to_owned(), |of| format!("list of {of}s"))
        }
        (Some(kind), _) => kind.to_owned(),
        (None, _) => "any value".to_owned(),
    }];
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        parts.push(format!("one of {}", values.join(" ")));
    }
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) if taken => parts.push(format!("{least} to {most}")),
        _ => {}
    }
    if let Some(default) = schema.get("default").filter(|_| taken) {
        parts.push(format!("default {default}"));
    }
    match (taken, always) {
        (true, true) => parts.push("required".to_owned()),
        (false, false) => parts.push("optional".to_owned()),
        _ => {}
    }
    parts.join(", ")
}

fn wrap_text(words: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let (mut text, mut column) = (String::new(), 0);
    for word in words.split_whitespace() {
        if column > 0 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            column = 0;
        }
        text.push_str(if column == 0 { &margin } else { " " });
        column += word.len() + if column == 0 { indent } else { 1 };
        text.push_str(word);
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_server::app::tables;

    #[test]
    fn every_argument_and_every_value_of_an_answer_is_told() {
        let catalog = tables().unwrap();
        let text = tools(&catalog);
        for words in [
            "SHELL",
            "container_stop\n    class disrupt; needs lxc_writes in helper.toml; in StartOS package.stop",
            "timeout_s (integer, 1 to 300, default 30): Seconds until it is killed",
            "container (string, required): The container's name",
            "containers[].name (string)",
            "\nFIGURES\n\nMeasured on ",
            "\ncontainer_stop             disrupt ",
        ] {
            assert!(text.contains(words), "{words} in\n{text}");
        }
        assert!(text.lines().all(|line| line.len() < 100), "{text}");
        let json = tools_json(&catalog);
        assert_eq!(json.as_array().unwrap().len(), catalog.tools().count());
        assert!(json[0]["p95_ms"].is_number() || json[0]["p95_ms"].is_null());
        let uris = resources_text(&catalog);
        assert!(uris.contains("gatewren:///public/packageData/{container}\n    One container\n"));
    }
}
