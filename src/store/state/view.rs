//! The state as agents see it: each has a view that reveals nothing beyond its reach.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::watch;

use super::blame::Blame;
use super::changes::{RevisionsSince, TimeCursor};
use super::cursor::RevisionQuery;
use super::document::Document;
use super::error::StateError;
use super::history::History;
use super::pointer::Pointer;
use super::store::State;
use super::visibility::{Visibility, VisibleExtent};
use super::visible_value::VisibleValue;
use gatewren_base::config::Reach;
use gatewren_base::sys::lock;

/// The number of reaches for which the newest visible revision is cached; more than a host has spaces. Above it the
/// oldest entry is dropped and later computed again from the revisions in memory.
const MAX_KNOWN: usize = 64;

/// The state, which agents see through views of it; clones share it.
#[derive(Debug, Clone)]
pub struct StateViews {
    state: State,
    known: Arc<Mutex<VecDeque<KnownVisibility>>>,
}

/// What is known of the revisions that are visible with a reach.
#[derive(Debug)]
struct KnownVisibility {
    reach: Reach,
    /// The revisions up to this one were checked.
    looked: u64,
    /// The newest of them that is visible.
    newest: u64,
}

/// The state as one agent sees it.
///
/// Its newest revision is the newest that changed anything visible. Changes outside the view move neither a number
/// nor a time in it. Only a gap between two of its revisions reveals that there were others in between.
#[derive(Debug, Clone)]
pub struct StateView {
    views: StateViews,
    visibility: Visibility,
}

impl StateViews {
    /// Returns views of this state.
    pub fn new(state: State) -> Self {
        Self {
            state,
            known: Arc::default(),
        }
    }

    /// Returns the view of this agent with this reach.
    pub fn view_for(&self, agent: &str, reach: &Reach) -> StateView {
        StateView {
            views: self.clone(),
            visibility: Visibility::of(agent, reach),
        }
    }

    /// Wakes on every revision, visible or not.
    pub fn watch_revision(&self) -> watch::Receiver<u64> {
        self.state.watch_revision()
    }

    /// Returns the newest visible revision up to `upto`.
    fn newest(&self, visibility: &Visibility, upto: u64) -> u64 {
        let shared = self.state.shared();
        let mut all = self.lock_known();
        let known = all
            .iter_mut()
            .find(|known| known.reach == *visibility.reach());
        let newest = match &known {
            Some(known) if known.looked <= upto => {
                let newer = known.looked..=upto;
                let newer = shared.newest_visible_change(visibility, &Pointer::root(), newer);
                newer.unwrap_or(known.newest)
            }
            // Also when another program cut the log, and lower numbers follow.
            _ => shared.newest_visible(visibility, 0..=upto),
        };
        if let Some(known) = known {
            (known.looked, known.newest) = (upto, newest);
            return newest;
        }
        if all.len() >= MAX_KNOWN {
            all.pop_front();
        }
        all.push_back(KnownVisibility {
            reach: visibility.reach().clone(),
            looked: upto,
            newest,
        });
        newest
    }

    fn lock_known(&self) -> MutexGuard<'_, VecDeque<KnownVisibility>> {
        lock(&self.known)
    }
}

impl StateView {
    /// Its newest revision.
    pub fn revision(&self) -> u64 {
        let newest = *self.views.state.watch_revision().borrow();
        self.revision_of(newest)
    }

    /// Passes the value at a place and its revision to `show`; `None` if there is no visible value.
    pub fn at<T>(&self, pointer: &Pointer, show: impl FnOnce(&Value, u64) -> T) -> Option<T> {
        let document = self.views.state.document();
        let revision = self.revision_of(document.revision);
        self.part(pointer, &document, |value| show(value, revision))
    }

