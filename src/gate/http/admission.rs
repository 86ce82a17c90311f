//! Limits open connections: how many unauthenticated ones each source has, and which of them ends for a new one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::penalties::{Offence, Penalties};
use super::repeated_header::RepeatedHeader;
use gatewren_base::sys::lock;

/// The maximum number of bodies of unauthenticated requests that are read at once on one connection; the guard
/// rejects more. HTTP/2 would permit a hundred of 4 KiB each.
const ANONYMOUS_BODIES: u32 = 2;

/// From this many unauthenticated connections on, a new one is served in a way that needs less memory.
const CROWD: usize = 256;

/// A source's rank is its share of its own limit, in parts of this number.
const WHOLE: u64 = 1 << 16;

/// The limits of open connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Open connections, authenticated or not; at the limit a new one waits until another ends.
    pub total: u32,
    /// Unauthenticated connections from one source; at the limit the oldest of them ends.
    pub of_source: u32,
}

impl ConnectionLimits {
    /// From this many open connections on, each new one ends an old unauthenticated one and gets short timeouts.
    fn pressure(self) -> u32 {
        self.total - self.total / 4
    }
}

/// The source of a connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionSource {
    /// The unit of counting: an IPv4 address, or an IPv6 network of 64 bits.
    pub prefix: IpAddr,
    /// Loopback or a trusted proxy: many clients share it, so it is never penalised.
    pub is_shared: bool,
}

/// All open connections. Clones share the same registry.
#[derive(Clone, Default)]
pub struct Connections(Arc<Registry>);

#[derive(Default)]
struct Registry {
    open: watch::Sender<u32>,
    anonymous: Mutex<Anonymous>,
    penalties: Mutex<Penalties>,
}

/// An open connection, counted until it is dropped.
pub struct OpenConnection(ConnectionState);

/// The client's state on one connection. Clones share the state of the connection.
#[derive(Clone)]
pub struct ConnectionState(Arc<ConnectionRecord>);

struct ConnectionRecord {
    registry: Arc<Registry>,
    source: ConnectionSource,
    number: u64,
    /// It was admitted above the pressure limit.
    is_under_pressure: bool,
    /// It was admitted when there were many unauthenticated connections.
    is_in_crowd: bool,
    has_identity: AtomicBool,
    ended: Arc<Notify>,
    bodies: AtomicU32,
    authorization: RepeatedHeader,
}

impl Connections {
    /// Whether new connections from this source are closed at once, because of earlier offences.
    pub fn is_penalised(&self, source: ConnectionSource) -> bool {
        !source.is_shared && self.0.penalties().is_active(source.prefix, Instant::now())
    }

    /// Admits a connection. At a limit, the oldest unauthenticated connection ends: at the limit of a source, one
    /// of that source; near the total limit, one of the source with the largest share of its own limit. At the
    /// total limit this waits for a free slot. Cancel safe.
    pub async fn admit(
        &self,
        source: ConnectionSource,
        limits: ConnectionLimits,
    ) -> OpenConnection {
        let mut open = self.0.open.subscribe();
        loop {
            if let Some(connected) = self.enter(source, limits) {
                return connected;
            }
            // The sender is owned by `self`, so this ends only when there is room.
            let _ = open.wait_for(|open| *open < limits.total).await;
        }
    }

    fn enter(&self, source: ConnectionSource, limits: ConnectionLimits) -> Option<OpenConnection> {
        let mut anonymous = self.0.anonymous();
        let open = *self.0.open.borrow();
        let is_under_pressure = open >= limits.pressure();
        if anonymous.count(source.prefix) >= limits.of_source {
            anonymous.end_oldest_of(source.prefix);
            self.0.penalise(source, Offence::Displaced);
        } else if is_under_pressure {
            anonymous.end_oldest_of_fullest();
        }
        if open >= limits.total {
            return None;
        }
        // The count grows only here, under the lock.
        self.0.open.send_modify(|open| *open += 1);
        let ended = Arc::new(Notify::new());
        let is_in_crowd = anonymous.total >= CROWD;
        let number = anonymous.add(source.prefix, limits.of_source, &ended);
        Some(OpenConnection(ConnectionState(Arc::new(
            ConnectionRecord {
                registry: self.0.clone(),
                source,
                number,
                is_under_pressure,
                is_in_crowd,
                has_identity: AtomicBool::new(false),
                ended,
                bodies: AtomicU32::new(0),
                authorization: RepeatedHeader::default(),
            },
        ))))
    }
}

impl Registry {
    fn anonymous(&self) -> MutexGuard<'_, Anonymous> {
        lock(&self.anonymous)
    }

    fn penalties(&self) -> MutexGuard<'_, Penalties> {
        lock(&self.penalties)
    }

    fn penalise(&self, source: ConnectionSource, offence: Offence) {
        if !source.is_shared {
            let now = Instant::now();
            self.penalties().add(source.prefix, offence, now);
        }
    }
}

