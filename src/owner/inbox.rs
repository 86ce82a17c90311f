//! The inbox: open changes, in full on as many pages as needed, and the outcome of recent ones.

use std::collections::HashMap;

use maud::{Markup, html};

use super::change_parts::{about, names, of, path, status_tag};
use super::header::Tab;
use super::inbox_card::InboxCards;
use super::inbox_order::InboxPage;
use super::inbox_result::decided_result;
use super::inbox_texts;
use super::parts::{exact_time, name, proof, table, time};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_gate::owner_actions::granted_words;
use gatewren_store::vault::{Change, Grant, hex};

/// The number of ended changes that are listed.
const ENDED: usize = 20;

/// Renders the page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let site = asked.site;
    let changes = site.vault.changes().list(false)?;
    let (open, ended): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .partition(|change| change.status.is_open());
    let names = names(site)?;
    let grants = site.vault.grants().holding()?;
    let number = asked.visit.query("page").and_then(|text| text.parse().ok());
    let page = InboxPage::of(site, open, number.unwrap_or(1))?;
    let cards = InboxCards::of(asked, &names, &page.shown)?;
    let content = html! {
        h1 data-waiting=(site.waiting()?) { (texts::INBOX) }
        (asked.render_notice())
        (decided_result(asked)?)
        @if page.shown.is_empty() { p { (texts::NOTHING_WAITS) } }
        (pages(&page))
        (together(asked, &page, &names))
        @for change in &page.shown { (cards.render(change)?) }
        (pages(&page))
        @if !grants.is_empty() { (render_grants(asked, &grants, &names)) }
        @if !ended.is_empty() {
            section {
                h2 { (texts::ENDED) }
                (table(texts::ENDED, &[texts::WHEN, texts::AGENT, texts::TOOL, texts::OUTCOME], &ended_rows(&ended, &names)))
            }
        }
    };
    asked.page(Tab::Inbox, texts::INBOX, true, content)
}

fn ended_rows(ended: &[Change], names: &HashMap<String, String>) -> Markup {
    html! {
        @for change in ended.iter().take(ENDED) { tr {
            td { (time(change.updated_ms)) }
            td { (of(names, &change.agent)) }
            td { a href=(path(change)) { (name(&change.tool)) } " " (about(change)) }
            td { (status_tag(change)) }
        } }
    }
}

/// Renders links to the other pages, if there are any.
fn pages(page: &InboxPage) -> Markup {
    let to = |number: usize| format!("/owner/inbox?page={number}");
    html! {
        @if page.count > 1 {
            p {
                @if page.number > 1 { a href=(to(page.number - 1)) { (texts::PREVIOUS) } " " }
                (texts::PAGE) " " (page.number) " " (texts::PAGE_OF) " " (page.count)
                @if page.number < page.count { " " a href=(to(page.number + 1)) { (texts::NEXT) } }
            }
        }
    }
}

/// Renders the bar for one decision on several changes of an agent: approve those that this page shows in full and
/// that lose no data, or reject all that wait. It stays on top while the cards are read.
fn together(
    asked: &SignedInRequest<'_>,
    page: &InboxPage,
    names: &HashMap<String, String>,
) -> Markup {
    let agents: Vec<_> = page.waiting_agents();
    let several = agents.iter().map(|agent| (agent, page.waiting_of(agent)));
    let several: Vec<_> = several.filter(|(_, waiting)| waiting.len() > 1).collect();
    html! {
        @if !several.is_empty() {
            div class="card batch" role="group" aria-label=(texts::ALL_OF) {
                @for (agent, waiting) in &several { (bar(asked, page, agent, waiting, names)) }
                details id="batch-how" { summary { (inbox_texts::HOW) } p { (texts::ALL_OF_HOW) } }
            }
        }
    }
}

fn bar(
    asked: &SignedInRequest<'_>,
    page: &InboxPage,
    agent: &str,
    waiting: &[Change],
    names: &HashMap<String, String>,
) -> Markup {
    let batch = page.batch(agent);
    html! {
        div class="row" {
            span { (waiting.len()) " " (inbox_texts::FROM) " " strong { (of(names, agent)) } }
            @if batch.changes.len() > 1 {
                form method="post" action="/owner/changes" {
                    (proof(asked.session))
                    input type="hidden" name="agent" value=(agent);
                    input type="hidden" name="page" value=(page.number);
                    input type="hidden" name="digest" value=(batch.digest);
                    button name="do" value="approve" { (texts::APPROVE_ALL) " " (batch.changes.len()) }
                }
            }
            form method="post" action="/owner/changes" {
                (proof(asked.session))
                @for change in waiting {
                    input type="hidden" name="seen" value=(format!("{} {}", change.id, hex(&change.binding())));
                }
                button name="do" value="reject" class="bad" { (texts::REJECT_ALL) " " (waiting.len()) }
            }
        }
    }
}

fn render_grants(
    asked: &SignedInRequest<'_>,
    grants: &[Grant],
    names: &HashMap<String, String>,
) -> Markup {
    html! {
        section {
            h2 { (texts::GRANTS) }
            @for grant in grants {
                form method="post" action=(format!("/owner/grants/{}", grant.id)) class="row" {
                    (proof(asked.session))
                    span class="note" {
                        (of(names, &grant.agent)) ": "
                        (granted_words(&grant.tool, grant.target.as_deref(), &grant.bound))
                        ", " (texts::UNTIL) " " (exact_time(grant.until_ms))
                    }
                    button class="plain" { (texts::END_GRANT) }
                }
            }
        }
    }
}