    /// Like `at`, with the document that contains the value, so that results derived from it can be cached.
    pub fn seen_at<T>(
        &self,
        pointer: &Pointer,
        show: impl FnOnce(VisibleValue<'_>) -> T,
    ) -> Option<T> {
        let document = self.views.state.document();
        let revision = self.revision_of(document.revision);
        let is_whole = self.visibility.extent(pointer) == VisibleExtent::Whole;
        let document_of = is_whole.then_some(&document);
        self.part(pointer, &document, |value| {
            show(VisibleValue {
                value,
                revision,
                document: document_of,
            })
        })
    }

    /// Returns the newest revision after `after` that changed the visible value at a place; `None` if none did.
    ///
    /// For an old `after` it answers like [`State::newest_change`].
    pub fn newest_change(&self, pointer: &Pointer, after: u64) -> Option<u64> {
        if self.visibility.is_whole() {
            return self.views.state.newest_change(pointer, after);
        }
        let newest = self.revision();
        if after >= newest {
            return (after > newest).then_some(newest);
        }
        let shared = self.views.state.shared();
        shared.newest_visible_change(&self.visibility, pointer, after..=newest)
    }

    /// Returns the revisions after `after`, up to `upto`, that touch a place, at most `most`.
    ///
    /// Reads the log from the disk: for some milliseconds, or up to some hundred for a limited view.
    pub fn changes(
        &self,
        after: u64,
        upto: u64,
        scope: &Pointer,
        most: usize,
    ) -> Result<RevisionsSince, StateError> {
        self.views.state.shared().changes(&RevisionQuery {
            after,
            upto: upto.min(self.revision()),
            visibility: &self.visibility,
            scope,
            most,
        })
    }

    /// Returns the cursor for everything that was written at or after a time, in milliseconds since 1970, by its
    /// writers' clocks.
    ///
    /// Reads the log from the disk, for some ten milliseconds.
    pub fn cursor_at(&self, at_ms: u64) -> Result<TimeCursor, StateError> {
        self.views.state.shared().cursor_at(at_ms)
    }

    /// Returns who wrote the value at a place, with at most `most` values below it; `None` if there is no visible
    /// value.
    ///
    /// Reads the whole log from the disk, for up to some hundred milliseconds; call it on a thread that may block.
    pub fn blame(&self, pointer: &Pointer, most: usize) -> Result<Option<Blame>, StateError> {
        let key = self.views.state.shared().author_key().cloned();
        let history = History::open(self.views.state.path())?.proving_with(key);
        let blame = history.visible_blame(&self.visibility, pointer, most)?;
        Ok(blame.map(|blame| Blame {
            revision: self.revision_of(blame.revision),
            ..blame
        }))
    }

    /// Returns how far back the log reaches, only for a view of everything: changes outside a view also cause
    /// trimming.
    pub fn floor(&self, floor: u64) -> Option<u64> {
        self.visibility.is_whole().then_some(floor)
    }

    /// The id that the database was given when it was made.
    pub fn database_id(&self) -> &str {
        self.views.state.database_id()
    }

    /// The newest revision of the view when the document was at `newest`.
    fn revision_of(&self, newest: u64) -> u64 {
        if self.visibility.is_whole() {
            newest
        } else {
            self.views.newest(&self.visibility, newest)
        }
    }

    fn part<T>(
        &self,
        pointer: &Pointer,
        document: &Document,
        show: impl FnOnce(&Value) -> T,
    ) -> Option<T> {
        let value = pointer.get(&document.root);
        match self.visibility.extent(pointer) {
            VisibleExtent::Whole => value.map(show),
            VisibleExtent::Nothing => None,
            VisibleExtent::Part => {
                let part = value.and_then(|value| self.visibility.part(pointer, value));
                part.as_ref().map(show)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::author::{Actor, Author};
    use super::super::changes::Revision;
    use super::*;
    use gatewren_base::config::Space;
    use gatewren_base::sys::Scratch;

    const ALL: &str = "/public/packageData";

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    fn space(container: &str) -> Reach {
        Reach::of(&Space {
            containers: vec![container.parse().unwrap()],
            host: false,
        })
    }

    async fn put(state: &State, author: Author, place: &str, value: Value) -> u64 {
        let put = state.put(&author, &at(place), Some(value)).await;
        put.unwrap()
    }

    fn revisions(view: &StateView, after: u64) -> (Vec<Revision>, u64) {
        match view.changes(after, u64::MAX, &at("/public"), 9).unwrap() {
            RevisionsSince::Revisions {
                revisions,
                upto,
                more: false,
            } => (revisions, upto),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn where_others_write_nothing_moves() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let views = StateViews::new(state.clone());
        let (web, db) = (
            views.view_for("a", &space("web")),
            views.view_for("b", &space("db")),
        );
        let observer = Author::observer;
        put(
            &state,
            observer(),
            ALL,
            json!({"web": {"n": 0}, "db": {"n": 0}}),
        )
        .await;
        let first = put(&state, observer(), &format!("{ALL}/web/n"), json!(1)).await;
        assert_eq!((web.revision(), db.revision()), (first, 1));
        for n in 1..=50 {
            let author = Author::from(Actor::Agent("b".into())).because("call");
            put(&state, author, &format!("{ALL}/db/n"), json!(n)).await;
            put(&state, observer(), "/public/other", json!(n)).await;
            // Only sometimes: revisions that were not checked are checked later.
            if n % 20 == 0 {
                assert_eq!(web.revision(), first);
            }
        }
        assert_eq!(web.newest_change(&at("/public"), 1), Some(first));
        assert_eq!(web.newest_change(&at("/public"), first), None);
        assert_eq!(web.newest_change(&at(&format!("{ALL}/db")), 0), None);
        assert_eq!(revisions(&web, first), (Vec::new(), first));
        let (listed, upto) = revisions(&web, 0);
        assert_eq!((listed.len(), upto), (2, first));
        assert!(!format!("{listed:?}").contains("db"), "{listed:?}");
        // A cursor beyond its newest revision must not reveal how many revisions there are.
        let beyond = web.changes(first + 1, u64::MAX, &at("/public"), 9);
        assert!(matches!(beyond, Ok(RevisionsSince::Resync { upto, .. }) if upto == first));

        let shown = web.at(&at("/public"), |value, revision| (value.clone(), revision));
        let seen = json!({"packageData": {"web": {"n": 1}}});
        assert_eq!(shown, Some((seen, first)));
        assert_eq!(web.at(&at(&format!("{ALL}/db")), |_, _| ()), None);
        assert_eq!(web.at(&at("/public/other"), |_, _| ()), None);
        let last = db.revision();
        assert_eq!(last, state.document().revision - 1);
        assert!(revisions(&db, last - 2).0.iter().all(|r| r.cause.is_none()));
    }

    #[tokio::test]
    async fn who_wrote_it_is_told_of_what_is_seen() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let views = StateViews::new(state.clone());
        put(
            &state,
            Author::observer(),
            ALL,
            json!({"web": {"n": 0}, "db": {"n": 0}}),
        )
        .await;
        let agent = |id: &str| Author::from(Actor::Agent(id.into())).because("call");
        put(&state, agent("b"), &format!("{ALL}/web/n"), json!(1)).await;
        put(&state, agent("b"), &format!("{ALL}/db/n"), json!(1)).await;
        state
            .put(&agent("b"), &at(&format!("{ALL}/db")), None)
            .await
            .unwrap();

        let web = views.view_for("a", &space("web"));
        let blame = web.blame(&at("/public"), 9).unwrap().unwrap();
        let written = blame.leaves[0].written.clone().unwrap();
        assert_eq!(
            (blame.leaves.len(), blame.left_out, blame.revision),
            (1, 0, 2)
        );
        assert_eq!((written.revision, written.actor.as_str()), (2, "agent"));
        assert_eq!((written.cause.clone(), blame.last), (None, Some(written)));
        assert!(web.blame(&at(&format!("{ALL}/db")), 9).unwrap().is_none());
        // For an object that looks empty, the agent must not learn who emptied it.
        let none = views.view_for("c", &space("none")).blame(&at(ALL), 9);
        let none = none.unwrap().unwrap();
        assert!(none.last.is_none() && none.leaves[0].written.is_none());
        let own = views.view_for("b", &space("web")).blame(&at(ALL), 9);
        let own = own.unwrap().unwrap().last.unwrap();
        assert_eq!(own.actor, "agent:b");
        let whole = views.view_for("a", &Reach::everything());
        let whole = whole.blame(&at(ALL), 9).unwrap().unwrap().last.unwrap();
        assert_eq!((whole.actor.as_str(), whole.revision), ("agent:b", 4));
    }

    #[tokio::test]
    async fn more_reaches_than_are_remembered_see_the_same() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let views = StateViews::new(state.clone());
        let view = |n: usize| views.view_for("a", &space(&format!("c{n}")));
        for n in 0..=MAX_KNOWN {
            put(&state, Author::observer(), &format!("{ALL}/c{n}"), json!(n)).await;
        }
        for _ in 0..2 {
            for (n, revision) in (0..=MAX_KNOWN).zip(1..) {
                assert_eq!(view(n).revision(), revision);
            }
        }
        assert_eq!(views.lock_known().len(), MAX_KNOWN);
    }
}