impl OpenConnection {
    /// Returns the client's state on this connection.
    pub fn presence(&self) -> &ConnectionState {
        &self.0
    }

    /// Waits until this connection must end for another one.
    pub async fn wait_for_eviction(&self) {
        self.0.0.ended.notified().await;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let ConnectionState(known) = &self.0;
        if !known.has_identity.load(Relaxed) {
            let mut anonymous = known.registry.anonymous();
            anonymous.remove(known.source.prefix, known.number);
        }
        known
            .registry
            .open
            .send_modify(|open| *open = open.saturating_sub(1));
    }
}

impl ConnectionState {
    /// Marks the connection as authenticated, after a request with an agent's token or the owner's session.
    /// Penalties spare its source for a day.
    pub fn identify(&self) {
        let Self(known) = self;
        if known.has_identity.swap(true, Relaxed) {
            return;
        }
        let mut anonymous = known.registry.anonymous();
        anonymous.remove(known.source.prefix, known.number);
        drop(anonymous);
        let mut penalties = known.registry.penalties();
        penalties.spare(known.source.prefix, Instant::now());
    }

    /// Whether the connection is authenticated.
    pub fn is_identified(&self) -> bool {
        self.0.has_identity.load(Relaxed)
    }

    /// The last `Authorization` of this connection that belonged to an agent, with the digest of its token.
    pub fn authorization(&self) -> &RepeatedHeader {
        &self.0.authorization
    }

    /// Whether its client gets short timeouts: it is unauthenticated and was admitted above the pressure limit.
    pub(super) fn is_under_pressure(&self) -> bool {
        self.0.is_under_pressure && !self.is_identified()
    }

    /// Whether there were many unauthenticated connections when it was admitted.
    pub(super) fn is_in_crowd(&self) -> bool {
        self.0.is_in_crowd
    }

    /// Records a request with invalid credentials.
    pub fn note_failed_authentication(&self) {
        self.penalise(Offence::FailedAuthentication);
    }

    pub(super) fn penalise(&self, offence: Offence) {
        self.0.registry.penalise(self.0.source, offence);
    }

    /// Reserves a slot for reading the body of an unauthenticated request; `None` when all are taken.
    pub fn anonymous_body(&self) -> Option<AnonymousBody> {
        let bodies = &self.0.bodies;
        let enter = |count: u32| (count < ANONYMOUS_BODIES).then_some(count + 1);
        let entered = bodies.fetch_update(Relaxed, Relaxed, enter);
        entered.ok().map(|_| AnonymousBody(self.clone()))
    }
}

/// A slot for a body that is being read; released on drop.
pub struct AnonymousBody(ConnectionState);

impl Drop for AnonymousBody {
    fn drop(&mut self) {
        self.0.0.bodies.fetch_sub(1, Relaxed);
    }
}

/// The unauthenticated connections, by source.
#[derive(Default)]
struct Anonymous {
    next: u64,
    /// The total number.
    total: usize,
    sources: HashMap<IpAddr, SourceConnections>,
    /// The last entry is the source with the largest share of its limit; among equals, the one with the oldest
    /// connection.
    ranks: BTreeSet<Rank>,
}

type Rank = (u64, Reverse<u64>, IpAddr);

struct SourceConnections {
    limit: u32,
    /// By connection number, so the oldest is first.
    ends: BTreeMap<u64, Arc<Notify>>,
}

impl SourceConnections {
    fn rank(&self, prefix: IpAddr) -> Option<Rank> {
        let (oldest, _) = self.ends.first_key_value()?;
        let count = u64::try_from(self.ends.len()).unwrap_or(u64::MAX);
        let share = count.saturating_mul(WHOLE) / u64::from(self.limit.max(1));
        Some((share, Reverse(*oldest), prefix))
    }
}

