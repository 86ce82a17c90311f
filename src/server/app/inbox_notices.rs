//! Notifies the owner of proposals: one notification for each pending change, marked as seen when it is decided.

use std::collections::BTreeSet;

use gatewren_base::config::Reach;
use gatewren_store::state::{
    Author, KeptNotification, Notice, NotificationChange as Mark, NotificationReader,
    Notifications, State,
};
use gatewren_store::vault::{Change, ChangeStatus, Vault};

/// The prefix of paths that name the container of a change.
const CONTAINERS: &str = "/public/packageData/";

/// Adds the notifications, while it runs.
pub async fn notify_of_changes(vault: Vault, state: State) {
    let notifications = Notifications::new(state);
    let mut inbox_changes = vault.changes().watch_inbox();
    // Notifications are limited, so an old one may be gone while its change is pending: it is not added twice.
    let mut announced = BTreeSet::new();
    loop {
        inbox_changes.mark_unchanged();
        match vault.changes().list(true) {
            Ok(mut open) => {
                open.retain(|change| change.status == ChangeStatus::Pending);
                look(&notifications, &open, &mut announced).await;
            }
            Err(cause) => tracing::warn!(%cause, "cannot read the inbox"),
        }
        if inbox_changes.changed().await.is_err() {
            return;
        }
    }
}

async fn look(notifications: &Notifications, waiting: &[Change], announced: &mut BTreeSet<String>) {
    let author = Author::observer();
    let everything = Reach::everything();
    let kept = notifications.list("", &everything);
    let over = |one: &KeptNotification| {
        let about = one.change();
        about.is_some_and(|id| !one.is_seen() && waiting.iter().all(|change| change.id != id))
    };
    if kept.iter().any(over) {
        let reader = NotificationReader {
            agent: "",
            reach: &everything,
        };
        let seen = notifications.change(&author, reader, Mark::Seen(true), over);
        if let Err(cause) = seen.await {
            tracing::warn!(%cause, "cannot mark a notification");
        }
    }
    announced.retain(|id| waiting.iter().any(|change| change.id == *id));
    announced.extend(
        kept.iter()
            .filter_map(|one| one.change().map(str::to_owned)),
    );
    // The list has the newest first.
    for change in waiting.iter().rev() {
        if !announced.insert(change.id.clone()) {
            continue;
        }
        if let Err(cause) = notifications.add(&author, notice(change)).await {
            tracing::warn!(%cause, "cannot store a notification");
        }
    }
}

/// Returns the container that a change is about; `None` for the several of a stack.
fn only_container(change: &Change) -> Option<&str> {
    let below = change
        .rests_on
        .iter()
        .filter_map(|place| place.strip_prefix(CONTAINERS));
    let mut names = below.filter_map(|rest| rest.split('/').next());
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// It contains no argument of the call, no reason and no agent's name: others who may access the container can
/// read it.
fn notice(change: &Change) -> Notice {
    let container = only_container(change).map(str::to_owned);
    let about = container.as_ref().map(|name| format!(" about {name}"));
    Notice {
        level: "info",
        title: "a change waits in the inbox".to_owned(),
        message: format!(
            "{}{} is proposed. gatewren inbox show {} shows it in full.",
            change.tool,
            about.unwrap_or_default(),
            change.id
        ),
        container,
        change: Some(change.id.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gatewren_base::sys::Scratch;
    use gatewren_store::vault::{NewChange, OpenChangeLimits, ProposalOutcome};

    #[tokio::test]
    async fn a_notification_about_the_inbox_contains_no_arguments() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let arguments = json!({ "container": "web", "command": "echo ok; id" });
        let new = NewChange {
            agent: "a".into(),
            space: "*".into(),
            tool: "container_shell".into(),
            target: Some("web".into()),
            arguments: arguments.as_object().unwrap().clone(),
            rests_on: vec!["/public/packageData/web/status".into()],
            revision: 1,
            reason: Some("to look".into()),
            expires_ms: u64::MAX >> 1,
            proposed_in: None,
        };
        let room = OpenChangeLimits {
            per_agent: 1,
            total: 1,
        };
        let ProposalOutcome::New(change) = vault.changes().add(new, room).await.unwrap() else {
            panic!("there is room");
        };
        let notice = notice(&change);
        let text = format!("{} {}", notice.title, notice.message);
        assert!(text.contains("container_shell about web"), "{text}");
        assert!(
            text.contains(&format!("gatewren inbox show {}", change.id)),
            "{text}"
        );
        assert!(
            !text.contains("echo") && !text.contains("to look"),
            "{text}"
        );
    }
}
