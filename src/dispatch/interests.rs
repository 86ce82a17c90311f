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
const MAX_BYTES: usize = 64 << 10;

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

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::protocol::{Resource, ResourceContents, ResourceTemplate};
    use crate::registry::BoxFuture;

    /// One resource, `u`, that changes now and then; remembers from where on it was asked.
    struct Source {
        changed: Vec<u64>,
        bell: watch::Sender<u64>,
        asked: Mutex<Vec<u64>>,
    }

    impl Source {
        fn at(newest: u64, changed: &[u64]) -> Self {
            Self {
                changed: changed.to_vec(),
                bell: watch::Sender::new(newest),
                asked: Mutex::default(),
            }
        }
    }

    impl ResourceSource for Source {
        fn resources(&self) -> Vec<Resource> {
            Vec::new()
        }

        fn templates(&self) -> Vec<ResourceTemplate> {
            Vec::new()
        }

        fn read(&self, _: &str) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
            Box::pin(std::future::ready(Ok(None)))
        }

        fn can_watch(&self, _: &str) -> bool {
            true
        }

        fn bell(&self) -> watch::Receiver<u64> {
            self.bell.subscribe()
        }

        fn touched(&self, uri: &str, after: u64) -> Option<u64> {
            self.asked.lock().unwrap().push(after);
            let newest = self.changed.iter().copied().max()?;
            (uri == "u" && newest > after).then_some(newest)
        }
    }

    #[test]
    fn what_was_looked_through_is_not_looked_through_again() {
        let interests = Interests::default();
        interests.add("u", 3).unwrap();
        interests.add("v", 4).unwrap();
        assert_eq!(interests.heard(), Some(3));
        let source = Source::at(9, &[5]);
        let now = Instant::now();
        assert_eq!(interests.due(&source, now), Due::Tell("u".to_owned(), 5));
        assert_eq!(interests.due(&source, now), Due::Nothing);
        assert_eq!(interests.heard(), Some(9));
        assert_eq!(interests.due(&source, now), Due::Nothing);
        assert_eq!(*source.asked.lock().unwrap(), [3, 5, 4, 9, 9]);
        interests.rewind(2);
        assert_eq!(
            interests.due(&source, now + COALESCE),
            Due::Tell("u".to_owned(), 5)
        );
    }

    #[test]
    fn a_listener_names_so_many_resources_and_no_longer_ones() {
        let interests = Interests::default();
        for n in 0..MAX_URIS {
            interests.add(&n.to_string(), 0).unwrap();
        }
        assert!(interests.add("one more", 0).is_err());
        interests.add("0", 0).unwrap();
        let interests = Interests::default();
        interests.add(&"x".repeat(MAX_BYTES), 0).unwrap();
        assert!(interests.add("y", 0).is_err());
        interests.remove(&"x".repeat(MAX_BYTES));
        assert_eq!(interests.heard(), None);
        assert!(interests.add(&"x".repeat(MAX_BYTES + 1), 0).is_err());
    }
}
