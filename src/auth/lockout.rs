//! Guessing gets slower: by address, and altogether.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::vault::Guesses;

/// So many attempts an address has before it waits: enough for who mistypes.
const FREE: u64 = 5;

/// The first wait; each further attempt doubles it, up to the longest.
const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_mins(15);

/// So long after its last attempt an address is forgotten.
const FORGOTTEN: Duration = Duration::from_hours(1);

/// So many addresses are remembered; then the one that rested longest is forgotten. Whoever has more than these
/// meets the bound of all addresses together.
const MAX_ADDRESSES: usize = 4096;

/// So many attempts all addresses have together before there is but one each [`SLOW`]: some 1400 a day, whoever
/// makes them.
const FREE_TOGETHER: u64 = 50;
const SLOW: Duration = Duration::from_mins(1);

/// The attempts of addresses. Those of all together are in the vault, because they must outlive a restart.
#[derive(Default)]
pub(super) struct Lockout(Mutex<HashMap<IpAddr, Attempts>>);

struct Attempts {
    count: u64,
    last: Instant,
}

impl Lockout {
    /// Counts an attempt, before it is looked at; or says in how many seconds there may be one.
    pub(super) fn begin(&self, address: IpAddr, now: Instant) -> Result<(), u64> {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(&address) {
            make_room(&mut addresses, now);
        }
        let attempts = addresses.entry(address).or_insert(Attempts {
            count: 0,
            last: now,
        });
        let passed = now.saturating_duration_since(attempts.last);
        if passed >= FORGOTTEN {
            attempts.count = 0;
        }
        let left = wait(attempts.count).saturating_sub(passed);
        if !left.is_zero() {
            return Err(seconds(left));
        }
        attempts.count += 1;
        attempts.last = now;
        Ok(())
    }

    /// Forgets an address that was right.
    pub(super) fn forget(&self, address: IpAddr) {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.remove(&address);
    }
}

/// In how many seconds there may be an attempt from anywhere, where there may be none now.
pub(super) fn together(guesses: Guesses, now_ms: u64) -> Result<(), u64> {
    // A clock that was set back keeps nobody out.
    let passed = now_ms
        .checked_sub(guesses.last_ms)
        .map(Duration::from_millis);
    let left = SLOW.saturating_sub(passed.unwrap_or(SLOW));
    if guesses.count < FREE_TOGETHER || left.is_zero() {
        Ok(())
    } else {
        Err(seconds(left))
    }
}

fn wait(count: u64) -> Duration {
    let Some(further) = count.checked_sub(FREE) else {
        return Duration::ZERO;
    };
    let factor = 1_u32.checked_shl(u32::try_from(further).unwrap_or(u32::MAX));
    factor.map_or(LONGEST, |factor| FIRST.saturating_mul(factor).min(LONGEST))
}

fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

fn make_room(addresses: &mut HashMap<IpAddr, Attempts>, now: Instant) {
    addresses.retain(|_, attempts| now.saturating_duration_since(attempts.last) < FORGOTTEN);
    if addresses.len() >= MAX_ADDRESSES {
        let oldest = addresses.iter().min_by_key(|(_, attempts)| attempts.last);
        if let Some(address) = oldest.map(|(address, _)| *address) {
            addresses.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u32) -> IpAddr {
        std::net::Ipv4Addr::from(last).into()
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
            now += Duration::from_secs(wait - 1);
            assert_eq!(lockout.begin(address(1), now), Err(1), "waiting counts not");
            now += Duration::from_secs(1);
            assert_eq!(lockout.begin(address(1), now), Ok(()));
        }
        assert_eq!(lockout.begin(address(2), now), Ok(()), "a neighbour");
        now += FORGOTTEN;
        for _ in 0..FREE {
            assert_eq!(lockout.begin(address(1), now), Ok(()));
        }
        assert!(lockout.begin(address(1), now).is_err());
        lockout.forget(address(1));
        assert_eq!(lockout.begin(address(1), now), Ok(()));
    }

    #[test]
    fn no_more_addresses_are_remembered_than_may_be() {
        let lockout = Lockout::default();
        let now = Instant::now();
        for n in 0..u32::try_from(MAX_ADDRESSES + 100).unwrap() {
            let moment = now + Duration::from_millis(n.into());
            assert_eq!(lockout.begin(address(n), moment), Ok(()));
        }
        assert_eq!(lockout.0.lock().unwrap().len(), MAX_ADDRESSES);
    }

    #[test]
    fn all_together_have_one_a_minute_in_the_end() {
        let guesses = |count| Guesses {
            count,
            last_ms: 100_000,
        };
        assert_eq!(together(guesses(49), 100_000), Ok(()));
        assert_eq!(together(guesses(50), 100_000), Err(60));
        assert_eq!(together(guesses(50), 159_001), Err(1));
        assert_eq!(together(guesses(5_000), 160_000), Ok(()));
        assert_eq!(together(guesses(50), 5), Ok(()), "the clock was set back");
    }
}
