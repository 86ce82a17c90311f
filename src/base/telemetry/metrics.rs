//! Counters of events, for the metrics page and for the status line.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::calls::CallCounters;
use super::exposition::Exposition;
use crate::sys::lock;

/// The reasons of failed authentication, which are also counted together. The names are those of the guard.
const AUTH_FAILURES: [&str; 8] = [
    "agent_required",
    "address_not_allowed",
    "edge_identity_required",
    "header_required",
    "login_locked",
    "no_space_scope",
    "policy_unreadable",
    "wrong_password",
];

/// The counters since the start. All methods may be called from any thread at any time.
#[derive(Debug, Default)]
pub struct Metrics {
    connections: AtomicU64,
    connections_open: Arc<AtomicU64>,
    requests: AtomicU64,
    calls_open: Arc<AtomicU64>,
    streams_open: Arc<AtomicU64>,
    tasks_running: Arc<AtomicU64>,
    /// By reason; the reasons are our own constants.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    calls: CallCounters,
}

/// Something that is open; dropping it counts it as closed.
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
    /// Counts an accepted connection; it is open until the guard is dropped.
    pub fn connection(&self) -> OpenGuard {
        self.connections.fetch_add(1, Ordering::Relaxed);
        OpenGuard::of(&self.connections_open)
    }

    /// Counts a request.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that has begun; it is in progress until the guard is dropped.
    pub fn call(&self) -> OpenGuard {
        OpenGuard::of(&self.calls_open)
    }

    /// Counts an opened stream; it is open until the guard is dropped.
    pub fn stream(&self) -> OpenGuard {
        OpenGuard::of(&self.streams_open)
    }

    /// Counts a call that became a task; it runs until the guard is dropped.
    pub fn task(&self) -> OpenGuard {
        OpenGuard::of(&self.tasks_running)
    }

    /// Counts a rejected request, with a reason such as `origin`.
    pub fn count_refusal(&self, reason: &'static str) {
        let mut refusals = lock(&self.refusals);
        *refusals.entry(reason).or_default() += 1;
    }

    /// Counts an agent's call of a tool that has ended, with an outcome such as `ok` and its duration.
    pub fn count_call(&self, tool: &str, agent: &str, outcome: &'static str, duration: Duration) {
        self.calls.count(tool, agent, outcome, duration);
    }

    /// The connections that are open now.
    pub fn connections_open(&self) -> u64 {
        self.connections_open.load(Ordering::Relaxed)
    }

    /// Writes all counters in the text format of Prometheus.
    pub fn render(&self, page: &mut Exposition) {
        page.family("gatewren_build_info", "gauge", "The version of gatewren.");
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        page.sample("gatewren_build_info", &version, 1);
        for (name, kind, help, value) in self.plain() {
            page.single(name, kind, help, value.load(Ordering::Relaxed));
        }
        self.render_refusals(page);
        self.calls.render(page);
    }

    #[rustfmt::skip]
    fn plain(&self) -> [(&'static str, &'static str, &'static str, &AtomicU64); 6] {
        [
            ("gatewren_connections_total", "counter", "Accepted connections.", &self.connections),
            ("gatewren_connections_open", "gauge", "Open connections.", &self.connections_open),
            ("gatewren_requests_total", "counter", "Received HTTP requests.", &self.requests),
            ("gatewren_calls_open", "gauge", "Messages of agents in progress.", &self.calls_open),
            ("gatewren_streams_open", "gauge", "Open event streams.", &self.streams_open),
            ("gatewren_tasks_running", "gauge", "Calls that run as tasks.", &self.tasks_running),
        ]
    }

    fn render_refusals(&self, page: &mut Exposition) {
        const REFUSALS: &str = "gatewren_refusals_total";
        let refusals = lock(&self.refusals);
        page.family(REFUSALS, "counter", "Rejected requests, by reason.");
        for (reason, count) in &*refusals {
            page.sample(REFUSALS, &[("reason", reason)], count);
        }
        let failures = AUTH_FAILURES
            .iter()
            .filter_map(|reason| refusals.get(reason));
        page.single(
            "gatewren_auth_failures_total",
            "counter",
            "Requests with failed authentication: an invalid token, a wrong password or a network that is not allowed.",
            failures.sum::<u64>(),
        );
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
        for reason in ["origin", "origin", "agent_required", "wrong_password"] {
            metrics.count_refusal(reason);
        }
        metrics.count_call("unit_status", "agent_1", "ok", Duration::ZERO);
        assert_eq!(metrics.connections_open(), 1);
        let mut page = Exposition::default();
        metrics.render(&mut page);
        let page = page.into_text();
        for line in [
            "# TYPE gatewren_connections_total counter",
            "gatewren_connections_total 2",
            "gatewren_connections_open 1",
            "gatewren_requests_total 1",
            "gatewren_calls_open 0",
            "gatewren_streams_open 1",
            "gatewren_tasks_running 0",
            "gatewren_refusals_total{reason=\"origin\"} 2",
            "gatewren_auth_failures_total 2",
            "gatewren_tool_calls_total{tool=\"unit_status\",agent=\"agent_1\",outcome=\"ok\"} 1",
        ] {
            assert!(page.lines().any(|row| row == line), "{line}: {page}");
        }
        let families = page.matches("# TYPE ").count();
        assert_eq!(page.matches("# HELP ").count(), families);
        drop(open);
        assert_eq!(metrics.connections_open(), 0);
    }
}
