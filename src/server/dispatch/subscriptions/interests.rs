//! The resources that a listener is subscribed to, with a cursor for each instead of a queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use gatewren_base::sys::lock;
use gatewren_wire::protocol::RpcError;
use gatewren_wire::registry::{ResourceSource, Viewer};

/// The maximum number of resources of a listener; more are refused.
const MAX_URIS: usize = 1_000;

/// The maximum total length of their URIs, in bytes; more are refused.
const MAX_BYTES: usize = 64 << 10;

/// A position in a history that no longer exists, for example after a backup was restored.
const NOWHERE: u64 = u64::MAX;

/// A changeable set of URIs with a cursor for each. A slow reader does not make it grow.
#[derive(Default)]
pub struct Interests {
    /// The cursor that was checked last is at the back, so that each one gets its turn.
    cursors: Mutex<VecDeque<Cursor>>,
    /// Whether any of them was counted separately.
    has_separate_count: AtomicBool,
    changed: Notify,
}

/// Where the reported changes of a resource start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceCursor {
    /// A revision of the state.
    Revision(u64),
    /// A number, for a resource that is counted separately.
    Apart(u64),
}

impl ResourceCursor {
    /// The number, for both kinds of counts.
    pub fn number(self) -> u64 {
        let (Self::Revision(number) | Self::Apart(number)) = self;
        number
    }
}

impl From<u64> for ResourceCursor {
    fn from(revision: u64) -> Self {
        Self::Revision(revision)
    }
}

#[derive(Debug)]
struct Cursor {
    uri: Arc<str>,
    /// Whether its numbers are counted separately and are not revisions.
    counted_separately: bool,
    /// Changes up to here are not reported: they happened before the listener subscribed.
    since: u64,
    /// The newest revision that the listener knows.
    seen: u64,
    /// The next update is not sent before this time.
    quiet_until: Instant,
}

/// The notification that a resource has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUpdate {
    /// The resource.
    pub uri: Arc<str>,
    /// The last revision that the listener knew; `None` if it is of a history that no longer exists. What the
    /// listener has read may also belong to that history.
    pub after: Option<u64>,
    /// The newest revision that changed it.
    pub revision: u64,
    /// With this update, the listener has received every change up to this revision, of all resources.
    pub settled: u64,
    /// Whether the numbers are counted separately and are no revisions: they mean nothing to the listener.
    pub counted_separately: bool,
}

/// What to do next for a listener.
#[derive(Debug, PartialEq)]
pub enum NextUpdate {
    /// Send this update.
    Tell(ResourceUpdate),
    /// Check again at this time, or when the revision changes.
    At(Instant),
    /// Check again at this time: a change before it would not be sent anyway.
    NotBefore(Instant),
    /// Wait for the revision to change.
    Nothing,
}

impl Interests {
    /// Adds a URI from a revision on. A URI that is already in the set keeps its position.
    pub fn add(&self, uri: &str, since: impl Into<ResourceCursor>) -> Result<(), RpcError> {
        let since = since.into();
        self.insert(uri, since, Some(since.number()))
    }

    /// Adds a URI of a listener from before a restart, with the last revision that was reported to it; `None` if
    /// that is of a history that no longer exists.
    pub fn restore(&self, uri: &str, since: u64, seen: Option<u64>) -> Result<(), RpcError> {
        self.insert(uri, ResourceCursor::Revision(since), seen)
    }

    fn insert(&self, uri: &str, from: ResourceCursor, seen: Option<u64>) -> Result<(), RpcError> {
        let since = from.number();
        let mut cursors = lock(&self.cursors);
        if cursors.iter().any(|known| *known.uri == *uri) {
            return Ok(());
        }
        let bytes = cursors.iter().map(|c| c.uri.len()).sum::<usize>() + uri.len();
        if cursors.len() >= MAX_URIS || bytes > MAX_BYTES {
            let words = format!(
                "a listener can subscribe to at most {MAX_URIS} resources with URIs of {MAX_BYTES} bytes in \
                 total; subscribe to a parent instead"
            );
            return Err(RpcError::invalid_params(words));
        }
        let counted_separately = matches!(from, ResourceCursor::Apart(_));
        if counted_separately {
            self.has_separate_count.store(true, Ordering::Relaxed);
        }
        cursors.push_front(Cursor {
            uri: uri.into(),
            counted_separately,
            since,
            seen: seen.map_or(NOWHERE, |seen| seen.max(since)),
            quiet_until: Instant::now(),
        });
        drop(cursors);
        self.changed.notify_one();
        Ok(())
    }

