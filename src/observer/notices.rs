//! Notices what an owner should hear of: a container that stopped, and no call of an agent had it stopped.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::Reach;
use crate::state::{Author, Changes, Document, Notice, Notifications, Pointer, State, View, Views};

/// Follows the state, and adds a notification where something is worth one.
#[derive(Debug)]
pub struct Notices {
    state: State,
    view: View,
    notifications: Notifications,
}

impl Notices {
    /// Over this state.
    pub fn new(state: State) -> Self {
        Self {
            view: Views::new(state.clone()).seen_by("", &Reach::everything()),
            notifications: Notifications::new(state.clone()),
            state,
        }
    }

    /// Follows it from now on.
    pub async fn run(self) {
        let mut bell = self.state.bell();
        let mut before = self.state.document();
        // The other end is held above: it cannot go.
        while bell.changed().await.is_ok() {
            let now = self.state.document();
            for name in stopped(&before, &now) {
                self.note(&name, (before.revision, now.revision)).await;
            }
            before = now;
        }
    }

    async fn note(&self, name: &str, between: (u64, u64)) {
        if self.by_a_call(name, between).await {
            return;
        }
        let notice = Notice {
            container: Some(name.to_owned()),
            level: "warning",
            title: format!("{name} has stopped"),
            message: "It ran, and stopped without a call of an agent: by itself, or because somebody on the box had it \
                      stopped. container_logs may tell why."
                .to_owned(),
        };
        if let Err(cause) = self.notifications.add(&Author::observer(), notice).await {
            tracing::warn!(%cause, "a notification could not be kept");
        }
    }

    /// Whether a call led to it, as far as the log knows.
    async fn by_a_call(&self, name: &str, between: (u64, u64)) -> bool {
        let (view, place) = (self.view.clone(), place().child(name).child("status"));
        // Reads the log from the disk.
        let found = tokio::task::spawn_blocking(move || view.changes(between, &place, 100)).await;
        match found {
            Ok(Ok(Changes::Revisions { revisions, .. })) => {
                revisions.last().is_some_and(|last| last.cause.is_some())
            }
            _ => false,
        }
    }
}

fn place() -> Pointer {
    Pointer::root().child("public").child("packageData")
}

/// The containers that ran before and are stopped now.
fn stopped(before: &Document, now: &Document) -> Vec<String> {
    let (before, now) = (states(before), states(now));
    let ran = before.into_iter().filter(|(_, state)| *state == "running");
    ran.filter(|(name, _)| now.get(name) == Some(&"stopped"))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn states(document: &Document) -> BTreeMap<&str, &str> {
    let all = place();
    let all = all.get(&document.root).and_then(Value::as_object);
    let all = all.into_iter().flatten();
    all.filter_map(|(name, facts)| Some((name.as_str(), facts.get("status")?.as_str()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::sys::Scratch;

    use super::*;

    #[tokio::test]
    async fn a_container_that_stops_without_a_call_is_told_of_once() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let notifications = Notifications::new(state.clone());
        let put = async |name: &str, status: &str, author: Author| {
            let at = place().child(name).child("status");
            let written = state.put(&author, &at, Some(json!(status))).await;
            written.unwrap();
        };
        let notices = Notices::new(state.clone());
        for name in ["crashed", "asked", "paused"] {
            put(name, "running", Author::observer()).await;
        }
        let mut following = Box::pin(notices.run());
        let changes = async {
            put("asked", "stopped", Author::observer().because("a1")).await;
            put("paused", "frozen", Author::observer()).await;
            put("crashed", "stopped", Author::observer()).await;
            let mut bell = state.bell();
            loop {
                let all = notifications.list("", &Reach::everything());
                if let [only] = all.as_slice() {
                    return only.clone();
                }
                assert!(all.is_empty(), "{all:?}");
                bell.changed().await.unwrap();
            }
        };
        // Begun before anything changes: it follows from now on.
        tokio::select! {
            biased;
            () = &mut following => unreachable!(),
            told = changes => {
                assert_eq!(told.container.as_deref(), Some("crashed"));
                assert_eq!(told.value["title"], "crashed has stopped");
            }
        }
    }
}
