//! Jobs: operations that continue when the connection that started them closes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::container_ref::ContainerRef;
use super::outcome::OperationEnd;
use super::text_type::text_type;

text_type!(
    /// A job's id: `job_` and 32 hexadecimal digits. It is safe as a file name, and it cannot be guessed.
    JobId,
    { "pattern": "^job_[0-9a-f]{32}$" },
    |id| {
        let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        let digits = id.strip_prefix(PREFIX).unwrap_or_default();
        digits.len() == 32 && digits.bytes().all(digit)
    },
    "a job's id is job_ and 32 hexadecimal digits, as job_start and job_list show it"
);

/// The prefix of every id.
const PREFIX: &str = "job_";

impl JobId {
    /// Creates a new random id.
    pub fn random() -> Self {
        Self(format!("{PREFIX}{}", Uuid::new_v4().simple()))
    }
}

/// The current state of a job. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The job's id.
    pub id: JobId,
    /// The agent that owns the job.
    pub owner: String,
    /// The tool that started it.
    pub tool: String,
    /// The reference of the call that started it, as in the journal and the audit.
    pub reference: String,
    /// The operation that it runs, such as `host_command`.
    pub operation: String,
    /// The container that it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRef>,
    /// The beginning of its command, for people; secrets are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When it began.
    pub began_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<OperationEnd>,
    /// Whether its caller received its end.
    #[serde(default)]
    pub heard: bool,
    /// Bytes that it has printed until now.
    #[serde(default)]
    pub output_bytes: u64,
    /// Bytes printed that could not be written to the disk.
    #[serde(default)]
    pub lost_bytes: u64,
}

/// The header line of a part of a job's output; the bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutputHeader {
    /// The offset of its first byte in the whole output; greater than requested if older output was discarded.
    pub offset: u64,
    /// Bytes that the job has printed so far.
    pub output_bytes: u64,
    /// Whether the job has ended, so that no more output follows.
    pub ended: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_could_be_a_path_is_none() {
        let good = JobId::random();
        assert_eq!(good.as_str().parse(), Ok(good.clone()));
        assert_ne!(good, JobId::random());
        let long = format!("{good}0");
        let upper = good.as_str().replace('_', "_A");
        for bad in [
            "",
            "job_",
            "../x",
            "job_../../../../../../../../../../x",
            &long,
            &upper,
        ] {
            assert!(bad.parse::<JobId>().is_err(), "{bad}");
        }
    }
}
