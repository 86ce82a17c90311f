//! The notifications of the server, as a section of the home page.

use maud::{Markup, html};
use serde_json::Value;

use super::home_texts as texts;
use super::parts::{name, time};
use super::site::OwnerSite;
use gatewren_base::config::Reach;
use gatewren_store::state::{KeptNotification, Notifications};

/// The number of alerts that are listed at once.
const SHOWN: usize = 8;

/// The number of earlier alerts behind a fold.
const FOLDED: usize = 40;

/// Renders the section.
pub fn alerts_section(site: &OwnerSite) -> Markup {
    let all = Notifications::new(site.state.clone()).list("", &Reach::everything());
    let all = all.into_iter();
    let (mut shown, mut earlier): (Vec<_>, Vec<_>) = all.partition(|alert| !is_seen(alert));
    let beyond = shown.split_off(shown.len().min(SHOWN));
    earlier.splice(0..0, beyond);
    html! {
        section {
            h2 { (texts::ALERTS) }
            @if shown.is_empty() { p class="soft" { (texts::NO_ALERTS) } }
            @for alert in &shown { (render_alert(alert)) }
            @if !earlier.is_empty() {
                details id="earlier-alerts" {
                    summary { (earlier.len()) " " (texts::MORE_ALERTS) }
                    @for alert in earlier.iter().take(FOLDED) { (render_alert(alert)) }
                }
            }
        }
    }
}

fn is_seen(alert: &KeptNotification) -> bool {
    alert.value.get("seen").and_then(Value::as_bool) == Some(true)
}

fn render_alert(alert: &KeptNotification) -> Markup {
    let text = |member: &str| alert.value.get(member).and_then(Value::as_str);
    let level = text("level").unwrap_or("info");
    let class = match level {
        "error" => "tag bad",
        "warning" => "tag warn",
        _ => "tag soft",
    };
    let at_ms = alert.value.get("at_ms").and_then(Value::as_u64);
    html! {
        div class="alert" {
            p {
                span class=(class) { (name(level)) } " "
                strong { (name(text("title").unwrap_or("-"))) }
                @if !is_seen(alert) { " " span class="tag" { (texts::UNSEEN) } }
                span class="soft" {
                    @if let Some(at_ms) = at_ms { " · " (time(at_ms)) }
                    @if let Some(container) = &alert.container { " · " (name(container)) }
                }
            }
            @if let Some(message) = text("message").filter(|message| !message.is_empty()) { p class="soft" { (name(message)) } }
            @if let Some(change) = text("change") { p { a href=(format!("/owner/changes/{change}")) { (texts::TO_REQUEST) } } }
        }
    }
}
