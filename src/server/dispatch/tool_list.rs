//! The list of tools that an agent's policy lets it see.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{
    apps,
    call::{Call, CallOutcome},
    cursor::cursor,
    engine::Engine,
    listing::{EntryVisibility, ListView, Listing},
    mentions::{UnlistedTools, without_pointers},
    results::CachePolicy,
};
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{confirms, has_brief_entries, is_proposed, lists};
use gatewren_wire::protocol::{self, RpcError, page};
use gatewren_wire::registry::{Catalog, Dialect, REASON, Tool};

/// The list changes with the agent's policy, with the helper's permissions, and with upgrades.
const LIST_TTL_MS: u64 = 300_000;

/// Appended to the description of a tool if its calls wait for the owner.
const PROPOSED: &str = "\n\nNeeds approval: returns a change for the inbox.";

/// `tools/list`.
pub fn list(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let who = &call.context.who;
    let tools = engine.catalog.tools();
    let entries = tools.map(|tool| visibility(&engine.catalog, who, tool));
    let seen = ListView {
        entries: entries.collect(),
        cards: apps::has_cards(engine, &call.context.capabilities),
    };
    match cursor(&call.params)? {
        None => {
            let listing = engine.tool_lists.find_or_write(seen, |seen| {
                let first = page_of(engine, seen, None)?;
                Ok(Listing::of(&call.method, &first))
            });
            listing.map(CallOutcome::Listed)
        }
        further => page_of(engine, &seen, further).map(CallOutcome::Complete),
    }
}

/// The tools in an agent's list.
#[cfg(test)]
pub fn list_tools(catalog: &Catalog, who: &Principal) -> Vec<protocol::ToolDefinition> {
    let tools = catalog.tools();
    let unlisted = unlisted_tools(catalog, who);
    let listed = tools
        .flat_map(|tool| definitions(catalog, tool, visibility(catalog, who, tool), &unlisted));
    listed.collect()
}

/// The tools of the catalog that are not in the agent's list.
pub(super) fn unlisted_tools<'c>(catalog: &'c Catalog, who: &Principal) -> UnlistedTools<'c> {
    let tools = catalog.tools();
    let unlisted = tools.filter(|tool| visibility(catalog, who, tool) == EntryVisibility::Not);
    UnlistedTools::from_names(unlisted.map(|tool| tool.name()))
}

/// Describes each tool in the agent's list in Markdown, with its whole description.
pub(super) fn describe_listed(catalog: &Catalog, who: &Principal) -> String {
    let unlisted = unlisted_tools(catalog, who);
    let mut text = String::new();
    for tool in catalog.tools() {
        if visibility(catalog, who, tool) == EntryVisibility::Not {
            continue;
        }
        let alias = tool.aliases().first().map(|alias| alias.name);
        let alias = alias.filter(|_| catalog.dialect == Dialect::StartOs);
        let name = alias.unwrap_or_else(|| tool.name());
        let mut words = unlisted.removed_from(&tool.definition().description);
        rename_tools(catalog, &mut words);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## {name}\n\n{words}\n");
    }
    text
}

fn visibility(catalog: &Catalog, who: &Principal, tool: &Tool) -> EntryVisibility {
    if !catalog.has(tool) || !lists(who, tool) {
        EntryVisibility::Not
    } else {
        let is_brief = has_brief_entries(who.policy());
        match (is_brief, is_proposed(who, tool), confirms(who, tool)) {
            (false, false, false) => EntryVisibility::Whole,
            (false, false, true) => EntryVisibility::Confirmed,
            (false, true, _) => EntryVisibility::Proposed,
            (true, false, _) => EntryVisibility::Brief,
            (true, true, _) => EntryVisibility::BrieflyProposed,
        }
    }
}

fn page_of(engine: &Engine, view: &ListView, cursor: Option<&str>) -> Result<Value, RpcError> {
    let all = || engine.catalog.tools().zip(&view.entries);
    let unlisted = all().filter(|(_, seen)| **seen == EntryVisibility::Not);
    let unlisted = UnlistedTools::from_names(unlisted.map(|(tool, _)| tool.name()));
    let definitions = all().flat_map(|(tool, seen)| {
        let mut entries = definitions(&engine.catalog, tool, *seen, &unlisted);
        for entry in entries.iter_mut().filter(|_| view.cards) {
            apps::link(entry, tool.name(), *seen);
        }
        entries
    });
    let definitions: Vec<_> = definitions.collect();
    let page = page("tools/list", &definitions, |tool| &tool.name, cursor)?;
    let mut result = Map::from_iter([("tools".to_owned(), json!(page.items))]);
    if let Some(next) = page.next {
        result.insert("nextCursor".into(), json!(next));
    }
    Ok(engine.complete_result(Value::Object(result), CachePolicy::Private(LIST_TTL_MS)))
}

