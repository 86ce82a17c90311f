//! Waits for the events of a subscription or of a session's stream.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

use super::interests::{Interests, NextUpdate, ResourceUpdate};
use crate::dispatch::call::{CallContext, viewer};
use crate::dispatch::engine::Engine;
use crate::dispatch::policy_watch::PolicyWatch;
use crate::dispatch::tasks::watch::TaskWatch;
use gatewren_wire::protocol::Notification;
use gatewren_wire::registry::{
    Catalog, ListChange, MessageContent, ResourceSource, SessionLog, SessionMessage, Viewer,
};

/// If a check finds nothing, the next check waits at least this long, then twice as long, and so on up to
/// [`MOST_PAUSE`]. This limits each listener to about thirty checks a second, regardless of how many revisions
/// other resources cause.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// After this long without a check, the next revision is checked at once again.
const MOST_PAUSE: Duration = Duration::from_millis(32);

/// An event that a listener is subscribed to.
#[derive(Debug, Clone, PartialEq)]
pub enum ListenerEvent {
    /// A resource has changed. The patches are included for a listener that wants them, if they are short.
    Updated(ResourceUpdate, Option<Value>),
    /// A list has changed.
    List(ListChange),
    /// A task has changed.
    Task(Notification),
    /// A log message from outside of any call.
    Logged(SessionLog),
}

impl ListenerEvent {
    /// Returns the notification as it is sent.
    pub fn to_notification(&self) -> Notification {
        match self {
            Self::Updated(update, patches) => update_notification(update, patches.as_ref()),
            Self::Task(note) => note.clone(),
            Self::List(ListChange::Tools) => {
                Notification::new("notifications/tools/list_changed", json!({}))
            }
            Self::List(ListChange::Prompts) => {
                Notification::new("notifications/prompts/list_changed", json!({}))
            }
            Self::List(ListChange::Resources) => {
                Notification::new("notifications/resources/list_changed", json!({}))
            }
            Self::Logged(log) => Notification::message(log.level, &log.logger, &log.data),
        }
    }
}

/// Waits for events of its interests.
pub struct Listener {
    viewer: Viewer,
    policy_watch: PolicyWatch,
    interests: Arc<Interests>,
    source: Option<(Arc<dyn ResourceSource>, watch::Receiver<u64>)>,
    counted_separately: Option<watch::Receiver<u64>>,
    lists: Option<broadcast::Receiver<ListChange>>,
    tasks: Option<TaskWatch>,
    messages: Option<(Arc<str>, broadcast::Receiver<SessionMessage>)>,
    stop: watch::Receiver<bool>,
    every: Duration,
    pace: Pace,
    patches: bool,
}

impl Listener {
    /// Creates a listener for this client that ends when the server stops.
    pub fn new(engine: &Engine, client: &CallContext, interests: Arc<Interests>) -> Self {
        let source = engine.catalog.resources();
        Self {
            viewer: client.viewer(),
            policy_watch: PolicyWatch::new(engine, &client.who),
            interests,
            source: source.map(|source| (source.clone(), source.watch_revision())),
            counted_separately: source.and_then(|source| source.watch_separate_count()),
            lists: engine.catalog.list_changes(),
            tasks: None,
            messages: None,
            stop: engine.stopping(),
            every: engine.update_interval(),
            pace: Pace::default(),
            patches: false,
        }
    }

    /// Sets whether updates include the patches of the resource.
    #[must_use]
    pub fn with_patches(mut self, wanted: bool) -> Self {
        self.patches = wanted;
        self
    }

    /// Adds tasks.
    #[must_use]
    pub fn with_tasks(mut self, tasks: TaskWatch) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Adds the messages from outside of any call, log messages of every severity among them; `session` is empty for a
    /// client without one.
    #[must_use]
    pub fn with_messages(mut self, catalog: &Catalog, session: &str) -> Self {
        let messages = catalog.session_messages();
        self.messages = messages.map(|messages| (session.into(), messages));
        self
    }

    /// Continues for this client: its policy may have changed since the listener was created.
    pub fn follow(&mut self, client: &CallContext) {
        self.viewer = client.viewer();
        self.policy_watch.follow(&client.who);
    }

