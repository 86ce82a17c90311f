//! Guessing gets slower: by address or device, and for all addresses together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::device::DeviceId;
use crate::vault::Guesses;

/// So many attempts an address has before it waits: enough for who mistypes.
const FREE: u64 = 5;

/// The first wait; each further attempt doubles it, up to the longest.
const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_mins(15);

/// An hour after its last attempt its next ones are its first again.
const FORGIVEN: Duration = Duration::from_hours(1);

/// A day after its last attempt an address counts as one that never failed.
const FORGOTTEN: Duration = Duration::from_hours(24);

/// This many addresses and devices are remembered; then the one that rested longest is forgotten. An attacker with more
/// of them is bounded by [`FRESH`].
const MAX_GUESSERS: usize = 16_384;

/// All addresses have this many attempts together before they are slowed down.
const FREE_TOGETHER: u64 = 50;

/// From then on addresses that failed have one attempt together in this time: 1,440 a day.
const FAILED: Duration = Duration::from_mins(1);

/// And those that never failed have one together in this time: 28,800 a day, from as many addresses.
const FRESH: Duration = Duration::from_secs(3);

/// Who guesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guesser {
    /// What counts as one source, such as an address.
    pub address: IpAddr,
    /// A browser in which the owner has signed in before.
    pub device: Option<DeviceId>,
}

/// By what a guesser's attempts are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bucket {
    Address(IpAddr),
    Device(DeviceId),
}

impl Guesser {
    fn bucket(self) -> Bucket {
        let address = Bucket::Address(self.address);
        self.device.map_or(address, Bucket::Device)
    }
}

/// How the attempts of all addresses together bound the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// From a device or an address of the owner's: not at all.
    Known,
    /// From an address that never failed.
    Fresh,
    /// From one that did.
    Failed,
}

/// The attempts of addresses and devices. Those of all together are in the vault, because they must outlive a restart.
#[derive(Default)]
pub(super) struct Lockout(Mutex<HashMap<Bucket, Attempts>>);

struct Attempts {
    count: u64,
    last: Instant,
}

impl Attempts {
    /// The time until the next one.
    fn left(&self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.last);
        if passed >= FORGIVEN {
            return Duration::ZERO;
        }
        wait(self.count).saturating_sub(passed)
    }
}

impl Lockout {
    /// Says in how many seconds there may be an attempt, where there may be none now. Nothing is counted.
    pub(super) fn check(&self, guesser: Guesser, now: Instant) -> Result<(), u64> {
        let left = self.lock().get(&guesser.bucket()).map(|one| one.left(now));
        match left.unwrap_or_default() {
            Duration::ZERO => Ok(()),
            left => Err(seconds(left)),
        }
    }

    /// Counts an attempt, before it is looked at; or says in how many seconds there may be one.
    pub(super) fn begin(&self, guesser: Guesser, now: Instant) -> Result<(), u64> {
        self.check(guesser, now)?;
        let (mut known, bucket) = (self.lock(), guesser.bucket());
        if known.len() >= MAX_GUESSERS && !known.contains_key(&bucket) {
            make_room(&mut known, now);
        }
        let attempts = known.entry(bucket).or_insert(Attempts {
            count: 0,
            last: now,
        });
        if now.saturating_duration_since(attempts.last) >= FORGIVEN {
            attempts.count = 0;
        }
        attempts.count += 1;
        attempts.last = now;
        Ok(())
    }

    /// Whether an address had an attempt within a day that was not right.
    pub(super) fn has_failed(&self, address: IpAddr, now: Instant) -> bool {
        let known = self.lock();
        let attempts = known.get(&Bucket::Address(address));
        attempts.is_some_and(|one| now.saturating_duration_since(one.last) < FORGOTTEN)
    }

