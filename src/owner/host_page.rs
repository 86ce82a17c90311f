//! The home page, with the tiles, alerts, watches, recent changes and the host.

use std::collections::HashMap;

use maud::{Markup, html};
use serde_json::Value;

use super::alerts::alerts_section;
use super::change_table::ListedChanges;
use super::header::Tab;
use super::home_tiles::tiles;
use super::parts::name;
use super::site::{PageResult, SignedInRequest};
use super::texts;
use super::watch_table::watch_section;
use gatewren_store::state::Pointer;

/// The number of revisions that are listed.
const LATELY: usize = 25;

/// Renders the home page.
pub async fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let site = asked.site;
    let document = site.state.document();
    let info = document.root.pointer("/public/serverInfo");
    let lately = ListedChanges {
        label: texts::LATELY,
        scope: Pointer::root(),
        most: LATELY,
        callers: HashMap::new(),
    };
    let content = html! {
        h1 { (texts::HOME) }
        (asked.render_notice())
        (tiles(site).await?)
        (alerts_section(asked))
        (watch_section(site)?)
        section { h2 { (texts::LATELY) } (lately.render(site)?) }
        section {
            h2 { (name(text(info, "hostname").unwrap_or(texts::HOST))) }
            (facts(info))
        }
    };
    asked.page(Tab::Home, texts::HOME, true, content)
}

fn text<'a>(value: Option<&'a Value>, member: &str) -> Option<&'a str> {
    value?.get(member)?.as_str()
}

fn facts(info: Option<&Value>) -> Markup {
    let os = |member| info.and_then(|info| text(info.get("os"), member));
    let known = [
        (texts::SYSTEM, os("name")),
        (texts::VERSION, os("version")),
        (texts::KERNEL, text(info, "kernel")),
        (texts::ARCHITECTURE, text(info, "architecture")),
    ];
    html! {
        dl { @for (what, value) in known { @if let Some(value) = value { dt { (what) } dd { (name(value)) } } } }
    }
}
