//! A job: an operation that goes on without the connection that began it, as the helper keeps it.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{ending::Ending, name::ContainerName};

/// A job's id: `job_` and 32 hexadecimal digits. It can be a file's name, and nobody guesses another's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

/// How each begins.
const PREFIX: &str = "job_";

/// Hexadecimal digits after that.
const DIGITS: usize = 32;

/// The id's shape as a pattern of JSON Schema (ECMA-262).
const PATTERN: &str = "^job_[0-9a-f]{32}$";

impl JobId {
    /// A new one.
    pub fn random() -> Self {
        Self(format!("{PREFIX}{}", Uuid::new_v4().simple()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is no job's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidJobId;

impl fmt::Display for InvalidJobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a job's id is job_ and 32 hexadecimal digits, as job_start and job_list tell it",
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

/// A job as it stands. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Which.
    pub id: JobId,
    /// The agent whose it is.
    pub owner: String,
    /// The tool that began it.
    pub tool: String,
    /// The call that began it, as it stands in the journal and the audit.
    pub reference: String,
    /// What the helper does for it, such as `host_command`.
    pub operation: String,
    /// The container that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerName>,
    /// The beginning of its command, for people; secrets are taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When it began.
    pub began_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Bytes that it printed until now.
    #[serde(default)]
    pub output_bytes: u64,
    /// Bytes that it printed and that could not be written to the disk.
    #[serde(default)]
    pub lost_bytes: u64,
}

/// A piece of a job's output: the line before its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPiece {
    /// Where its first byte stands in the whole output; later than was asked where that is kept no more.
    pub offset: u64,
    /// Bytes that the job has printed until now.
    pub output_bytes: u64,
    /// Whether the job has ended, so that there will be no more.
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
