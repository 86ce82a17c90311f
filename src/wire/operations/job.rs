//! Jobs: operations that continue when the connection that started them closes.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::name::ContainerName;
use super::outcome::OperationEnd;

/// A job's id: `job_` and 32 hexadecimal digits. It is safe as a file name, and it cannot be guessed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

/// The prefix of every id.
const PREFIX: &str = "job_";

/// The number of hexadecimal digits after the prefix.
const DIGITS: usize = 32;

/// The id's shape as a pattern of JSON Schema (ECMA-262).
const PATTERN: &str = "^job_[0-9a-f]{32}$";

impl JobId {
    /// Creates a new random id.
    pub fn random() -> Self {
        Self(format!("{PREFIX}{}", Uuid::new_v4().simple()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is no valid job id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidJobId;

impl fmt::Display for InvalidJobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a job's id is job_ and 32 hexadecimal digits, as job_start and job_list show it",
        )
    }
}

impl std::error::Error for InvalidJobId {}

impl TryFrom<String> for JobId {
    type Error = InvalidJobId;

    fn try_from(id: String) -> Result<Self, InvalidJobId> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let digits = id.strip_prefix(PREFIX).unwrap_or_default();
        if digits.len() == DIGITS && digits.bytes().all(digit) {
            Ok(Self(id))
        } else {
            Err(InvalidJobId)
        }
    }
}

impl std::str::FromStr for JobId {
    type Err = InvalidJobId;

    fn from_str(id: &str) -> Result<Self, InvalidJobId> {
        id.to_owned().try_into()
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl schemars::JsonSchema for JobId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "JobId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": PATTERN })
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
    pub container: Option<ContainerName>,
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
            assert_eq!(bad.parse::<JobId>(), Err(InvalidJobId), "{bad}");
        }
    }
}
