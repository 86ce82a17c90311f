//! Delays guesses: by address or device, and for all addresses together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::device::DeviceId;
use gatewren_base::sys::lock;
use gatewren_store::vault::FailedGuesses;

/// The attempts of an address without a delay: enough for typing errors.
const FREE: u64 = 5;

/// The first delay and the longest one. Each further attempt doubles the delay.
const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_mins(15);

/// After this time without an attempt, the free attempts start again.
const FORGIVEN: Duration = Duration::from_hours(1);

/// After this time without an attempt, an address counts as one that never failed.
const FORGOTTEN: Duration = Duration::from_hours(24);

/// The limit of remembered addresses and devices. Beyond it the least recently used one is forgotten. An attacker
/// with more addresses is limited by [`FRESH`].
const MAX_GUESSERS: usize = 16_384;

/// The attempts of all addresses together without a delay.
const FREE_TOGETHER: u64 = 50;

/// After that, the interval between attempts of all addresses that failed before: 1,440 a day.
const FAILED: Duration = Duration::from_mins(1);

/// After that, the interval between attempts of all addresses that never failed: 28,800 a day, each from another
/// address.
const FRESH: Duration = Duration::from_secs(3);

/// The source of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GuessSource {
    /// The address that counts as one source.
    pub address: IpAddr,
    /// A browser in which the owner has signed in before.
    pub device: Option<DeviceId>,
}

/// The key for counting the attempts of a guesser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bucket {
    Address(IpAddr),
    Device(DeviceId),
}

impl GuessSource {
    fn bucket(self) -> Bucket {
        let address = Bucket::Address(self.address);
        self.device.map_or(address, Bucket::Device)
    }
}

/// How the attempts of all addresses together limit the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuessLane {
    /// A device or an address of the owner: not limited.
    Known,
    /// An address that never failed.
    Fresh,
    /// An address that failed before.
    Failed,
}

/// The attempts by address and device. The total of all addresses is in the vault, because it must survive a
/// restart.
#[derive(Default)]
pub(super) struct Lockout(Mutex<HashMap<Bucket, Attempts>>);

struct Attempts {
    count: u64,
    last: Instant,
}

impl Attempts {
    /// Returns the time until the next attempt is allowed.
    fn remaining_wait(&self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.last);
        if passed >= FORGIVEN {
            return Duration::ZERO;
        }
        wait_after(self.count).saturating_sub(passed)
    }
}

impl Lockout {
    /// Returns an error with the number of seconds to wait, if no attempt is allowed now. Counts nothing.
    pub(super) fn check(&self, guesser: GuessSource, now: Instant) -> Result<(), u64> {
        let left = lock(&self.0)
            .get(&guesser.bucket())
            .map(|one| one.remaining_wait(now));
        match left.unwrap_or_default() {
            Duration::ZERO => Ok(()),
            left => Err(seconds(left)),
        }
    }

    /// Counts an attempt before it is checked, or returns the number of seconds to wait.
    pub(super) fn begin(&self, guesser: GuessSource, now: Instant) -> Result<(), u64> {
        self.check(guesser, now)?;
        let (mut known, bucket) = (lock(&self.0), guesser.bucket());
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

    /// Returns whether an address made a wrong attempt within a day.
    pub(super) fn has_failed(&self, address: IpAddr, now: Instant) -> bool {
        let known = lock(&self.0);
        let attempts = known.get(&Bucket::Address(address));
        attempts.is_some_and(|one| now.saturating_duration_since(one.last) < FORGOTTEN)
    }

    /// Forgets the attempts of a guesser that was right.
    pub(super) fn forget(&self, guesser: GuessSource) {
        let mut known = lock(&self.0);
        known.remove(&guesser.bucket());
        known.remove(&Bucket::Address(guesser.address));
    }
}

/// Returns the time until the limit of all addresses together allows an attempt; zero for now.
pub(super) fn left_together(guesses: FailedGuesses, lane: GuessLane, now_ms: u64) -> Duration {
    let every = match lane {
        GuessLane::Known => return Duration::ZERO,
        GuessLane::Fresh => FRESH,
        GuessLane::Failed => FAILED,
    };
    if guesses.count < FREE_TOGETHER {
        return Duration::ZERO;
    }
    // If the clock was set back, the attempt is allowed.
    let passed = now_ms.checked_sub(guesses.last_ms);
    every.saturating_sub(passed.map_or(every, Duration::from_millis))
}

fn wait_after(count: u64) -> Duration {
    let Some(further) = count.checked_sub(FREE) else {
        return Duration::ZERO;
    };
    let factor = 1_u32.checked_shl(u32::try_from(further).unwrap_or(u32::MAX));
    factor.map_or(LONGEST, |factor| FIRST.saturating_mul(factor).min(LONGEST))
}

/// Returns a duration in whole seconds, rounded up.
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

    fn address(last: u32) -> GuessSource {
        GuessSource {
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
        let guesses = |count| FailedGuesses {
            count,
            last_ms: 100_000,
        };
        let left = |count, lane, now_ms| left_together(guesses(count), lane, now_ms).as_millis();
        assert_eq!(left(49, GuessLane::Failed, 100_000), 0);
        assert_eq!(left(50, GuessLane::Failed, 100_000), 60_000);
        assert_eq!(left(50, GuessLane::Failed, 159_001), 999);
        assert_eq!(left(5_000, GuessLane::Failed, 160_000), 0);
        assert_eq!(left(50, GuessLane::Failed, 5), 0, "the clock was set back");
        assert_eq!(left(50, GuessLane::Fresh, 100_000), 3_000);
        assert_eq!(left(50, GuessLane::Fresh, 103_000), 0);
        assert_eq!(left(5_000, GuessLane::Known, 100_000), 0);
    }
}
