//! `notification_*`: the owner's notifications.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounded_number::BoundedNumber;
use gatewren_base::sys::rfc3339;
use gatewren_store::state::{
    Actor, Author, KeptNotification, NotificationChange, NotificationReader, Notifications,
    StateError,
};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(notifications: Arc<Notifications>) -> Toolset<Notifications> {
    Toolset::new(notifications)
        .with_name("notifications")
        .tool("notification_list", Risk::Read, list)
        .about(Scope::Within)
        .titled("List notifications")
        .startos("notification.list", &[("before", "below")])
        .tool("notification_mark", Risk::Write, mark)
        .about(Scope::Within)
        .titled("Mark notifications as seen")
        .startos_with("notification.mark-seen", &[], &[("seen", true)])
        .startos_with(
            "notification.mark-seen-before",
            &[("before", "up_to")],
            &[("seen", true)],
        )
        .startos_with("notification.mark-unseen", &[], &[("seen", false)])
        .tool("notification_remove", Risk::Write, remove)
        .about(Scope::Within)
        .titled("Remove notifications")
        .startos("notification.remove", &[])
        .startos("notification.remove-before", &[("before", "below")])
}

/// List the owner's notifications, newest first. `notification_mark` marks them as seen, `notification_remove` removes
/// them.
///
/// Examples: a container or unit that failed, a failed job or backup, a disk with errors, a full file system, a watch
/// that fired, a waiting change. At most 200 are kept.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only smaller ids: continues after the last one of an answer.
    below: Option<u64>,
    /// The maximum number to return, 1 to 100.
    #[serde(default)]
    limit: BoundedNumber<1, 100, 40>,
}

#[derive(Serialize, JsonSchema)]
struct Notification {
    /// Its id; later notifications have larger ids.
    id: u64,
    /// When it was made, RFC 3339.
    at: String,
    /// The container that it is about; absent for the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// `info`, `warning` or `error`.
    level: String,
    /// The title, in a few words.
    title: String,
    /// The event, and where to look.
    message: String,
    /// Whether it has been seen.
    seen: bool,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The notifications, newest first.
    notifications: Vec<Notification>,
    /// Whether there are older notifications.
    more: bool,
}

async fn list(notifications: Arc<Notifications>, asked: List, cx: Cx) -> Result<Listed> {
    let caller = cx.caller();
    let most = usize::try_from(asked.limit.get()).unwrap_or(usize::MAX);
    let all = notifications.list(&caller.agent, &caller.reach).into_iter();
    let mut found = all.filter(|one| asked.below.is_none_or(|below| one.id < below));
    let shown = found.by_ref().take(most).map(as_notification).collect();
    Ok(Listed {
        notifications: shown,
        more: found.next().is_some(),
    })
}

fn as_notification(one: KeptNotification) -> Notification {
    let text = |key: &str| {
        let text = one.value.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    Notification {
        id: one.id,
        at: rfc3339(one.value.get("at_ms").and_then(Value::as_u64).unwrap_or(0)),
        level: text("level"),
        title: text("title"),
        message: text("message"),
        seen: one.is_seen(),
        container: one.container,
    }
}

/// Mark notifications as seen or unseen, for all who see them, and return how many were changed: those in `ids`, or all
/// up to an id. `notification_list` lists them.
///
/// Ids that do not exist are ignored.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mark {
    /// The ids of the notifications.
    #[serde(default)]
    ids: Vec<u64>,
    /// All with this id or a smaller one.
    up_to: Option<u64>,
    /// Whether to mark them as seen; false marks them as unseen.
    #[serde(default = "yes")]
    seen: bool,
}

fn yes() -> bool {
    true
}

/// Remove notifications for all who see them and return how many: those in `ids`, or all below an id.
/// `notification_list` lists them.
///
/// Ids that do not exist are ignored.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// The ids of the notifications.
    #[serde(default)]
    ids: Vec<u64>,
    /// All with a smaller id.
    below: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Done {
    /// The number of changed notifications.
    changed: usize,
    /// The first revision of the state with the change.
    revision: u64,
}

async fn mark(notifications: Arc<Notifications>, asked: Mark, cx: Cx) -> Result<Done> {
    let matches = |one: &KeptNotification| {
        asked.ids.contains(&one.id) || asked.up_to.is_some_and(|last| one.id <= last)
    };
    change(
        &notifications,
        NotificationChange::Seen(asked.seen),
        matches,
        &cx,
    )
    .await
}

async fn remove(notifications: Arc<Notifications>, asked: Remove, cx: Cx) -> Result<Done> {
    let matches = |one: &KeptNotification| {
        asked.ids.contains(&one.id) || asked.below.is_some_and(|first| one.id < first)
    };
    change(&notifications, NotificationChange::Remove, matches, &cx).await
}

async fn change(
    notifications: &Notifications,
    change: NotificationChange,
    matches: impl Fn(&KeptNotification) -> bool,
    cx: &Cx,
) -> Result<Done> {
    let caller = cx.caller();
    let author = Author::from(Actor::Agent(caller.agent.to_string())).because(&**cx.reference());
    let reader = NotificationReader {
        agent: &caller.agent,
        reach: &caller.reach,
    };
    let done = notifications.change(&author, reader, change, matches).await;
    let (changed, revision) = done.map_err(|cause| failed(&cause))?;
    Ok(Done { changed, revision })
}

fn failed(cause: &StateError) -> ToolError {
    tracing::warn!(%cause, "cannot change notifications");
    ToolError {
        retry: true,
        ..ToolError::new("The state cannot be written at the moment. Nothing was changed.")
    }
}
