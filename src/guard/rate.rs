//! How often and how many at once: token buckets by address and by agent, and a place for each call.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

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
pub struct Rate<K> {
    pace: Pace,
    buckets: Mutex<HashMap<K, Bucket>>,
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
    /// So many a second, and so many at once after quiet.
    pub fn new(per_second: f64, burst: f64) -> Self {
        Self::at(Pace { per_second, burst })
    }

    /// As many as this.
    pub fn at(pace: Pace) -> Self {
        Self {
            pace,
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Takes one; the seconds to wait when there is none.
    pub fn take(&self, key: K, now: Instant) -> Result<(), u64> {
        self.take_at(self.pace, key, now)
    }

    /// The same for a key with a pace of its own; of what it had at another pace it keeps what fits.
    pub fn take_at(&self, pace: Pace, key: K, now: Instant) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The key of an address: itself, or the /64 of an IPv6 one, which is one household.
pub fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        IpAddr::V4(v4) => IpAddr::V4(v4),
    }
}

/// A place among an agent's calls or streams; dropping it makes room.
#[derive(Debug)]
pub struct Place {
    own: Arc<AtomicU32>,
    _shared: Option<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.own.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many of something each agent has at once, and how many all of them together may have.
#[derive(Default)]
pub struct Concurrency {
    together: Option<Arc<Semaphore>>,
    agents: Mutex<HashMap<AgentId, Arc<AtomicU32>>>,
}

impl Concurrency {
    /// So many in all.
    pub fn together(most: usize) -> Self {
        Self {
            together: Some(Arc::new(Semaphore::new(most))),
            agents: Mutex::default(),
        }
    }

    /// Takes a place, if the agent has fewer than `most`. Agents are as many as the owner made.
    pub fn enter(&self, agent: &AgentId, most: u32) -> Option<Place> {
        let shared = match &self.together {
            Some(places) => Some(places.clone().try_acquire_owned().ok()?),
            None => None,
        };
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let own = agents.entry(agent.clone()).or_default();
        // Only here does it grow, under the lock.
        if own.load(Ordering::Relaxed) >= most {
            return None;
        }
        own.fetch_add(1, Ordering::Relaxed);
        Some(Place {
            own: own.clone(),
            _shared: shared,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_burst_then_a_steady_rate() {
        let rate = Rate::new(2.0, 3.0);
        let now = Instant::now();
        for _ in 0..3 {
            assert_eq!(rate.take("a", now), Ok(()));
        }
        assert_eq!(rate.take("a", now), Err(1));
        assert_eq!(rate.take("b", now), Ok(()));
        assert_eq!(rate.take("a", now + Duration::from_millis(600)), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_of_ones_own_holds_from_the_next_one_on() {
        let rate = Rate::at(Pace::a_minute(600));
        let now = Instant::now();
        let slow = Pace::a_minute(2);
        assert_eq!(rate.take("a", now), Ok(()));
        assert_eq!(rate.take_at(slow, "a", now), Ok(()));
        assert_eq!(rate.take_at(slow, "a", now), Ok(()));
        assert_eq!(rate.take_at(slow, "a", now), Err(30));
        assert_eq!(rate.take("b", now), Ok(()));
        let later = now + Duration::from_secs(30);
        assert_eq!(rate.take_at(slow, "a", later), Ok(()));
        assert_eq!(rate.take_at(slow, "a", later), Err(30));
    }

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let (calls, agent) = (Concurrency::together(3), AgentId::from("a"));
        let first = calls.enter(&agent, 2).unwrap();
        let second = calls.enter(&agent, 2).unwrap();
        assert!(calls.enter(&agent, 2).is_none());
        assert!(calls.enter(&AgentId::from("b"), 0).is_none());
        let other = calls.enter(&AgentId::from("b"), 2).unwrap();
        assert!(
            calls.enter(&AgentId::from("b"), 2).is_none(),
            "all together"
        );
        drop(other);
        drop(first);
        assert!(calls.enter(&agent, 1).is_none(), "a lowered limit waits");
        drop(second);
        assert!(calls.enter(&agent, 1).is_some());
    }

    #[test]
    fn a_v6_household_is_one_and_a_mapped_v4_is_v4() {
        let key = |text: &str| household(text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff"));
        assert_ne!(key("2001:db8:0:1::1"), key("2001:db8::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
    }
}
