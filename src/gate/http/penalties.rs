//! Penalties for sources of bad connections: each offence adds seconds, and from a threshold on the source is
//! barred.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// A source is barred once its penalty has this many seconds left, and then until none are left. These rules are
/// those of `PerSourcePenalties` in `sshd_config(5)`, `min` and `max`.
const BARRED_FROM: Duration = Duration::from_secs(15);

/// The maximum remaining time of a penalty.
const LONGEST: Duration = Duration::from_mins(10);

/// The maximum number of sources with a penalty; at the limit the one that ends first is dropped.
const MAX_SOURCES: usize = 4096;

/// How long after an authenticated request a source is spared: its other clients are then not penalised.
const SPARED_FOR: Duration = Duration::from_hours(24);

/// The maximum number of spared sources; at the limit the one seen longest ago is dropped.
const MAX_SPARED: usize = 1024;

/// An event that adds to a penalty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offence {
    /// An invalid or missing token. An agent with an old token retries slowly and is not barred.
    FailedAuthentication,
    /// The source reached its limit of unauthenticated connections.
    Displaced,
    /// Bytes that are not TLS.
    Garbage,
    /// A handshake that exceeded its timeout.
    SlowHandshake,
}

impl Offence {
    fn seconds(self) -> u64 {
        match self {
            Self::FailedAuthentication | Self::Displaced => 1,
            Self::Garbage => 2,
            Self::SlowHandshake => 5,
        }
    }
}

struct Penalty {
    until: Instant,
    is_active: bool,
}

/// The penalties of all sources.
#[derive(Default)]
pub(super) struct Penalties {
    penalties: HashMap<IpAddr, Penalty>,
    /// When an authenticated request last came from each source.
    spared: HashMap<IpAddr, Instant>,
}

impl Penalties {
    /// Adds to the penalty of a source, unless it is spared.
    pub(super) fn add(&mut self, source: IpAddr, offence: Offence, now: Instant) {
        if self.is_spared(source, now) {
            return;
        }
        if self.penalties.len() >= MAX_SOURCES && !self.penalties.contains_key(&source) {
            self.make_room(now);
        }
        let penalty = self.penalties.entry(source).or_insert(Penalty {
            until: now,
            is_active: false,
        });
        if penalty.until <= now {
            penalty.is_active = false;
        }
        let until = penalty.until.max(now) + Duration::from_secs(offence.seconds());
        penalty.until = until.min(now + LONGEST);
        if !penalty.is_active && penalty.until >= now + BARRED_FROM {
            penalty.is_active = true;
            tracing::debug!(%source, ?offence, "new connections from this source are rejected for a while");
        }
    }

    /// Whether a source is barred.
    pub(super) fn is_active(&self, source: IpAddr, now: Instant) -> bool {
        let penalty = self.penalties.get(&source);
        penalty.is_some_and(|penalty| penalty.is_active && penalty.until > now)
    }

    /// Records an authenticated request from a source.
    pub(super) fn spare(&mut self, source: IpAddr, now: Instant) {
        self.penalties.remove(&source);
        if self.spared.len() >= MAX_SPARED && !self.spared.contains_key(&source) {
            let oldest = self.spared.iter().min_by_key(|(_, seen)| **seen);
            if let Some(oldest) = oldest.map(|(source, _)| *source) {
                self.spared.remove(&oldest);
            }
        }
        self.spared.insert(source, now);
    }

    fn is_spared(&self, source: IpAddr, now: Instant) -> bool {
        let seen = self.spared.get(&source);
        seen.is_some_and(|seen| now.saturating_duration_since(*seen) < SPARED_FOR)
    }

    fn make_room(&mut self, now: Instant) {
        self.penalties.retain(|_, penalty| penalty.until > now);
        if self.penalties.len() >= MAX_SOURCES {
            let next = self.penalties.iter().min_by_key(|(_, one)| one.until);
            if let Some(next) = next.map(|(source, _)| *source) {
                self.penalties.remove(&next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u32) -> IpAddr {
        std::net::Ipv4Addr::from(last).into()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_penalty_grows_to_ten_minutes_and_ends() {
        let (mut penalties, now) = (Penalties::default(), Instant::now());
        for _ in 0..2 {
            penalties.add(source(1), Offence::SlowHandshake, now);
        }
        assert!(!penalties.is_active(source(1), now), "ten seconds are few");
        penalties.add(source(1), Offence::SlowHandshake, now);
        assert!(penalties.is_active(source(1), now));
        assert!(!penalties.is_active(source(2), now));
        assert!(
            penalties.is_active(source(1), now + 14 * SECOND),
            "until it is over"
        );
        assert!(!penalties.is_active(source(1), now + 15 * SECOND));
        for _ in 0..10_000 {
            penalties.add(source(1), Offence::Garbage, now);
        }
        assert!(penalties.is_active(source(1), now + LONGEST - SECOND));
        let after = now + LONGEST;
        assert!(!penalties.is_active(source(1), after));
        penalties.add(source(1), Offence::Garbage, after);
        assert!(
            !penalties.is_active(source(1), after),
            "the next one begins at zero"
        );
    }

    #[test]
    fn a_source_that_offends_slowly_is_not_barred() {
        let mut penalties = Penalties::default();
        let mut now = Instant::now();
        for _ in 0..1000 {
            penalties.add(source(1), Offence::FailedAuthentication, now);
            assert!(!penalties.is_active(source(1), now));
            now += SECOND;
        }
    }

    #[test]
    fn a_household_with_an_agent_is_spared_for_a_day() {
        let (mut penalties, now) = (Penalties::default(), Instant::now());
        let offend = |penalties: &mut Penalties, now| {
            for _ in 0..100 {
                penalties.add(source(1), Offence::Garbage, now);
            }
        };
        offend(&mut penalties, now);
        assert!(penalties.is_active(source(1), now));
        penalties.spare(source(1), now);
        assert!(!penalties.is_active(source(1), now));
        offend(&mut penalties, now);
        assert!(!penalties.is_active(source(1), now));
        offend(&mut penalties, now + SPARED_FOR);
        assert!(penalties.is_active(source(1), now + SPARED_FOR));
    }

    #[test]
    fn both_tables_are_bounded() {
        let (mut penalties, now) = (Penalties::default(), Instant::now());
        for at in 0..u32::try_from(MAX_SOURCES + 10).unwrap() {
            penalties.add(source(at), Offence::Displaced, now);
        }
        assert_eq!(penalties.penalties.len(), MAX_SOURCES);
        for at in 0..u32::try_from(MAX_SPARED + 10).unwrap() {
            penalties.spare(source(at), now + Duration::from_millis(at.into()));
        }
        assert_eq!(penalties.spared.len(), MAX_SPARED);
        let newest = u32::try_from(MAX_SPARED + 9).unwrap();
        assert!(penalties.is_spared(source(newest), now));
        assert!(!penalties.is_spared(source(0), now));
    }
}
