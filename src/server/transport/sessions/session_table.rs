//! The table of sessions in memory: looked up by id, limited in number, and expired by age.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::session::Session;
use super::session_token::SessionClaims;
use gatewren_base::config::{LimitSettings, LiveSettings};
use gatewren_wire::protocol::LogSeverity;

/// All sessions. The table is in memory, so that a call needs no disk access to find its session.
pub struct SessionMap {
    live: LiveSettings,
    /// By the complete signed id; every id in this map has been verified.
    by_id: HashMap<Box<str>, Uuid>,
    by_name: HashMap<Uuid, Entry>,
    /// Whether there is a store.
    is_stored: bool,
    /// Sessions that have ended here, as long as the store may still have them.
    ending: HashSet<Uuid>,
}

enum Entry {
    Awake(Arc<Session>),
    Asleep(DormantSession),
}

/// A session from before the last restart. Its client has not reconnected yet.
pub struct DormantSession {
    /// Its agent.
    pub agent: String,
    /// When it was last used.
    pub used: Instant,
    /// The lowest severity of log messages that its client wants.
    pub level: Option<LogSeverity>,
    /// Its subscriptions.
    pub subscriptions: Vec<DormantSubscription>,
}

/// A subscription from before the restart.
pub struct DormantSubscription {
    /// The resource.
    pub uri: String,
    /// The revision at which it was created.
    pub since: u64,
    /// The last revision that was reported; `None` if it is of a history that no longer exists.
    pub seen: Option<u64>,
}

/// The maximum number of sessions is reached, and all of them are in use.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionLimitReached;

impl SessionMap {
    /// Creates an empty table. `is_stored` says whether the sessions are in a store too.
    pub fn new(live: LiveSettings, is_stored: bool) -> Self {
        Self {
            live,
            is_stored,
            by_id: HashMap::new(),
            by_name: HashMap::new(),
            ending: HashSet::new(),
        }
    }

    /// Adds a session from before the restart.
    pub fn remember(&mut self, name: Uuid, asleep: DormantSession) {
        self.by_name.insert(name, Entry::Asleep(asleep));
    }

    /// Adds a session. At the limit, it replaces the session that was idle for longest and returns the name of that
    /// one. Refusing instead would block an agent for half an hour if its clients never close their sessions.
    pub fn add(&mut self, session: Arc<Session>) -> Result<Option<Uuid>, SessionLimitReached> {
        let agent = session.claims.agent.clone();
        let of_agent = self.by_name.values().filter(|e| e.agent() == agent).count();
        let (most_of_agent, most) = self.live.read(|settings| {
            let limits = &settings.limits;
            (limits.max_sessions_per_agent, limits.max_sessions)
        });
        let evicted = if of_agent >= most_of_agent as usize {
            Some(
                self.longest_rested(Some(&agent))
                    .ok_or(SessionLimitReached)?,
            )
        } else if self.by_name.len() >= most as usize {
            Some(self.longest_rested(None).ok_or(SessionLimitReached)?)
        } else {
            None
        };
        if let Some(name) = evicted {
            self.remove(name);
        }
        self.insert(session);
        Ok(evicted)
    }

    /// Returns an active session of this agent and marks it as used. An expired session, or another agent's, is not
    /// found.
    pub fn awake(&self, id: &str, agent: &str) -> Option<Arc<Session>> {
        let entry = self.by_name.get(self.by_id.get(id)?)?;
        let Entry::Awake(session) = entry else {
            return None;
        };
        let good = entry.agent() == agent && !self.is_over(entry);
        good.then(|| session.touch())?;
        Some(session.clone())
    }

    /// The same for a verified id of a session from before the restart.
    pub fn wake(&mut self, id: &str, claims: SessionClaims, agent: &str) -> Option<Arc<Session>> {
        let name = claims.session;
        let entry = self.by_name.get(&name)?;
        if entry.agent() != agent || claims.agent != agent || self.is_over(entry) {
            return None;
        }
        if let Entry::Asleep(asleep) = entry {
            let session = Session::new(id, claims);
            session.mark_stored();
            if let Some(level) = asleep.level {
                session.set_level(level);
            }
            for DormantSubscription { uri, since, seen } in &asleep.subscriptions {
                // They were within the limit when they were created.
                let _ = session.interests.restore(uri, *since, *seen);
            }
            self.insert(session);
        }
        self.awake(id, agent)
    }