    /// Forgets a guesser that was right.
    pub(super) fn forget(&self, guesser: Guesser) {
        let mut known = self.lock();
        known.remove(&guesser.bucket());
        known.remove(&Bucket::Address(guesser.address));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Bucket, Attempts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time until there may be an attempt from there, for those that all addresses had together; zero for now.
pub(super) fn left_together(guesses: Guesses, lane: Lane, now_ms: u64) -> Duration {
    let every = match lane {
        Lane::Known => return Duration::ZERO,
        Lane::Fresh => FRESH,
        Lane::Failed => FAILED,
    };
    if guesses.count < FREE_TOGETHER {
        return Duration::ZERO;
    }
    // A clock that was set back keeps nobody out.
    let passed = now_ms.checked_sub(guesses.last_ms);
    every.saturating_sub(passed.map_or(every, Duration::from_millis))
}

fn wait(count: u64) -> Duration {
    let Some(further) = count.checked_sub(FREE) else {
        return Duration::ZERO;
    };
    let factor = 1_u32.checked_shl(u32::try_from(further).unwrap_or(u32::MAX));
    factor.map_or(LONGEST, |factor| FIRST.saturating_mul(factor).min(LONGEST))
}

/// A time in whole seconds, rounded up.
pub(super) fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

fn make_room(known: &mut HashMap<Bucket, Attempts>, now: Instant) {
    known.retain(|_, attempts| now.saturating_duration_since(attempts.last) < FORGOTTEN);
    if known.len() >= MAX_GUESSERS {
        let oldest = known.iter().min_by_key(|(_, attempts)| attempts.last);
        if let Some(bucket) = oldest.map(|(bucket, _)| *bucket) {
            known.remove(&bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u32) -> Guesser {
        Guesser {
            address: std::net::Ipv4Addr::from(last).into(),
            device: None,
        }
    }

    #[test]
    fn an_address_waits_longer_and_longer_and_is_forgiven() {
        let lockout = Lockout::default();
        let mut now = Instant::now();
        for _ in 0..FREE {
            assert_eq!(lockout.begin(address(1), now), Ok(()));
        }
        for wait in [30, 60, 120, 240, 480, 900, 900, 900] {
            assert_eq!(lockout.begin(address(1), now), Err(wait));
            assert_eq!(lockout.check(address(1), now), Err(wait));
            now += Duration::from_secs(wait - 1);
            assert_eq!(lockout.begin(address(1), now), Err(1), "waiting counts not");
            now += Duration::from_secs(1);
            assert_eq!(lockout.begin(address(1), now), Ok(()));
        }
        assert_eq!(lockout.begin(address(2), now), Ok(()), "a neighbour");
        assert!(lockout.has_failed(address(1).address, now));
        assert!(!lockout.has_failed(address(3).address, now));
        now += FORGIVEN;
        for _ in 0..FREE {
            assert_eq!(lockout.begin(address(1), now), Ok(()));
        }
        assert!(lockout.begin(address(1), now).is_err());
        lockout.forget(address(1));
        assert!(!lockout.has_failed(address(1).address, now));
        assert_eq!(lockout.begin(address(1), now), Ok(()));
        assert!(!lockout.has_failed(address(1).address, now + FORGOTTEN));
    }

    #[test]
    fn no_more_addresses_are_remembered_than_may_be() {
        let lockout = Lockout::default();
        let now = Instant::now();
        for n in 0..u32::try_from(MAX_GUESSERS + 100).unwrap() {
            let moment = now + Duration::from_millis(n.into());
            assert_eq!(lockout.begin(address(n), moment), Ok(()));
        }
        assert_eq!(lockout.0.lock().unwrap().len(), MAX_GUESSERS);
    }

    #[test]
    fn all_together_have_one_a_minute_in_the_end_and_those_that_never_failed_more() {
        let guesses = |count| Guesses {
            count,
            last_ms: 100_000,
        };
        let left = |count, lane, now_ms| left_together(guesses(count), lane, now_ms).as_millis();
        assert_eq!(left(49, Lane::Failed, 100_000), 0);
        assert_eq!(left(50, Lane::Failed, 100_000), 60_000);
        assert_eq!(left(50, Lane::Failed, 159_001), 999);
        assert_eq!(left(5_000, Lane::Failed, 160_000), 0);
        assert_eq!(left(50, Lane::Failed, 5), 0, "the clock was set back");
        assert_eq!(left(50, Lane::Fresh, 100_000), 3_000);
        assert_eq!(left(50, Lane::Fresh, 103_000), 0);
        assert_eq!(left(5_000, Lane::Known, 100_000), 0);
    }
}
