//! Writes the ends of jobs into the audit: they come when the calls that began them are long over.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::backends::{JobEnd, Jobs};
use crate::config::Risk;
use crate::state::{Author, Notice, Notifications, State};
use crate::vault::{AuditReader, AuditWanted, Entry, Outcome, Promise, Vault, VaultError};

/// What the end of a job is called in the audit.
const JOB_END: &str = "job_end";

/// The pause before the helper is asked again after it went away.
const PAUSE: Duration = Duration::from_secs(2);

/// So many ends are known to have been written: more than a helper keeps jobs. Older ones are not told again.
const KNOWN: u32 = 1000;

/// Writes down each end that the helper tells of and that is not written yet, for as long as it is awaited.
pub async fn record_job_ends(jobs: Jobs, (vault, state): (Vault, State), file: PathBuf) {
    let notifications = Notifications::new(state);
    let mut written = None;
    loop {
        // What is wrong with the helper is said by whoever needs it.
        if let Ok(mut ends) = jobs.ends().await {
            while let Some(end) = ends.next().await {
                let id = end.standing.job.to_string();
                // A start has better things to do than to read the audit for what mostly never comes.
                let known = match &mut written {
                    Some(known) => known,
                    None => written.insert(known(file.clone()).await),
                };
                if known.contains(&id) {
                    continue;
                }
                if let Err(cause) = record(&vault, &end).await {
                    tracing::error!(%cause, job = id, "the end of a job could not be written into the audit");
                    break;
                }
                tell(&notifications, &end).await;
                known.push_back(id);
                if known.len() > KNOWN as usize {
                    known.pop_front();
                }
            }
        }
        sleep(PAUSE).await;
    }
}

/// The jobs whose ends stand in the audit.
async fn known(file: PathBuf) -> VecDeque<String> {
    let read = tokio::task::spawn_blocking(move || read_known(&file)).await;
    read.unwrap_or_default()
}

fn read_known(file: &Path) -> VecDeque<String> {
    let wanted = AuditWanted {
        tool: Some(JOB_END.to_owned()),
        limit: KNOWN,
        ..AuditWanted::default()
    };
    let calls = AuditReader::open(file).and_then(|audit| audit.calls(&wanted));
    let calls = calls.unwrap_or_else(|cause| {
        tracing::error!(%cause, "the audit could not be read; ends of jobs may be written twice");
        Vec::new()
    });
    calls
        .into_iter()
        .rev()
        .filter_map(|call| call.target)
        .collect()
}

/// Has the owner hear of a job that failed, unless its agent had it ended.
async fn tell(notifications: &Notifications, end: &JobEnd) {
    let standing = &end.standing;
    if standing.state == "done" || standing.killed_because == Some("cancelled") {
        return;
    }
    let code = standing.exit_code.map(|code| format!(", exit code {code}"));
    let why = standing
        .killed_because
        .map(|why| format!(", because of {why}"));
    let notice = Notice {
        container: standing.container.as_ref().map(ToString::to_string),
        level: "error",
        title: format!("a job of {} failed", standing.tool),
        message: format!(
            "{} {}{}{}. Its agent reads with job_output what it printed.",
            standing.job,
            standing.state,
            code.unwrap_or_default(),
            why.unwrap_or_default()
        ),
        change: None,
    };
    let author = Author::observer().because(end.reference.clone());
    if let Err(cause) = notifications.add(&author, notice).await {
        tracing::warn!(%cause, "a notification could not be kept");
    }
}

async fn record(vault: &Vault, end: &JobEnd) -> Result<(), VaultError> {
    let standing = &end.standing;
    let arguments = json!({
        "tool": standing.tool,
        "container": standing.container,
        "exit_code": standing.exit_code,
        "killed_because": standing.killed_because,
        "output_bytes": standing.output_bytes,
        "ended_at": standing.ended_at,
    });
    let entry = Entry {
        agent: &end.owner,
        token: None,
        space: None,
        session: None,
        request: Some(&end.reference),
        address: "local",
        tool: JOB_END,
        risk: Risk::Write.as_str(),
        arguments: &arguments,
        target: Some(standing.job.as_str()),
        mode: None,
        decision: "job",
        change: None,
    };
    let id = vault.audit().intent(entry, Promise::Committed).await?;
    let outcome = Outcome {
        status: if standing.state == "done" {
            "ok"
        } else {
            standing.state
        },
        duration_ms: end.duration_ms,
        revision_before: None,
        revision: None,
    };
    vault.audit().outcome(&id, outcome)
}
