//! `/public/notifications`: messages for the owner, kept until they are seen.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::author::Author;
use super::error::StateError;
use super::operation::PatchOperation;
use super::patch::Patch;
use super::pointer::Pointer;
use super::store::State;
use super::view::StateViews;
use gatewren_base::config::Reach;
use gatewren_base::sys::now_ms;

/// The most notifications that are kept; adding one more removes the oldest.
const MOST: usize = 200;

/// The longest text of a notification, in characters; longer text is cut.
const MAX_LETTERS: usize = 500;

/// The notifications of a host; clones share them.
#[derive(Debug, Clone)]
pub struct Notifications {
    state: State,
    views: StateViews,
    /// Held from the read until the write: two notifications added at once would get the same number.
    turn: Arc<Mutex<()>>,
}

/// A message for the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The container that it is about; the host when absent. An agent that does not reach it does not see the
    /// notification.
    pub container: Option<String>,
    /// `info`, `warning` or `error`.
    pub level: &'static str,
    /// A short title.
    pub title: String,
    /// A sentence or two.
    pub message: String,
    /// The pending change in the inbox that it is about, if any.
    pub change: Option<String>,
}

/// A stored notification and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptNotification {
    /// Its number: later ones have larger ones.
    pub id: u64,
    /// The container that it is about.
    pub container: Option<String>,
    /// The stored value: `at_ms`, `level`, `title`, `message`, `seen`.
    pub value: Value,
    place: Pointer,
}

/// The agent that lists or changes notifications.
#[derive(Debug, Clone, Copy)]
pub struct NotificationReader<'a> {
    /// The agent's id; empty for the server itself.
    pub agent: &'a str,
    /// What it reaches.
    pub reach: &'a Reach,
}

/// A change to notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationChange {
    /// Mark as seen, or as not seen.
    Seen(bool),
    /// Remove.
    Remove,
}

impl Notifications {
    /// Returns the notifications of this state.
    pub fn new(state: State) -> Self {
        Self {
            views: StateViews::new(state.clone()),
            state,
            turn: Arc::default(),
        }
    }

    /// Adds a notification; returns its number.
    pub async fn add(&self, author: &Author, notice: Notice) -> Result<u64, StateError> {
        let _turn = self.turn.lock().await;
        let all = self.list("", &Reach::everything());
        for oldest in all.iter().skip(MOST - 1) {
            self.state.put(author, &oldest.place, None).await?;
        }
        let newest = all.first().map_or(0, |newest| newest.id);
        // Each notification is a revision, so no later one has this number, even if the newest was removed.
        let id = (self.state.document().revision + 1).max(newest + 1);
        let top = Self::place();
        let group = match &notice.container {
            Some(name) => top.child("containers").child(name),
            None => top.child("host"),
        };
        let mut value = json!({
            "at_ms": now_ms(),
            "level": notice.level,
            "title": truncate(&notice.title),
            "message": truncate(&notice.message),
            "seen": false,
        });
        if let (Some(change), Some(value)) = (notice.change, value.as_object_mut()) {
            value.insert("change".to_owned(), change.into());
        }
        let place = group.child(id.to_string());
        self.state.put(author, &place, Some(value)).await?;
        Ok(id)
    }

    /// Returns the notifications that an agent sees, newest first.
    pub fn list(&self, agent: &str, reach: &Reach) -> Vec<KeptNotification> {
        let view = self.views.view_for(agent, reach);
        let place = Self::place();
        let mut all = view
            .at(&place, |value, _| parse_stored(value))
            .unwrap_or_default();
        all.sort_by_key(|one| std::cmp::Reverse(one.id));
        all
    }

    /// Changes the notifications that an agent sees and that `is_meant` selects. Returns how many were changed, and
    /// the revision that shows it.
    pub async fn change(
        &self,
        author: &Author,
        reader: NotificationReader<'_>,
        change: NotificationChange,
        is_meant: impl Fn(&KeptNotification) -> bool,
    ) -> Result<(usize, u64), StateError> {
        let NotificationReader { agent, reach } = reader;
        let _turn = self.turn.lock().await;
        let all = self.list(agent, reach).into_iter();
        let operations: Vec<_> = all
            .filter(|one| is_meant(one))
            .filter_map(|one| one.operation_for(change))
            .collect();
        let count = operations.len();
        if count == 0 {
            return Ok((0, self.views.view_for(agent, reach).revision()));
        }
        let revision = self.state.apply(author, Patch::new(operations)).await?;
        Ok((count, revision))
    }

    fn place() -> Pointer {
        Pointer::root().child("public").child("notifications")
    }
}

impl KeptNotification {
    /// Returns whether it has been seen.
    pub fn is_seen(&self) -> bool {
        self.value.get("seen") == Some(&Value::Bool(true))
    }

    /// The change in the inbox that it is about.
    pub fn change(&self) -> Option<&str> {
        self.value.get("change")?.as_str()
    }

