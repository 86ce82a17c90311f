//! The schedules of all agents, as a section of the agents page. `gatewren schedule` changes them.

use std::collections::HashMap;

use maud::{Markup, html};

use super::page_error::PageError;
use super::parts::{name, table, time, time_or};
use super::site::OwnerSite;
use super::texts;
use gatewren_base::sys::Calendar;
use gatewren_store::vault::{Agent, Schedule, ScheduleRun};

/// Renders the section; empty if there is no schedule.
pub fn section(site: &OwnerSite, agents: &[Agent]) -> Result<Markup, PageError> {
    let all = site.vault.schedules().list()?;
    if all.is_empty() {
        return Ok(html! {});
    }
    let names: HashMap<&str, &str> = agents
        .iter()
        .map(|agent| (agent.id.as_str(), agent.name.as_str()))
        .collect();
    let mut rows = Vec::new();
    for one in &all {
        let runs = site.vault.schedules().runs(&one.id)?;
        let agent = names.get(one.agent.as_str()).copied();
        rows.push(row(one, agent.unwrap_or(&one.agent), runs.first()));
    }
    let heads = [
        texts::NAME,
        texts::AGENT,
        texts::WOULD_RUN,
        texts::TIMES,
        texts::STATE,
        texts::NEXT_RUN,
        texts::LAST_RUN,
    ];
    let rows = html! { @for row in rows { (row) } };
    Ok(html! {
        section {
            h2 { (texts::SCHEDULES) }
            (table(texts::SCHEDULES, &heads, &rows))
            p class="soft" { (texts::SCHEDULES_HOW) }
        }
    })
}

fn row(one: &Schedule, agent: &str, last: Option<&ScheduleRun>) -> Markup {
    let calendar = one.at.parse::<Calendar>().ok();
    let times = calendar.map_or_else(|| one.at.clone(), |calendar| calendar.words());
    html! {
        tr {
            td { (name(&one.name)) }
            td { (name(agent)) }
            td { code { (name(&format!("{} {}", one.tool, one.arguments))) } }
            td { (name(&times)) }
            td {
                @match (&one.ended, one.paused) {
                    (Some(why), _) => (name(why)),
                    (None, true) => (texts::PAUSED),
                    (None, false) if one.failing => span class="tag bad" { (texts::FAILING) },
                    (None, false) => (texts::ACTIVE),
                }
            }
            td { (time_or(one.next_ms, "-")) }
            td {
                @if let Some(run) = last {
                    (time(run.began_ms)) " " (run.outcome.as_deref().unwrap_or(texts::RUNNING_NOW))
                    @if let Some(words) = &run.words { br; (name(words)) }
                } @else { "-" }
            }
        }
    }
}
