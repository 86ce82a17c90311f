//! `notification_*`: what the owner of the box should hear of.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number::Number;
use crate::registry::{Cx, Result, Risk, Scope, ToolError, Toolset};
use crate::state::{Actor, Author, Change, Kept, Notifications, StateError};

/// The group, as a table.
pub fn tools(notifications: Arc<Notifications>) -> Toolset<Notifications> {
    Toolset::over(notifications)
        .named("notifications")
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

/// Lists what the owner of this box should hear of, the newest first: a container that stopped by itself, a job that
/// failed in the background, a file system that is full, a change that waits in the inbox. At most 200 are kept. `notification_mark` marks them as seen, `notification_remove` takes
/// them away.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only those with a smaller id: to go on from the last one of an answer.
    below: Option<u64>,
    /// At most so many, 1 to 100.
    #[serde(default)]
    limit: Number<1, 100, 40>,
}

#[derive(Serialize, JsonSchema)]
struct Notification {
    /// Its number: later ones have larger ones.
    id: u64,
    /// When, in milliseconds since 1970.
    at_ms: u64,
    /// The container that it is about; the host when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// `info`, `warning` or `error`.
    level: String,
    /// A few words.
    title: String,
    /// What happened, and where to look.
    message: String,
    /// Whether somebody has seen it.
    seen: bool,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The newest first.
    notifications: Vec<Notification>,
    /// Whether there are older ones.
    more: bool,
}

async fn list(notifications: Arc<Notifications>, asked: List, cx: Cx) -> Result<Listed> {
    let caller = cx.caller();
    let most = usize::try_from(asked.limit.get()).unwrap_or(usize::MAX);
    let all = notifications.list(&caller.agent, &caller.reach).into_iter();
    let mut found = all.filter(|one| asked.below.is_none_or(|below| one.id < below));
    let shown = found.by_ref().take(most).map(shown).collect();
    Ok(Listed {
        notifications: shown,
        more: found.next().is_some(),
    })
}

fn shown(one: Kept) -> Notification {
    let text = |key: &str| {
        let text = one.value.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    Notification {
        id: one.id,
        at_ms: one.value.get("at_ms").and_then(Value::as_u64).unwrap_or(0),
        level: text("level"),
        title: text("title"),
        message: text("message"),
        seen: one.is_seen(),
        container: one.container,
    }
}

/// Marks notifications as seen or not, for everybody who sees them, and returns how many were changed: those of `ids`,
/// or all up to one. Ids that there are not are passed over. `notification_list` names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mark {
    /// Which.
    #[serde(default)]
    ids: Vec<u64>,
    /// All with this id or a smaller one.
    up_to: Option<u64>,
    /// Whether they are seen now.
    #[serde(default = "yes")]
    seen: bool,
}

fn yes() -> bool {
    true
}

/// Takes notifications away, for everybody, and returns how many: those of `ids`, or all below one. Ids that there are
/// not are passed over. `notification_list` names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// Which.
    #[serde(default)]
    ids: Vec<u64>,
    /// All with a smaller id.
    below: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Done {
    /// How many were changed.
    changed: usize,
    /// The revision of the state from which on it shows.
    revision: u64,
}

async fn mark(notifications: Arc<Notifications>, asked: Mark, cx: Cx) -> Result<Done> {
    let is_meant =
        |one: &Kept| asked.ids.contains(&one.id) || asked.up_to.is_some_and(|last| one.id <= last);
    change(&notifications, Change::Seen(asked.seen), is_meant, &cx).await
}

async fn remove(notifications: Arc<Notifications>, asked: Remove, cx: Cx) -> Result<Done> {
    let is_meant =
        |one: &Kept| asked.ids.contains(&one.id) || asked.below.is_some_and(|first| one.id < first);
    change(&notifications, Change::Remove, is_meant, &cx).await
}

async fn change(
    notifications: &Notifications,
    change: Change,
    is_meant: impl Fn(&Kept) -> bool,
    cx: &Cx,
) -> Result<Done> {
    let caller = cx.caller();
    let author = Author::from(Actor::Agent(caller.agent.to_string())).because(&**cx.reference());
    let within = (&*caller.agent, &caller.reach);
    let done = notifications
        .change(&author, within, change, is_meant)
        .await;
    let (changed, revision) = done.map_err(|cause| failed(&cause))?;
    Ok(Done { changed, revision })
}

fn failed(cause: &StateError) -> ToolError {
    tracing::warn!(%cause, "notifications could not be changed");
    ToolError {
        retry: true,
        ..ToolError::new("The state cannot be written at the moment. Nothing was changed.")
    }
}
