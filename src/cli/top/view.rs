//! The state of the calls: running, recently ended, and their rate.

use std::collections::{BTreeMap, VecDeque};

use gatewren_store::vault::{PolledRow, VaultError, VaultPoller, WaitingChange};

/// The maximum number of ended calls to remember. All but the newest are forgotten after a minute.
const MOST_ENDED: usize = 20_000;

/// The newest calls that are kept whatever their age: as many as a tall terminal shows.
const SHOWN: usize = 100;

/// The period of the rates.
const MINUTE_MS: u64 = 60_000;

/// The maximum number of running calls; further ones are not shown.
const MOST_OPEN: usize = 10_000;

/// Everything, as of the last look.
#[derive(Debug, Default)]
pub struct TopState {
    /// The number of the last row that was read.
    seen: i64,
    /// Running calls by the number of the row that began them, so the oldest is first.
    open: BTreeMap<i64, PolledRow>,
    /// The row that began a call, by the call's id.
    begun: BTreeMap<String, i64>,
    /// Ended calls, the newest last: the row that began each, and the row that ended it.
    ended: VecDeque<(PolledRow, PolledRow)>,
    names: BTreeMap<String, String>,
    waiting: (Vec<WaitingChange>, i64),
}

/// The counts of the last minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallRate {
    /// Calls that ended.
    pub calls: usize,
    /// Calls that ended without success.
    pub failed: usize,
    /// The median duration, in milliseconds.
    pub median_ms: i64,
}

impl TopState {
    /// Reads the new rows.
    pub fn look(&mut self, glance: &VaultPoller, now: u64) -> Result<(), VaultError> {
        let steps = glance.since(self.seen)?;
        let is_gap = steps.first().is_some_and(|first| first.seq > self.seen + 1);
        if is_gap && self.seen > 0 {
            // Some rows were skipped, perhaps with the ends of calls.
            self.open.clear();
            self.begun.clear();
        }
        for step in steps {
            self.seen = step.seq;
            self.take(step);
        }
        // Calls that an earlier server left open ended with it.
        let from = glance.run_after()?;
        self.open.retain(|seq, _| *seq > from);
        self.begun.retain(|_, seq| *seq > from);
        self.forget(now);
        self.names = glance.names()?.into_iter().collect();
        self.waiting = glance.waiting()?;
        Ok(())
    }

    pub(super) fn take(&mut self, step: PolledRow) {
        if step.ended.is_some() && step.begins {
            // The call's only row has the time of its begin.
            let took = step.ended.as_ref().map_or(0, |(_, took)| *took);
            let end = PolledRow {
                at_ms: step.at_ms.saturating_add(took),
                ..step.clone()
            };
            self.ended.push_back((step, end));
        } else if step.ended.is_some() {
            let begun = self.begun.remove(&step.call);
            if let Some(first) = begun.and_then(|seq| self.open.remove(&seq)) {
                self.ended.push_back((first, step));
            }
        } else if self.open.len() < MOST_OPEN {
            self.begun.insert(step.call.clone(), step.seq);
            self.open.insert(step.seq, step);
        }
    }

    fn forget(&mut self, now: u64) {
        let old = now.saturating_sub(MINUTE_MS);
        while self.ended.len() > SHOWN
            && (self.ended.len() > MOST_ENDED
                || self.ended.front().is_some_and(|(_, end)| at(end) < old))
        {
            self.ended.pop_front();
        }
    }

    /// The running calls, the oldest first.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &PolledRow> {
        self.open.values()
    }

    /// The ended calls, the newest first.
    pub fn ended_calls(&self) -> impl Iterator<Item = (&PolledRow, &PolledRow)> {
        self.ended.iter().rev().map(|(begun, end)| (begun, end))
    }

    /// The pending changes, and their total number.
    pub fn waiting(&self) -> (&[WaitingChange], i64) {
        (&self.waiting.0, self.waiting.1)
    }

    /// The name of an agent, or its id if it is unknown.
    pub fn name<'a>(&'a self, agent: &'a str) -> &'a str {
        self.names.get(agent).map_or(agent, String::as_str)
    }

    /// The counts of the last minute.
    pub fn rate(&self, now: u64) -> CallRate {
        let old = now.saturating_sub(MINUTE_MS);
        let recent = || self.ended.iter().filter(|(_, end)| at(end) >= old);
        let mut took: Vec<i64> = recent()
            .filter_map(|(_, end)| Some(end.ended.as_ref()?.1))
            .collect();
        took.sort_unstable();
        CallRate {
            calls: took.len(),
            failed: recent().filter(|(_, end)| !is_success(end)).count(),
            median_ms: took.get(took.len() / 2).copied().unwrap_or(0),
        }
    }
}

fn at(step: &PolledRow) -> u64 {
    u64::try_from(step.at_ms).unwrap_or(0)
}

/// Whether a call ended as its caller wanted, or continues in the background.
pub(super) fn is_success(end: &PolledRow) -> bool {
    end.ended
        .as_ref()
        .is_some_and(|(outcome, _)| ["ok", "job", "proposed", "task"].contains(&outcome.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started_row(seq: i64) -> PolledRow {
        PolledRow {
            seq,
            at_ms: 1_000,
            call: seq.to_string(),
            begins: true,
            ended: None,
            agent: "agent_1".to_owned(),
            tool: "whoami".to_owned(),
            target: None,
        }
    }

    fn end(of: i64, outcome: &str, took: i64) -> PolledRow {
        PolledRow {
            seq: of + 1000,
            call: of.to_string(),
            begins: false,
            ended: Some((outcome.to_owned(), took)),
            ..started_row(of)
        }
    }

    #[test]
    fn calls_run_until_they_end_and_are_counted_for_a_minute() {
        let mut view = TopState::default();
        for seq in 1..=4 {
            view.take(started_row(seq));
        }
        assert_eq!(view.open().len(), 4);
        view.take(end(2, "ok", 5));
        view.take(end(1, "failed", 9));
        view.take(end(3, "job", 7));
        view.take(end(77, "ok", 1));
        assert_eq!(view.open().map(|step| step.seq).collect::<Vec<_>>(), [4]);
        let newest: Vec<i64> = view.ended_calls().map(|(begun, _)| begun.seq).collect();
        assert_eq!(newest, [3, 1, 2]);
        let rate = CallRate {
            calls: 3,
            failed: 1,
            median_ms: 7,
        };
        assert_eq!(view.rate(2_000), rate);
        assert_eq!(view.rate(61_001), CallRate::default());
    }
}