/// The list entries of a tool: one, or in the dialect one for each of its aliases.
fn definitions(
    catalog: &Catalog,
    tool: &Tool,
    seen: EntryVisibility,
    unlisted: &UnlistedTools<'_>,
) -> Vec<protocol::ToolDefinition> {
    if seen == EntryVisibility::Not {
        return Vec::new();
    }
    // Only entries in full have the schema of answers, which takes long to write.
    let entry = if matches!(seen, EntryVisibility::Whole | EntryVisibility::Confirmed) {
        tool.list_entry()
    } else {
        tool.definition().clone()
    };
    if catalog.dialect == Dialect::Portable || tool.aliases().is_empty() {
        return vec![finish_definition(catalog, entry, seen, unlisted)];
    }
    let aliases = tool.aliases().iter();
    let entries = aliases.map(|alias| alias.applied_to(entry.clone()));
    let named = entries.map(|entry| finish_definition(catalog, entry, seen, unlisted));
    named.collect()
}

/// A tool whose calls are answered with a change has no output schema: clients reject an answer that does not match
/// the schema.
fn finish_definition(
    catalog: &Catalog,
    mut definition: protocol::ToolDefinition,
    seen: EntryVisibility,
    unlisted: &UnlistedTools<'_>,
) -> protocol::ToolDefinition {
    definition.description = unlisted.removed_from(&definition.description);
    edit_descriptions(&mut definition.input_schema, &|text| {
        unlisted.removed_from(text)
    });
    if matches!(
        seen,
        EntryVisibility::Brief | EntryVisibility::BrieflyProposed
    ) {
        shorten(&mut definition, catalog);
    }
    if !matches!(seen, EntryVisibility::Whole | EntryVisibility::Brief) {
        add_reason(&mut definition.input_schema);
    }
    rename_tools(catalog, &mut definition.description);
    if matches!(
        seen,
        EntryVisibility::Proposed | EntryVisibility::BrieflyProposed
    ) {
        definition.description.push_str(PROPOSED);
    }
    definition
}

/// Adds the argument for the reason of a call about which a person is asked. It has no description, which would cost
/// a line in each entry: the instructions explain it. A short entry of a tool that is only confirmed at the client does
/// without, because its schema allows other arguments and the list of an admin has a hundred of them.
fn add_reason(schema: &mut Value) {
    let arguments = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(arguments) = arguments {
        let reason = arguments.entry(REASON);
        reason.or_insert_with(|| json!({ "type": "string" }));
    }
}

/// Names the tools in a text as the dialect does.
fn rename_tools(catalog: &Catalog, words: &mut String) {
    if catalog.dialect == Dialect::StartOs {
        for other in catalog.tools() {
            if let Some(alias) = other.aliases().first() {
                *words =
                    words.replace(&format!("`{}`", other.name()), &format!("`{}`", alias.name));
            }
        }
    }
}

/// Edits the descriptions in a schema.
fn edit_descriptions(schema: &mut Value, edited: &dyn Fn(&str) -> String) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => *text = edited(text),
                    member => edit_descriptions(member, edited),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                edit_descriptions(item, edited);
            }
        }
        _ => {}
    }
}

/// Shortens a definition to what is needed to choose and call the tool: the first paragraph of each description. The
/// limits of an argument are in its description, and are enforced even if the schema does not state them. The schema
/// of answers is optional (2026-07-28, server/tools), and says nothing that a model needs to call the tool. The tools
/// that a sentence points to are in the same list, with their own descriptions.
fn shorten(definition: &mut protocol::ToolDefinition, catalog: &Catalog) {
    definition.description = shorten_text(&definition.description, catalog);
    edit_descriptions(&mut definition.input_schema, &|text| {
        shorten_text(text, catalog)
    });
    remove_bounds(&mut definition.input_schema);
    // That a call changes something, and a second one again, are the specification's defaults.
    let hints = &mut definition.annotations;
    hints.read_only_hint = hints.read_only_hint.filter(|reads| *reads);
    hints.idempotent_hint = hints.idempotent_hint.filter(|same| *same);
    // People read the name as well, and a model reads nothing else.
    definition.title = None;
}

fn shorten_text(text: &str, catalog: &Catalog) -> String {
    let first = text.split("\n\n").next().unwrap_or_default();
    without_pointers(first, |name| catalog.tool(name).is_some())
}

/// The keywords of limits in a schema.
const BOUNDS: [&str; 8] = [
    "default",
    "maximum",
    "maxItems",
    "maxLength",
    "minimum",
    "minItems",
    "minLength",
    "pattern",
];

/// Removes the limits from a schema, from its arguments, their members, and the items of lists. An item's description
/// repeats that of the list. A description that only repeats the argument's name goes too.
fn remove_bounds(schema: &mut Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("additionalProperties");
    }
    let arguments = schema.get_mut("properties");
    for (name, argument) in arguments
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        remove_own_bounds(argument);
        if argument.get("description") == Some(&json!(format!("The {name}'s name."))) {
            argument
                .as_object_mut()
                .map(|argument| argument.remove("description"));
        }
        if let Some(items) = argument.get_mut("items") {
            remove_own_bounds(items);
            if let Some(items) = items.as_object_mut() {
                items.remove("description");
            }
            remove_bounds(items);
        }
        remove_bounds(argument);
    }
}

fn remove_own_bounds(argument: &mut Value) {
    if let Some(argument) = argument.as_object_mut() {
        for bound in BOUNDS {
            argument.remove(bound);
        }
    }
}
