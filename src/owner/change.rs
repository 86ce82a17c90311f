//! The page of one proposed change: its agent, its reason, and its effect on the current state.

use maud::{Markup, html};

use super::change_parts::{DecisionPlace, decision, facts, headline, names, reject};
use super::grant_form::fields;
use super::header::Tab;
use super::page_error::PageError;
use super::parts::{name, time, time_or};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_base::sys::{exact_line, sanitize_lines, shorten};
use gatewren_gate::owner_actions::result_text;
use gatewren_store::vault::{Change, ChangeStatus};

/// The number of characters of a result that are shown; the command line shows all of it.
const RESULT: usize = 8 << 10;

/// Renders the page.
pub fn page(asked: &SignedInRequest<'_>, id: &str) -> PageResult {
    let site = asked.site;
    let change = site.vault.changes().get(id)?.ok_or(PageError::Absent)?;
    let names = names(site)?;
    let target = change.target.as_deref().unwrap_or_default();
    let title = exact_line(format!("{} {target}", change.tool).trim_end());
    let content = html! {
        h1 { (headline(&change)) }
        (asked.render_notice())
        article { (facts(asked, &change, &names)?) }
        @if change.status == ChangeStatus::Pending {
            section { h2 { (texts::DECIDE) } (decision(asked, &change, DecisionPlace::OwnPage, &fields(&change), &html! {})) }
        }
        @if change.status == ChangeStatus::Approved { (reject(asked, &change)) }
        section { (history(&change)) }
        p { a href="/owner/inbox" { (texts::TO_INBOX) } }
    };
    asked.page(Tab::Inbox, &title, true, content)
}

fn history(change: &Change) -> Markup {
    let ids = [
        (texts::PROPOSAL, &change.proposed_in),
        (texts::RUN, &change.ran_in),
    ];
    html! {
        h2 { (texts::HISTORY) }
        dl {
            dt { (texts::ID) } dd { code { (change.id) } }
            dt { (texts::SPACE) } dd { (name(&change.space)) }
            dt { (texts::PROPOSED) } dd { (time(change.created_ms)) }
            @if change.status.is_open() { dt { (texts::EXPIRES) } dd { (time(change.expires_ms)) } }
            @if let Some(by) = &change.decided_by {
                dt { (texts::DECIDED) } dd { (time_or(change.decided_ms, "")) ", " (name(by)) }
            }
            @if let Some(note) = &change.note { dt { (texts::NOTE) } dd { (name(note)) } }
            @if let Some(words) = &change.words { dt { (texts::OUTCOME) } dd { (name(words)) } }
            @for (what, call) in ids {
                @if let Some(call) = call {
                    dt { (what) } dd { a href=(format!("/owner/activity/{call}")) { (texts::IN_THE_AUDIT) } }
                }
            }
        }
        @if let Some(result) = &change.result {
            h2 { (texts::RESULT) }
            pre { bdi { (sanitize_lines(&shorten(&result_text(result), RESULT))) } }
        }
    }
}
