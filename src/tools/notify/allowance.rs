//! The limit of messages that an agent may send in an hour.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use gatewren_base::sys::lock;
use tokio::time::Instant;

/// The period of the limit.
const HOUR: Duration = Duration::from_hours(1);

/// The most agents that are remembered. At the limit, agents that sent nothing for an hour are forgotten; if there
/// are none, a new agent has to wait.
const MAX_AGENTS: usize = 1024;

/// The times of each agent's messages in the last hour.
#[derive(Debug, Default)]
pub struct MessageQuota(Mutex<HashMap<String, VecDeque<Instant>>>);

impl MessageQuota {
    /// Takes one of an agent's messages; the error is the number of seconds until the next is allowed.
    pub fn take(&self, agent: &str, most: u32, now: Instant) -> Result<(), u64> {
        let mut sent = lock(&self.0);
        let recent = |at: &Instant| now.saturating_duration_since(*at) < HOUR;
        if sent.len() >= MAX_AGENTS && !sent.contains_key(agent) {
            sent.retain(|_, times| times.back().is_some_and(recent));
            if sent.len() >= MAX_AGENTS {
                return Err(HOUR.as_secs());
            }
        }
        let times = sent.entry(agent.to_owned()).or_default();
        while times.front().is_some_and(|at| !recent(at)) {
            times.pop_front();
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if let Some(oldest) = times.front().filter(|_| times.len() >= most) {
            let passed = now.saturating_duration_since(*oldest);
            return Err(HOUR.saturating_sub(passed).as_secs().max(1));
        }
        times.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_so_many_an_hour() {
        let (allowance, begun) = (MessageQuota::default(), Instant::now());
        let minute = |minutes: u64| begun + Duration::from_mins(minutes);
        assert_eq!(allowance.take("a", 2, begun), Ok(()));
        assert_eq!(allowance.take("a", 2, minute(30)), Ok(()));
        assert_eq!(allowance.take("a", 2, minute(40)), Err(20 * 60));
        assert_eq!(allowance.take("b", 2, minute(40)), Ok(()), "another one");
        assert_eq!(allowance.take("a", 2, minute(60)), Ok(()), "an hour later");
        assert_eq!(allowance.take("a", 2, minute(61)), Err(29 * 60));
    }

    #[test]
    fn agents_are_no_way_to_fill_the_memory() {
        let (allowance, now) = (MessageQuota::default(), Instant::now());
        for agent in 0..MAX_AGENTS {
            assert_eq!(allowance.take(&agent.to_string(), 1, now), Ok(()));
        }
        assert!(allowance.take("one more", 1, now).is_err());
        assert_eq!(allowance.take("one more", 1, now + HOUR), Ok(()));
    }
}