    /// Returns the next event; `None` when the server stops.
    pub async fn next(&mut self) -> Option<ListenerEvent> {
        while !*self.stop.borrow() {
            let (wake, awaits_changes) = match self.next_update() {
                NextUpdate::Tell(update) => return Some(self.patched_update(update)),
                NextUpdate::At(when) => (Some(when), true),
                NextUpdate::NotBefore(when) => (Some(when), false),
                NextUpdate::Nothing => (None, true),
            };
            let revision = self.source.as_mut().filter(|_| awaits_changes);
            let revision = revision.map(|(_, revision)| revision);
            let counted_separately = self.counted_separately.as_mut().filter(|_| awaits_changes);
            tokio::select! {
                () = wait_for_update(revision, self.pace.next) => {}
                () = wait_for_update(counted_separately, self.pace.next) => {}
                () = self.interests.wait_for_change() => {}
                () = wait_until(wake) => {}
                change = receive_list_change(self.lists.as_mut()) => return Some(ListenerEvent::List(change)),
                () = self.policy_watch.changes() => {
                    // The holder of the stream may end it a moment later; until then, only what the new policy
                    // allows is visible.
                    self.viewer = viewer(self.policy_watch.who());
                    return Some(ListenerEvent::List(ListChange::Tools));
                }
                note = receive_task(self.tasks.as_mut()) => return Some(ListenerEvent::Task(note)),
                event = receive_message(self.messages.as_mut(), &self.viewer) => return Some(event),
                () = wait_for_stop(&mut self.stop) => {}
            }
        }
        None
    }

    fn next_update(&mut self) -> NextUpdate {
        let Some((source, revision)) = &mut self.source else {
            return NextUpdate::Nothing;
        };
        let now = Instant::now();
        // Before the check: a change that comes after it wakes the listener again.
        revision.mark_unchanged();
        if let Some(counted_separately) = &mut self.counted_separately {
            counted_separately.mark_unchanged();
        }
        self.pace.note_check(now);
        self.interests
            .next_update(source.as_ref(), &self.viewer, now, self.every)
    }

    fn patched_update(&self, update: ResourceUpdate) -> ListenerEvent {
        let source = self.source.as_ref().filter(|_| self.patches);
        let patches = source.zip(update.after).and_then(|((source, _), after)| {
            source.patches(&self.viewer, &update.uri, after..=update.revision)
        });
        ListenerEvent::Updated(update, patches)
    }
}

/// When the next revision is checked.
#[derive(Default)]
struct Pace {
    looked: Option<Instant>,
    pause: Duration,
    next: Option<Instant>,
}

impl Pace {
    fn note_check(&mut self, now: Instant) {
        let rested = self.looked.is_none_or(|last| now - last > MOST_PAUSE);
        let pause = if rested { LEAST_PAUSE } else { self.pause * 2 };
        self.pause = pause.clamp(LEAST_PAUSE, MOST_PAUSE);
        self.looked = Some(now);
        self.next = Some(now + self.pause);
    }
}

fn update_notification(update: &ResourceUpdate, patches: Option<&Value>) -> Notification {
    if update.counted_separately {
        let mut note = Notification::resource_changed(&update.uri);
        note.revision = Some(update.settled);
        return note;
    }
    let mut note = Notification::resource_updated(&update.uri, update.revision);
    // A client that reconnects with this event's id gets the changes from here on.
    note.revision = Some(update.settled);
    note = match update.after {
        Some(after) => note.with_meta("gatewren/after", json!(after)),
        None => note.with_meta("gatewren/resync", json!(true)),
    };
    match patches {
        Some(patches) => note.with_meta("gatewren/patches", patches.clone()),
        None => note,
    }
}

/// Waits for a new revision, and then until the pause is over.
async fn wait_for_update(
    revision: Option<&mut watch::Receiver<u64>>,
    paused_until: Option<Instant>,
) {
    let changed = match revision {
        Some(revision) => revision.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
    if let Some(paused_until) = paused_until {
        sleep_until(paused_until).await;
    }
}

async fn wait_until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

async fn receive_list_change(lists: Option<&mut broadcast::Receiver<ListChange>>) -> ListChange {
    match lists {
        Some(lists) => receive_next(lists).await,
        None => std::future::pending().await,
    }
}

async fn receive_message(
    messages: Option<&mut (Arc<str>, broadcast::Receiver<SessionMessage>)>,
    viewer: &Viewer,
) -> ListenerEvent {
    let Some((session, messages)) = messages else {
        return std::future::pending().await;
    };
    loop {
        let message = receive_next(messages).await;
        if message.audience.includes(session, viewer) {
            return match message.content {
                MessageContent::Log(log) => ListenerEvent::Logged(log),
                MessageContent::List(list) => ListenerEvent::List(list),
            };
        }
    }
}

/// Receives the next message; a receiver that lagged continues with the oldest that is still available.
async fn receive_next<T: Clone>(channel: &mut broadcast::Receiver<T>) -> T {
    use broadcast::error::RecvError;
    loop {
        match channel.recv().await {
            Ok(message) => return message,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

async fn receive_task(tasks: Option<&mut TaskWatch>) -> Notification {
    match tasks {
        Some(tasks) => tasks.next().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // A closed channel means that the server has ended.
    let _ = stop.wait_for(|stop| *stop).await;
}
