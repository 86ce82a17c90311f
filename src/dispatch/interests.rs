//! Which resources a listener wants to hear of, and how far it has heard: a cursor each, never a queue.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::protocol::RpcError;
use crate::registry::ResourceSource;

/// The first change after quiet is told at once, further ones so far apart.
const COALESCE: Duration = Duration::from_millis(500);

/// One listener hears of so many resources; more are refused.
const MAX_URIS: usize = 1_000;

/// Their URIs are together no longer than this, in bytes; more are refused.
const MAX_BYTES: usize = 128 << 10;

/// A changeable set of URIs with a cursor each. However slow its reader is, it grows no further.
#[derive(Default)]
pub struct Interests {
    cursors: Mutex<BTreeMap<String, Cursor>>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Cursor {
    /// The newest revision that the listener knows of.
    seen: u64,
    /// Not to be told again before.
    quiet_until: Instant,
}

/// What to do next for a listener.
#[derive(Debug, PartialEq)]
pub enum Due {
    /// Tell it that this URI has changed, up to this revision.
    Tell(String, u64),
    /// Look again then.
    At(Instant),
    /// Wait for the bell.
    Nothing,
}

impl Interests {
    /// Adds a URI from a revision on; again for one that is there, it keeps its place.
    pub fn add(&self, uri: &str, from: u64) -> Result<(), RpcError> {
        let mut cursors = self.lock();
        let bytes = cursors.keys().map(String::len).sum::<usize>() + uri.len();
        let full = cursors.len() >= MAX_URIS || bytes > MAX_BYTES;
        if full && !cursors.contains_key(uri) {
            let words = format!(
                "one listener hears of at most {MAX_URIS} resources, whose URIs have at most \
                 {MAX_BYTES} bytes; subscribe to a parent instead"
            );
            return Err(RpcError::invalid_params(words));
        }
        cursors.entry(uri.to_owned()).or_insert(Cursor {
            seen: from,
            quiet_until: Instant::now(),
        });
        drop(cursors);
        self.changed.notify_one();
        Ok(())
    }

    /// Forgets a URI.
    pub fn remove(&self, uri: &str) {
        self.lock().remove(uri);
    }

    /// Goes back to a revision that the listener says it knows, as after a reconnect.
    pub fn rewind(&self, revision: u64) {
        for cursor in self.lock().values_mut() {
            cursor.seen = revision;
        }
    }

    /// Up to which revision the listener was told of every change; `None` when it wants to hear of none.
    pub fn heard(&self) -> Option<u64> {
        self.lock().values().map(|cursor| cursor.seen).min()
    }

    /// Waits until a URI is added.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What is due now; a URI that is told is marked as told.
    pub fn due(&self, source: &dyn ResourceSource, now: Instant) -> Due {
        let newest = *source.bell().borrow();
        let mut soonest: Option<Instant> = None;
        for (uri, cursor) in self.lock().iter_mut() {
            let Some(revision) = source.touched(uri, cursor.seen) else {
                // Nobody has to look there again.
                cursor.seen = cursor.seen.max(newest);
                continue;
            };
            if cursor.quiet_until <= now {
                *cursor = Cursor {
                    seen: revision,
                    quiet_until: now + COALESCE,
                };
                return Due::Tell(uri.clone(), revision);
            }
            soonest = Some(soonest.map_or(cursor.quiet_until, |s| s.min(cursor.quiet_until)));
        }
        soonest.map_or(Due::Nothing, Due::At)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Cursor>> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
