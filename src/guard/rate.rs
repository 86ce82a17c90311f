//! How often and how many at once: token buckets by address and by agent, and a place for each call.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::auth::AgentId;

/// So many keys are remembered; then the ones whose buckets are full again are forgotten, and if none
/// is, newcomers are refused: a flood of addresses must not become a flood of memory.
const MAX_KEYS: usize = 16_384;

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    per_second: f64,
    burst: f64,
}

impl Pace {
    /// So many a second, and so many at once after quiet.
    pub fn a_second(count: u32, burst: u32) -> Self {
        Self {
            per_second: f64::from(count),
            burst: f64::from(burst),
        }
    }

    /// So many a minute, all of which may come at once.
    pub fn a_minute(count: u32) -> Self {
        let count = f64::from(count);
        Self {
            per_second: count / 60.0,
            burst: count,
        }
    }
}

/// Token buckets, one a key.
pub struct Rate<K>(Mutex<HashMap<K, Bucket>>);

/// None is known yet.
impl<K> Default for Rate<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

struct Bucket {
    pace: Pace,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn filled(&self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        let Pace { per_second, burst } = self.pace;
        passed.mul_add(per_second, self.tokens).min(burst)
    }
}

impl<K: Eq + Hash> Rate<K> {
    /// Takes one of a key whose bucket fills at this pace; the seconds to wait when there is none. Of what it had at
    /// another pace it keeps what fits.
    pub fn take(&self, pace: Pace, key: K, now: Instant) -> Result<(), u64> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_KEYS && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| bucket.filled(now) < bucket.pace.burst);
            if buckets.len() >= MAX_KEYS {
                return Err(1);
            }
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            pace,
            tokens: pace.burst,
            at: now,
        });
        bucket.tokens = bucket.filled(now).min(pace.burst);
        bucket.at = now;
        bucket.pace = pace;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let wait = ((1.0 - bucket.tokens) / pace.per_second).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped"
        )]
        Err(wait.clamp(1.0, 3_600.0) as u64)
    }
}

/// A place among an agent's calls or streams; dropping it makes room.
#[derive(Debug)]
pub struct Place {
    own: Arc<OwnPlaces>,
    all: Arc<AtomicU32>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.own.taken.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
        self.own.freed.notify_one();
    }
}

/// What one agent has.
#[derive(Debug, Default)]
struct OwnPlaces {
    taken: AtomicU32,
    waiting: AtomicU32,
    /// Rung for each place that is free again.
    freed: Notify,
}

/// How many may wait for a place at once, and how long.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Of one agent; one more is refused at once.
    pub length: u32,
    /// The longest wait.
    pub time: Duration,
}

/// A turn in the queue; dropping it leaves the queue.
struct Turn<'o>(&'o OwnPlaces);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many places there may be at once.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Of one agent.
    pub own: u32,
    /// Of all agents.
    pub together: u32,
}

impl Most {
    /// So many of one agent, however many all of them have.
    pub fn own(own: u32) -> Self {
        let together = u32::MAX;
        Self { own, together }
    }
}

/// How many of something each agent has at once, and all of them together.
#[derive(Default)]
pub struct Concurrency {
    all: Arc<AtomicU32>,
    agents: Mutex<HashMap<AgentId, Arc<OwnPlaces>>>,
}

impl Concurrency {
    /// Takes a place, if there are fewer than `most`. Agents are as many as the owner made.
    pub fn enter(&self, agent: &AgentId, most: Most) -> Option<Place> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let own = agents.entry(agent.clone()).or_default();
        let (of_own, of_all) = (
            own.taken.load(Ordering::Relaxed),
            self.all.load(Ordering::Relaxed),
        );
        // Only here do they grow, under the lock.
        if of_own >= most.own || of_all >= most.together {
            return None;
        }
        own.taken.fetch_add(1, Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed);
        Some(Place {
            own: own.clone(),
            all: self.all.clone(),
        })
    }

    /// Takes a place, and waits for one where there is none. `None` when too many wait already, or no place became free
    /// in time. Dropping the future gives up the wait.
    pub async fn enter_in_time(&self, agent: &AgentId, most: Most, queue: Queue) -> Option<Place> {
        let own = {
            let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
            agents.entry(agent.clone()).or_default().clone()
        };
        let waiting = own.waiting.fetch_add(1, Ordering::Relaxed);
        let _turn = Turn(&own);
        if waiting >= queue.length {
            return None;
        }
        let entered = async {
            loop {
                // A place that becomes free after this look is remembered by the bell.
                if let Some(place) = self.enter(agent, most) {
                    return place;
                }
                own.freed.notified().await;
            }
        };
        timeout(queue.time, entered).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_then_a_steady_rate() {
        let (rate, pace) = (Rate::default(), Pace::a_second(2, 3));
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
        let rate = Rate::default();
        let now = Instant::now();
        let (fast, slow) = (Pace::a_minute(600), Pace::a_minute(2));
        assert_eq!(rate.take(fast, "a", now), Ok(()));
        assert_eq!(rate.take(slow, "a", now), Ok(()));
        assert_eq!(rate.take(slow, "a", now), Ok(()));
        assert_eq!(rate.take(slow, "a", now), Err(30));
        assert_eq!(rate.take(fast, "b", now), Ok(()));
        let later = now + Duration::from_secs(30);
        assert_eq!(rate.take(slow, "a", later), Ok(()));
        assert_eq!(rate.take(slow, "a", later), Err(30));
    }

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let (calls, agent) = (Concurrency::default(), AgentId::from("a"));
        let most = |own| Most { own, together: 3 };
        let first = calls.enter(&agent, most(2)).unwrap();
        let second = calls.enter(&agent, most(2)).unwrap();
        assert!(calls.enter(&agent, most(2)).is_none());
        let neighbour = AgentId::from("b");
        assert!(calls.enter(&neighbour, most(0)).is_none());
        let other = calls.enter(&neighbour, most(2)).unwrap();
        assert!(calls.enter(&neighbour, most(2)).is_none(), "all together");
        let raised = calls.enter(&neighbour, Most::own(2)).unwrap();
        drop((other, raised));
        drop(first);
        assert!(
            calls.enter(&agent, most(1)).is_none(),
            "a lowered limit waits"
        );
        drop(second);
        assert!(calls.enter(&agent, most(1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_waits_a_short_time_and_few_wait() {
        let (calls, agent) = (Arc::new(Concurrency::default()), AgentId::from("a"));
        let queue = Queue {
            length: 1,
            time: Duration::from_secs(5),
        };
        let only = calls.enter(&agent, Most::own(1)).unwrap();
        let begun = Instant::now();
        let refused = calls.enter_in_time(&agent, Most::own(1), queue).await;
        assert!(refused.is_none());
        assert_eq!(begun.elapsed(), queue.time);
        let waiting = tokio::spawn({
            let (calls, agent) = (calls.clone(), agent.clone());
            async move { calls.enter_in_time(&agent, Most::own(1), queue).await }
        });
        tokio::task::yield_now().await;
        let begun = Instant::now();
        let refused = calls.enter_in_time(&agent, Most::own(1), queue).await;
        assert!(refused.is_none(), "one waits already");
        let other = AgentId::from("b");
        assert!(calls.enter(&other, Most::own(1)).is_some());
        drop(only);
        assert!(waiting.await.unwrap().is_some());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
