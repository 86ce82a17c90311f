//! A card of the inbox: the effect of a request, its agent and its reason, and the buttons to decide on it.

use std::collections::HashMap;

use maud::{Markup, html};
use serde_json::Value;

use super::change_parts::{
    DecisionPlace, about_call, change_class, decision, exact, headline, of, path, reason, reject,
    risk, status_tag,
};
use super::container_parts::{self, since, since_words};
use super::diff::{call_arguments, current_values};
use super::grant_form::fields;
use super::inbox_order::ChangeLength;
use super::inbox_texts;
use super::page_error::PageError;
use super::parts::{notice, time};
use super::site::SignedInRequest;
use super::status_times::status_times;
use super::texts;
use gatewren_gate::owner_actions::find_staleness;
use gatewren_store::vault::{Change, ChangeStatus};
use gatewren_tools::tool_texts::loses_data;

/// The data that the cards of a page share.
pub struct InboxCards<'a> {
    asked: &'a SignedInRequest<'a>,
    names: &'a HashMap<String, String>,
    status_times: HashMap<String, u64>,
}

impl<'a> InboxCards<'a> {
    /// Reads the data for the cards of a page.
    pub fn of(
        asked: &'a SignedInRequest<'a>,
        names: &'a HashMap<String, String>,
        shown: &[Change],
    ) -> Result<Self, PageError> {
        // The times are in the log of the state, which is read only if a card has one of them.
        let document = asked.site.state.document();
        let is_needed = shown
            .iter()
            .any(|change| container(change, &document.root).is_some());
        let status_times = if is_needed {
            status_times(asked.site)?
        } else {
            HashMap::new()
        };
        Ok(Self {
            asked,
            names,
            status_times,
        })
    }

    /// Renders a change in full, or why it is not.
    pub fn render(&self, change: &Change) -> Result<Markup, PageError> {
        let length = ChangeLength::of(change);
        Ok(html! {
            article id=(change.id) class=(card_class(change)) {
                h2 { a href=(path(change)) { (headline(change)) } }
                (self.about(change)?)
                @if length.fits() { (self.body(change)) } @else { (self.too_long(change, length)) }
            }
        })
    }

    /// Renders the line below the headline.
    fn about(&self, change: &Change) -> Result<Markup, PageError> {
        Ok(html! {
            p {
                span class="tag" { (of(self.names, &change.agent)) } " " (time(change.created_ms)) ", "
                (inbox_texts::EXPIRES) " " (time(change.expires_ms)) " "
                @if loses_data(&change.tool) { span class="tag bad" { (inbox_texts::NO_WAY_BACK) } } @else { (risk(self.asked, change)?) }
                @if change.moved.is_some() { " " span class="tag warn" { (texts::MOVED) } }
                @if change.status != ChangeStatus::Pending { " " (status_tag(change)) }
            }
        })
    }

    fn body(&self, change: &Change) -> Markup {
        let site = self.asked.site;
        let document = site.state.document();
        let moved = find_staleness(Some(&site.state_log), change);
        let details = html! {
            details id=(format!("exact-{}", change.id)) class="more" {
                summary class="button plain" { (inbox_texts::DETAILS) }
                (exact(change, &moved))
                (current_values(change, &document.root))
            }
        };
        html! {
            @if change.proven_arguments().is_none() { (notice(texts::ALTERED, true)) }
            @if change.reason.is_some() { (reason(change)) }
            @else { p class="soft" { (of(self.names, &change.agent)) " " (inbox_texts::NO_REASON) } }
            (about_call(change))
            (call_arguments(change, &document.root, true))
            (self.now(change, &document.root))
            @if change.status == ChangeStatus::Pending {
                (decision(self.asked, change, DecisionPlace::Inbox, &fields(change), &details))
            } @else { (details) }
        }
    }

    /// Renders the current status of the container that a change is about.
    fn now(&self, change: &Change, state: &Value) -> Markup {
        let target = change.target.as_deref().unwrap_or_default();
        html! {
            @if let Some((status, entry)) = container(change, state) {
                p class="soft" {
                    (inbox_texts::NOW) " " (container_parts::status_tag(status)) " "
                    (since_words(status, since(entry, self.status_times.get(target).copied())))
                }
            }
        }
    }

    /// Renders a change that is too long to be shown in full here: it can be rejected here, and approved on its own
    /// page.
    fn too_long(&self, change: &Change, length: ChangeLength) -> Markup {
        let ChangeLength { characters, lines } = length;
        html! {
            (notice(&format!("{characters} {}, {lines} {}. {}", texts::CHARACTERS, texts::LINES, texts::TOO_LONG), true))
            @if change.status == ChangeStatus::Pending { (reject(self.asked, change)) }
        }
    }
}

fn card_class(change: &Change) -> String {
    format!("request {}", change_class(change).unwrap_or_default())
}

/// The status and the entry of the container that a change is about, if the state has it.
fn container<'s>(change: &Change, state: &'s Value) -> Option<(&'s str, &'s Value)> {
    let all = state.pointer("/public/packageData")?;
    let entry = all.get(change.target.as_deref()?)?;
    Some((entry.get("status")?.as_str()?, entry))
}
