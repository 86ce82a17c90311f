//! When an engine starts a container again after its main process ended.

use serde::{Deserialize, Serialize};

/// When the engine starts a container again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RestartPolicy {
    /// Never.
    No,
    /// Always, also after the engine itself starts.
    Always,
    /// Always, unless it was stopped by a request.
    UnlessStopped,
    /// When its main process failed.
    OnFailure {
        /// How many times; 0 for no limit.
        max_retries: u32,
    },
}

/// The policy as JSON of the API.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RestartPolicyJson {
    name: Option<String>,
    maximum_retry_count: Option<u32>,
}

impl RestartPolicy {
    /// The word for it, which is the engines'.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Always => "always",
            Self::UnlessStopped => "unless-stopped",
            Self::OnFailure { .. } => "on-failure",
        }
    }
}

impl From<RestartPolicy> for RestartPolicyJson {
    fn from(policy: RestartPolicy) -> Self {
        let max_retries = match policy {
            RestartPolicy::OnFailure { max_retries } => max_retries,
            _ => 0,
        };
        Self {
            name: Some(policy.as_str().to_owned()),
            maximum_retry_count: Some(max_retries),
        }
    }
}

impl RestartPolicyJson {
    /// Converts it; `None` for a policy that this client does not know. Podman writes no name for "no".
    pub(super) fn into_policy(self) -> Option<RestartPolicy> {
        match self.name.as_deref().unwrap_or_default() {
            "" | "no" => Some(RestartPolicy::No),
            "always" => Some(RestartPolicy::Always),
            "unless-stopped" => Some(RestartPolicy::UnlessStopped),
            "on-failure" => Some(RestartPolicy::OnFailure {
                max_retries: self.maximum_retry_count.unwrap_or(0),
            }),
            _ => None,
        }
    }
}