    /// Adds a session that the store has and this table does not, unless it is ending here.
    pub fn find_elsewhere(&mut self, name: Uuid, asleep: DormantSession) {
        if self.ending.contains(&name) {
            return;
        }
        if self.by_name.contains_key(&name) {
            self.note_stored_use(name, asleep.used.elapsed(), Duration::ZERO);
        } else {
            self.remember(name, asleep);
        }
    }

    /// Forgets the ended sessions that the store has deleted: `is_stored` says which it still has.
    pub fn forget_ended(&mut self, is_stored: impl Fn(&Uuid) -> bool) {
        self.ending.retain(is_stored);
    }

    /// Returns an active session by its name.
    pub fn get(&self, name: Uuid) -> Option<Arc<Session>> {
        match self.by_name.get(&name)? {
            Entry::Awake(session) => Some(session.clone()),
            Entry::Asleep(_) => None,
        }
    }

    /// The sessions that the store has.
    pub fn stored(&self) -> HashSet<Uuid> {
        let is_stored = |entry: &Entry| match entry {
            Entry::Awake(session) => session.is_stored(),
            Entry::Asleep(_) => true,
        };
        let stored = self.by_name.iter().filter(|(_, entry)| is_stored(entry));
        stored.map(|(name, _)| *name).collect()
    }

    /// Records the last use of a session that the store has: this long ago, or up to `grace` later.
    pub fn note_stored_use(&mut self, name: Uuid, idle: Duration, grace: Duration) {
        // A time before the boot of the host cannot always be represented.
        let Some(at) = Instant::now().checked_sub(idle) else {
            return;
        };
        match self.by_name.get_mut(&name) {
            Some(Entry::Awake(session)) => session.note_stored_use(at, grace),
            Some(Entry::Asleep(asleep)) => {
                asleep.used = asleep.used.max((at + grace).min(Instant::now()));
            }
            None => {}
        }
    }

    /// Sets the level that a session's client has set at another front.
    pub fn set_level(&mut self, name: Uuid, level: LogSeverity) {
        match self.by_name.get_mut(&name) {
            Some(Entry::Awake(session)) => session.set_level(level),
            Some(Entry::Asleep(asleep)) => asleep.level = Some(level),
            None => {}
        }
    }

    /// Adds a subscription that a session has made at another front.
    pub fn subscribe(&mut self, name: Uuid, uri: &str, since: u64) {
        match self.by_name.get_mut(&name) {
            Some(Entry::Awake(session)) => {
                // It was within the limit there.
                let _ = session.interests.restore(uri, since, Some(since));
            }
            Some(Entry::Asleep(asleep))
                if asleep.subscriptions.iter().all(|known| known.uri != uri) =>
            {
                asleep.subscriptions.push(DormantSubscription {
                    uri: uri.to_owned(),
                    since,
                    seen: Some(since),
                });
            }
            Some(Entry::Asleep(_)) | None => {}
        }
    }

    /// Removes a subscription that a session has ended at another front.
    pub fn unsubscribe(&mut self, name: Uuid, uri: &str) {
        match self.by_name.get_mut(&name) {
            Some(Entry::Awake(session)) => session.interests.remove(uri),
            Some(Entry::Asleep(asleep)) => asleep.subscriptions.retain(|known| known.uri != uri),
            None => {}
        }
    }

    /// Ends a session with everything it has in progress; returns false if there is none of this name.
    pub fn remove(&mut self, name: Uuid) -> bool {
        let removed = self.take(name);
        if let Some(Entry::Awake(session)) = &removed {
            session.end();
        }
        removed.is_some()
    }

