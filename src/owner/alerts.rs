//! The notifications of the server, as a section of the home page.

use maud::{Markup, html};
use serde_json::Value;

use super::home_texts as texts;
use super::parts::{name, proof, time};
use super::site::{PageResult, SignedInRequest, redirect_with_notice};
use gatewren_base::config::Reach;
use gatewren_gate::owner_actions::OwnerCommand;
use gatewren_store::state::{
    Actor, Author, KeptNotification, NotificationChange, NotificationReader, Notifications,
};

/// The number of alerts that are listed at once.
const SHOWN: usize = 8;

/// The number of earlier alerts behind a fold.
const FOLDED: usize = 40;

/// The field with the newest alert that the page showed.
const UP_TO: &str = "up-to";

/// Renders the section.
pub fn alerts_section(asked: &SignedInRequest<'_>) -> Markup {
    let all = Notifications::new(asked.site.state.clone()).list("", &Reach::everything());
    let newest = all.iter().map(|alert| alert.id).max().unwrap_or(0);
    let all = all.into_iter();
    let (mut shown, mut earlier): (Vec<_>, Vec<_>) = all.partition(|alert| !is_seen(alert));
    let beyond = shown.split_off(shown.len().min(SHOWN));
    earlier.splice(0..0, beyond);
    html! {
        section {
            h2 { (texts::ALERTS) }
            @if shown.is_empty() { p class="soft" { (texts::NO_ALERTS) } }
            @for alert in &shown { (render_alert(alert)) }
            @if !shown.is_empty() {
                form method="post" action="/owner/alerts" class="row" {
                    (proof(asked.session))
                    input type="hidden" name=(UP_TO) value=(newest);
                    button class="plain" { (texts::MARK_SEEN) }
                }
            }
            @if !earlier.is_empty() {
                details id="earlier-alerts" {
                    summary { (earlier.len()) " " (texts::MORE_ALERTS) }
                    @for alert in earlier.iter().take(FOLDED) { (render_alert(alert)) }
                }
            }
        }
    }
}

/// Marks the alerts as seen that the page showed; one that came since stays new. It is recorded in the audit.
pub async fn mark_seen(asked: &SignedInRequest<'_>) -> PageResult {
    let up_to = asked.visit.field(UP_TO);
    let up_to: u64 = up_to.and_then(|text| text.parse().ok()).unwrap_or(0);
    let notifications = Notifications::new(asked.site.state.clone());
    let command = OwnerCommand::plain("alerts seen", None);
    let mark = async |call: &str| {
        let author = Author::from(Actor::Owner).because(call);
        let everything = Reach::everything();
        let reader = NotificationReader {
            agent: "",
            reach: &everything,
        };
        let is_meant = |alert: &KeptNotification| alert.id <= up_to && !is_seen(alert);
        let seen = NotificationChange::Seen(true);
        notifications.change(&author, reader, seen, is_meant).await
    };
    asked
        .owner_context()
        .run_audited_call(command, mark)
        .await?;
    Ok(redirect_with_notice("/owner/home", "seen"))
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
