//! The metrics that are measured during a scrape, in addition to the counters.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use gatewren_base::sys::{lock, now_ms};
use gatewren_base::telemetry::{Exposition, Metrics};
use gatewren_gate::http::TlsServer;
use gatewren_host::backends::Jobs;
use gatewren_store::state::State;
use gatewren_store::vault::{AuditReader, ChainVerification, ChangeStatus, Vault};

/// The maximum number of agents with a name on the page; the calls of others are counted all the same.
const MAX_AGENTS: usize = 512;

/// The timeout for asking the helper for its jobs; after it, the page has no jobs.
const JOBS_BOUND: Duration = Duration::from_secs(2);

/// How old the verification of the audit's chain may get. It is repeated only on a scrape, because it reads every
/// row.
const CHAIN_AGE: Duration = Duration::from_hours(6);

/// The sources of the metrics.
pub struct MetricsScrape {
    vault: Vault,
    state: State,
    /// `None` for plain HTTP on loopback.
    tls: Option<Arc<TlsServer>>,
    jobs: Jobs,
    /// The vault's file.
    audit: PathBuf,
    chain: Arc<Mutex<ChainSeen>>,
}

/// The result of the last verification of the audit's chain.
#[derive(Debug, Default)]
struct ChainSeen {
    /// Whether every row was as it was written, and when that was checked, in milliseconds since 1970.
    found: Option<(bool, u64)>,
    /// When the last verification began.
    begun: Option<Instant>,
}

impl MetricsScrape {
    /// The jobs of the helper.
    pub fn jobs(&self) -> Jobs {
        self.jobs.clone()
    }

    /// Measures these, and the audit in the vault's file.
    pub fn new(
        vault: &Vault,
        state: &State,
        jobs: Jobs,
        tls: Option<Arc<TlsServer>>,
        audit: PathBuf,
    ) -> Self {
        Self {
            vault: vault.clone(),
            state: state.clone(),
            tls,
            jobs,
            audit,
            chain: Arc::default(),
        }
    }

    /// Returns the page.
    pub async fn page(&self, metrics: &Metrics) -> String {
        self.look_at_chain();
        let mut page = Exposition::default();
        metrics.render(&mut page);
        self.render_vault(&mut page);
        page.single(
            "gatewren_state_revision",
            "gauge",
            "The newest revision of the state document.",
            self.state.document().revision,
        );
        if let Some(tls) = &self.tls {
            let now = i64::try_from(now_ms() / 1000).unwrap_or(i64::MAX);
            page.single(
                "gatewren_tls_cert_expiry_seconds",
                "gauge",
                "Seconds until the certificate that is served expires.",
                tls.expires().saturating_sub(now),
            );
        }
        if let Ok(Ok(all)) = timeout(JOBS_BOUND, self.jobs.of_all_agents("metrics").all()).await {
            let running = all.jobs.iter().filter(|job| job.ended_at.is_none());
            let help = "Background jobs that are running.";
            page.single("gatewren_jobs_running", "gauge", help, running.count());
        }
        self.render_chain(&mut page);
        page.into_text()
    }

    /// Values that cannot be read are left out: an unknown value is not 0.
    fn render_vault(&self, page: &mut Exposition) {
        if let Ok(open) = self.vault.changes().list(true) {
            let waits = |status| status == ChangeStatus::Pending;
            page.single(
                "gatewren_inbox_pending",
                "gauge",
                "Changes that agents proposed and that are pending.",
                open.iter().filter(|change| waits(change.status)).count(),
            );
        }
        if let Ok(all) = self.vault.subscriptions().list() {
            page.single(
                "gatewren_subscriptions",
                "gauge",
                "Resources that sessions are subscribed to.",
                all.len(),
            );
        }
        if let Ok(agents) = self.vault.agents().list() {
            const INFO: &str = "gatewren_agent_info";
            page.family(INFO, "gauge", "The names of the agents in other metrics.");
            let current = agents.iter().filter(|agent| agent.revoked_ms.is_none());
            for agent in current.take(MAX_AGENTS) {
                page.sample(INFO, &[("agent", &agent.id), ("name", &agent.name)], 1);
            }
        }
    }

    fn render_chain(&self, page: &mut Exposition) {
        let Some((is_ok, seen_ms)) = lock(&self.chain).found else {
            return;
        };
        page.single(
            "gatewren_audit_chain_ok",
            "gauge",
            "Whether all rows of the audit were intact at the last check.",
            u8::from(is_ok),
        );
        page.single(
            "gatewren_audit_chain_seen_timestamp_seconds",
            "gauge",
            "The time of the last check of the audit.",
            seen_ms / 1000,
        );
    }

    /// Starts verifying the chain in the background, if the last time is long ago.
    fn look_at_chain(&self) {
        {
            let mut seen = lock(&self.chain);
            if seen.begun.is_some_and(|begun| begun.elapsed() < CHAIN_AGE) {
                return;
            }
            seen.begun = Some(Instant::now());
        }
        let (file, chain) = (self.audit.clone(), self.chain.clone());
        tokio::task::spawn_blocking(move || {
            match AuditReader::open(&file).and_then(|audit| audit.verify()) {
                Ok(ChainVerification::Intact { .. }) => lock(&chain).found = Some((true, now_ms())),
                Ok(ChainVerification::Broken { seq, fault }) => {
                    let fault = fault.as_str();
                    tracing::error!(seq, fault, "the audit was altered");
                    lock(&chain).found = Some((false, now_ms()));
                }
                Err(cause) => tracing::warn!(%cause, "cannot check the audit"),
            }
        });
    }
}
