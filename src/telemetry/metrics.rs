//! Counters of what happens, for the metrics page and for the status line.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Different labels of one counter; at it, further ones are counted together as `other`.
const MAX_LABELS: usize = 512;

/// What was counted since the start. All of it may be called from anywhere at any time.
#[derive(Debug, Default)]
pub struct Metrics {
    connections: AtomicU64,
    connections_open: Arc<AtomicU64>,
    requests: AtomicU64,
    calls_open: Arc<AtomicU64>,
    streams_open: Arc<AtomicU64>,
    tasks_running: Arc<AtomicU64>,
    refusals: Labelled,
    calls: Labelled,
}

/// Something open; dropping it says that it is closed.
#[derive(Debug)]
pub struct OpenGuard(Arc<AtomicU64>);

impl OpenGuard {
    fn of(counter: &Arc<AtomicU64>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A connection was accepted; it is open until the guard is dropped.
    pub fn connection(&self) -> OpenGuard {
        self.connections.fetch_add(1, Ordering::Relaxed);
        OpenGuard::of(&self.connections_open)
    }

    /// A request came in.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// A call has begun; it is under way until the guard is dropped.
    pub fn call(&self) -> OpenGuard {
        OpenGuard::of(&self.calls_open)
    }

    /// A stream was opened; it is open until the guard is dropped.
    pub fn stream(&self) -> OpenGuard {
        OpenGuard::of(&self.streams_open)
    }

    /// A call became a task; it runs until the guard is dropped.
    pub fn task(&self) -> OpenGuard {
        OpenGuard::of(&self.tasks_running)
    }

    /// A request was refused, for a reason such as `origin`.
    pub fn refused(&self, reason: &'static str) {
        self.refusals.count(reason, "");
    }

    /// A call has ended, with an outcome such as `ok`.
    pub fn called(&self, tool: &str, outcome: &'static str) {
        self.calls.count(tool, outcome);
    }

    /// Connections that are open now.
    pub fn connections_open(&self) -> u64 {
        self.connections_open.load(Ordering::Relaxed)
    }

    /// Everything in the text format of Prometheus.
    pub fn render(&self) -> String {
        let plain = [
            ("gatewren_connections_total", "counter", &self.connections),
            (
                "gatewren_connections_open",
                "gauge",
                &*self.connections_open,
            ),
            ("gatewren_requests_total", "counter", &self.requests),
            ("gatewren_calls_open", "gauge", &*self.calls_open),
            ("gatewren_streams_open", "gauge", &*self.streams_open),
            ("gatewren_tasks_running", "gauge", &*self.tasks_running),
        ];
        let mut lines = Vec::new();
        for (name, kind, value) in plain {
            lines.push(format!("# TYPE {name} {kind}"));
            lines.push(format!("{name} {}", value.load(Ordering::Relaxed)));
        }
        lines.push("# TYPE gatewren_refusals_total counter".to_owned());
        lines.extend(self.refusals.lines(|(reason, _), count| {
            format!("gatewren_refusals_total{{reason=\"{reason}\"}} {count}")
        }));
        lines.push("# TYPE gatewren_tool_calls_total counter".to_owned());
        lines.extend(self.calls.lines(|(tool, outcome), count| {
            format!("gatewren_tool_calls_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}")
        }));
        lines.push(String::new());
        lines.join("\n")
    }
}

/// A counter for each pair of labels that was met.
#[derive(Debug, Default)]
struct Labelled(Mutex<Counts>);

/// By the first label and the second, and how many pairs there are.
#[derive(Debug, Default)]
struct Counts {
    by_label: BTreeMap<String, BTreeMap<&'static str, u64>>,
    pairs: usize,
}

impl Counts {
    fn of(&mut self, label: &str, second: &'static str) -> Option<&mut u64> {
        self.by_label.get_mut(label)?.get_mut(second)
    }
}

impl Labelled {
    fn count(&self, label: &str, second: &'static str) {
        // Such a label would need escaping, and none of ours looks like that.
        let plain = label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        let label = if plain { label } else { "other" };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.of(label, second) {
            *count += 1;
            return;
        }
        let label = if counts.pairs < MAX_LABELS {
            label
        } else {
            "other"
        };
        let of_label = counts.by_label.entry(label.to_owned()).or_default();
        let is_new = of_label.insert(second, of_label.get(second).map_or(1, |n| n + 1));
        counts.pairs += usize::from(is_new.is_none());
    }

    fn lines(&self, line: impl Fn((&str, &'static str), u64) -> String) -> Vec<String> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = counts.by_label.iter().flat_map(|(label, of_label)| {
            let counts = of_label.iter();
            counts.map(move |(second, count)| ((label.as_str(), *second), *count))
        });
        pairs.map(|(labels, count)| line(labels, count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_was_counted() {
        let metrics = Metrics::default();
        let open = metrics.connection();
        drop(metrics.connection());
        metrics.request();
        let _stream = metrics.stream();
        drop(metrics.call());
        metrics.refused("origin");
        metrics.refused("origin");
        metrics.called("unit_status", "ok");
        metrics.called("\"}\n", "error");
        assert_eq!(metrics.connections_open(), 1);
        assert_eq!(
            metrics.render(),
            "\
# TYPE gatewren_connections_total counter
gatewren_connections_total 2
# TYPE gatewren_connections_open gauge
gatewren_connections_open 1
# TYPE gatewren_requests_total counter
gatewren_requests_total 1
# TYPE gatewren_calls_open gauge
gatewren_calls_open 0
# TYPE gatewren_streams_open gauge
gatewren_streams_open 1
# TYPE gatewren_tasks_running gauge
gatewren_tasks_running 0
# TYPE gatewren_refusals_total counter
gatewren_refusals_total{reason=\"origin\"} 2
# TYPE gatewren_tool_calls_total counter
gatewren_tool_calls_total{tool=\"other\",outcome=\"error\"} 1
gatewren_tool_calls_total{tool=\"unit_status\",outcome=\"ok\"} 1
"
        );
        drop(open);
        assert_eq!(metrics.connections_open(), 0);
    }

    #[test]
    fn names_that_somebody_makes_up_do_not_fill_the_memory() {
        let metrics = Metrics::default();
        for n in 0..10_000 {
            metrics.called(&format!("tool_{n}"), "unknown");
        }
        let page = metrics.render();
        assert!(page.lines().count() < MAX_LABELS + 20);
        assert!(
            page.contains("{tool=\"other\",outcome=\"unknown\"} 9488"),
            "{page}"
        );
    }
}
