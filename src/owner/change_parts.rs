//! Parts of a change that the inbox and its own page share.

use std::collections::HashMap;

use maud::{Markup, html};

use super::container_parts::target;
use super::diff::diff;
use super::inbox_texts;
use super::page_error::PageError;
use super::parts::{name, notes, notice, proof, time};
use super::site::{OwnerSite, SignedInRequest};
use super::texts;
use gatewren_base::sys::{exact_lines, text_notes};
use gatewren_gate::owner_actions::{Staleness, exact_arguments, find_staleness, schedule_words};
use gatewren_store::vault::{Change, ChangeStatus, hex};
use gatewren_tools::tool_texts::{ToolSentence, loses_data, sentence};
use gatewren_tools::watches::watch_words;

/// The agents' names by their ids.
pub fn names(site: &OwnerSite) -> Result<HashMap<String, String>, PageError> {
    let agents = site.vault.agents().list()?;
    Ok(agents
        .into_iter()
        .map(|agent| (agent.id, agent.name))
        .collect())
}

/// Renders an agent's name, or its id if the agent no longer exists.
pub fn of(names: &HashMap<String, String>, agent: &str) -> Markup {
    name(names.get(agent).map_or(agent, String::as_str))
}

/// The path of a change's own page.
pub fn path(change: &Change) -> String {
    format!("/owner/changes/{}", change.id)
}

/// Renders the target of a change.
pub fn about(change: &Change) -> Markup {
    html! { @if let Some(about) = &change.target { (target(about)) } }
}

/// Renders what a change does, in a sentence, and the tool's name.
pub fn headline(change: &Change) -> Markup {
    html! {
        @match sentence(&change.tool, change.target.is_some()) {
            Some(ToolSentence { before, after: Some(after) }) => {
                (before) strong { (about(change)) } (after) " " code class="soft" { (name(&change.tool)) }
            }
            Some(ToolSentence { before, after: None }) => {
                (before) @if change.target.is_some() { " " (about(change)) } " " code class="soft" { (name(&change.tool)) }
            }
            None => { (name(&change.tool)) " " (about(change)) }
        }
    }
}

/// The CSS class of a change: one that loses data stands out.
pub fn change_class(change: &Change) -> Option<&'static str> {
    loses_data(&change.tool).then_some("loses")
}

/// Renders the status of a change.
pub fn status_tag(change: &Change) -> Markup {
    html! { span class=(format!("tag {}", status_class(change.status))) { (change.status.as_str()) } }
}

/// The CSS class of a status.
pub fn status_class(status: ChangeStatus) -> &'static str {
    match status {
        ChangeStatus::Pending | ChangeStatus::Unknown => "warn",
        ChangeStatus::Failed | ChangeStatus::Rejected => "bad",
        _ => "soft",
    }
}

/// Renders the class of risk of a change's tool.
pub fn risk(asked: &SignedInRequest<'_>, change: &Change) -> Result<Markup, PageError> {
    let tools = asked.site.tools()?;
    let tool = tools.iter().find(|tool| tool.name == change.tool);
    Ok(html! {
        @if let Some(tool) = tool {
            span class="tag warn" { (tool.risk.as_str()) } " "
            span class="soft" { (texts::risk(tool.risk)) }
        }
    })
}

/// Renders whether the state that a change depends on has changed since the proposal.
fn rests(change: &Change, moved: &Staleness) -> Markup {
    html! {
        p {
            @match moved {
                Staleness::RestsOnNothing => span class="soft" { (texts::RESTS_ON_NOTHING) },
                Staleness::None => span class="soft" { (texts::HAS_NOT_MOVED) },
                Staleness::At(revision, by) => span class="warn" {
                    (texts::HAS_MOVED) " " (texts::REVISION) " " (revision) ", " (name(by))
                },
                Staleness::Unknown => span class="warn" { (texts::MAY_HAVE_MOVED) },
            }
            span class="soft" { " (" (texts::PROPOSED_AT) " " (change.revision) ")" }
        }
    }
}

/// Renders only the button that rejects.
pub fn reject(asked: &SignedInRequest<'_>, change: &Change) -> Markup {
    html! {
        form method="post" action=(path(change)) class="row" {
            (proof(asked.session))
            input type="hidden" name="seen" value=(hex(&change.binding()));
            button name="do" value="reject" class="bad" { (texts::REJECT) }
        }
    }
}

