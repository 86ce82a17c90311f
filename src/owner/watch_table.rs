//! The section of the host page with the agents' watches.

use maud::{Markup, html};

use super::change_parts::{names, of};
use super::page_error::PageError;
use super::parts::{name, table};
use super::site::OwnerSite;
use super::texts;
use gatewren_tools::watches::WatchView;

/// Renders the watches of all agents; nothing without any.
pub fn watch_section(site: &OwnerSite) -> Result<Markup, PageError> {
    let watches = site.vault.watches().list()?;
    if watches.is_empty() {
        return Ok(html! {});
    }
    let names = names(site)?;
    let shown = watches
        .iter()
        .filter_map(|watch| Some((watch, WatchView::of(watch)?)));
    let rows = html! {
        @for (watch, view) in shown { tr {
            td { (view.phase) }
            td { (name(&view.watches)) }
            td { (name(&view.seen)) }
            td { (of(&names, &watch.agent)) " " (name(&watch.name)) }
        } }
    };
    let heads = [
        texts::WATCH_PHASE,
        texts::WATCH_CONDITION,
        texts::WATCH_SEEN,
        texts::WHO,
    ];
    Ok(html! {
        section {
            h2 { (texts::WATCHES) }
            (table(texts::WATCHES, &heads, &rows))
        }
    })
}
