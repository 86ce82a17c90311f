//! The cards of the agents: their activity, their policies, and their calls of the last week.

use std::collections::HashMap;

use maud::{Markup, html};

use super::agent_texts as texts;
use super::heat_map::{HeatMap, week_begin_ms};
use super::page_error::PageError;
use super::parts::{name, time};
use super::site::OwnerSite;
use super::texts::SOON;
use gatewren_base::config::{Preset, Spaces, WHOLE_SERVER};
use gatewren_base::sys::{LocalZone, now_ms};
use gatewren_gate::owner_actions::{expires_soon, token_status};
use gatewren_store::vault::{Agent, HourOfCalls};

/// An agent whose last call is not older is active. Calls are noted once a minute.
const ACTIVE_MS: u64 = 5 * 60_000;

/// Whether an agent is active now.
pub fn is_active(agent: &Agent) -> bool {
    let last = agent.last_used_ms;
    last.is_some_and(|last_ms| last_ms.saturating_add(ACTIVE_MS) > now_ms())
}

/// The path of an agent's own page.
pub fn path(agent: &Agent) -> String {
    format!("/owner/agents/{}", agent.id)
}

/// The calls of the last week by agent and hour, read on a blocking thread.
pub async fn hours_of_week(site: &OwnerSite) -> Result<Vec<HourOfCalls>, PageError> {
    let vault = site.vault.clone();
    let read = move || vault.audit().calls_by_hour(week_begin_ms());
    let read = tokio::task::spawn_blocking(read).await;
    Ok(read.map_err(|_| PageError::Unavailable)??)
}

/// Renders a card for each agent.
pub fn cards(agents: &[&Agent], hours: &[HourOfCalls], spaces: &Spaces) -> Markup {
    let zone = LocalZone::of_host();
    let mut of_agent: HashMap<&str, Vec<&HourOfCalls>> = HashMap::new();
    for hour in hours {
        of_agent.entry(&hour.agent).or_default().push(hour);
    }
    html! {
        div class="containers" {
            @for agent in agents {
                @let hours = of_agent.get(agent.id.as_str());
                @let hours = hours.into_iter().flatten().copied();
                div class="card" { (card(agent, &HeatMap::of(hours, &zone), spaces)) }
            }
        }
    }
}

fn card(agent: &Agent, map: &HeatMap, spaces: &Spaces) -> Markup {
    let status = token_status(agent, spaces);
    let space = agent.space.as_deref().unwrap_or("-");
    html! {
        h3 {
            span class="avatar" aria-hidden="true" { (agent.name.chars().next().unwrap_or('?').to_uppercase()) }
            " " a href=(path(agent)) { (name(&agent.name)) }
        }
        p {
            (policy_tag(agent)) " "
            @if status.refused.is_some() { span class="tag bad" { (status.word) } " " }
            @if expires_soon(agent, now_ms()).is_some() { span class="tag warn" { (SOON) } " " }
            @if space != WHOLE_SERVER { span class="tag soft" { (name(space)) } }
        }
        p { (last_call(agent)) }
        (map.render())
    }
}

/// Renders the policy of an agent: more access has a stronger colour.
pub fn policy_tag(agent: &Agent) -> Markup {
    let class = match agent.preset {
        Preset::Observe | Preset::Suggest => "tag good",
        Preset::Operate => "tag warn",
        Preset::Admin => "tag bad",
    };
    html! { span class=(class) { (agent.preset.as_str()) @if agent.overrides != "{}" { "+" } } }
}

/// Renders when an agent made its last call.
fn last_call(agent: &Agent) -> Markup {
    html! {
        @match agent.last_used_ms {
            Some(_) if is_active(agent) => span class="tag good" { (texts::ACTIVE) },
            Some(ms) => { (texts::LAST_CALL) " " (time(ms)) },
            None => span class="soft" { (texts::NO_CALL) },
        }
    }
}
