//! The page of one proposed change: its agent, its reason, and its effect on the current state.

use maud::{Markup, html};

use super::change_parts::{about, decision, facts, names, reject};
use super::frame::Tab;
use super::grant_form::fields;
use super::parts::{cut, inert, name, time, time_or};
use super::site::{Asked, Made};
use super::trouble::Trouble;
use super::words;
use gatewren_base::sys::exact_line;
use gatewren_gate::deeds::result_text;
use gatewren_store::vault::{Change, ChangeStatus};

/// The number of characters of a result that are shown; the command line shows all of it.
const RESULT: usize = 8 << 10;

/// Renders the page.
pub fn page(asked: &Asked<'_>, id: &str) -> Made {
    let site = asked.site;
    let change = site.vault.changes().get(id)?.ok_or(Trouble::Absent)?;
    let names = names(site)?;
    let target = change.target.as_deref().unwrap_or_default();
    let title = exact_line(format!("{} {target}", change.tool).trim_end());
    let content = html! {
        h1 { (name(&change.tool)) " " (about(&change)) }
        (asked.said())
        article { (facts(asked, &change, &names)?) }
        @if change.status == ChangeStatus::Pending { (decision(asked, &change, &fields(&change))) }
        @if change.status == ChangeStatus::Approved { (reject(asked, &change)) }
        section { (history(&change)) }
        p { a href="/owner" { (words::TO_INBOX) } }
    };
    asked.page(Tab::Inbox, &title, true, content)
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
            pre { bdi { (inert(&cut(&result_text(result), RESULT))) } }
        }
    }
}
