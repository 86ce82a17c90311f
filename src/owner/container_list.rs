//! The page of the containers: a card for each, with its state, its address and the last hour.

use std::collections::VecDeque;

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{TimeChart, bytes, percent};
use super::container_parts::{container_head, since};
use super::header::Tab;
use super::home_texts;
use super::samples::ContainerSample;
use super::site::{PageResult, SignedInRequest};
use super::status_times::status_times;
use super::texts;
use super::usage_charts::{last_hour, minute_points};

/// Renders the page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let (site, document) = (asked.site, asked.site.state.document());
    let containers = document.root.pointer("/public/packageData");
    let containers = containers.and_then(Value::as_object);
    let hour = site.samples.hour();
    let changed = status_times(site)?;
    let content = html! {
        h1 { (texts::CONTAINERS) }
        (asked.render_notice())
        @match containers {
            Some(containers) if !containers.is_empty() => div class="containers" {
                @for (id, container) in containers {
                    div class="card" {
                        (container_head(id, container, since(container, changed.get(id).copied())))
                        @if let Some(samples) = hour.containers.get(id) { (charts(samples)) }
                    }
                }
            },
            _ => p { (texts::NO_CONTAINERS) },
        }
    };
    asked.page(Tab::Containers, texts::CONTAINERS, true, content)
}

/// Renders the last hour of a container.
fn charts(samples: &VecDeque<ContainerSample>) -> Markup {
    html! {
        div class="charts" {
            (chart(home_texts::CPU, samples, |one| one.cpu, percent))
            (chart(home_texts::MEMORY, samples, |one| one.memory, bytes))
        }
    }
}

fn chart(
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
