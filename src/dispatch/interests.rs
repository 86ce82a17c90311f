//! Which resources a listener wants to hear of, and how far it has heard: a cursor each, never a queue.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::protocol::RpcError;
use crate::registry::{ResourceSource, Viewer};

/// One listener hears of so many resources; more are refused.
const MAX_URIS: usize = 1_000;

/// Their URIs are together no longer than this, in bytes; more are refused.
const MAX_BYTES: usize = 64 << 10;

/// A place in a history that is no more, as after a backup was put back.
const NOWHERE: u64 = u64::MAX;

/// A changeable set of URIs with a cursor each. However slow its reader is, it grows no further.
#[derive(Default)]
pub struct Interests {
    /// The one that was looked at last stands last, so that each has its turn.
    cursors: Mutex<VecDeque<Cursor>>,
    changed: Notify,
}

/// From where on a resource is of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// This revision.
    Revision(u64),
    /// This number, for a resource that is counted apart.
    Apart(u64),
}

impl Since {
    /// The number, whatever it counts.
    pub fn number(self) -> u64 {
        let (Self::Revision(number) | Self::Apart(number)) = self;
        number
    }
}

impl From<u64> for Since {
    fn from(revision: u64) -> Self {
        Self::Revision(revision)
    }
}

#[derive(Debug)]
struct Cursor {
    uri: String,
    /// Whether its numbers are not revisions, but counted apart.
    apart: bool,
    /// What came up to here is of no interest: it was there when the listener came.
    since: u64,
    /// The newest revision that the listener knows of.
    seen: u64,
    /// Not to be told again before.
    quiet_until: Instant,
}

/// That a resource has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The resource.
    pub uri: String,
    /// Up to which revision the listener knew of its changes; `None` when that is of a history that is no
    /// more, to which what it has read may belong too.
    pub after: Option<u64>,
    /// The newest revision that changed it.
    pub revision: u64,
    /// With this the listener was told of every change up to here, of whatever resource.
    pub settled: u64,
    /// Whether this is no revision, but counted apart: a number that means nothing to the listener.
    pub apart: bool,
}

/// What to do next for a listener.
#[derive(Debug, PartialEq)]
pub enum Due {
    /// Tell it this.
    Tell(Update),
    /// Look again then, or when the bell rings.
    At(Instant),
    /// Look again then: what the bell says would not be told before.
    NotBefore(Instant),
    /// Wait for the bell.
    Nothing,
}

impl Interests {
    /// Adds a URI from a revision on; again for one that is there, it keeps its place.
    pub fn add(&self, uri: &str, since: impl Into<Since>) -> Result<(), RpcError> {
        let since = since.into();
        self.insert(uri, since, Some(since.number()))
    }

    /// The same for one of before a restart: up to where it was told; `None` when that is of a history that is
    /// no more.
    pub fn restore(&self, uri: &str, since: u64, seen: Option<u64>) -> Result<(), RpcError> {
        self.insert(uri, Since::Revision(since), seen)
    }

    fn insert(&self, uri: &str, from: Since, seen: Option<u64>) -> Result<(), RpcError> {
        let since = from.number();
        let mut cursors = self.lock();
        if cursors.iter().any(|known| known.uri == uri) {
            return Ok(());
        }
        let bytes = cursors.iter().map(|c| c.uri.len()).sum::<usize>() + uri.len();
        if cursors.len() >= MAX_URIS || bytes > MAX_BYTES {
            let words = format!(
                "one listener hears of at most {MAX_URIS} resources, whose URIs have at most \
                 {MAX_BYTES} bytes; subscribe to a parent instead"
            );
            return Err(RpcError::invalid_params(words));
        }
        cursors.push_front(Cursor {
            uri: uri.to_owned(),
            apart: matches!(from, Since::Apart(_)),
            since,
            seen: seen.map_or(NOWHERE, |seen| seen.max(since)),
            quiet_until: Instant::now(),
        });
        drop(cursors);
        self.changed.notify_one();
        Ok(())
    }

    /// Forgets a URI.
    pub fn remove(&self, uri: &str) {
        self.lock().retain(|cursor| cursor.uri != uri);
    }

    /// Goes back to a revision that the listener says it knows, as after a reconnect. What was there when it
    /// came stays untold, and who is nowhere stays there.
    pub fn rewind(&self, revision: u64) {
        for cursor in self.lock().iter_mut() {
            if cursor.seen != NOWHERE && !cursor.apart {
                cursor.seen = revision.max(cursor.since);
            }
        }
        self.changed.notify_one();
    }

