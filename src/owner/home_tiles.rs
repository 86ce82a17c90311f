//! The tiles of the home page: what waits, the health, and the assistants.

use maud::{Markup, html};

use super::agent_cards::is_active;
use super::header::waiting_words;
use super::help;
use super::home_texts as texts;
use super::page_error::PageError;
use super::parts::{name, time};
use super::problems::Remedy;
use super::site::OwnerSite;
use super::usage_charts::host_charts;
use gatewren_base::sys::now_ms;
use gatewren_gate::owner_actions::expires_soon;
use gatewren_store::vault::{Agent, ChangeStatus, DoctorReport};

const DAY_MS: u64 = 24 * 3_600_000;

/// The number of active agents that are named.
const NAMED: usize = 5;

/// Renders the tiles.
pub async fn tiles(site: &OwnerSite) -> Result<Markup, PageError> {
    let agents = site.vault.agents().list()?;
    let current = agents.iter().filter(|agent| agent.revoked_ms.is_none());
    let current: Vec<&Agent> = current.collect();
    Ok(html! {
        div class="tiles" {
            (waiting_tile(site)?)
            (health_tile(site, &current)?)
            (assistants_tile(site, &current)?)
            section class="whole" { h2 { (texts::SERVER) } (host_charts(site).await) }
        }
    })
}

fn waiting_tile(site: &OwnerSite) -> Result<Markup, PageError> {
    let open = site.vault.changes().list(true)?;
    let waiting = open
        .iter()
        .filter(|change| change.status == ChangeStatus::Pending);
    let times: Vec<u64> = waiting.map(|change| change.created_ms).collect();
    let class = (!times.is_empty()).then_some("notice");
    Ok(html! {
        section class=[class] {
            h2 { (texts::WAITING) }
            @if let Some(oldest) = times.iter().min() {
                p class="figure" { (times.len()) }
                p { a href="/owner/inbox" { (waiting_words(times.len())) } }
                p class="soft" { (texts::OLDEST) " " (time(*oldest)) }
            } @else { p { (texts::NOTHING) } }
        }
    })
}

fn health_tile(site: &OwnerSite, agents: &[&Agent]) -> Result<Markup, PageError> {
    let problems = site.problems();
    let now = now_ms();
    let expiring: Vec<_> = agents
        .iter()
        .filter(|agent| expires_soon(agent, now).is_some())
        .collect();
    let class = (!problems.is_empty()).then_some("notice bad");
    let report = site.vault.doctor_report().last()?;
    Ok(html! {
        section class=[class] {
            h2 { (texts::HEALTH) }
            @if problems.is_empty() && expiring.is_empty() { p { (texts::NO_PROBLEM) } }
            ul {
                @for problem in &problems {
                    li {
                        strong { (name(&problem.words)) } " "
                        @match &problem.remedy {
                            Remedy::Words(words) => (name(words)),
                            Remedy::Page { path, words } => a href=(path) { (words) },
                        }
                        " " a href=(help::link(problem.section)) { (help::MANUAL) }
                    }
                }
                @for agent in expiring {
                    li { (texts::TOKEN_EXPIRES) " " a href=(format!("/owner/agents/{}", agent.id)) { (name(&agent.name)) } }
                }
            }
            @if let Some(report) = &report { (last_check(report)) }
            p class="soft" { (texts::FULL_CHECK) " " code { (texts::DOCTOR) } }
            (not_visible(site))
        }
    })
}

/// Renders what doctor found when it last ran, with what to do.
fn last_check(report: &DoctorReport) -> Markup {
    let count = report.findings.len();
    html! {
        @if count == 0 {
            p { (texts::DOCTOR_FOUND_NOTHING) " " (time(report.at_ms)) }
        } @else {
            details id="doctor" {
                summary { (texts::DOCTOR_FOUND) " " (count) " · " (time(report.at_ms)) }
                ul {
                    @for finding in &report.findings {
                        li {
                            @if finding.is_problem { strong { (name(&finding.seen)) } } @else { (name(&finding.seen)) }
                            @if let Some(remedy) = &finding.remedy { br; code { (name(remedy)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Renders which parts of the host the server cannot observe, and why.
fn not_visible(site: &OwnerSite) -> Markup {
    let document = site.state.document();
    let parts = document.root.pointer("/public/observer");
    let parts = parts.and_then(serde_json::Value::as_object);
    let missing: Vec<_> = parts
        .into_iter()
        .flatten()
        .filter_map(|(part, seen)| Some((part, seen.get("why")?.as_str()?)))
        .collect();
    html! {
        @if !missing.is_empty() {
            details id="not-visible" {
                summary { (texts::NOT_VISIBLE) " " (missing.len()) }
                @for (part, why) in missing { p class="soft" { (name(part)) ": " (name(why)) } }
            }
        }
    }
}

fn assistants_tile(site: &OwnerSite, agents: &[&Agent]) -> Result<Markup, PageError> {
    let since_ms = now_ms().saturating_sub(DAY_MS);
    let counts = site.vault.audit().count_calls(since_ms)?;
    let active: Vec<_> = agents.iter().filter(|agent| is_active(agent)).collect();
    Ok(html! {
        section {
            h2 { (texts::ASSISTANTS) }
            dl class="figures" {
                dt { (texts::ACTIVE_NOW) } dd class="figure" { (active.len()) }
                dt { (texts::CALLS_OF_DAY) } dd class="figure" { (counts.calls) }
                dt { (texts::REFUSED_OF_DAY) }
                dd class="figure" {
                    @if counts.refused > 0 { a href="/owner/activity?outcome=refused" { (counts.refused) } } @else { "0" }
                }
            }
            p class="soft" { (texts::COUNTED) }
            p {
                @for (index, agent) in active.iter().take(NAMED).enumerate() {
                    @if index > 0 { ", " }
                    a href=(format!("/owner/agents/{}", agent.id)) { (name(&agent.name)) }
                }
            }
        }
    })
}
