//! Sends notifications to the owner's channels, and retries failed ones.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::push_title::request_title;
use super::watched_paths::{ChangedPath, changed_paths};
use gatewren_base::config::{
    Channel, ChannelKind, Channels, LiveSettings, Occasion, Reach, Settings,
};
use gatewren_base::sys::{exact_line, now_ms};
use gatewren_base::telemetry::redact_text;
use gatewren_gate::owner_actions::reached_at;
use gatewren_store::state::{Document, KeptNotification, Notifications, State};
use gatewren_store::vault::Vault;
use gatewren_tools::notify::{
    MessageQuota, MessageSource, NotificationSender, OwnerMessage, Priority, QueuedNotification,
    RetryQueue, channels, targets,
};

/// The maximum number of messages to one channel in an hour; the rest waits. A container that crashes and
/// restarts all the time should not cause a thousand messages.
const AN_HOUR: u32 = 60;

/// The maximum pause while nothing changes.
const IDLE: Duration = Duration::from_hours(1);

/// The occasion of a change of the state; a notification has its level there.
const STATE: &str = "state";

/// The queue of messages, and its sources.
struct OwnerNotifier {
    live: LiveSettings<Settings>,
    vault: Vault,
    state: State,
    /// The document of the last check.
    known: Arc<Document>,
    notifications: Notifications,
    outbox: RetryQueue,
    notification_sender: NotificationSender,
    allowance: MessageQuota,
    file: PathBuf,
}

/// Sends notifications, while it runs. Everything from the call of this function on is sent, even if the future
/// is polled later.
pub fn send_notifications(
    vault: Vault,
    state: State,
    live: LiveSettings<Settings>,
    notification_sender: NotificationSender,
) -> impl Future<Output = ()> + Send + 'static {
    let file = live.read(|settings| settings.state_dir.join(RetryQueue::FILE));
    let revision = state.watch_revision();
    let changed = live.clone();
    let known = state.document();
    let notifications = Notifications::new(state.clone());
    let outbox = load_queue(&file, &notifications, known.revision);
    let notifier = OwnerNotifier {
        live,
        vault,
        state,
        known,
        notifications,
        outbox,
        notification_sender,
        allowance: MessageQuota::default(),
        file,
    };
    run_notifier(notifier, revision, changed)
}

async fn run_notifier(
    mut notifier: OwnerNotifier,
    mut revision: watch::Receiver<u64>,
    mut changed: LiveSettings<Settings>,
) {
    loop {
        revision.mark_unchanged();
        changed.mark_unchanged();
        let before = notifier.outbox.clone();
        notifier.collect();
        notifier.collect_changes();
        notifier.keep(&before);
        let before = notifier.outbox.clone();
        notifier.send().await;
        notifier.keep(&before);
        let pause = notifier.outbox.pause(now_ms()).unwrap_or(IDLE).min(IDLE);
        tokio::select! {
            revised = revision.changed() => if revised.is_err() { return },
            () = changed.changed() => {}
            () = sleep(pause) => {}
        }
    }
}

/// Loads the stored queue. On the first start, existing notifications are not sent.
fn load_queue(file: &Path, notifications: &Notifications, revision: u64) -> RetryQueue {
    let kept = RetryQueue::load(file).unwrap_or_else(|cause| {
        tracing::error!(cause, "cannot read the queue of messages; it starts empty");
        None
    });
    let all = notifications.list("", &Reach::everything());
    let newest = all.first().map_or(0, |newest| newest.id);
    let mut outbox = kept.unwrap_or_else(|| RetryQueue {
        seen: newest,
        ..RetryQueue::default()
    });
    // A new state database starts its numbers again. Numbers of other programs may be larger than any revision.
    outbox.seen = outbox.seen.min(revision.max(newest));
    outbox
}

impl OwnerNotifier {
    /// Queues new notifications for each channel that is configured for them.
    fn collect(&mut self) {
        let channels = self.channels();
        let seen = self.outbox.seen;
        let mut new = self.notifications.list("", &Reach::everything());
        new.retain(|one| one.id > seen && !one.is_seen());
        for one in new.iter().rev() {
            self.outbox.seen = one.id;
            let Some(occasion) = occasion(one) else {
                continue;
            };
            let wanted = channels
                .iter()
                .filter(|(_, channel)| channel.on.contains(&occasion));
            for (name, channel) in wanted {
                for target in targets(&self.vault, name, channel) {
                    let entry = self.entry(&target, channel, one, occasion);
                    self.outbox.push(entry);
                }
            }
        }
    }

    /// The channels of the settings, and those of the owner's page.
    fn channels(&self) -> Channels {
        channels(&self.live.now(), &self.vault)
    }

    /// Adds the reason of the change that a notification is about. It is only in messages to the owner: other agents
    /// can read the notification. A phone shows few words, so a push message says only who asks for what, and why.
    fn entry(
        &self,
        target: &str,
        channel: &Channel,
        one: &KeptNotification,
        occasion: Occasion,
    ) -> QueuedNotification {
        let mut entry = entry(target, one, occasion);
        let change = one
            .change()
            .and_then(|id| self.vault.changes().get(id).ok());
        let Some(change) = change.flatten() else {
            return entry;
        };
        let reason = change.reason.as_ref();
        let reason = reason.map(|reason| exact_line(&redact_text(reason)));
        if channel.kind == ChannelKind::Push {
            entry.title = request_title(&self.vault, &change);
            entry.text = reason.map_or_else(String::new, |reason| format!("“{reason}”"));
        } else if let Some(reason) = reason {
            let _ = write!(entry.text, "\nThe agent's reason: “{reason}”");
        }
        entry
    }

