//! MCP Apps: cards that a client shows beside the results of tools. They only read, and reach this server through the
//! client, as its agent.

use serde_json::{Map, Value, json};

use super::engine::Engine;
use super::listing::EntryVisibility;
use gatewren_wire::protocol::{
    APP_MEDIA_TYPE, APPS_EXTENSION, ClientCapabilities, Resource, ResourceContents, ToolDefinition,
};

/// The page of each card, which has the protocol between a card and its client.
const FRAME: &str = include_str!("apps/frame.html");

/// Where the frame has the address of the owner's page, the title and the script of a card.
const MARKS: [&str; 3] = ["{{page}}", "{{title}}", "/*card*/"];

/// A card.
struct Card {
    uri: &'static str,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    script: &'static str,
    /// The tools that have this card.
    tools: &'static [&'static str],
}

const SERVER: Card = Card {
    uri: "ui://gatewren/server",
    name: "server",
    title: "Server",
    description: "The containers, the load, and what changed",
    script: include_str!("apps/server.js"),
    tools: &["changes_since", "container_list", "server_metrics"],
};

const CHANGE: Card = Card {
    uri: "ui://gatewren/change",
    name: "change",
    title: "Change",
    description: "A change in the owner's inbox: its arguments, what it would change, and its status",
    script: include_str!("apps/change.js"),
    tools: &["change_get", "change_withdraw", PROPOSE],
};

const CARDS: [&Card; 2] = [&CHANGE, &SERVER];

/// Proposes changes; cards do not.
const PROPOSE: &str = "propose_change";

/// Whether a client gets cards.
pub fn has_cards(engine: &Engine, client: &ClientCapabilities) -> bool {
    engine.inbox.is_some() && client.shows_apps()
}

/// Returns what the server declares of this extension to a client that gets cards.
pub fn declaration(engine: &Engine, client: &ClientCapabilities) -> Option<(String, Value)> {
    has_cards(engine, client).then(|| (APPS_EXTENSION.to_owned(), json!({})))
}

/// Returns the cards, for `resources/list`.
pub fn list(engine: &Engine, client: &ClientCapabilities) -> Vec<Resource> {
    let cards = CARDS.into_iter().filter(|_| has_cards(engine, client));
    let entry = |card: &Card| Resource {
        uri: card.uri.to_owned(),
        name: card.name.to_owned(),
        title: Some(card.title.to_owned()),
        description: Some(card.description.to_owned()),
        mime_type: Some(APP_MEDIA_TYPE.to_owned()),
        ..Resource::default()
    };
    cards.map(entry).collect()
}

/// Returns a card's page; `None` for any other URI, and for a client that gets no cards.
pub fn read(engine: &Engine, client: &ClientCapabilities, uri: &str) -> Option<ResourceContents> {
    let card = CARDS.into_iter().find(|card| card.uri == uri)?;
    let inbox = engine.inbox.as_ref().filter(|_| client.shows_apps())?;
    // No domain at all: a card connects to nothing, and its script and style are in the page.
    let csp = json!({ "connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": [] });
    Some(ResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(APP_MEDIA_TYPE.to_owned()),
        text: Some(page(card, &inbox.owner_page().unwrap_or_default())),
        meta: Some(json!({ "ui": { "csp": csp, "prefersBorder": true } })),
        ..ResourceContents::default()
    })
}

fn page(card: &Card, owner_page: &str) -> String {
    // The address comes from the settings; only these could end the attribute.
    let address = owner_page.replace(['"', '&', '<', '>'], "");
    let [page, title, script] = MARKS;
    let framed = FRAME.replace(page, &address).replace(title, card.title);
    framed.replace(script, card.script)
}

/// Links a tool to its card. A tool whose calls wait for the owner returns a change, so it has the card of changes. A
/// tool that does more than read is for the model only: a client refuses calls of it from a card.
pub(super) fn link(definition: &mut ToolDefinition, name: &str, seen: EntryVisibility) {
    let is_proposed = matches!(
        seen,
        EntryVisibility::Proposed | EntryVisibility::BrieflyProposed
    );
    let own = CARDS.into_iter().find(|card| card.tools.contains(&name));
    let card = own.or_else(|| is_proposed.then_some(&CHANGE));
    let mut ui = Map::new();
    if let Some(card) = card {
        ui.insert("resourceUri".to_owned(), json!(card.uri));
    }
    if name == PROPOSE || definition.annotations.read_only_hint != Some(true) {
        ui.insert("visibility".to_owned(), json!(["model"]));
    }
    if !ui.is_empty() {
        definition.meta = Some(json!({ "ui": ui }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_small_complete_and_loads_nothing() {
        for card in CARDS {
            let page = page(card, "https://box:8443");
            assert!(page.len() < 25_000, "{}: {}", card.uri, page.len());
            assert!(page.contains("data-page=\"https://box:8443\""));
            assert!(page.starts_with("<!doctype html>") && page.contains(card.title));
            for mark in MARKS {
                assert!(!page.contains(mark), "{}: {mark}", card.uri);
            }
            for loading in ["src=", "@import", "url(", "fetch(", "innerHTML", "href="] {
                assert!(!page.contains(loading), "{}: {loading}", card.uri);
            }
        }
    }

    #[test]
    fn an_address_cannot_end_its_attribute() {
        let page = page(&CHANGE, "https://a\"><script>x</script>");
        assert!(page.contains("data-page=\"https://ascriptx/script\""));
    }
}
