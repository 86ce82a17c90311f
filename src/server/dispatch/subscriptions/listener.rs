//! Waits for the events of a subscription or of a session's stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::interests::{Interests, NextUpdate, ResourceUpdate};
use super::rare_events::{RareEvent, RareEvents, RareSources};
use super::update_texts::UpdateTexts;
use crate::dispatch::call::{CallContext, viewer};
use crate::dispatch::engine::Engine;
use crate::dispatch::policy_watch::PolicyWatch;
use crate::dispatch::tasks::watch::TaskWatch;
use gatewren_wire::protocol::{Notification, SharedNotification};
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
#[derive(Debug)]
pub enum ListenerEvent {
    /// A resource has changed. The patches are included for a listener that wants them, if they are short.
    Updated {
        /// The text of the notification.
        text: Arc<SharedNotification>,
        /// With it, the listener has received every change up to this revision, of all resources. A client that
        /// reconnects with this event's id gets the changes from here on.
        settled: u64,
    },
    /// A list has changed.
    List(ListChange),
    /// A task has changed.
    Task(Notification),
    /// A log message from outside of any call.
    Logged(SessionLog),
}

impl ListenerEvent {
    /// Returns the notification; `None` for an update, which is written already.
    pub fn to_notification(&self) -> Option<Notification> {
        let changed = |method| Notification::new(method, json!({}));
        Some(match self {
            Self::Updated { .. } => return None,
            Self::Task(note) => note.clone(),
            Self::List(ListChange::Tools) => changed("notifications/tools/list_changed"),
            Self::List(ListChange::Prompts) => changed("notifications/prompts/list_changed"),
            Self::List(ListChange::Resources) => changed("notifications/resources/list_changed"),
            Self::Logged(log) => Notification::message(log.level, &log.logger, &log.data),
        })
    }

    /// Returns the text for a session, and the revision that is settled with it.
    pub fn to_text(&self) -> (Bytes, Option<u64>) {
        match self {
            Self::Updated { text, settled } => (text.plain.clone(), Some(*settled)),
            event => {
                let note = event.to_notification();
                (
                    note.map(|note| note.write().into()).unwrap_or_default(),
                    None,
                )
            }
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
    rare: RareEvents,
    /// The session whose messages it gets; empty for a client without one.
    session: Arc<str>,
    texts: Arc<UpdateTexts>,
    stop: watch::Receiver<bool>,
    every: Duration,
    pace: Pace,
    patches: bool,
}

impl Listener {
    /// Creates a listener for this client that ends when the server stops.
    pub fn new(engine: &Engine, client: &CallContext, interests: Arc<Interests>) -> Self {
        let source = engine.catalog.resources();
        let rare = RareSources {
            interests: interests.clone(),
            lists: engine.catalog.list_changes(),
            tasks: None,
            messages: None,
            stop: engine.stopping(),
        };
        Self {
            viewer: client.viewer(),
            policy_watch: PolicyWatch::new(engine, &client.who),
            interests,
            source: source.map(|source| (source.clone(), source.watch_revision())),
            counted_separately: source.and_then(|source| source.watch_separate_count()),
            rare: RareEvents::Idle(Box::new(rare)),
            session: "".into(),
            texts: engine.update_texts.clone(),
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
        self.rare.set(|rare| rare.tasks = Some(tasks));
        self
    }

    /// Adds the messages from outside of any call, log messages of every severity among them; `session` is empty for a
    /// client without one.
    #[must_use]
    pub fn with_messages(mut self, catalog: &Catalog, session: &str) -> Self {
        self.session = session.into();
        self.rare
            .set(|rare| rare.messages = catalog.session_messages());
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
                NextUpdate::Tell(update) => return Some(self.update_event(&update)),
                NextUpdate::At(when) => (Some(when), true),
                NextUpdate::NotBefore(when) => (Some(when), false),
                NextUpdate::Nothing => (None, true),
            };
            let revision = self.source.as_mut().filter(|_| awaits_changes);
            let revision = revision.map(|(_, revision)| revision);
            let is_counted = awaits_changes && self.interests.has_separate_count();
            let counted_separately = self.counted_separately.as_mut().filter(|_| is_counted);
            tokio::select! {
                biased;
                () = wait_for_update(revision, self.pace.next) => {}
                () = wait_for_update(counted_separately, self.pace.next) => {}
                () = wait_until(wake) => {}
                () = self.policy_watch.changes() => {
                    // The holder of the stream may end it a moment later; until then, only what the new policy
                    // allows is visible.
                    self.viewer = viewer(self.policy_watch.who());
                    return Some(ListenerEvent::List(ListChange::Tools));
                }
                event = self.rare.next() => {
                    if let Some(event) = self.rare_event(event) {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    /// Returns what the listener reports of a rare event.
    fn rare_event(&self, event: RareEvent) -> Option<ListenerEvent> {
        match event {
            RareEvent::Interests | RareEvent::Stop => None,
            RareEvent::List(change) => Some(ListenerEvent::List(change)),
            RareEvent::Task(note) => Some(ListenerEvent::Task(note)),
            RareEvent::Message(SessionMessage { audience, content }) => {
                let is_for_it = audience.includes(&self.session, &self.viewer);
                is_for_it.then_some(match content {
                    MessageContent::Log(log) => ListenerEvent::Logged(log),
                    MessageContent::List(list) => ListenerEvent::List(list),
                })
            }
        }
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

    fn update_event(&self, update: &ResourceUpdate) -> ListenerEvent {
        let source = self.source.as_ref().filter(|_| self.patches);
        let patches = source.zip(update.after).and_then(|((source, _), after)| {
            source.patches(&self.viewer, &update.uri, after..=update.revision)
        });
        ListenerEvent::Updated {
            text: self.texts.find_or_write(update, patches),
            settled: update.settled,
        }
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
    // A timer costs more than the look at the clock.
    if let Some(paused_until) = paused_until
        && paused_until > Instant::now()
    {
        sleep_until(paused_until).await;
    }
}

async fn wait_until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}
