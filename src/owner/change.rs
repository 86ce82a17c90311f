//! One change on a page: who wants what, why, and what it would make of what is there now.

use maud::{Markup, html};
use serde_json::Value;

use super::diff::diff;
use super::frame::{Tab, proof};
use super::inbox::{about, names, of, path, standing};
use super::parts::{cut, inert, name, notice, time, time_or};
use super::site::{Asked, Made};
use super::trouble::Trouble;
use super::words;
use crate::deeds::{Movement, movement};
use crate::vault::{Change, ChangeStatus, hex};

/// Characters of a result that are shown; the command line has all of it.
const RESULT: usize = 8 << 10;

/// The page.
pub fn page(asked: &Asked<'_>, id: &str) -> Made {
    let site = asked.site;
    let change = site.vault.changes().get(id)?.ok_or(Trouble::Absent)?;
    let names = names(site)?;
    let moved = movement(Some(site.state.path()), &change);
    let document = site.state.document();
    let title = format!(
        "{} {}",
        change.tool,
        change.target.as_deref().unwrap_or_default()
    );
    let content = html! {
        h1 { (name(&change.tool)) " " (about(&change)) }
        (asked.said())
        @if change.proven_arguments().is_none() { (notice(words::ALTERED, true)) }
        section {
            p { (standing(&change)) " " (risk(asked, &change)?) " " (of(&names, &change.agent)) }
            @if let Some(reason) = &change.reason {
                p class="soft" { (words::REASON) }
                blockquote { bdi { (inert(reason)) } }
            }
            (rests(&change, &moved))
        }
        section {
            h2 { (words::WOULD_DO) }
            (diff(&change, &document.root))
            details {
                summary { (words::EXACT) }
                pre { bdi { (inert(&exact(&change))) } }
                p class="soft" { "SHA-256 " code { (hex(&change.arguments_sha256)) } }
            }
        }
        @if change.status == ChangeStatus::Pending { (decision(asked, &change)) }
        @if change.status == ChangeStatus::Approved { (take_back(asked, &change)) }
        section { (history(&change)) }
        p { a href="/owner" { (words::TO_INBOX) } }
    };
    asked.page(Tab::Inbox, &title, true, content)
}

/// How a standing looks.
pub fn standing_class(status: ChangeStatus) -> &'static str {
    match status {
        ChangeStatus::Pending | ChangeStatus::Unknown => "warn",
        ChangeStatus::Failed | ChangeStatus::Rejected => "bad",
        _ => "soft",
    }
}

/// The tool's class of risk, in words.
fn risk(asked: &Asked<'_>, change: &Change) -> Result<Markup, Trouble> {
    let tools = asked.site.tools()?;
    let tool = tools.iter().find(|tool| tool.name == change.tool);
    Ok(html! {
        @if let Some(tool) = tool {
            span class="tag warn" { (tool.risk.as_str()) } " "
            span class="soft" { (words::risk(tool.risk)) }
        }
    })
}

/// Whether what it rests on has moved since it was proposed.
fn rests(change: &Change, moved: &Movement) -> Markup {
    html! {
        p {
            @match moved {
                Movement::RestsOnNothing => span class="soft" { (words::RESTS_ON_NOTHING) },
                Movement::None => span class="soft" { (words::HAS_NOT_MOVED) },
                Movement::At(revision, by) => span class="warn" {
                    (words::HAS_MOVED) " " (words::REVISION) " " (revision) ", " (name(by))
                },
                Movement::Unknown => span class="warn" { (words::MAY_HAVE_MOVED) },
            }
            span class="soft" { " (" (words::PROPOSED_AT) " " (change.revision) ")" }
        }
    }
}

fn decision(asked: &Asked<'_>, change: &Change) -> Markup {
    html! {
        section {
            h2 { (words::DECIDE) }
            form method="post" action=(path(change)) {
                (proof(asked.session))
                input type="hidden" name="seen" value=(hex(&change.binding()));
                div class="row" {
                    button name="do" value="approve" { (words::APPROVE) }
                    button name="do" value="reject" class="bad" { (words::REJECT) }
                    div class="note" {
                        label for="note" { (words::NOTE) }
                        input type="text" id="note" name="note" maxlength="500" autocomplete="off";
                    }
                }
                div class="row" {
                    div {
                        label for="hours" { (words::GRANT_FOR) }
                        select id="hours" name="span" {
                            @for (span, words) in words::SPANS { option value=(span) { (words) } }
                        }
                    }
                    button name="do" value="grant" class="plain" { (words::APPROVE_AND_GRANT) }
                }
                p class="soft" { (words::GRANT_HOW) }
            }
        }
    }
}

fn take_back(asked: &Asked<'_>, change: &Change) -> Markup {
    html! {
        form method="post" action=(path(change)) class="row" {
            (proof(asked.session))
            input type="hidden" name="seen" value=(hex(&change.binding()));
            button name="do" value="reject" class="bad" { (words::REJECT) }
        }
    }
}

fn history(change: &Change) -> Markup {
    let ids = [
        (words::PROPOSAL, &change.proposed_in),
        (words::RUN, &change.ran_in),
    ];
    html! {
        h2 { (words::HISTORY) }
        dl {
            dt { (words::ID) } dd { code { (change.id) } }
            dt { (words::SPACE) } dd { (name(&change.space)) }
            dt { (words::PROPOSED) } dd { (time(change.created_ms)) }
            @if change.status.is_open() { dt { (words::EXPIRES) } dd { (time(change.expires_ms)) } }
            @if let Some(by) = &change.decided_by {
                dt { (words::DECIDED) } dd { (time_or(change.decided_ms, "")) ", " (name(by)) }
            }
            @if let Some(note) = &change.note { dt { (words::NOTE) } dd { (name(note)) } }
            @if let Some(words) = &change.words { dt { (words::OUTCOME) } dd { (name(words)) } }
            @for (what, call) in ids {
                @if let Some(call) = call {
                    dt { (what) } dd { a href=(format!("/owner/audit/{call}")) { (words::IN_THE_AUDIT) } }
                }
            }
        }
        @if let Some(result) = &change.result {
            h2 { (words::RESULT) }
            pre { bdi { (inert(&cut(&text_of(result), RESULT))) } }
        }
    }
}

/// The arguments as they are, laid out.
fn exact(change: &Change) -> String {
    let value: Option<Value> = serde_json::from_str(&change.arguments).ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    text.unwrap_or_else(|| change.arguments.clone())
}

/// The text of a result's content.
fn text_of(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap_or(Value::Null);
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten();
    let texts: Vec<&str> = texts
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    texts.join("\n")
}
