//! The agents page: a card for each agent, and when all of them worked in the last week.

use maud::html;

use super::agent_cards::{cards, hours_of_week};
use super::agent_texts;
use super::header::Tab;
use super::heat_map::HeatMap;
use super::site::{PageResult, SignedInRequest};
use super::{schedules, texts};
use gatewren_base::sys::LocalZone;
use gatewren_store::vault::Agent;

/// Renders the page.
pub async fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let site = asked.site;
    let spaces = site.spaces();
    let agents = site.vault.agents().list()?;
    let hours = hours_of_week(site).await?;
    let (mut current, gone): (Vec<&Agent>, Vec<&Agent>) =
        agents.iter().partition(|agent| agent.revoked_ms.is_none());
    current.sort_by_key(|agent| std::cmp::Reverse(agent.last_used_ms));
    let content = html! {
        h1 { (texts::AGENTS) }
        (asked.render_notice())
        p { a class="button" href="/owner/agents/new" { (agent_texts::NEW) } }
        @if current.is_empty() { p { (texts::NO_AGENTS) } } @else {
            (cards(&current, &hours, &spaces))
            section {
                h2 { (agent_texts::CALLS_OF_WEEK) }
                (HeatMap::of(hours.iter(), &LocalZone::of_host()).render_with_table("week"))
            }
        }
        (schedules::section(site, &agents)?)
        @if !gone.is_empty() {
            details id="revoked" {
                summary { (texts::REVOKED_AGENTS) " " (gone.len()) }
                (cards(&gone, &hours, &spaces))
            }
        }
    };
    asked.page(Tab::Agents, texts::AGENTS, true, content)
}