    /// The same, if the session belongs to this agent.
    pub fn remove_of(&mut self, agent: &str, name: Uuid) -> bool {
        let theirs = self.by_name.get(&name);
        theirs.is_some_and(|entry| entry.agent() == agent) && self.remove(name)
    }

    /// The number of sessions of an agent, or of all agents, that have not expired.
    pub fn count(&self, agent: Option<&str>) -> usize {
        let all = self.by_name.values();
        let counted = all.filter(|entry| {
            agent.is_none_or(|agent| entry.agent() == agent) && !self.is_over(entry)
        });
        counted.count()
    }

    /// Whether a session of this name has not expired.
    pub fn has(&self, name: Uuid) -> bool {
        let entry = self.by_name.get(&name);
        entry.is_some_and(|entry| !self.is_over(entry))
    }

    /// An agent's sessions that have not expired: name, idle time, and the revision, if the client has reconnected
    /// since the start.
    pub fn of(&self, agent: &str) -> Vec<(Uuid, Option<Duration>, Option<String>)> {
        let all = self.by_name.iter();
        let theirs = all.filter(|(_, entry)| entry.agent() == agent && !self.is_over(entry));
        theirs
            .map(|(name, entry)| {
                let revision = match entry {
                    Entry::Awake(session) => Some(session.claims.version().as_str().to_owned()),
                    Entry::Asleep(_) => None,
                };
                (*name, entry.idle(), revision)
            })
            .collect()
    }

    fn is_over(&self, entry: &Entry) -> bool {
        self.live.read(|settings| entry.is_over(&settings.limits))
    }

    /// Ends the sessions that were idle for too long; returns their names.
    pub fn remove_rested(&mut self) -> Vec<Uuid> {
        let settings = self.live.now();
        let over = self.names_where(|entry| entry.is_over(&settings.limits));
        for name in &over {
            self.remove(*name);
        }
        over
    }

    /// Removes the sessions of agents without access; returns their names. Their calls in progress are ended by the
    /// guard, which sends the agent the reason.
    pub fn forget_strangers(&mut self, is_admitted: impl Fn(&str) -> bool) -> Vec<Uuid> {
        let over = self.names_where(|entry| !is_admitted(entry.agent()));
        for name in &over {
            self.take(*name);
        }
        over
    }

    /// Marks every subscription's history as lost.
    pub fn lose(&mut self) {
        for entry in self.by_name.values_mut() {
            match entry {
                Entry::Awake(session) => session.interests.lose(),
                Entry::Asleep(asleep) => {
                    for subscription in &mut asleep.subscriptions {
                        subscription.seen = None;
                    }
                }
            }
        }
    }

    /// The sessions that were used since the last time: name, idle time, and the last reported revision.
    pub fn uses(&self) -> Vec<(Uuid, Duration, Option<u64>)> {
        let awake = self.by_name.iter().filter_map(|(name, entry)| match entry {
            Entry::Awake(session) => Some((name, session)),
            Entry::Asleep(_) => None,
        });
        awake
            .filter_map(|(name, s)| {
                Some((*name, s.use_to_note()?, s.interests.revision_to_store()))
            })
            .collect()
    }

    fn insert(&mut self, session: Arc<Session>) {
        let name = session.claims.session;
        self.by_id.insert(session.id.clone(), name);
        self.by_name.insert(name, Entry::Awake(session));
    }

    fn take(&mut self, name: Uuid) -> Option<Entry> {
        let taken = self.by_name.remove(&name)?;
        if let Entry::Awake(session) = &taken {
            self.by_id.remove(&session.id);
        }
        if self.is_stored {
            self.ending.insert(name);
        }
        Some(taken)
    }

    fn names_where(&self, matches: impl Fn(&Entry) -> bool) -> Vec<Uuid> {
        let matching = self.by_name.iter().filter(|(_, entry)| matches(entry));
        matching.map(|(name, _)| *name).collect()
    }

