//! Restarts the host and shuts it down.

use std::time::Duration;

use crate::helper_client::{HelperClient, Operation, PowerPlan};

use super::error::BackendError;
use super::request::ask;

/// The timeout for logind's answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Restart or shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerAction {
    /// The host restarts.
    Restart,
    /// The host stays off until it is switched on.
    Shutdown,
}

/// Schedules restarts and shutdowns through the helper.
#[derive(Debug, Clone)]
pub struct Power {
    helper: HelperClient,
}

impl Power {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Schedules a restart or shutdown, which replaces an earlier one; `reason` is shown to
    /// logged-in users.
    ///
    /// # Errors
    /// When the owner does not allow it, when a program holds an inhibitor lock, and when logind
    /// refuses.
    pub async fn plan(
        &self,
        down: PowerAction,
        delay: Duration,
        reason: Option<String>,
        reference: &str,
    ) -> Result<(), BackendError> {
        let plan = PowerPlan {
            delay_s: u32::try_from(delay.as_secs()).unwrap_or(u32::MAX),
            reason,
        };
        let operation = match down {
            PowerAction::Restart => Operation::Restart { plan },
            PowerAction::Shutdown => Operation::Shutdown { plan },
        };
        ask(&self.helper, operation, PATIENCE, reference)
            .await
            .map(drop)
    }

    /// Cancels the scheduled restart or shutdown; returns whether there was one.
    ///
    /// # Errors
    /// As for a plan.
    pub async fn cancel(&self, reference: &str) -> Result<bool, BackendError> {
        let answer = ask(
            &self.helper,
            Operation::CancelShutdown {},
            PATIENCE,
            reference,
        )
        .await?;
        Ok(answer.trim() == "b true")
    }
}
