//! The three settings of a container that can be changed while it exists.

use serde::{Deserialize, Serialize};

use super::error::EngineError;
use super::restart_policy::{RestartPolicy, RestartPolicyJson};
use super::text::plain;

/// The largest share of processors: 1,024 of them.
const MAX_MILLI_CPUS: u32 = 1_024_000;
/// The most warnings of an engine that are kept; others are left out.
const MAX_WARNINGS: usize = 16;
/// The most characters of a warning; a longer one is cut.
const MAX_WARNING_CHARS: usize = 300;

/// Settings to change; the others stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineLimits {
    /// The most memory in bytes, more than 0. The engines reject less than 6 MiB, and more than the limit of memory
    /// and swap together.
    pub memory_bytes: Option<u64>,
    /// The processors in thousandths, 1 to 1,024,000: 1,500 is one and a half.
    pub milli_cpus: Option<u32>,
    /// When the engine starts the container again.
    pub restart_policy: Option<RestartPolicy>,
}

/// The body of the request: these three and nothing else.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct LimitsBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<i64>,
    #[serde(rename = "NanoCpus", skip_serializing_if = "Option::is_none")]
    nano_cpus: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_policy: Option<RestartPolicyJson>,
}

/// What the engine answers.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AnsweredUpdate {
    warnings: Option<Vec<String>>,
}

impl EngineLimits {
    /// Checks the settings, and writes the body of the request.
    pub(super) fn to_json(self) -> Result<String, EngineError> {
        let invalid = |message: String| Err(EngineError::Invalid(message));
        if self == Self::default() {
            return invalid("no limit to change was given".to_owned());
        }
        let memory = self.memory_bytes.map(i64::try_from).transpose();
        let Ok(memory) = memory else {
            return invalid("the limit of memory is larger than any memory".to_owned());
        };
        if memory == Some(0) {
            return invalid("a limit of memory is more than 0 bytes".to_owned());
        }
        if let Some(cpus) = self.milli_cpus
            && !(1..=MAX_MILLI_CPUS).contains(&cpus)
        {
            return invalid(format!(
                "a limit of processors is 1 to {MAX_MILLI_CPUS} thousandths, and {cpus} were given"
            ));
        }
        let body = LimitsBody {
            memory,
            nano_cpus: self.milli_cpus.map(|cpus| i64::from(cpus) * 1_000_000),
            restart_policy: self.restart_policy.map(RestartPolicyJson::from),
        };
        serde_json::to_string(&body)
            .map_err(|cause| EngineError::Invalid(format!("the limits cannot be written: {cause}")))
    }
}

impl AnsweredUpdate {
    /// The engine's warnings, sanitized and shortened.
    pub(super) fn into_warnings(self) -> Vec<String> {
        let warnings = self.warnings.unwrap_or_default().into_iter();
        let warnings = warnings.take(MAX_WARNINGS);
        warnings
            .map(|warning| plain(&warning, MAX_WARNING_CHARS))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_given_settings_are_sent() {
        let json = |limits: EngineLimits| limits.to_json().unwrap();
        let none = EngineLimits::default();
        let memory = EngineLimits {
            memory_bytes: Some(64 << 20),
            ..none
        };
        assert_eq!(json(memory), r#"{"Memory":67108864}"#);
        let all = EngineLimits {
            milli_cpus: Some(1_500),
            restart_policy: Some(RestartPolicy::OnFailure { max_retries: 3 }),
            ..memory
        };
        assert_eq!(
            json(all),
            r#"{"Memory":67108864,"NanoCpus":1500000000,"RestartPolicy":{"Name":"on-failure","MaximumRetryCount":3}}"#
        );
    }

    #[test]
    fn limits_that_limit_nothing_are_invalid() {
        let none = EngineLimits::default();
        let memory = |bytes| EngineLimits {
            memory_bytes: Some(bytes),
            ..none
        };
        let cpus = |milli_cpus| EngineLimits {
            milli_cpus: Some(milli_cpus),
            ..none
        };
        for bad in [none, memory(0), memory(u64::MAX), cpus(0), cpus(1_024_001)] {
            let error = bad.to_json().unwrap_err();
            assert!(matches!(error, EngineError::Invalid(_)), "{bad:?}");
        }
    }
}
