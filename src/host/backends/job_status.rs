//! The state of a job, as the tools return it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{ContainerRef, Job, JobId, KillReason, OperationEnd};
use gatewren_base::sys::rfc3339;

/// The state of a job that has not ended.
pub const RUNNING: &str = "running";

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobStatus {
    /// The job's id.
    pub job: JobId,
    /// `running`; or, when it has ended: `done`, `failed`, `killed`, or `lost` if the helper ended before it.
    pub state: &'static str,
    /// The tool that started it.
    pub tool: String,
    /// The container that it concerns; absent for the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRef>,
    /// The beginning of its command, if it runs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The exit code, if it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it, if this server did not send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it was killed, if it was: `timeout`, `output`, `cancelled`, `shutdown`, `memory`, `reaper lost` or `lost`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::outcome::kill_word"
    )]
    #[schemars(with = "Option<&'static str>")]
    pub killed_because: Option<KillReason>,
    /// Why it did not start, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The start time, RFC 3339.
    pub began_at: String,
    /// The end time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The number of bytes that it has printed so far.
    pub output_bytes: u64,
    /// The number of those bytes that could not be written to disk.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_bytes: u64,
    /// The agent that owns it.
    #[serde(skip)]
    pub owner: String,
    /// The call that started it, as named in the journal and the audit.
    #[serde(skip)]
    pub reference: String,
    /// How long it ran, in milliseconds; 0 while it runs.
    #[serde(skip)]
    pub duration_ms: u64,
}

/// The jobs of an agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct JobStatusList {
    /// The jobs, newest first.
    pub jobs: Vec<JobStatus>,
}

impl From<Job> for JobStatus {
    fn from(job: Job) -> Self {
        let state = match &job.ending {
            None => RUNNING,
            Some(OperationEnd::Exited { code: 0 }) => "done",
            Some(OperationEnd::Killed {
                why: KillReason::Lost,
            }) => "lost",
            Some(OperationEnd::Killed { .. }) => "killed",
            Some(_) => "failed",
        };
        let end = job.ending.as_ref();
        Self {
            job: job.id,
            state,
            tool: job.tool,
            container: job.container,
            command: job.command,
            exit_code: end.and_then(OperationEnd::exit_code),
            signal: end.and_then(OperationEnd::signal),
            killed_because: end.and_then(OperationEnd::kill_reason),
            began_at: rfc3339(job.began_ms),
            ended_at: job.ended_ms.map(rfc3339),
            output_bytes: job.output_bytes,
            lost_bytes: job.lost_bytes,
            owner: job.owner,
            reference: job.reference,
            duration_ms: job
                .ended_ms
                .map_or(0, |end| end.saturating_sub(job.began_ms)),
            error: match job.ending {
                Some(OperationEnd::Refused(refusal)) => Some(refusal.message),
                _ => None,
            },
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ending_is_a_state() {
        let job = |ending| Job {
            id: JobId::random(),
            owner: "a".into(),
            tool: "job_start".into(),
            reference: "r".into(),
            operation: "host_command".into(),
            container: None,
            command: None,
            began_ms: 0,
            ended_ms: None,
            ending,
            heard: false,
            output_bytes: 1,
            lost_bytes: 0,
        };
        let status = |ending| JobStatus::from(job(ending));
        let state = |ending| status(ending).state;
        assert_eq!(state(None), "running");
        assert_eq!(state(Some(OperationEnd::SUCCESS)), "done");
        assert_eq!(state(Some(OperationEnd::Exited { code: 1 })), "failed");
        assert_eq!(state(Some(OperationEnd::Signalled { signal: 9 })), "failed");
        let killed = |why| status(Some(OperationEnd::Killed { why }));
        assert_eq!(killed(KillReason::Lost).state, "lost");
        let cancelled = killed(KillReason::Cancelled);
        assert_eq!(
            (cancelled.state, cancelled.killed_because),
            ("killed", Some(KillReason::Cancelled))
        );
    }
}
