//! How often and how many at once: token buckets by address and by agent, and a place for each call.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::auth::AgentId;

/// So many keys are remembered; then the ones whose buckets are full again are forgotten, and if none
/// is, newcomers are refused: a flood of addresses must not become a flood of memory.
const MAX_KEYS: usize = 16_384;

/// Token buckets, one a key.
pub struct Rate<K> {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<K, Bucket>>,
}

struct Bucket {
    tokens: f64,
    at: Instant,
}

impl<K: Eq + Hash> Rate<K> {
    /// So many a second, and so many at once after quiet.
    pub fn new(per_second: f64, burst: f64) -> Self {
        Self {
            per_second,
            burst,
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Takes one; the seconds to wait when there is none.
    pub fn take(&self, key: K, now: Instant) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_KEYS && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| self.filled(bucket, now) < self.burst);
            if buckets.len() >= MAX_KEYS {
                return Err(1);
            }
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            tokens: self.burst,
            at: now,
        });
        bucket.tokens = self.filled(bucket, now);
        bucket.at = now;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let wait = ((1.0 - bucket.tokens) / self.per_second).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped"
        )]
        Err(wait.clamp(1.0, 3_600.0) as u64)
    }

    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        passed
            .mul_add(self.per_second, bucket.tokens)
            .min(self.burst)
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
pub struct Place(
    #[expect(dead_code, reason = "dropping it is its use")]
    (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
);

/// How many of something each agent may have at once, and all of them together.
pub struct Concurrency {
    most: usize,
    together: Option<Arc<Semaphore>>,
    agents: Mutex<HashMap<AgentId, Arc<Semaphore>>>,
}

impl Concurrency {
    /// So many an agent.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            together: None,
            agents: Mutex::new(HashMap::new()),
        }
    }

    /// And so many in all.
    #[must_use]
    pub fn together(self, most: usize) -> Self {
        Self {
            together: Some(Arc::new(Semaphore::new(most))),
            ..self
        }
    }

    /// Takes a place, if there is one. Agents are as many as the owner made.
    pub fn enter(&self, agent: &AgentId) -> Option<Place> {
        let shared = match &self.together {
            Some(places) => Some(places.clone().try_acquire_owned().ok()?),
            None => None,
        };
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let places = agents
            .entry(agent.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.most)));
        let own = places.clone().try_acquire_owned().ok()?;
        Some(Place((own, shared)))
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

    #[test]
    fn a_v6_household_is_one_and_a_mapped_v4_is_v4() {
        let key = |text: &str| household(text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff"));
        assert_ne!(key("2001:db8:0:1::1"), key("2001:db8::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
    }
}
