//! Sends new notifications as log messages to the sessions whose agents can see them.

use serde_json::{Value, json};
use tokio::sync::broadcast;

use gatewren_base::config::Reach;
use gatewren_store::state::{KeptNotification, Notifications, State};
use gatewren_wire::protocol::LogSeverity;
use gatewren_wire::registry::{MessageAudience, MessageContent, SessionLog, SessionMessage};

/// The name of the logger in each message.
const LOGGER: &str = "gatewren.notifications";

/// Sends each notification that is added from now on, while it runs. Without a session that listens, nothing is read.
pub async fn log_notifications(state: State, logs: broadcast::Sender<SessionMessage>) {
    let notifications = Notifications::new(state.clone());
    let everything = Reach::everything();
    let mut revisions = state.watch_revision();
    let newest = |all: &[KeptNotification]| all.first().map_or(0, |one| one.id);
    let mut seen = newest(&notifications.list("", &everything));
    while revisions.changed().await.is_ok() {
        revisions.mark_unchanged();
        // Their numbers are revisions, so a session that opens later receives nothing older.
        if logs.receiver_count() == 0 {
            seen = seen.max(state.document().revision);
            continue;
        }
        let all = notifications.list("", &everything);
        for one in all.iter().rev().filter(|one| one.id > seen) {
            // An error means that there are no subscribers.
            let _ = logs.send(log_of(one));
        }
        // A restored or rebuilt state begins its numbers again.
        seen = newest(&all).max(seen.min(state.document().revision));
    }
}

fn log_of(one: &KeptNotification) -> SessionMessage {
    let text = |key: &str| {
        let text = one.value.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let level = match text("level").as_str() {
        "error" => LogSeverity::Error,
        "warning" => LogSeverity::Warning,
        _ => LogSeverity::Info,
    };
    let audience = match &one.container {
        Some(name) => MessageAudience::Container(name.as_str().into()),
        None => MessageAudience::Host,
    };
    let data = json!({
        "id": one.id,
        "container": one.container,
        "title": text("title"),
        "message": text("message"),
    });
    SessionMessage {
        audience,
        content: MessageContent::Log(SessionLog {
            level,
            logger: LOGGER.into(),
            data,
            is_from_owner: false,
        }),
    }
}
