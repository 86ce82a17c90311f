//! The result of the owner's last decision: a line on top of the inbox, with an undo.

use maud::{Markup, html};

use super::change_parts::{headline, path};
use super::container_parts::container_path;
use super::inbox_texts;
use super::page_error::PageError;
use super::parts::{name, proof};
use super::site::SignedInRequest;
use gatewren_gate::owner_actions::ContainerCommand;
use gatewren_store::vault::{Change, ChangeStatus};
use gatewren_tools::tool_texts::undo_of;

/// The name of the change in the query.
pub const DECIDED: &str = "decided";

/// Renders the line, if the query names a change.
pub fn decided_result(asked: &SignedInRequest<'_>) -> Result<Markup, PageError> {
    let id = asked.visit.query(DECIDED);
    let change = id.map(|id| asked.site.vault.changes().get(&id));
    let change = change.transpose()?.flatten();
    Ok(html! { @if let Some(change) = &change { (line(asked, change)) } })
}

fn line(asked: &SignedInRequest<'_>, change: &Change) -> Markup {
    let (words, is_bad) = match change.status {
        ChangeStatus::Approved | ChangeStatus::Running => (inbox_texts::IS_RUNNING, false),
        ChangeStatus::Applied => (inbox_texts::DONE, false),
        ChangeStatus::Rejected | ChangeStatus::Withdrawn | ChangeStatus::Expired => {
            (inbox_texts::REJECTED, false)
        }
        ChangeStatus::Failed | ChangeStatus::Unknown => (inbox_texts::HAS_FAILED, true),
        ChangeStatus::Pending => (inbox_texts::WAITS_AGAIN, true),
    };
    let class = if is_bad {
        "card notice bad"
    } else {
        "card notice"
    };
    let undo = undo_command(change).filter(|_| change.status == ChangeStatus::Applied);
    html! {
        div class=(class) role="status" {
            (words) " " (headline(change))
            @if let Some(words) = &change.words { ". " (name(words)) }
            " " a href=(path(change)) { (inbox_texts::RESULT) }
            @if let (Some(undo), Some(target)) = (undo, &change.target) {
                form method="post" action=(container_path(target)) class="row" {
                    (proof(asked.session))
                    button name="do" value=(undo.word()) class="plain" { (inbox_texts::UNDO) ": " (undo.word()) " " (name(target)) }
                }
            }
        }
    }
}

/// The owner's command that undoes a call, if there is one.
fn undo_command(change: &Change) -> Option<ContainerCommand> {
    match undo_of(&change.tool)? {
        "container_start" => Some(ContainerCommand::Start),
        "container_stop" => Some(ContainerCommand::Stop),
        "container_freeze" => Some(ContainerCommand::Freeze),
        "container_unfreeze" => Some(ContainerCommand::Unfreeze),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_command_of_the_owner_undoes_has_an_undo() {
        for (tool, undo) in [
            ("container_stop", Some(ContainerCommand::Start)),
            ("container_start", Some(ContainerCommand::Stop)),
            ("container_freeze", Some(ContainerCommand::Unfreeze)),
            ("container_create", None),
            ("container_destroy", None),
            ("system_shell", None),
            ("no_such_tool", None),
        ] {
            let change = Change::waiting("chg_1", tool, "{}".to_owned());
            assert_eq!(undo_command(&change), undo, "{tool}");
        }
    }
}