    fn longest_rested(&self, agent: Option<&str>) -> Option<Uuid> {
        let theirs = |entry: &Entry| agent.is_none_or(|agent| entry.agent() == agent);
        let mut rested = self.by_name.iter().filter(|(_, entry)| theirs(entry));
        let mut longest = None;
        for (name, entry) in &mut rested {
            let Some(idle) = entry.idle() else { continue };
            if longest.is_none_or(|(most, _)| idle > most) {
                longest = Some((idle, *name));
            }
        }
        longest.map(|(_, name)| name)
    }
}

impl Entry {
    fn agent(&self) -> &str {
        match self {
            Self::Awake(session) => &session.claims.agent,
            Self::Asleep(asleep) => &asleep.agent,
        }
    }

    fn idle(&self) -> Option<Duration> {
        match self {
            Self::Awake(session) => session.idle(),
            Self::Asleep(asleep) => Some(asleep.used.elapsed()),
        }
    }

    /// Whether it was unused for too long. For a session from before the restart it is unknown whether it was ever
    /// used, so the longer limit applies.
    fn is_over(&self, limits: &LimitSettings) -> bool {
        let bound = match self {
            Self::Awake(session) if !session.was_used() => {
                limits.session_unused.min(limits.session_idle)
            }
            _ => limits.session_idle,
        };
        self.idle().is_some_and(|idle| idle >= bound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::session_table::*;
    use gatewren_base::config::Settings;
    use gatewren_wire::protocol::Version;

    fn new_table(per_agent: u32, all: u32) -> SessionMap {
        let mut settings = Settings::default();
        settings.limits.max_sessions_per_agent = per_agent;
        settings.limits.max_sessions = all;
        SessionMap::new(settings.into(), false)
    }

    fn session(agent: &str) -> Arc<Session> {
        let claims = SessionClaims::new(agent, Version::V2025_11_25, &serde_json::Map::new());
        Session::new(&claims.session.to_string(), claims)
    }

    async fn a_moment_later() {
        tokio::time::advance(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn at_an_agents_bound_its_longest_rested_session_makes_room() {
        let mut known = new_table(2, 10);
        let (first, second, theirs) = (session("a"), session("a"), session("b"));
        for session in [&theirs, &first, &second] {
            assert_eq!(known.add(session.clone()), Ok(None));
            a_moment_later().await;
        }
        assert!(known.awake(&first.id, "a").is_some());
        assert_eq!(known.add(session("a")), Ok(Some(second.claims.session)));
        assert!(*second.watch_end().borrow());
        assert!(known.awake(&second.id, "a").is_none());
        assert!(known.awake(&first.id, "a").is_some());
        assert!(known.awake(&theirs.id, "b").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_bound_of_all_the_longest_rested_makes_room_and_none_that_is_in_use() {
        let mut known = new_table(10, 2);
        let (first, second) = (session("a"), session("b"));
        known.add(first.clone()).unwrap();
        a_moment_later().await;
        known.add(second.clone()).unwrap();
        let _stream = first.open_stream();
        assert_eq!(known.add(session("c")), Ok(Some(second.claims.session)));
        let newest = session("c");
        known.add(newest.clone()).unwrap();
        let _stream = newest.open_stream();
        assert_eq!(known.add(session("c")), Err(SessionLimitReached));
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_before_the_restart_counts_and_rests_and_ends_like_the_others() {
        let mut known = new_table(10, 1);
        let claims = SessionClaims::new("a", Version::V2025_06_18, &serde_json::Map::new());
        let asleep = || DormantSession {
            agent: "a".to_owned(),
            used: Instant::now(),
            level: None,
            subscriptions: Vec::new(),
        };
        known.remember(claims.session, asleep());
        assert!(known.wake("id", claims.clone(), "b").is_none());
        assert_eq!(known.add(session("b")), Ok(Some(claims.session)));
        assert!(known.wake("id", claims.clone(), "a").is_none());

        known.remember(claims.session, asleep());
        tokio::time::advance(LimitSettings::default().session_idle).await;
        assert!(known.wake("id", claims.clone(), "a").is_none());
        assert!(known.remove_rested().contains(&claims.session));
        assert!(!known.remove(claims.session));
    }
}