    /// Queues changes of the state for each channel that watches them.
    fn collect_changes(&mut self) {
        let document = self.state.document();
        let known = std::mem::replace(&mut self.known, document.clone());
        if known.revision == document.revision {
            return;
        }
        for (name, channel) in &self.channels() {
            for rule in &channel.watch {
                let (mut found, more) = changed_paths(rule, &known.root, &document.root);
                if more > 0 {
                    let words = format!("{more} more values changed at the same time");
                    let one = ChangedPath {
                        place: rule.to_string(),
                        words,
                    };
                    found.push(one);
                }
                for target in targets(&self.vault, name, channel) {
                    for one in &found {
                        self.outbox.push(of_change(&target, one, &document));
                    }
                }
            }
        }
    }

    /// Sends messages that are due.
    async fn send(&mut self) {
        while let Some(entry) = self.outbox.take_due(now_ms()) {
            let channels = self.channels();
            let name = entry.channel.split('/').next().unwrap_or_default();
            let Some(channel) = channels.get(name) else {
                let why = "this channel no longer exists".to_owned();
                self.outbox.record_failure(entry, why, true, now_ms());
                continue;
            };
            let taken = self.allowance.take(&entry.channel, AN_HOUR, Instant::now());
            if let Err(wait) = taken {
                self.outbox
                    .postpone(entry, Duration::from_secs(wait), now_ms());
                continue;
            }
            self.send_entry(entry, channel).await;
        }
    }

    async fn send_entry(&mut self, entry: QueuedNotification, channel: &Channel) {
        let address = self.live.read(reached_at);
        match self
            .notification_sender
            .send_to(&entry.channel, channel, &message(&entry, &address))
            .await
        {
            Ok(_) => tracing::info!(
                channel = entry.channel,
                notification = entry.id,
                "the owner was notified"
            ),
            Err(cause) => {
                let (why, is_lasting) = (cause.to_string(), cause.is_lasting());
                self.outbox.record_failure(entry, why, is_lasting, now_ms());
            }
        }
    }

    fn keep(&self, before: &RetryQueue) {
        if self.outbox == *before {
            return;
        }
        if let Err(cause) = self.outbox.save(&self.file) {
            tracing::warn!(%cause, "cannot store the queue of messages; a restart would lose it");
        }
    }
}

/// The kind of a notification, which channels are configured by.
fn occasion(one: &KeptNotification) -> Option<Occasion> {
    if one.change().is_some() {
        return Some(Occasion::Inbox);
    }
    one.value.get("level")?.as_str()?.parse().ok()
}

fn entry(channel: &str, one: &KeptNotification, occasion: Occasion) -> QueuedNotification {
    /// Limited, because other programs may write notifications too.
    const MOST: usize = 500;
    let text = |key: &str| {
        let text = one.value.get(key).and_then(Value::as_str).unwrap_or("");
        text.chars().take(MOST).collect()
    };
    QueuedNotification {
        channel: channel.to_owned(),
        id: one.id,
        occasion: occasion.to_string(),
        container: one.container.clone(),
        title: text("title"),
        text: text("message"),
        page: page(one),
        at_ms: one.value.get("at_ms").and_then(Value::as_u64).unwrap_or(0),
        tries: 0,
        next_ms: 0,
        why: String::new(),
    }
}

fn of_change(
    channel: &str,
    ChangedPath { place, words }: &ChangedPath,
    document: &Document,
) -> QueuedNotification {
    QueuedNotification {
        channel: channel.to_owned(),
        id: document.revision,
        occasion: STATE.to_owned(),
        container: None,
        title: place.clone(),
        text: words.clone(),
        page: "/owner/home".to_owned(),
        at_ms: now_ms(),
        tries: 0,
        next_ms: 0,
        why: String::new(),
    }
}

fn message(entry: &QueuedNotification, address: &str) -> OwnerMessage {
    let of_state = entry.occasion == STATE;
    let occasion = entry.occasion.parse().unwrap_or(Occasion::Info);
    OwnerMessage {
        source: MessageSource::Us(if of_state { STATE } else { occasion.as_str() }),
        title: entry.title.clone(),
        text: entry.text.clone(),
        priority: match occasion {
            Occasion::Error => Priority::High,
            Occasion::Warning | Occasion::Inbox => Priority::Normal,
            Occasion::Info if of_state => Priority::Normal,
            Occasion::Info => Priority::Low,
        },
        container: entry.container.clone(),
        at_ms: entry.at_ms,
        // Entries that an earlier gatewren has stored have no page.
        link: (!entry.page.is_empty()).then(|| format!("https://{address}{}", entry.page)),
    }
}

/// The owner's page with the details. Other programs may write notifications too, so the id is checked before it
/// is used in a path.
fn page(one: &KeptNotification) -> String {
    let is_id =
        |id: &&str| id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match one.change() {
        Some(change) => match Some(change).filter(is_id) {
            Some(id) => format!("/owner/changes/{id}"),
            None => "/owner".to_owned(),
        },
        None => "/owner/home".to_owned(),
    }
}
