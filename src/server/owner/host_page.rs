//! The home page, with the host and recent changes, and the page of the containers, both with the last hour.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::change_parts::names;
use super::chart::{bytes, chart};
use super::container_parts::container_head;
use super::header::{Tab, waiting_words};
use super::page_error::PageError;
use super::parts::{name, table, time};
use super::samples::{ContainerSample, SampleHistory};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use super::timeline::describe_changes;
use super::watch_table::watch_section;
use gatewren_store::state::{History, HistoryFilter};

/// The number of revisions that are listed.
const LATELY: usize = 25;

/// The number of revisions that are read for them: many say nothing to a person.
const READ: usize = 200;

/// The number of changes listed for one revision.
const PLACES: usize = 4;

/// Renders the home page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let site = asked.site;
    let document = site.state.document();
    let info = document.root.pointer("/public/serverInfo");
    let (waiting, problems) = (site.waiting()?, site.problems());
    let content = html! {
        h1 { (texts::HOME) }
        (asked.render_notice())
        @if !problems.is_empty() {
            section class="notice bad" {
                h2 { (texts::PROBLEMS) }
                ul { @for problem in &problems { li { (name(problem)) } } }
            }
        }
        @if waiting > 0 {
            section class="notice" { a href="/owner/inbox" { (waiting_words(waiting)) } }
        }
        section {
            h2 { (name(text(info, "hostname").unwrap_or(texts::HOST))) }
            (facts(info))
            (host_charts(&site.samples.hour()))
        }
        (watch_section(site)?)
        section { h2 { (texts::LATELY) } (lately(asked)?) }
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

fn host_charts(hour: &SampleHistory) -> Markup {
    let line =
        |of: fn(&super::samples::HostSample) -> f64| hour.host.iter().map(of).collect::<Vec<_>>();
    let Some(now) = hour.host.back() else {
        return html! { p class="soft" { (texts::NO_SAMPLES) } };
    };
    html! {
        div class="charts" {
            (chart(texts::CPU, &line(|one| one.cpu), Some(100.0), &percent(now.cpu)))
            (chart(texts::MEMORY, &line(|one| one.memory), Some(100.0), &percent(now.memory)))
            (chart(texts::DISK, &line(|one| one.disk), Some(100.0), &percent(now.disk)))
            (chart(texts::RECEIVED, &line(|one| one.received), None, &a_second(now.received)))
            (chart(texts::SENT, &line(|one| one.sent), None, &a_second(now.sent)))
        }
    }
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

fn a_second(value: f64) -> String {
    format!("{}/s", bytes(value))
}

fn container_cards(containers: &Map<String, Value>, hour: &SampleHistory) -> Markup {
    html! {
        @for (id, container) in containers {
            div class="card" {
                (container_head(id, container))
                @if let Some(samples) = hour.containers.get(id) {
                    @let line = |of: fn(&ContainerSample) -> f64| samples.iter().map(of).collect::<Vec<_>>();
                    @let now = samples.back().copied().unwrap_or_default();
                    div class="charts" {
                        (chart(texts::CPU, &line(|one| one.cpu), None, &percent(now.cpu)))
                        (chart(texts::MEMORY, &line(|one| one.memory), None, &bytes(now.memory)))
                    }
                }
            }
        }
    }
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
        let lines = describe_changes(revision.patch.operations());
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
