//! Writes the ends of jobs into the audit: they happen long after the calls that started the jobs.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use gatewren_base::config::Risk;
use gatewren_host::backends::{JobStatus, Jobs, KillReason};
use gatewren_store::state::{Author, Notice, Notifications, State};
use gatewren_store::vault::{AuditEntry, AuditOutcome, AuditReader, CallFilter, Vault, VaultError};

/// The tool name of the end of a job in the audit.
const JOB_END: &str = "job_end";

/// The pause before the helper is asked again after it disconnected.
const PAUSE: Duration = Duration::from_secs(2);

/// The number of recorded ends to remember: more than a helper keeps jobs. The helper does not report older ones
/// again.
const KNOWN: u32 = 1000;

/// Records each end that the helper reports and that is not recorded yet, while it runs.
pub async fn record_job_ends(jobs: Jobs, vault: Vault, state: State, file: PathBuf) {
    let notifications = Notifications::new(state);
    let mut written = None;
    loop {
        // Errors of the helper are reported by the code that needs it.
        if let Ok(mut ends) = jobs.ends().await {
            while let Some(job) = ends.next().await {
                let id = job.job.to_string();
                // Read on demand: at most starts no job has ended, and reading the audit takes time.
                let known = match &mut written {
                    Some(known) => known,
                    None => written.insert(load_recorded_jobs(file.clone()).await),
                };
                if known.contains(&id) {
                    continue;
                }
                if let Err(cause) = record(&vault, &job).await {
                    tracing::error!(%cause, job = id, "cannot write the end of a job to the audit");
                    break;
                }
                notify_owner(&notifications, &job).await;
                known.push_back(id);
                if known.len() > KNOWN as usize {
                    known.pop_front();
                }
            }
        }
        sleep(PAUSE).await;
    }
}

/// The jobs with an end in the audit.
async fn load_recorded_jobs(file: PathBuf) -> VecDeque<String> {
    let read = tokio::task::spawn_blocking(move || read_recorded_jobs(&file)).await;
    read.unwrap_or_default()
}

fn read_recorded_jobs(file: &Path) -> VecDeque<String> {
    let wanted = CallFilter {
        tool: Some(JOB_END.to_owned()),
        limit: KNOWN,
        ..CallFilter::default()
    };
    let calls = AuditReader::open(file).and_then(|audit| audit.calls(&wanted));
    let calls = calls.unwrap_or_else(|cause| {
        tracing::error!(%cause, "cannot read the audit; ends of jobs may be written twice");
        Vec::new()
    });
    calls
        .into_iter()
        .rev()
        .filter_map(|call| call.target)
        .collect()
}

/// Notifies the owner of a job that failed, unless its agent cancelled it.
async fn notify_owner(notifications: &Notifications, job: &JobStatus) {
    if job.state == "done" || job.killed_because == Some(KillReason::Cancelled) {
        return;
    }
    let code = job.exit_code.map(|code| format!(", exit code {code}"));
    let why = job.killed_because.map(|why| format!(", because {why}"));
    let notice = Notice {
        container: job.container.as_ref().map(ToString::to_string),
        level: "error",
        title: format!("a job of {} failed", job.tool),
        message: format!(
            "{} {}{}{}. Its agent can read the output with job_output.",
            job.job,
            job.state,
            code.unwrap_or_default(),
            why.unwrap_or_default()
        ),
        change: None,
    };
    let author = Author::observer().because(job.reference.clone());
    if let Err(cause) = notifications.add(&author, notice).await {
        tracing::warn!(%cause, "cannot store a notification");
    }
}

async fn record(vault: &Vault, job: &JobStatus) -> Result<(), VaultError> {
    let arguments = json!({
        "tool": job.tool,
        "container": job.container,
        "exit_code": job.exit_code,
        "killed_because": job.killed_because.map(KillReason::as_str),
        "output_bytes": job.output_bytes,
        "ended_at": job.ended_at,
    });
    let entry = AuditEntry {
        agent: &job.owner,
        token: None,
        space: None,
        session: None,
        request: Some(&job.reference),
        address: "local",
        tool: JOB_END,
        risk: Risk::Write.as_str(),
        arguments: &arguments,
        reason: None,
        target: Some(job.job.as_str()),
        mode: None,
        decision: "job",
        change: None,
    };
    let id = vault.audit().intent(entry).await?;
    let outcome = AuditOutcome {
        outcome: if job.state == "done" { "ok" } else { job.state },
        duration_ms: job.duration_ms,
        revision_before: None,
        revision: None,
        error: job.killed_because.map(KillReason::as_str),
    };
    vault.audit().outcome(&id, outcome)
}