    /// Removes a URI.
    pub fn remove(&self, uri: &str) {
        lock(&self.cursors).retain(|cursor| *cursor.uri != *uri);
    }

    /// Goes back to a revision that the listener knows, for example after a reconnect. Changes from before the
    /// subscription are still not reported, and a cursor at `NOWHERE` stays there.
    pub fn rewind(&self, revision: u64) {
        for cursor in lock(&self.cursors).iter_mut() {
            if cursor.seen != NOWHERE && !cursor.counted_separately {
                cursor.seen = revision.max(cursor.since);
            }
        }
        self.changed.notify_one();
    }

    /// Discards the revisions that the listener knows, because their history no longer exists: it is notified of
    /// the current version of each resource.
    pub fn lose(&self) {
        for cursor in lock(&self.cursors).iter_mut() {
            cursor.since = 0;
            cursor.seen = NOWHERE;
        }
        self.changed.notify_one();
    }

    /// The revision up to which every change was reported to the listener; `None` if it is subscribed to nothing
    /// that has revisions.
    pub fn reported_revision(&self) -> Option<u64> {
        lowest_revision(&lock(&self.cursors))
    }

    /// The same, as it is stored across restarts: if any cursor has lost its history, a number beyond every
    /// revision.
    pub fn revision_to_store(&self) -> Option<u64> {
        let cursors = lock(&self.cursors);
        let is_lost = |cursor: &Cursor| cursor.seen == NOWHERE && !cursor.counted_separately;
        let is_lost = cursors.iter().any(is_lost);
        if is_lost {
            Some(NOWHERE)
        } else {
            lowest_revision(&cursors)
        }
    }

    /// Whether any of its resources is counted separately, or was.
    pub fn has_separate_count(&self) -> bool {
        self.has_separate_count.load(Ordering::Relaxed)
    }

    /// Waits until the set or its cursors change, which is a reason to check even if no resource has changed.
    pub async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    /// Returns the update that is due now, and marks it as sent. The resource is not checked again until
    /// `every` has passed, so a burst of changes costs each listener one check.
    pub fn next_update(
        &self,
        source: &dyn ResourceSource,
        viewer: &Viewer,
        now: Instant,
        every: Duration,
    ) -> NextUpdate {
        let newest = source.newest(viewer);
        let mut cursors = lock(&self.cursors);
        let (mut soonest, mut awaits_changes) = (None, false);
        for _ in 0..cursors.len() {
            cursors.rotate_left(1);
            let Some(cursor) = cursors.back_mut() else {
                break;
            };
            let newest = if source.has_separate_count(&cursor.uri) {
                cursor.count_separately();
                self.has_separate_count.store(true, Ordering::Relaxed);
                source.separate_count()
            } else {
                newest
            };
            if cursor.quiet_until > now {
                if cursor.seen == newest {
                    // A later change wakes the listener; until then a timer would wake it for nothing.
                    awaits_changes = true;
                } else {
                    let at = cursor.quiet_until;
                    soonest = Some(soonest.map_or(at, |soonest: Instant| soonest.min(at)));
                }
                continue;
            }
            awaits_changes = true;
            if let Some(mut update) = cursor.advance(source, viewer, newest) {
                cursor.quiet_until = now + every;
                update.settled = lowest_revision(&cursors).unwrap_or_default();
                return NextUpdate::Tell(update);
            }
        }
        match soonest {
            None => NextUpdate::Nothing,
            Some(at) if awaits_changes => NextUpdate::At(at),
            Some(at) => NextUpdate::NotBefore(at),
        }
    }
}

impl Cursor {
    /// Marks the resource as counted separately. A remembered revision means nothing in that count.
    fn count_separately(&mut self) {
        if !self.counted_separately {
            self.counted_separately = true;
            self.since = 0;
            self.seen = NOWHERE;
        }
    }