    fn operation_for(self, change: NotificationChange) -> Option<PatchOperation> {
        let path = self.place.clone();
        match change {
            NotificationChange::Remove => Some(PatchOperation::Remove { path }),
            NotificationChange::Seen(seen) if seen != self.is_seen() => Some(PatchOperation::Add {
                path: path.child("seen"),
                value: Value::Bool(seen),
            }),
            NotificationChange::Seen(_) => None,
        }
    }
}

/// Parses the stored notifications, in no order. Other programs may write there; invalid entries are skipped.
fn parse_stored(value: &Value) -> Vec<KeptNotification> {
    let place = Notifications::place();
    let host = object(value.get("host"));
    let host = host.map(|(id, value)| (None, place.child("host"), id, value));
    let containers = object(value.get("containers")).flat_map(|(name, value)| {
        let group = place.child("containers").child(name);
        object(Some(value)).map(move |(id, value)| (Some(name.clone()), group.clone(), id, value))
    });
    let all = host.chain(containers).filter(|one| one.3.is_object());
    let all = all.filter_map(|(container, group, id, value)| {
        Some(KeptNotification {
            id: id.parse().ok()?,
            container,
            value: value.clone(),
            place: group.child(id),
        })
    });
    all.collect()
}

fn object(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
}

fn truncate(text: &str) -> String {
    text.chars().take(MAX_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use gatewren_base::config::Space;
    use gatewren_base::sys::Scratch;

    use super::*;

    fn notice(container: Option<&str>) -> Notice {
        Notice {
            container: container.map(str::to_owned),
            level: "warning",
            title: "something".into(),
            message: "happened".into(),
            change: None,
        }
    }

    fn ids(all: &[KeptNotification]) -> Vec<u64> {
        all.iter().map(|one| one.id).collect()
    }

    #[tokio::test]
    async fn each_agent_sees_marks_and_removes_those_within_its_reach() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let notifications = Notifications::new(state);
        let (author, all) = (Author::observer(), Reach::everything());
        let web = Reach::of(&Space {
            containers: "web".parse().into_iter().collect(),
            host: false,
        });
        let host = notifications.add(&author, notice(None)).await.unwrap();
        assert_eq!(
            notifications.list("a", &web),
            [],
            "not even that there are others"
        );
        let view = notifications.views.view_for("a", &web);
        assert!(view.at(&Notifications::place(), |_, _| ()).is_none());
        let own = notifications
            .add(&author, notice(Some("web")))
            .await
            .unwrap();
        let db = notifications
            .add(&author, notice(Some("db")))
            .await
            .unwrap();
        assert_eq!(ids(&notifications.list("a", &web)), [own]);
        assert_eq!(ids(&notifications.list("a", &all)), [db, own, host]);
        let shown = view
            .at(&Notifications::place(), |value, _| value.clone())
            .unwrap();
        assert!(!shown.to_string().contains("db") && shown.get("host").is_none());

        let reader = |reach| NotificationReader { agent: "a", reach };
        let seen = NotificationChange::Seen(true);
        let done = notifications
            .change(&author, reader(&web), seen, |_| true)
            .await;
        assert_eq!(done.unwrap().0, 1);
        let unseen = |one: &&KeptNotification| !one.is_seen();
        let left = notifications.list("a", &all);
        assert_eq!(left.iter().filter(unseen).count(), 2);
        let again = notifications
            .change(&author, reader(&web), seen, |_| true)
            .await;
        assert_eq!(again.unwrap().0, 0);
        let gone = notifications
            .change(&author, reader(&web), NotificationChange::Remove, |_| true)
            .await;
        assert_eq!(gone.unwrap().0, 1);
        assert_eq!(ids(&notifications.list("a", &all)), [db, host]);
        let removed =
            notifications.change(&author, reader(&all), NotificationChange::Remove, |one| {
                one.id == db
            });
        assert_eq!(removed.await.unwrap().0, 1);
        let next = notifications.add(&author, notice(None)).await.unwrap();
        assert!(next > db, "a number means one");
    }

    #[tokio::test]
    async fn there_is_a_bounded_number_of_them() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let notifications = Notifications::new(state.clone());
        let author = Author::observer();
        let first = notifications.add(&author, notice(None)).await.unwrap();
        for _ in 0..MOST {
            notifications.add(&author, notice(None)).await.unwrap();
        }
        let all = notifications.list("", &Reach::everything());
        assert_eq!(all.len(), MOST);
        assert!(all.iter().all(|one| one.id > first));
        // Invalid values written by another program are ignored.
        let odd = json!({ "host": { "x": {}, "7": 1 }, "containers": [] });
        state
            .put(&author, &Notifications::place(), Some(odd))
            .await
            .unwrap();
        assert_eq!(notifications.list("", &Reach::everything()), []);
    }
}