impl Anonymous {
    fn count(&self, prefix: IpAddr) -> u32 {
        let count = self.sources.get(&prefix).map_or(0, |held| held.ends.len());
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn add(&mut self, prefix: IpAddr, limit: u32, ended: &Arc<Notify>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.change(prefix, |held| {
            held.limit = limit;
            held.ends.insert(number, ended.clone());
        });
        number
    }

    fn remove(&mut self, prefix: IpAddr, number: u64) {
        self.change(prefix, |held| drop(held.ends.remove(&number)));
    }

    fn end_oldest_of(&mut self, prefix: IpAddr) {
        let oldest = self.change(prefix, |held| held.ends.pop_first());
        if let Some((_, ended)) = oldest {
            ended.notify_one();
        }
    }

    fn end_oldest_of_fullest(&mut self) {
        if let Some((.., prefix)) = self.ranks.last().copied() {
            self.end_oldest_of(prefix);
        }
    }

    fn change<T>(&mut self, prefix: IpAddr, act: impl FnOnce(&mut SourceConnections) -> T) -> T {
        let held = self.sources.entry(prefix);
        let held = held.or_insert_with(|| SourceConnections {
            limit: 1,
            ends: BTreeMap::new(),
        });
        if let Some(rank) = held.rank(prefix) {
            self.ranks.remove(&rank);
        }
        let before = held.ends.len();
        let done = act(held);
        self.total = self.total + held.ends.len() - before;
        match held.rank(prefix) {
            Some(rank) => drop(self.ranks.insert(rank)),
            None => drop(self.sources.remove(&prefix)),
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn source(last: u8) -> ConnectionSource {
        let prefix = IpAddr::from([192, 0, 2, last]);
        ConnectionSource {
            prefix,
            is_shared: false,
        }
    }

    fn limits(total: u32, of_source: u32) -> ConnectionLimits {
        ConnectionLimits { total, of_source }
    }

    /// Whether the connection was displaced.
    async fn has_to_end(connected: &OpenConnection) -> bool {
        let wait = Duration::from_millis(1);
        timeout(wait, connected.wait_for_eviction()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_a_source_ends_at_the_limit_of_that_source() {
        let connections = Connections::default();
        let other = connections.admit(source(2), limits(100, 2)).await;
        let first = connections.admit(source(1), limits(100, 2)).await;
        let second = connections.admit(source(1), limits(100, 2)).await;
        assert!(!has_to_end(&first).await);
        let third = connections.admit(source(1), limits(100, 2)).await;
        assert!(has_to_end(&first).await);
        for stays in [&other, &second, &third] {
            assert!(!has_to_end(stays).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_an_identity_neither_counts_nor_ends() {
        let connections = Connections::default();
        let agent = connections.admit(source(1), limits(8, 2)).await;
        agent.presence().identify();
        agent.presence().identify();
        let mut strangers = Vec::new();
        for _ in 0..20 {
            let next = connections.admit(source(1), limits(8, 2)).await;
            strangers.push(next);
            while strangers.len() > 2 {
                let oldest = strangers.remove(0);
                assert!(has_to_end(&oldest).await);
            }
        }
        assert!(!has_to_end(&agent).await);
    }

    #[tokio::test(start_paused = true)]
    async fn near_the_total_the_fullest_source_makes_room_and_a_lone_client_stays() {
        let connections = Connections::default();
        let lone = connections.admit(source(9), limits(8, 4)).await;
        let mut flood = Vec::new();
        for at in 0..100 {
            let next = connections.admit(source(at % 3), limits(8, 4)).await;
            assert_eq!(next.presence().is_under_pressure(), flood.len() >= 5);
            flood.push(next);
            let mut ended = Vec::new();
            for (at, one) in flood.iter().enumerate() {
                if has_to_end(one).await {
                    ended.push(at);
                }
            }
            for at in ended.into_iter().rev() {
                drop(flood.remove(at));
            }
        }
        assert_eq!(flood.len(), 5, "the last quarter is for clients with one");
        assert!(!has_to_end(&lone).await);
        lone.presence().identify();
        assert!(!lone.presence().is_under_pressure());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_one_waits_when_all_have_an_identity() {
        let connections = Connections::default();
        let mut agents = Vec::new();
        for _ in 0..2 {
            let agent = connections.admit(source(1), limits(2, 1)).await;
            agent.presence().identify();
            agents.push(agent);
        }
        let mut waits = Box::pin(connections.admit(source(2), limits(2, 1)));
        let wait = Duration::from_millis(10);
        assert!(timeout(wait, &mut waits).await.is_err());
        drop(agents.pop());
        drop(waits.await);
        let anonymous = connections.0.anonymous();
        assert!(anonymous.sources.is_empty() && anonymous.ranks.is_empty());
        assert_eq!(*connections.0.open.borrow(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_is_displaced_again_and_again_is_penalised_unless_it_is_shared() {
        let connections = Connections::default();
        let shared = ConnectionSource {
            is_shared: true,
            ..source(2)
        };
        for _ in 0..100 {
            drop(connections.admit(source(1), limits(100, 1)).await);
        }
        assert!(!connections.is_penalised(source(1)), "none was displaced");
        let mut held = Vec::new();
        for from in [source(1), shared] {
            for _ in 0..20 {
                held.push(connections.admit(from, limits(100, 1)).await);
            }
        }
        assert!(connections.is_penalised(source(1)));
        assert!(!connections.is_penalised(shared));
        assert!(!connections.is_penalised(source(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn two_bodies_without_an_identity_are_read_at_once() {
        let connected = Connections::default().admit(source(1), limits(2, 2)).await;
        let presence = connected.presence();
        let (first, second) = (presence.anonymous_body(), presence.anonymous_body());
        assert!(first.is_some() && second.is_some());
        assert!(presence.anonymous_body().is_none());
        drop(first);
        assert!(presence.anonymous_body().is_some());
    }
}
