//! Changes of a systemd unit.

use serde::{Deserialize, Serialize};

/// A change of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitChange {
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Stop it if it runs, and start it.
    Restart,
    /// Reload its configuration.
    Reload,
    /// Clear its failed state.
    ResetFailed,
    /// Enable it at boot.
    Enable,
    /// Disable it at boot.
    Disable,
}

impl UnitChange {
    /// The subcommand of systemctl.
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

    /// Whether systemd runs the change as a job, which takes time.
    pub fn is_job(self) -> bool {
        matches!(
            self,
            Self::Start | Self::Stop | Self::Restart | Self::Reload
        )
    }
}
