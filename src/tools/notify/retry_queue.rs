//! The queue of notifications: those to send, those that failed, and the position in the list. It survives restarts.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use gatewren_base::sys::{FileError, files};

/// The most waiting entries. For one more the oldest is given up.
const MOST_WAITING: usize = 100;

/// The most entries given up that are kept. For one more the oldest is dropped.
const MOST_DEAD: usize = 100;

/// The pause after each attempt. After the last one the entry is given up.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
];

/// The largest file that is read; an entry takes about 2 KiB.
const MAX_BYTES: usize = 4 << 20;

/// A notification for a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedNotification {
    /// The channel.
    pub channel: String,
    /// The notification's id.
    pub id: u64,
    /// The name of the occasion.
    pub occasion: String,
    /// The container that it is about.
    pub container: Option<String>,
    /// A few words.
    pub title: String,
    /// A sentence or two.
    pub text: String,
    /// The path of the owner's page with more details.
    #[serde(default)]
    pub page: String,
    /// The time of the occasion, in milliseconds since 1970.
    pub at_ms: u64,
    /// The number of attempts.
    #[serde(default)]
    pub tries: usize,
    /// The time of the next attempt.
    #[serde(default)]
    pub next_ms: u64,
    /// Why the last attempt failed.
    #[serde(default)]
    pub why: String,
}

/// The queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryQueue {
    /// Notifications up to this id have been processed.
    pub seen: u64,
    /// Entries to send, oldest first.
    pub waiting: VecDeque<QueuedNotification>,
    /// Entries given up, oldest first.
    pub dead: VecDeque<QueuedNotification>,
}

impl RetryQueue {
    /// The name of its file in the state directory.
    pub const FILE: &'static str = "notify.json";

    /// Loads the queue; `None` if the file does not exist.
    pub fn load(file: &Path) -> Result<Option<Self>, String> {
        match files::read_bounded(file, MAX_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|cause| format!("{} is invalid: {cause}", file.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Saves the queue.
    pub fn save(&self, file: &Path) -> Result<(), FileError> {
        // Plain strings and numbers always serialize.
        files::write_private(file, &serde_json::to_vec(self).unwrap_or_default())
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: QueuedNotification) {
        self.waiting.push_back(entry);
        if self.waiting.len() > MOST_WAITING
            && let Some(mut oldest) = self.waiting.pop_front()
        {
            oldest.why = format!(
                "more than {MOST_WAITING} messages were waiting; the last error: {}",
                oldest.why
            );
            self.drop_failed(oldest);
        }
    }

    /// Removes and returns the next entry that is due.
    pub fn take_due(&mut self, now_ms: u64) -> Option<QueuedNotification> {
        let at = self
            .waiting
            .iter()
            .position(|entry| entry.next_ms <= now_ms)?;
        self.waiting.remove(at)
    }

    /// Records a failed attempt. The other entries of the channel wait as long, so that a channel that hangs is tried
    /// only once.
    pub fn record_failure(
        &mut self,
        mut entry: QueuedNotification,
        why: String,
        is_lasting: bool,
        now_ms: u64,
    ) {
        entry.why = why;
        let pause = PAUSES.get(entry.tries).filter(|_| !is_lasting);
        entry.tries += 1;
        let Some(pause) = pause else {
            return self.drop_failed(entry);
        };
        entry.next_ms = later(now_ms, *pause);
        let same = self.waiting.iter_mut();
        for other in same.filter(|other| other.channel == entry.channel) {
            other.next_ms = other.next_ms.max(entry.next_ms);
        }
        self.waiting.push_front(entry);
    }

    /// Postpones an entry, which was not attempted, and the others of its channel.
    pub fn postpone(&mut self, entry: QueuedNotification, wait: Duration, now_ms: u64) {
        let next_ms = later(now_ms, wait);
        let channel = entry.channel.clone();
        self.waiting.push_front(entry);
        let same = self.waiting.iter_mut();
        for other in same.filter(|other| other.channel == channel) {
            other.next_ms = other.next_ms.max(next_ms);
        }
    }

    /// Gives an entry up.
    pub fn drop_failed(&mut self, entry: QueuedNotification) {
        tracing::warn!(
            channel = entry.channel,
            notification = entry.id,
            tries = entry.tries,
            why = entry.why,
            "a message to the owner was not sent; gatewren notify list shows it"
        );
        self.dead.push_back(entry);
        while self.dead.len() > MOST_DEAD {
            self.dead.pop_front();
        }
    }

    /// Returns the time until the next entry is due.
    pub fn pause(&self, now_ms: u64) -> Option<Duration> {
        let next = self.waiting.iter().map(|entry| entry.next_ms).min()?;
        Some(Duration::from_millis(next.saturating_sub(now_ms)))
    }
}

fn later(now_ms: u64, pause: Duration) -> u64 {
    now_ms.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    fn entry(channel: &str, id: u64) -> QueuedNotification {
        QueuedNotification {
            channel: channel.to_owned(),
            id,
            occasion: "error".to_owned(),
            container: None,
            title: "t".to_owned(),
            text: "x".to_owned(),
            page: String::new(),
            at_ms: 0,
            tries: 0,
            next_ms: 0,
            why: String::new(),
        }
    }

    #[test]
    fn what_fails_is_tried_later_and_then_given_up() {
        let mut outbox = RetryQueue::default();
        outbox.push(entry("phone", 1));
        outbox.push(entry("phone", 2));
        outbox.push(entry("hook", 2));
        let first = outbox.take_due(0).unwrap();
        assert_eq!((first.channel.as_str(), first.id), ("phone", 1));
        outbox.record_failure(first, "gone".to_owned(), false, 0);
        let other = outbox.take_due(0).unwrap();
        assert_eq!(other.channel, "hook", "the other channel does not wait");
        assert_eq!(outbox.take_due(0), None, "the same channel does");
        assert_eq!(outbox.pause(0), Some(Duration::from_secs(10)));
        let mut now = 0;
        let mut tries = 0;
        while outbox.dead.is_empty() {
            now += 6 * 3_600_000;
            let again = outbox.take_due(now).unwrap();
            assert_eq!(again.id, 1, "in their order");
            outbox.record_failure(again, "gone".to_owned(), false, now);
            tries += 1;
        }
        assert_eq!(
            (tries, outbox.dead[0].tries),
            (PAUSES.len(), PAUSES.len() + 1)
        );
        let second = outbox.take_due(u64::MAX).unwrap();
        outbox.record_failure(second, "it answered 403".to_owned(), true, 0);
        assert_eq!(outbox.dead[1].why, "it answered 403", "at once");
        assert_eq!(outbox.pause(0), None);
    }

    #[test]
    fn it_is_bounded_and_kept() {
        let scratch = Scratch::new();
        let file = scratch.join(RetryQueue::FILE);
        assert_eq!(RetryQueue::load(&file), Ok(None));
        let mut outbox = RetryQueue::default();
        for id in 0..400 {
            outbox.push(entry("phone", id));
        }
        assert_eq!(
            (outbox.waiting.len(), outbox.dead.len()),
            (MOST_WAITING, MOST_DEAD)
        );
        assert_eq!((outbox.waiting[0].id, outbox.dead[0].id), (300, 200));
        outbox.seen = 399;
        outbox.save(&file).unwrap();
        assert_eq!(RetryQueue::load(&file), Ok(Some(outbox)));
        assert_eq!(files::mode(&file).unwrap(), 0o600);
        std::fs::write(&file, "{").unwrap();
        assert!(RetryQueue::load(&file).unwrap_err().contains("is invalid"));
    }
}
