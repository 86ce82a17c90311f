//! Counts calls by tool, agent and outcome, and measures how long they take.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::exposition::Exposition;
use crate::sys::lock;

/// The most series of calls: triples of tool, agent and outcome. Above it, a new triple is counted under the agent
/// `other`, and a new tool under the tool `other` as well.
const MAX_SERIES: usize = 2048;

/// The label for series above the limit.
const OTHER: &str = "other";

/// The upper bounds of the histogram: a read, a change, a restart, a long command.
const BOUNDS: [(Duration, &str); 7] = [
    (Duration::from_millis(10), "0.01"),
    (Duration::from_millis(50), "0.05"),
    (Duration::from_millis(250), "0.25"),
    (Duration::from_secs(1), "1"),
    (Duration::from_secs(5), "5"),
    (Duration::from_secs(30), "30"),
    (Duration::from_mins(2), "120"),
];

/// Calls that have ended. Counting one takes a short lock; it allocates only for a new series.
#[derive(Debug, Default)]
pub(super) struct CallCounters(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_tool: BTreeMap<String, ToolCounters>,
    series: usize,
}

#[derive(Debug, Default)]
struct ToolCounters {
    by_agent: BTreeMap<String, Vec<(&'static str, u64)>>,
    times: Times,
}

/// Counts each call in the first bucket that it fits; a call that fits none is only in `count`.
#[derive(Debug, Default)]
struct Times {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

impl Times {
    fn add(&mut self, duration: Duration) {
        let fits = |(_, (bound, _)): &(_, &(Duration, _))| duration <= *bound;
        let bucket = self.buckets.iter_mut().zip(&BOUNDS).find(fits);
        if let Some((bucket, _)) = bucket {
            *bucket += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
    }
}

impl Counts {
    /// Adds to an existing series; returns `false` if there is none.
    fn add(&mut self, tool: &str, agent: &str, outcome: &'static str, duration: Duration) -> bool {
        let Some(of_tool) = self.by_tool.get_mut(tool) else {
            return false;
        };
        let outcomes = of_tool.by_agent.get_mut(agent);
        let known = outcomes.and_then(|all| all.iter_mut().find(|(known, _)| *known == outcome));
        let Some((_, count)) = known else {
            return false;
        };
        *count += 1;
        of_tool.times.add(duration);
        true
    }

    fn begin(&mut self, tool: &str, agent: &str, outcome: &'static str) {
        let of_tool = self.by_tool.entry(tool.to_owned()).or_default();
        let outcomes = of_tool.by_agent.entry(agent.to_owned()).or_default();
        outcomes.push((outcome, 0));
        self.series += 1;
    }
}

impl CallCounters {
    pub(super) fn count(&self, tool: &str, agent: &str, outcome: &'static str, duration: Duration) {
        let mut counts = lock(&self.0);
        if counts.add(tool, agent, outcome, duration) {
            return;
        }
        let (tool, agent) = if counts.series < MAX_SERIES {
            (tool, agent)
        } else if counts.by_tool.contains_key(tool) {
            (tool, OTHER)
        } else {
            (OTHER, OTHER)
        };
        // The few series of `other` exceed the limit: as many as there are tools and outcomes.
        if !counts.add(tool, agent, outcome, duration) {
            counts.begin(tool, agent, outcome);
            counts.add(tool, agent, outcome, duration);
        }
    }

    pub(super) fn render(&self, page: &mut Exposition) {
        const CALLS: &str = "gatewren_tool_calls_total";
        let counts = lock(&self.0);
        page.family(CALLS, "counter", "Ended calls, by tool, agent and outcome.");
        for (tool, of_tool) in &counts.by_tool {
            for (agent, outcomes) in &of_tool.by_agent {
                for (outcome, count) in outcomes {
                    let labels = [
                        ("tool", tool.as_str()),
                        ("agent", agent),
                        ("outcome", outcome),
                    ];
                    page.sample(CALLS, &labels, count);
                }
            }
        }
        page.family(
            "gatewren_tool_seconds",
            "histogram",
            "Duration of calls, by tool.",
        );
        for (tool, of_tool) in &counts.by_tool {
            render_times(page, tool, &of_tool.times);
        }
    }
}

fn render_times(page: &mut Exposition, tool: &str, times: &Times) {
    const BUCKET: &str = "gatewren_tool_seconds_bucket";
    let mut so_far = 0;
    for (count, (_, bound)) in times.buckets.iter().zip(&BOUNDS) {
        so_far += count;
        page.sample(BUCKET, &[("tool", tool), ("le", bound)], so_far);
    }
    page.sample(BUCKET, &[("tool", tool), ("le", "+Inf")], times.count);
    let tool = [("tool", tool)];
    page.sample("gatewren_tool_seconds_sum", &tool, times.sum.as_secs_f64());
    page.sample("gatewren_tool_seconds_count", &tool, times.count);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(calls: &CallCounters) -> String {
        let mut page = Exposition::default();
        calls.render(&mut page);
        page.into_text()
    }

    #[test]
    fn a_call_is_counted_and_its_time_is_in_every_bucket_above_it() {
        let calls = CallCounters::default();
        for ms in [3, 300, 500_000] {
            calls.count("unit_status", "agent_1", "ok", Duration::from_millis(ms));
        }
        calls.count("unit_status", "agent_2", "error", Duration::ZERO);
        let page = page(&calls);
        for line in [
            "gatewren_tool_calls_total{tool=\"unit_status\",agent=\"agent_1\",outcome=\"ok\"} 3",
            "gatewren_tool_calls_total{tool=\"unit_status\",agent=\"agent_2\",outcome=\"error\"} 1",
            "gatewren_tool_seconds_bucket{tool=\"unit_status\",le=\"0.01\"} 2",
            "gatewren_tool_seconds_bucket{tool=\"unit_status\",le=\"0.25\"} 2",
            "gatewren_tool_seconds_bucket{tool=\"unit_status\",le=\"1\"} 3",
            "gatewren_tool_seconds_bucket{tool=\"unit_status\",le=\"120\"} 3",
            "gatewren_tool_seconds_bucket{tool=\"unit_status\",le=\"+Inf\"} 4",
            "gatewren_tool_seconds_sum{tool=\"unit_status\"} 500.303",
            "gatewren_tool_seconds_count{tool=\"unit_status\"} 4",
        ] {
            assert!(page.lines().any(|row| row == line), "{line}: {page}");
        }
    }

    #[test]
    fn names_that_somebody_makes_up_do_not_fill_the_memory() {
        let calls = CallCounters::default();
        for n in 0..10_000 {
            calls.count(&format!("tool_{n}"), "agent_1", "unknown", Duration::ZERO);
            calls.count("whoami", &format!("agent_{n}"), "ok", Duration::ZERO);
        }
        let page = page(&calls);
        let series = page.matches("gatewren_tool_calls_total{").count();
        assert_eq!(series, MAX_SERIES + 2, "{page}");
        let other = "{tool=\"other\",agent=\"other\",outcome=\"unknown\"}";
        assert!(page.contains(other), "{page}");
        assert!(page.contains("{tool=\"whoami\",agent=\"other\",outcome=\"ok\"}"));
        let total: u64 = page
            .lines()
            .filter(|line| line.starts_with("gatewren_tool_calls_total{"))
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
            .sum();
        assert_eq!(total, 20_000);
    }
}
