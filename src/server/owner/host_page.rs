//! The home page, with the tiles, alerts and recent changes, and the page of the containers with the last hour.

use std::collections::VecDeque;

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::alerts::alerts_section;
use super::change_parts::names;
use super::chart::{TimeChart, bytes, percent};
use super::container_parts::container_head;
use super::header::Tab;
use super::home_texts;
use super::home_tiles::tiles;
use super::page_error::PageError;
use super::parts::{name, table, time};
use super::samples::{ContainerSample, SampleHistory};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use super::timeline::describe_changes;
use super::usage_charts::{last_hour, minute_points};
use super::watch_table::watch_section;
use gatewren_store::state::{History, HistoryFilter};

/// The number of revisions that are listed.
const LATELY: usize = 25;

/// The number of revisions that are read for them: many say nothing to a person.
const READ: usize = 200;

/// The number of changes listed for one revision.
const PLACES: usize = 4;

/// Renders the home page.
pub async fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let site = asked.site;
    let document = site.state.document();
    let info = document.root.pointer("/public/serverInfo");
    let content = html! {
        h1 { (texts::HOME) }
        (asked.render_notice())
        (tiles(site).await?)
        (alerts_section(site))
        (watch_section(site)?)
        section { h2 { (texts::LATELY) } (lately(asked)?) }
        section {
            h2 { (name(text(info, "hostname").unwrap_or(texts::HOST))) }
            (facts(info))
        }
    };
    asked.page(Tab::Home, texts::HOME, true, content)
}

/// Renders the page of the containers.
pub fn containers_page(asked: &SignedInRequest<'_>) -> PageResult {
    let document = asked.site.state.document();
    let containers = document.root.pointer("/public/packageData");
    let content = html! {
        h1 { (texts::CONTAINERS) }
        @match containers.and_then(Value::as_object) {
            Some(containers) if !containers.is_empty() => (container_cards(containers, &asked.site.samples.hour())),
            _ => p { (texts::NO_CONTAINERS) },
        }
    };
    asked.page(Tab::Containers, texts::CONTAINERS, true, content)
}

fn text<'a>(value: Option<&'a Value>, member: &str) -> Option<&'a str> {
    value?.get(member)?.as_str()
}

fn facts(info: Option<&Value>) -> Markup {
    let os = |member| info.and_then(|info| text(info.get("os"), member));
    let known = [
        (texts::SYSTEM, os("name")),
        (texts::VERSION, os("version")),
        (texts::KERNEL, text(info, "kernel")),
        (texts::ARCHITECTURE, text(info, "architecture")),
    ];
    html! {
        dl { @for (what, value) in known { @if let Some(value) = value { dt { (what) } dd { (name(value)) } } } }
    }
}

fn container_cards(containers: &Map<String, Value>, hour: &SampleHistory) -> Markup {
    html! {
        @for (id, container) in containers {
            div class="card" {
                (container_head(id, container))
                @if let Some(samples) = hour.containers.get(id) {
                    div class="charts" {
                        (small_chart(home_texts::CPU, samples, |one| one.cpu, percent))
                        (small_chart(home_texts::MEMORY, samples, |one| one.memory, bytes))
                    }
                }
            }
        }
    }
}

/// Renders a chart of the last hour of a container.
fn small_chart(
    title: &'static str,
    samples: &VecDeque<ContainerSample>,
    value: fn(&ContainerSample) -> f64,
    format: fn(f64) -> String,
) -> Markup {
    let chart = TimeChart {
        title,
        caption: samples.back().map(value).map(format).unwrap_or_default(),
        points: minute_points(samples.iter().map(value)),
        most: None,
        format,
    };
    chart.render(last_hour())
}

/// Renders the last revisions with their authors, and the calls that caused them.
fn lately(asked: &SignedInRequest<'_>) -> Result<Markup, PageError> {
    let history = History::open(asked.site.state.path())?;
    let filter = HistoryFilter {
        most: READ,
        ..HistoryFilter::default()
    };
    let mut entries = history.log(&filter)?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.revision.id));
    let names = names(asked.site)?;
    let revisions = entries.iter().map(|entry| &entry.revision);
    let told = revisions.filter_map(|revision| {
        let lines = describe_changes(revision);
        (!lines.is_empty()).then_some((revision, lines))
    });
    let told: Vec<_> = told.take(LATELY).collect();
    let rows = html! {
        @for (revision, lines) in &told { tr {
            td { (time(revision.at_ms)) }
            td {
                @for line in lines.iter().take(PLACES) { div { (name(line)) } }
                @if lines.len() > PLACES { span class="soft" { "+" (lines.len() - PLACES) } }
            }
            td {
                @let agent = revision.actor.strip_prefix("agent:").and_then(|id| names.get(id));
                (name(agent.unwrap_or(&revision.actor)))
                @if let Some(cause) = &revision.cause {
                    " " a href=(format!("/owner/activity/{cause}")) { (texts::THE_CALL) }
                }
            }
        } }
    };
    let heads = [texts::WHEN, texts::WHAT, texts::WHO];
    Ok(html! {
        @if told.is_empty() { p { (texts::NOTHING_LATELY) } } @else { (table(texts::LATELY, &heads, &rows)) }
    })
}
