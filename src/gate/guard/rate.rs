//! Rate limits by address and by agent, and concurrency limits: a slot for each call.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::auth::AgentId;
use gatewren_base::sys::{BurstRate, BurstUsage, lock};

/// The maximum number of keys. At the limit, keys with a whole burst are dropped; if there are none, new keys are
/// refused, so that a flood of addresses does not exhaust memory.
const MAX_KEYS: usize = 16_384;

/// The longest wait in a refusal, in seconds.
const MAX_WAIT_SECONDS: u64 = 3_600;

/// The usage of a rate by each key.
pub struct RateLimiter<K>(Mutex<HashMap<K, BurstUsage>>);

/// Starts without any keys.
impl<K> Default for RateLimiter<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> RateLimiter<K> {
    /// Counts one more of a key at this rate; the error is the number of seconds to wait. If the rate has changed, the
    /// time until the whole burst is available stays.
    pub fn take(&self, rate: BurstRate, key: K, now: Instant) -> Result<(), u64> {
        let mut usages = lock(&self.0);
        if usages.len() >= MAX_KEYS && !usages.contains_key(&key) {
            usages.retain(|_, usage| !usage.is_whole(now));
            if usages.len() >= MAX_KEYS {
                return Err(1);
            }
        }
        let taken = usages.entry(key).or_default().take(rate, now);
        taken.map_err(|wait| {
            let seconds = wait
                .as_secs()
                .saturating_add(u64::from(wait.subsec_nanos() > 0));
            seconds.min(MAX_WAIT_SECONDS)
        })
    }
}

/// A slot of an agent's calls or streams; dropping it frees the slot.
#[derive(Debug)]
pub struct ConcurrencySlot {
    own: Arc<OwnPlaces>,
    all: Arc<AllPlaces>,
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        self.own.taken.fetch_sub(1, Ordering::Relaxed);
        // Before the look at those that wait, which count themselves before they look for a slot: one of both sees the other.
        self.all.taken.fetch_sub(1, Ordering::SeqCst);
        self.own.freed.notify_one();
        if self.all.waiting.load(Ordering::SeqCst) > 0 {
            self.all.freed.notify_waiters();
        }
    }
}

/// The slots of all agents.
#[derive(Debug, Default)]
struct AllPlaces {
    taken: AtomicU32,
    /// Those that wait because all slots are taken, not only those of their agent.
    waiting: AtomicU32,
    freed: Notify,
}

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSlot {
    /// The agent has too many.
    OfAgent,
    /// All agents together have too many.
    OfAll,
}

/// The slots of one agent.
#[derive(Debug, Default)]
struct OwnPlaces {
    taken: AtomicU32,
    waiting: AtomicU32,
    /// Notified for each slot that is freed.
    freed: Notify,
}

/// How many may wait for a slot at once, and how long.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// The maximum for one agent; more are refused at once.
    pub length: u32,
    /// The maximum wait.
    pub time: Duration,
}

/// A position in the queue; dropping it leaves the queue.
struct Turn<'o>(&'o AtomicU32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The maximum number of slots in use.
#[derive(Debug, Clone, Copy)]
pub struct SlotLimits {
    /// By one agent.
    pub own: u32,
    /// By all agents together.
    pub together: u32,
}

impl SlotLimits {
    /// A limit for one agent, without a limit for all.
    pub fn own(own: u32) -> Self {
        let together = u32::MAX;
        Self { own, together }
    }
}

/// Limits the concurrency of each agent and of all agents together.
#[derive(Default)]
pub struct Concurrency {
    all: Arc<AllPlaces>,
    agents: Mutex<HashMap<AgentId, Arc<OwnPlaces>>>,
}

impl Concurrency {
    /// Takes a slot, if fewer than `most` are in use. The map needs no limit: the owner has created all agents.
    ///
    /// # Errors
    /// Whose limit is reached.
    pub fn enter(&self, agent: &AgentId, most: SlotLimits) -> Result<ConcurrencySlot, NoSlot> {
        let mut agents = lock(&self.agents);
        let own = agents.entry(agent.clone()).or_default();
        // The counts grow only here, under the lock.
        if own.taken.load(Ordering::Relaxed) >= most.own {
            return Err(NoSlot::OfAgent);
        }
        if self.all.taken.load(Ordering::SeqCst) >= most.together {
            return Err(NoSlot::OfAll);
        }
        own.taken.fetch_add(1, Ordering::Relaxed);
        self.all.taken.fetch_add(1, Ordering::Relaxed);
        Ok(ConcurrencySlot {
            own: own.clone(),
            all: self.all.clone(),
        })
    }

    /// Takes a slot, and waits if none is free. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// Whose limit is reached, if too many are already waiting or no slot became free in time.
    pub async fn enter_in_time(
        &self,
        agent: &AgentId,
        most: SlotLimits,
        queue: QueueLimits,
    ) -> Result<ConcurrencySlot, NoSlot> {
        let own = {
            let mut agents = lock(&self.agents);
            agents.entry(agent.clone()).or_default().clone()
        };
        let waiting = own.waiting.fetch_add(1, Ordering::Relaxed);
        let _turn = Turn(&own.waiting);
        if waiting >= queue.length {
            return Err(NoSlot::OfAgent);
        }
        let mut missing = NoSlot::OfAgent;
        let entered = async {
            loop {
                match self.enter(agent, most) {
                    Ok(place) => return place,
                    Err(NoSlot::OfAll) => {
                        missing = NoSlot::OfAll;
                        if let Some(place) = self.wait_for_any(agent, most).await {
                            return place;
                        }
                    }
                    // `Notify` stores a permit for a slot that is freed after this check.
                    Err(NoSlot::OfAgent) => {
                        missing = NoSlot::OfAgent;
                        own.freed.notified().await;
                    }
                }
            }
        };
        let entered = timeout(queue.time, entered).await;
        entered.map_err(|_| missing)
    }

