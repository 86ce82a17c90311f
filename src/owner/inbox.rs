//! The inbox: what waits for the owner, and what became of what did not.

use std::collections::HashMap;

use maud::{Markup, html};

use super::change_parts::{about, decision, facts, names, of, path, standing};
use super::frame::{Tab, proof};
use super::parts::{cut, name, table, time};
use super::site::{Asked, Made};
use super::trouble::Trouble;
use super::words;
use crate::vault::{Change, ChangeStatus, Grant, hex};

/// So many are shown with all that there is to decide on; further ones in brief, with all of it on their own pages.
const IN_FULL: usize = 10;

/// Characters of the arguments that stand in the list in brief.
const IN_A_LIST: usize = 200;

/// So many that have ended are listed.
const ENDED: usize = 20;

/// The page.
pub fn page(asked: &Asked<'_>) -> Made {
    let site = asked.site;
    let changes = site.vault.changes().list(false)?;
    let (open, ended): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .partition(|change| change.status.is_open());
    let names = names(site)?;
    let grants = site.vault.grants().holding()?;
    let content = html! {
        h1 { (words::INBOX) }
        (asked.said())
        @if open.is_empty() { p { (words::NOTHING_WAITS) } }
        @for (index, change) in open.iter().enumerate() {
            @if index < IN_FULL { (whole(asked, change, &names)?) } @else { (brief(change, &names)) }
        }
        @for (agent, waits) in plans(&open) { (approve_all(asked, agent, &waits, &names)) }
        @if !grants.is_empty() { (granted(asked, &grants, &names)) }
        @if !ended.is_empty() {
            section {
                h2 { (words::ENDED) }
                (table(words::ENDED, &[words::WHEN, words::AGENT, words::TOOL, words::OUTCOME], &ended_rows(&ended, &names)))
            }
        }
    };
    asked.page(Tab::Inbox, words::INBOX, true, content)
}

fn ended_rows(ended: &[Change], names: &HashMap<String, String>) -> Markup {
    html! {
        @for change in ended.iter().take(ENDED) { tr {
            td { (time(change.updated_ms)) }
            td { (of(names, &change.agent)) }
            td { a href=(path(change)) { (name(&change.tool)) } " " (about(change)) }
            td { (standing(change)) }
        } }
    }
}

/// All that there is to decide on, and the buttons for it.
fn whole(
    asked: &Asked<'_>,
    change: &Change,
    names: &HashMap<String, String>,
) -> Result<Markup, Trouble> {
    let shown = facts(asked, change, names)?;
    Ok(html! {
        article {
            h2 { a href=(path(change)) { (name(&change.tool)) " " (about(change)) } }
            (shown)
            @if change.status == ChangeStatus::Pending { (decision(asked, change)) }
        }
    })
}

fn brief(change: &Change, names: &HashMap<String, String>) -> Markup {
    html! {
        article {
            h2 { a href=(path(change)) { (name(&change.tool)) " " (about(change)) } }
            p { (standing(change)) " " (of(names, &change.agent)) ", " (time(change.created_ms)) }
            p class="diff" { bdi { (cut(&crate::deeds::plain(&change.arguments), IN_A_LIST)) } }
        }
    }
}

/// What waits of each agent of which several things do.
fn plans(open: &[Change]) -> Vec<(&str, Vec<&Change>)> {
    let mut plans: Vec<(&str, Vec<&Change>)> = Vec::new();
    for change in open
        .iter()
        .filter(|change| change.status == ChangeStatus::Pending)
    {
        match plans.iter_mut().find(|(agent, _)| *agent == change.agent) {
            Some((_, waits)) => waits.push(change),
            None => plans.push((&change.agent, vec![change])),
        }
    }
    plans.retain(|(_, waits)| waits.len() > 1);
    plans
}

/// Approves what is on this page and nothing that came since.
fn approve_all(
    asked: &Asked<'_>,
    agent: &str,
    waits: &[&Change],
    names: &HashMap<String, String>,
) -> Markup {
    html! {
        section {
            h2 { (words::ALL_OF) " " (of(names, agent)) }
            p { (words::ALL_OF_HOW) }
            form method="post" action="/owner/changes" {
                (proof(asked.session))
                // In the order in which they were proposed.
                @for change in waits.iter().rev() {
                    input type="hidden" name="seen" value=(format!("{} {}", change.id, hex(&change.binding())));
                }
                div class="row" {
                    button name="do" value="approve" { (words::APPROVE_ALL) " " (waits.len()) }
                    button name="do" value="reject" class="bad" { (words::REJECT_ALL) }
                }
            }
        }
    }
}

fn granted(asked: &Asked<'_>, grants: &[Grant], names: &HashMap<String, String>) -> Markup {
    html! {
        section {
            h2 { (words::GRANTS) }
            @for grant in grants {
                form method="post" action=(format!("/owner/grants/{}", grant.id)) class="row" {
                    (proof(asked.session))
                    span class="note" {
                        (of(names, &grant.agent)) ": " (name(&grant.tool)) " "
                        @match &grant.target {
                            Some(target) => (name(target)),
                            None => (words::WHATEVER_IT_REACHES),
                        }
                        ", " (words::UNTIL) " " (time(grant.until_ms))
                    }
                    button class="plain" { (words::END_GRANT) }
                }
            }
        }
    }
}
