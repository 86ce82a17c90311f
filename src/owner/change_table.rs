//! A table of changes of the state in words, with their authors and the calls that caused them.

use std::collections::HashMap;

use maud::{Markup, html};

use super::change_parts::names;
use super::page_error::PageError;
use super::parts::{name, table, time};
use super::site::OwnerSite;
use super::texts;
use super::timeline::describe_changes;
use gatewren_store::state::{HistoryFilter, Pointer};

/// The number of revisions that are read: many do not interest a person.
const READ: usize = 200;

/// The number of changes listed for one revision.
const PLACES: usize = 4;

/// Which changes a table has.
pub struct ListedChanges<'a> {
    /// The name of the table.
    pub label: &'a str,
    /// The part of the state.
    pub scope: Pointer,
    /// The most revisions.
    pub most: usize,
    /// The callers of the known calls, by the ids of the calls.
    pub callers: HashMap<String, String>,
}

impl ListedChanges<'_> {
    /// Renders the newest revisions.
    pub fn render(&self, site: &OwnerSite) -> Result<Markup, PageError> {
        let filter = HistoryFilter {
            scope: self.scope.clone(),
            most: READ,
            ..HistoryFilter::default()
        };
        let mut entries = site.state_log.entries(&filter)?;
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.revision.id));
        let names = names(site)?;
        let revisions = entries.iter().map(|entry| &entry.revision);
        let described = revisions.filter_map(|revision| {
            let lines = describe_changes(revision);
            (!lines.is_empty()).then_some((revision, lines))
        });
        let described: Vec<_> = described.take(self.most).collect();
        let rows = html! {
            @for (revision, lines) in &described { tr {
                td { (time(revision.at_ms)) }
                td {
                    @for line in lines.iter().take(PLACES) { div { (name(line)) } }
                    @if lines.len() > PLACES { span class="soft" { "+" (lines.len() - PLACES) } }
                }
                td {
                    @let agent = revision.actor.strip_prefix("agent:").and_then(|id| names.get(id));
                    @let caller = revision.cause.as_ref().and_then(|cause| self.callers.get(cause));
                    (name(caller.or(agent).unwrap_or(&revision.actor)))
                    @if let Some(cause) = &revision.cause {
                        " " a href=(format!("/owner/activity/{cause}")) { (texts::THE_CALL) }
                    }
                }
            } }
        };
        let heads = [texts::WHEN, texts::WHAT, texts::WHO];
        Ok(html! {
            @if described.is_empty() { p { (texts::NOTHING_LATELY) } } @else { (table(self.label, &heads, &rows)) }
        })
    }
}
