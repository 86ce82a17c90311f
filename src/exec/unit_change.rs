//! What can be done to a unit of systemd.

use serde::{Deserialize, Serialize};

/// One change of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitChange {
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Stop it, if it runs, and start it.
    Restart,
    /// Have it read its configuration again.
    Reload,
    /// Forget that it failed.
    ResetFailed,
    /// Have it start at boot from now on.
    Enable,
    /// Have it start at boot no more.
    Disable,
}

impl UnitChange {
    /// systemctl's word for it.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::ResetFailed => "reset-failed",
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }

    /// Whether systemd does it as a job, which takes its time.
    pub fn is_job(self) -> bool {
        matches!(
            self,
            Self::Start | Self::Stop | Self::Restart | Self::Reload
        )
    }
}