    /// Advances to the next change that is to be reported, if there is one.
    fn advance(
        &mut self,
        source: &dyn ResourceSource,
        viewer: &Viewer,
        newest: u64,
    ) -> Option<ResourceUpdate> {
        let after = (self.seen <= newest).then_some(self.seen);
        let revision = match after {
            None => newest,
            Some(seen) if seen == newest => return None,
            Some(seen) => match source.newest_change(viewer, &self.uri, seen) {
                // The revision is about to be announced, once it can be read.
                Some(revision) if revision > newest => return None,
                Some(revision) => revision,
                None => {
                    // This range need not be checked again.
                    self.seen = newest;
                    return None;
                }
            },
        };
        self.seen = revision;
        self.since = self.since.min(revision);
        Some(ResourceUpdate {
            uri: self.uri.clone(),
            after,
            revision,
            settled: 0,
            counted_separately: self.counted_separately,
        })
    }
}

fn lowest_revision(cursors: &VecDeque<Cursor>) -> Option<u64> {
    // A listener whose history is lost has received nothing.
    let seen = |cursor: &Cursor| match cursor.seen {
        NOWHERE => 0,
        seen => seen,
    };
    let of_revisions = cursors.iter().filter(|cursor| !cursor.counted_separately);
    of_revisions.map(seen).min()
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::super::interests::*;
    use gatewren_wire::protocol::{Resource, ResourceContents, ResourceTemplate};
    use gatewren_wire::registry::BoxFuture;

    /// A test source: the URIs with a `u` change at given revisions. It records the revisions from which it was
    /// asked.
    struct Source {
        changed: Vec<u64>,
        revision: watch::Sender<u64>,
        asked: Mutex<Vec<u64>>,
    }

    impl Source {
        fn at(newest: u64, changed: &[u64]) -> Self {
            Self {
                changed: changed.to_vec(),
                revision: watch::Sender::new(newest),
                asked: Mutex::default(),
            }
        }
    }

    impl ResourceSource for Source {
        fn resources(&self, _: &Viewer) -> Vec<Resource> {
            Vec::new()
        }

        fn templates(&self, _: &Viewer) -> Vec<ResourceTemplate> {
            Vec::new()
        }

        fn read(
            &self,
            _: &Viewer,
            _: &str,
        ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
            Box::pin(std::future::ready(Ok(None)))
        }

        fn can_watch(&self, _: &Viewer, _: &str) -> bool {
            true
        }

        fn watch_revision(&self) -> watch::Receiver<u64> {
            self.revision.subscribe()
        }

        fn has_separate_count(&self, uri: &str) -> bool {
            uri.starts_with("apart")
        }

        fn separate_count(&self) -> u64 {
            3
        }

        fn newest_change(&self, _: &Viewer, uri: &str, after: u64) -> Option<u64> {
            if self.has_separate_count(uri) {
                return (after < 3).then_some(3);
            }
            self.asked.lock().unwrap().push(after);
            let newest = self.changed.iter().copied().max()?;
            (uri.starts_with('u') && newest > after).then_some(newest)
        }
    }

    const EVERY: Duration = Duration::from_millis(500);

    /// The expected update of `u`.
    fn expected_update(after: Option<u64>, revision: u64, settled: u64) -> NextUpdate {
        NextUpdate::Tell(ResourceUpdate {
            uri: "u".into(),
            after,
            revision,
            settled,
            counted_separately: false,
        })
    }

    #[test]
    fn what_was_looked_through_is_not_looked_through_again() {
        let interests = Interests::default();
        interests.add("u", 3).unwrap();
        interests.add("v", 4).unwrap();
        assert_eq!(interests.reported_revision(), Some(3));
        let source = Source::at(9, &[5]);
        let now = Instant::now();
        let due = |later| interests.next_update(&source, &Viewer::default(), now + later, EVERY);
        assert_eq!(due(Duration::ZERO), expected_update(Some(3), 5, 5));
        assert_eq!(due(Duration::ZERO), NextUpdate::At(now + EVERY));
        assert_eq!(
            interests.reported_revision(),
            Some(5),
            "nobody has looked at u again"
        );
        assert_eq!(due(EVERY), NextUpdate::Nothing);
        assert_eq!(interests.reported_revision(), Some(9));
        assert_eq!(*source.asked.lock().unwrap(), [4, 3, 5]);
        interests.rewind(2);
        assert_eq!(
            interests.reported_revision(),
            Some(3),
            "not behind where it began"
        );
        assert_eq!(due(EVERY), expected_update(Some(3), 5, 5));
    }

    #[test]
    fn a_burst_costs_one_look_and_the_bell_is_not_heeded_until_there_is_something_to_tell() {
        let interests = Interests::default();
        interests.add("u", 0).unwrap();
        let now = Instant::now();
        for newest in 1..100 {
            let source = Source::at(newest, &[newest]);
            let due = interests.next_update(&source, &Viewer::default(), now, EVERY);
            match newest {
                1 => assert_eq!(due, expected_update(Some(0), 1, 1)),
                _ => assert_eq!(due, NextUpdate::NotBefore(now + EVERY)),
            }
            assert_eq!(source.asked.lock().unwrap().len(), usize::from(newest == 1));
        }
    }

    #[test]
    fn each_has_its_turn_and_what_is_settled_is_what_all_were_told() {
        let interests = Interests::default();
        for uri in ["u1", "u2", "u3"] {
            interests.add(uri, 4).unwrap();
        }
        let source = Source::at(9, &[7]);
        let now = Instant::now();
        let mut uris = Vec::new();
        let mut settled = Vec::new();
        while let NextUpdate::Tell(update) =
            interests.next_update(&source, &Viewer::default(), now, EVERY)
        {
            uris.push(update.uri.to_string());
            settled.push(update.settled);
        }
        uris.sort();
        assert_eq!(uris, ["u1", "u2", "u3"]);
        assert_eq!(
            settled,
            [4, 4, 7],
            "who has heard of two knows nothing of the third"
        );
        assert_eq!(source.asked.lock().unwrap().len(), 3, "one look each");
    }

    #[test]
    fn who_knows_another_history_is_told_of_this_one() {
        let interests = Interests::default();
        interests.restore("u", 0, None).unwrap();
        assert_eq!(
            (interests.reported_revision(), interests.revision_to_store()),
            (Some(0), Some(NOWHERE))
        );
        interests.rewind(3);
        let source = Source::at(9, &[]);
        let now = Instant::now();
        assert_eq!(
            interests.next_update(&source, &Viewer::default(), now, EVERY),
            expected_update(None, 9, 9)
        );
        assert_eq!(
            interests.next_update(&source, &Viewer::default(), now + EVERY, EVERY),
            NextUpdate::Nothing
        );
        // The database went back to an older state in the meantime.
        let source = Source::at(5, &[2]);
        assert_eq!(
            interests.next_update(&source, &Viewer::default(), now + EVERY, EVERY),
            expected_update(None, 5, 5)
        );
        interests.lose();
        assert_eq!(
            interests.next_update(&source, &Viewer::default(), now + 2 * EVERY, EVERY),
            expected_update(None, 5, 5)
        );
    }

    #[test]
    fn a_revision_that_the_bell_has_not_rung_for_is_told_when_it_has() {
        let interests = Interests::default();
        interests.add("u", 3).unwrap();
        let (source, now) = (Source::at(4, &[5]), Instant::now());
        assert_eq!(
            interests.next_update(&source, &Viewer::default(), now, EVERY),
            NextUpdate::Nothing
        );
        source.revision.send_replace(5);
        assert_eq!(
            interests.next_update(&source, &Viewer::default(), now, EVERY),
            expected_update(Some(3), 5, 5)
        );
    }

    #[test]
    fn what_is_counted_apart_moves_no_revision() {
        let interests = Interests::default();
        interests.add("apart", ResourceCursor::Apart(2)).unwrap();
        assert_eq!(interests.reported_revision(), None);
        interests.add("u", 5).unwrap();
        let (source, now) = (Source::at(9, &[]), Instant::now());
        let due = || interests.next_update(&source, &Viewer::default(), now, EVERY);
        let NextUpdate::Tell(update) = due() else {
            panic!("it has moved");
        };
        assert!(update.counted_separately && *update.uri == *"apart");
        assert_eq!((update.after, update.revision), (Some(2), 3));
        assert_eq!(due(), NextUpdate::Nothing, "both know the newest");
        interests.rewind(0);
        assert_eq!(
            interests.reported_revision(),
            Some(5),
            "a revision that the client names"
        );

        // After a restart it is unknown what was reported.
        let interests = Interests::default();
        interests.restore("apart", 70, Some(80)).unwrap();
        let now = Instant::now();
        let NextUpdate::Tell(update) =
            interests.next_update(&source, &Viewer::default(), now, EVERY)
        else {
            panic!("it is told once");
        };
        assert_eq!((update.counted_separately, update.after), (true, None));
        assert_eq!(interests.revision_to_store(), None);
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
        assert_eq!(interests.reported_revision(), None);
        assert!(interests.add(&"x".repeat(MAX_BYTES + 1), 0).is_err());
    }
}