    /// The revisions that the listener knows are of a history that is no more: it is told of each resource as it
    /// is now.
    pub fn lose(&self) {
        for cursor in self.lock().iter_mut() {
            cursor.since = 0;
            cursor.seen = NOWHERE;
        }
        self.changed.notify_one();
    }

    /// Up to which revision the listener was told of every change; `None` when it wants to hear of none.
    pub fn heard(&self) -> Option<u64> {
        heard(&self.lock())
    }

    /// The same as it is to be remembered across restarts: beyond every revision for who is nowhere.
    pub fn heard_to_remember(&self) -> Option<u64> {
        let cursors = self.lock();
        let is_lost = |cursor: &Cursor| cursor.seen == NOWHERE && !cursor.apart;
        let is_lost = cursors.iter().any(is_lost);
        if is_lost {
            Some(NOWHERE)
        } else {
            heard(&cursors)
        }
    }

    /// Waits until there is a reason to look that is no change of a resource.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What is due now. One that is told is marked as told, and not told again `every` so long: until then
    /// nobody looks for it either, so that a burst of changes costs each listener one look.
    pub fn due(
        &self,
        (source, viewer): (&dyn ResourceSource, &Viewer),
        now: Instant,
        every: Duration,
    ) -> Due {
        let newest = source.newest(viewer);
        let mut cursors = self.lock();
        let (mut soonest, mut heeds_bell) = (None, false);
        for _ in 0..cursors.len() {
            cursors.rotate_left(1);
            let Some(cursor) = cursors.back_mut() else {
                break;
            };
            if cursor.quiet_until > now {
                let at = cursor.quiet_until;
                soonest = Some(soonest.map_or(at, |soonest: Instant| soonest.min(at)));
                continue;
            }
            heeds_bell = true;
            let newest = if source.is_apart(&cursor.uri) {
                cursor.set_apart();
                source.newest_apart()
            } else {
                newest
            };
            if let Some(mut update) = cursor.look((source, viewer), newest) {
                cursor.quiet_until = now + every;
                update.settled = heard(&cursors).unwrap_or_default();
                return Due::Tell(update);
            }
        }
        match soonest {
            None => Due::Nothing,
            Some(at) if heeds_bell => Due::At(at),
            Some(at) => Due::NotBefore(at),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Cursor>> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cursor {
    /// What was remembered of a resource that is counted apart says nothing of that count.
    fn set_apart(&mut self) {
        if !self.apart {
            self.apart = true;
            self.since = 0;
            self.seen = NOWHERE;
        }
    }

    /// Goes on to what the listener is to be told, if that is anything.
    fn look(
        &mut self,
        (source, viewer): (&dyn ResourceSource, &Viewer),
        newest: u64,
    ) -> Option<Update> {
        let after = (self.seen <= newest).then_some(self.seen);
        let revision = match after {
            None => newest,
            Some(seen) if seen == newest => return None,
            Some(seen) => match source.touched(viewer, &self.uri, seen) {
                // The bell is about to ring for it, when it can be read.
                Some(revision) if revision > newest => return None,
                Some(revision) => revision,
                None => {
                    // Nobody has to look there again.
                    self.seen = newest;
                    return None;
                }
            },
        };
        self.seen = revision;
        self.since = self.since.min(revision);
        Some(Update {
            uri: self.uri.clone(),
            after,
            revision,
            settled: 0,
            apart: self.apart,
        })
    }
}

fn heard(cursors: &VecDeque<Cursor>) -> Option<u64> {
    // Who is nowhere was told of nothing.
    let seen = |cursor: &Cursor| match cursor.seen {
        NOWHERE => 0,
        seen => seen,
    };
    let of_revisions = cursors.iter().filter(|cursor| !cursor.apart);
    of_revisions.map(seen).min()
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::protocol::{Resource, ResourceContents, ResourceTemplate};
    use crate::registry::BoxFuture;

    /// Resources of which those with a `u` change now and then; remembers from where on it was asked.
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

        fn bell(&self) -> watch::Receiver<u64> {
            self.bell.subscribe()
        }

        fn is_apart(&self, uri: &str) -> bool {
            uri.starts_with("apart")
        }

        fn newest_apart(&self) -> u64 {
            3
        }

        fn touched(&self, _: &Viewer, uri: &str, after: u64) -> Option<u64> {
            if self.is_apart(uri) {
                return (after < 3).then_some(3);
            }
            self.asked.lock().unwrap().push(after);
            let newest = self.changed.iter().copied().max()?;
            (uri.starts_with('u') && newest > after).then_some(newest)
        }
    }

    const EVERY: Duration = Duration::from_millis(500);

    /// What is told of `u`.
    fn told(after: Option<u64>, revision: u64, settled: u64) -> Due {
        Due::Tell(Update {
            uri: "u".to_owned(),
            after,
            revision,
            settled,
            apart: false,
        })
    }

    #[test]
    fn what_was_looked_through_is_not_looked_through_again() {
        let interests = Interests::default();
        interests.add("u", 3).unwrap();
        interests.add("v", 4).unwrap();
        assert_eq!(interests.heard(), Some(3));
        let source = Source::at(9, &[5]);
        let now = Instant::now();
        let due = |later| interests.due((&source, &Viewer::default()), now + later, EVERY);
        assert_eq!(due(Duration::ZERO), told(Some(3), 5, 5));
        assert_eq!(due(Duration::ZERO), Due::At(now + EVERY));
        assert_eq!(interests.heard(), Some(5), "nobody has looked at u again");
        assert_eq!(due(EVERY), Due::Nothing);
        assert_eq!(interests.heard(), Some(9));
        assert_eq!(*source.asked.lock().unwrap(), [4, 3, 5]);
        interests.rewind(2);
        assert_eq!(interests.heard(), Some(3), "not behind where it began");
        assert_eq!(due(EVERY), told(Some(3), 5, 5));
    }

    #[test]
    fn a_burst_costs_one_look_and_the_bell_is_not_heeded_until_there_is_something_to_tell() {
        let interests = Interests::default();
        interests.add("u", 0).unwrap();
        let now = Instant::now();
        for newest in 1..100 {
            let source = Source::at(newest, &[newest]);
            let due = interests.due((&source, &Viewer::default()), now, EVERY);
            match newest {
                1 => assert_eq!(due, told(Some(0), 1, 1)),
                _ => assert_eq!(due, Due::NotBefore(now + EVERY)),
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
        while let Due::Tell(update) = interests.due((&source, &Viewer::default()), now, EVERY) {
            uris.push(update.uri);
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
            (interests.heard(), interests.heard_to_remember()),
            (Some(0), Some(NOWHERE))
        );
        interests.rewind(3);
        let source = Source::at(9, &[]);
        let now = Instant::now();
        assert_eq!(
            interests.due((&source, &Viewer::default()), now, EVERY),
            told(None, 9, 9)
        );
        assert_eq!(
            interests.due((&source, &Viewer::default()), now + EVERY, EVERY),
            Due::Nothing
        );
        // The database went back while we were looking.
        let source = Source::at(5, &[2]);
        assert_eq!(
            interests.due((&source, &Viewer::default()), now + EVERY, EVERY),
            told(None, 5, 5)
        );
        interests.lose();
        assert_eq!(
            interests.due((&source, &Viewer::default()), now + 2 * EVERY, EVERY),
            told(None, 5, 5)
        );
    }

    #[test]
    fn a_revision_that_the_bell_has_not_rung_for_is_told_when_it_has() {
        let interests = Interests::default();
        interests.add("u", 3).unwrap();
        let (source, now) = (Source::at(4, &[5]), Instant::now());
        assert_eq!(
            interests.due((&source, &Viewer::default()), now, EVERY),
            Due::Nothing
        );
        source.bell.send_replace(5);
        assert_eq!(
            interests.due((&source, &Viewer::default()), now, EVERY),
            told(Some(3), 5, 5)
        );
    }

    #[test]
    fn what_is_counted_apart_moves_no_revision() {
        let interests = Interests::default();
        interests.add("apart", Since::Apart(2)).unwrap();
        assert_eq!(interests.heard(), None);
        interests.add("u", 5).unwrap();
        let (source, now) = (Source::at(9, &[]), Instant::now());
        let due = || interests.due((&source, &Viewer::default()), now, EVERY);
        let Due::Tell(update) = due() else {
            panic!("it has moved");
        };
        assert!(update.apart && update.uri == "apart");
        assert_eq!((update.after, update.revision), (Some(2), 3));
        assert_eq!(due(), Due::At(now + EVERY));
        interests.rewind(0);
        assert_eq!(
            interests.heard(),
            Some(5),
            "a revision that the client names"
        );

        // After a restart nobody knows what was told of it.
        let interests = Interests::default();
        interests.restore("apart", 70, Some(80)).unwrap();
        let now = Instant::now();
        let Due::Tell(update) = interests.due((&source, &Viewer::default()), now, EVERY) else {
            panic!("it is told once");
        };
        assert_eq!((update.apart, update.after), (true, None));
        assert_eq!(interests.heard_to_remember(), None);
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