/// Where a change is decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionPlace {
    /// In the inbox, where a note and a grant are folded.
    Inbox,
    /// On its own page.
    OwnPage,
}

impl DecisionPlace {
    /// The field of the form that has its word.
    pub const FIELD: &str = "place";

    /// Its word in a form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::OwnPage => "page",
        }
    }
}

/// Renders the buttons that decide on a fully shown change, the form for a grant, and what is folded beside them.
pub fn decision(
    asked: &SignedInRequest<'_>,
    change: &Change,
    place: DecisionPlace,
    grant_form: &Markup,
    folded: &Markup,
) -> Markup {
    let id = format!("note-{}", change.id);
    let note = html! {
        div class="note" {
            label for=(id) { (texts::NOTE) }
            input type="text" id=(id) name="note" maxlength="500" autocomplete="off";
        }
    };
    html! {
        form method="post" action=(path(change)) {
            (proof(asked.session))
            input type="hidden" name="seen" value=(hex(&change.binding()));
            input type="hidden" name=(DecisionPlace::FIELD) value=(place.word());
            div class="row" {
                button name="do" value="approve" { (texts::APPROVE) }
                button name="do" value="reject" class="bad" { (texts::REJECT) }
                @if place == DecisionPlace::Inbox {
                    details id=(format!("more-{}", change.id)) class="more" {
                        summary class="button plain" aria-label=(inbox_texts::MORE) title=(inbox_texts::MORE) { "⋯" }
                        (note) (grant_form)
                    }
                    (folded)
                } @else { (note) }
            }
            @if place == DecisionPlace::OwnPage { (grant_form) }
        }
    }
}

/// Renders the reason of a change in quotes.
pub fn reason(change: &Change) -> Markup {
    html! {
        @if let Some(reason) = &change.reason {
            blockquote { span class="soft" { (texts::REASON) } " “" bdi { (exact_lines(reason)) } "”" }
            (notes(&text_notes(reason)))
        }
    }
}

/// Renders what a schedule or a watch would do.
pub fn about_call(change: &Change) -> Markup {
    html! {
        @if let Some(words) = schedule_words(change) { p { strong { bdi { (words) } } } }
        @if let Some(words) = watch_of(change) { p { strong { bdi { (words) } } } }
    }
}

/// Renders the exact arguments, and whether what the change depends on is as it was.
pub fn exact(change: &Change, moved: &Staleness) -> Markup {
    html! {
        @let id = format!("arguments-{}", change.id);
        pre id=(id) { bdi { (exact_arguments(change)) } }
        button type="button" class="plain" data-copy=(id) data-done=(texts::COPIED) hidden { (texts::COPY) }
        p class="soft" { "SHA-256 " code { (hex(&change.arguments_sha256)) } }
        (rests(change, moved))
    }
}

/// Renders the agent and reason of a change, and its effect on the current state.
pub fn facts(
    asked: &SignedInRequest<'_>,
    change: &Change,
    names: &HashMap<String, String>,
) -> Result<Markup, PageError> {
    let moved = find_staleness(Some(&asked.site.state_log), change);
    let document = asked.site.state.document();
    let risk = risk(asked, change)?;
    Ok(html! {
        @if change.proven_arguments().is_none() { (notice(texts::ALTERED, true)) }
        p {
            (status_tag(change)) " "
            @if loses_data(&change.tool) { span class="tag bad" { (texts::LOSES_DATA) } " " }
            (risk)
            @if change.moved.is_some() { " " span class="tag warn" { (texts::MOVED) } }
        }
        p { (of(names, &change.agent)) ", " (time(change.created_ms)) }
        (reason(change))
        (about_call(change))
        h3 { (texts::WOULD_DO) }
        (diff(change, &document.root))
        details id=(format!("exact-{}", change.id)) {
            summary { (texts::EXACT) }
            (exact(change, &moved))
        }
    })
}

/// The watch that a change would create, in words.
fn watch_of(change: &Change) -> Option<String> {
    watch_words(&change.tool, &change.proven_arguments()?)
}