    /// Waits until any agent frees a slot, unless one is free by now.
    async fn wait_for_any(&self, agent: &AgentId, most: SlotLimits) -> Option<ConcurrencySlot> {
        self.all.waiting.fetch_add(1, Ordering::SeqCst);
        let _turn = Turn(&self.all.waiting);
        // It is notified of each slot that is freed from here on, so the second try misses none.
        let freed = self.all.freed.notified();
        if let Ok(place) = self.enter(agent, most) {
            return Some(place);
        }
        freed.await;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_then_a_steady_rate() {
        let (rate, pace) = (RateLimiter::default(), BurstRate::per_second(2, 3));
        let now = Instant::now();
        for _ in 0..3 {
            assert_eq!(rate.take(pace, "a", now), Ok(()));
        }
        assert_eq!(rate.take(pace, "a", now), Err(1));
        assert_eq!(rate.take(pace, "b", now), Ok(()));
        let later = now + Duration::from_millis(600);
        assert_eq!(rate.take(pace, "a", later), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_of_ones_own_holds_from_the_next_one_on() {
        let rate = RateLimiter::default();
        let now = Instant::now();
        let (fast, slow) = (BurstRate::per_minute(600), BurstRate::per_minute(2));
        assert_eq!(rate.take(slow, "a", now), Ok(()));
        assert_eq!(rate.take(slow, "a", now), Ok(()));
        assert_eq!(rate.take(slow, "a", now), Err(30));
        assert_eq!(rate.take(fast, "a", now), Err(1));
        assert_eq!(rate.take(fast, "b", now), Ok(()));
        let later = now + Duration::from_secs(30);
        assert_eq!(rate.take(slow, "a", later), Ok(()));
        assert_eq!(rate.take(slow, "a", later), Err(30));
        let none = BurstRate::per_minute(0);
        assert_eq!(rate.take(none, "c", now), Err(MAX_WAIT_SECONDS));
    }

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let (calls, agent) = (Concurrency::default(), AgentId::from("a"));
        let most = |own| SlotLimits { own, together: 3 };
        let first = calls.enter(&agent, most(2)).unwrap();
        let second = calls.enter(&agent, most(2)).unwrap();
        assert_eq!(calls.enter(&agent, most(2)).err(), Some(NoSlot::OfAgent));
        let neighbour = AgentId::from("b");
        assert!(calls.enter(&neighbour, most(0)).is_err());
        let other = calls.enter(&neighbour, most(2)).unwrap();
        assert_eq!(
            calls.enter(&neighbour, most(2)).err(),
            Some(NoSlot::OfAll),
            "all together"
        );
        let raised = calls.enter(&neighbour, SlotLimits::own(2)).unwrap();
        drop((other, raised));
        drop(first);
        assert!(
            calls.enter(&agent, most(1)).is_err(),
            "a lowered limit waits"
        );
        drop(second);
        assert!(calls.enter(&agent, most(1)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_waits_a_short_time_and_few_wait() {
        let (calls, agent) = (Arc::new(Concurrency::default()), AgentId::from("a"));
        let queue = QueueLimits {
            length: 1,
            time: Duration::from_secs(5),
        };
        let only = calls.enter(&agent, SlotLimits::own(1)).unwrap();
        let begun = Instant::now();
        let refused = calls.enter_in_time(&agent, SlotLimits::own(1), queue).await;
        assert_eq!(refused.err(), Some(NoSlot::OfAgent));
        assert_eq!(begun.elapsed(), queue.time);
        let waiting = tokio::spawn({
            let (calls, agent) = (calls.clone(), agent.clone());
            async move { calls.enter_in_time(&agent, SlotLimits::own(1), queue).await }
        });
        tokio::task::yield_now().await;
        let begun = Instant::now();
        let refused = calls.enter_in_time(&agent, SlotLimits::own(1), queue).await;
        assert!(refused.is_err(), "one waits already");
        let other = AgentId::from("b");
        assert!(calls.enter(&other, SlotLimits::own(1)).is_ok());
        drop(only);
        assert!(waiting.await.unwrap().is_ok());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
    #[tokio::test(start_paused = true)]
    async fn a_slot_that_another_agent_frees_is_for_those_that_wait() {
        let calls = Arc::new(Concurrency::default());
        let queue = QueueLimits {
            length: 8,
            time: Duration::from_secs(5),
        };
        let most = SlotLimits {
            own: 2,
            together: 1,
        };
        let held = calls.enter(&AgentId::from("a"), most).unwrap();
        let wait = |agent: &'static str| {
            let calls = calls.clone();
            tokio::spawn(async move {
                let agent = AgentId::from(agent);
                calls.enter_in_time(&agent, most, queue).await
            })
        };
        let waiting = [wait("b"), wait("c")];
        tokio::task::yield_now().await;
        let begun = Instant::now();
        drop(held);
        for one in waiting {
            drop(one.await.unwrap().unwrap());
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let _held = calls.enter(&AgentId::from("a"), most).unwrap();
        let late = wait("b").await.unwrap();
        assert_eq!(late.err(), Some(NoSlot::OfAll));
    }
}
