//! The inbox: what waits for the owner, and what became of what did not.

use std::collections::HashMap;

use maud::{Markup, html};

use super::change::standing_class;
use super::frame::{Tab, proof};
use super::parts::{cut, name, time};
use super::site::{Asked, Made, Site};
use super::trouble::Trouble;
use super::words;
use crate::vault::{Change, ChangeStatus, Grant, hex};

/// Characters of the arguments that stand in the list; the change's own page has all.
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
        @for change in &open { (waiting(change, &names)) }
        @for (agent, waits) in plans(&open) { (approve_all(asked, agent, &waits, &names)) }
        @if !grants.is_empty() { (granted(asked, &grants, &names)) }
        @if !ended.is_empty() {
            section {
                h2 { (words::ENDED) }
                div class="scroll" { table {
                    thead { tr {
                        th scope="col" { (words::WHEN) }
                        th scope="col" { (words::AGENT) }
                        th scope="col" { (words::TOOL) }
                        th scope="col" { (words::OUTCOME) }
                    } }
                    tbody { @for change in ended.iter().take(ENDED) { tr {
                        td { (time(change.updated_ms)) }
                        td { (of(&names, &change.agent)) }
                        td { a href=(path(change)) { (name(&change.tool)) } " " (about(change)) }
                        td { (standing(change)) }
                    } } }
                } }
            }
        }
    };
    asked.page(Tab::Inbox, words::INBOX, true, content)
}

/// What agents are called, by their ids.
pub fn names(site: &Site) -> Result<HashMap<String, String>, Trouble> {
    let agents = site.vault.agents().list()?;
    Ok(agents
        .into_iter()
        .map(|agent| (agent.id, agent.name))
        .collect())
}

/// What an agent is called; its id when nobody knows it any more.
pub fn of(names: &HashMap<String, String>, agent: &str) -> Markup {
    name(names.get(agent).map_or(agent, String::as_str))
}

/// A change's own page.
pub fn path(change: &Change) -> String {
    format!("/owner/changes/{}", change.id)
}

/// What a change is about.
pub fn about(change: &Change) -> Markup {
    html! { @if let Some(target) = &change.target { (name(target)) } }
}

/// How a change stands, in a word.
pub fn standing(change: &Change) -> Markup {
    html! { span class=(format!("tag {}", standing_class(change.status))) { (change.status.as_str()) } }
}

fn waiting(change: &Change, names: &HashMap<String, String>) -> Markup {
    html! {
        article {
            h2 { a href=(path(change)) { (name(&change.tool)) " " (about(change)) } }
            p {
                (standing(change)) " " (of(names, &change.agent)) ", " (time(change.created_ms))
                @if change.moved.is_some() { " " span class="tag warn" { (words::MOVED) } }
            }
            p class="diff" { bdi { (cut(&crate::deeds::plain(&change.arguments), IN_A_LIST)) } }
            @if change.status == ChangeStatus::Pending {
                div class="row" { a class="button" href=(path(change)) { (words::LOOK_AND_DECIDE) } }
            }
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
