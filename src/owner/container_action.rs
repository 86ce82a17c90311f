//! Start, stop and restart of a container by the owner.

use std::time::Duration;

use maud::{Markup, html};
use tokio::time::timeout;

use super::container_in_state::ContainerInState;
use super::container_parts::container_path;
use super::container_texts as texts;
use super::header::Tab;
use super::page_error::PageError;
use super::parts::{name, proof};
use super::site::{PageResult, SignedInRequest, redirect_with_notice};
use super::texts::NO_SUCH_ACTION;
use gatewren_gate::owner_actions::{ContainerCommand, OwnerContext, command_container};
use gatewren_store::vault::OWNER;

/// How long a container has to shut down by itself.
const GRACE: Duration = Duration::from_secs(10);

/// How long the page waits. The command continues after that.
const PATIENCE: Duration = Duration::from_secs(20);

/// Renders the buttons that fit the status.
pub fn buttons(asked: &SignedInRequest<'_>, found: &ContainerInState) -> Markup {
    let commands: &[ContainerCommand] = match found.status() {
        "stopped" => &[ContainerCommand::Start],
        "running" => &[ContainerCommand::Restart, ContainerCommand::Stop],
        "frozen" => &[ContainerCommand::Unfreeze],
        _ => &[],
    };
    html! {
        @if !commands.is_empty() {
            form method="post" action=(container_path(found.id.as_str())) class="row" {
                (proof(asked.session))
                @for command in commands {
                    button name="do" value=(command.word()) class=[class(*command)] { (label(*command)) }
                }
            }
        }
    }
}

fn class(command: ContainerCommand) -> Option<&'static str> {
    match command {
        ContainerCommand::Start | ContainerCommand::Unfreeze => None,
        ContainerCommand::Restart | ContainerCommand::Freeze => Some("plain"),
        ContainerCommand::Stop => Some("bad"),
    }
}

fn label(command: ContainerCommand) -> &'static str {
    match command {
        ContainerCommand::Start => texts::START,
        ContainerCommand::Restart => texts::RESTART,
        ContainerCommand::Freeze => texts::FREEZE,
        ContainerCommand::Unfreeze => texts::UNFREEZE,
        ContainerCommand::Stop => texts::STOP,
    }
}

/// Runs the command of the form. Before one that ends processes, a page asks whether it is meant.
pub async fn act(asked: &SignedInRequest<'_>, part: &str) -> PageResult {
    let found = ContainerInState::of(asked.site, part)?;
    let word = asked.visit.field("do").unwrap_or_default();
    let command = ContainerCommand::named(&word);
    let command = command.ok_or_else(|| PageError::Refused(NO_SUCH_ACTION.to_owned()))?;
    let is_sure = asked.visit.field("sure").is_some();
    let ends_processes = matches!(command, ContainerCommand::Stop | ContainerCommand::Restart);
    if ends_processes && !is_sure {
        return question(asked, &found, command);
    }
    let path = container_path(found.id.as_str());
    let host = &asked.site.host;
    let (lxc, observer, vault) = (
        host.lxc.clone(),
        host.observer.clone(),
        asked.site.vault.clone(),
    );
    let from = asked.visit.from().to_string();
    // In a task of its own: a reader who leaves the page does not interrupt it.
    let running = tokio::spawn(async move {
        let owner = OwnerContext {
            vault: &vault,
            by: OWNER.to_owned(),
            from,
        };
        let id = found.id;
        let run = async |call: &str| {
            let change = observer.begin(call);
            let done = match command {
                ContainerCommand::Start => lxc.start(&id).await,
                ContainerCommand::Stop => lxc.stop(&id, GRACE).await,
                ContainerCommand::Restart => lxc.restart(&id, GRACE).await,
                ContainerCommand::Freeze => lxc.set_frozen(&id, true).await,
                ContainerCommand::Unfreeze => lxc.set_frozen(&id, false).await,
            };
            change.wait_for_revision().await;
            done.map_err(|cause| cause.message)
        };
        command_container(&owner, command, id.as_str(), run).await
    });
    let notice = match timeout(PATIENCE, running).await {
        Ok(done) => {
            done.map_err(|_| PageError::Unavailable)??;
            command.word()
        }
        Err(_) => "working",
    };
    Ok(redirect_with_notice(&path, notice))
}

fn question(
    asked: &SignedInRequest<'_>,
    found: &ContainerInState,
    command: ContainerCommand,
) -> PageResult {
    let (id, path) = (found.id.as_str(), container_path(found.id.as_str()));
    let content = html! {
        h1 { (label(command)) " " (name(id)) "?" }
        p { (texts::INTERRUPTS) }
        form method="post" action=(path) class="row" {
            (proof(asked.session))
            input type="hidden" name="sure" value="yes";
            button name="do" value=(command.word()) class="bad" { (label(command)) }
            a class="button plain" href=(path) { (texts::BACK) }
        }
    };
    asked.page(Tab::Containers, label(command), false, content)
}
