//! The inbox: open changes, in full on as many pages as needed, and the outcome of recent ones.

use std::collections::HashMap;

use maud::{Markup, html};

use super::change_parts::{
    about, change_class, decision, facts, headline, names, of, path, reject, status_tag,
};
use super::grant_form::fields;
use super::header::Tab;
use super::inbox_order::{ChangeLength, InboxPage};
use super::page_error::PageError;
use super::parts::{exact_time, name, notice, proof, table, time};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_gate::owner_actions::granted_words;
use gatewren_store::vault::{Change, ChangeStatus, Grant, hex};

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
    let content = html! {
        h1 data-waiting=(site.waiting()?) { (texts::INBOX) }
        (asked.render_notice())
        @if page.shown.is_empty() { p { (texts::NOTHING_WAITS) } }
        (pages(&page))
        @for change in &page.shown {
            @if ChangeLength::of(change).fits() { (render_whole(asked, change, &names)?) } @else { (too_long(asked, change, &names)) }
        }
        (pages(&page))
        @for agent in page.waiting_agents() { (together(asked, &page, &agent, &names)) }
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

/// Renders a change in full, with the buttons to decide on it.
fn render_whole(
    asked: &SignedInRequest<'_>,
    change: &Change,
    names: &HashMap<String, String>,
) -> Result<Markup, PageError> {
    let shown = facts(asked, change, names)?;
    Ok(html! {
        article id=(change.id) class=[change_class(change)] {
            h2 { a href=(path(change)) { (headline(change)) } }
            (shown)
            @if change.status == ChangeStatus::Pending { (decision(asked, change, &fields(change))) }
        }
    })
}

/// Renders a change that is too long to be shown in full here: it can be rejected here, and approved on its own
/// page.
fn too_long(
    asked: &SignedInRequest<'_>,
    change: &Change,
    names: &HashMap<String, String>,
) -> Markup {
    let ChangeLength { characters, lines } = ChangeLength::of(change);
    html! {
        article id=(change.id) class=[change_class(change)] {
            h2 { a href=(path(change)) { (headline(change)) } }
            p { (status_tag(change)) " " (of(names, &change.agent)) ", " (time(change.created_ms)) }
            (notice(&format!("{characters} {}, {lines} {}. {}", texts::CHARACTERS, texts::LINES, texts::TOO_LONG), true))
            @if change.status == ChangeStatus::Pending { (reject(asked, change)) }
        }
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

/// Renders one decision on several changes of an agent: approve those that this page shows in full, or reject all
/// that wait.
fn together(
    asked: &SignedInRequest<'_>,
    page: &InboxPage,
    agent: &str,
    names: &HashMap<String, String>,
) -> Markup {
    let (waiting, batch) = (page.waiting_of(agent), page.batch(agent));
    html! {
        @if waiting.len() > 1 { section {
            h2 { (texts::ALL_OF) " " (of(names, agent)) }
            @if batch.changes.len() > 1 {
                p { (texts::ALL_OF_HOW) }
                form method="post" action="/owner/changes" {
                    (proof(asked.session))
                    input type="hidden" name="agent" value=(agent);
                    input type="hidden" name="page" value=(page.number);
                    input type="hidden" name="digest" value=(batch.digest);
                    div class="row" {
                        button name="do" value="approve" { (texts::APPROVE_ALL) " " (batch.changes.len()) }
                    }
                }
            }
            form method="post" action="/owner/changes" {
                (proof(asked.session))
                @for change in &waiting {
                    input type="hidden" name="seen" value=(format!("{} {}", change.id, hex(&change.binding())));
                }
                div class="row" {
                    button name="do" value="reject" class="bad" { (texts::REJECT_ALL) " " (waiting.len()) }
                }
            }
        } }
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
