//! The list of tools as the agent's policy lets it be seen.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    call::{Call, Outcome},
    engine::Engine,
    listing::{Listing, Seen},
    resources::cursor,
    results::Caching,
};
use crate::auth::Principal;
use crate::policy::{is_proposed, sees};
use crate::protocol::{self, RpcError, page};
use crate::registry::Tool;

/// The list changes with the agent's policy, with what the helper's owner allows, and with upgrades.
const LIST_TTL_MS: u64 = 300_000;

/// Added to the description of a tool whose calls wait for the owner.
const PROPOSED: &str = "\n\nA call of this needs the owner's approval: it is answered at once with a change that \
                        waits in the owner's inbox, and runs by itself when it is approved.";

/// `tools/list`.
pub fn list(engine: &Engine, call: &Call) -> Result<Outcome, RpcError> {
    let who = &call.context.who;
    let seen = engine
        .catalog
        .tools()
        .map(|tool| seen(engine, who, tool))
        .collect();
    match cursor(&call.params)? {
        None => {
            let listing = engine.tool_lists.find_or_write(seen, |seen| {
                let first = page_of(engine, seen, None)?;
                Ok(Listing::of(&call.method, &first))
            });
            listing.map(Outcome::Listed)
        }
        further => page_of(engine, &seen, further).map(Outcome::Complete),
    }
}

fn seen(engine: &Engine, who: &Principal, tool: &Tool) -> Seen {
    if !engine.catalog.has(tool) || !sees(who, tool) {
        Seen::Not
    } else if is_proposed(who, tool) {
        Seen::Proposed
    } else {
        Seen::Whole
    }
}

fn page_of(engine: &Engine, seen: &[Seen], cursor: Option<&str>) -> Result<Value, RpcError> {
    let tools = engine.catalog.tools().zip(seen);
    let definitions = tools.filter_map(|(tool, seen)| definition(tool, *seen));
    let definitions: Vec<_> = definitions.collect();
    let page = page("tools/list", &definitions, cursor)?;
    let mut result = Map::from_iter([("tools".to_owned(), json!(page.items))]);
    if let Some(next) = page.next {
        result.insert("nextCursor".into(), json!(next));
    }
    Ok(engine.completed(Value::Object(result), Caching::Private(LIST_TTL_MS)))
}

/// A tool whose calls are answered with a change does not answer as its schema has it, and clients refuse an answer
/// that does not fit.
fn definition(tool: &Tool, seen: Seen) -> Option<Cow<'_, protocol::Tool>> {
    match seen {
        Seen::Not => None,
        Seen::Whole => Some(Cow::Borrowed(tool.definition())),
        Seen::Proposed => {
            let mut definition = tool.definition().clone();
            definition.output_schema = None;
            definition.description.push_str(PROPOSED);
            Some(Cow::Owned(definition))
        }
    }
}
