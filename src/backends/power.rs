//! Restarting the box and switching it off.

use std::time::Duration;

use crate::helper_client::{Helper, Operation, PowerPlan};

use super::{ask::ask, error::BackendError};

/// How long logind may take to answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// How the box goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Down {
    /// And comes up again.
    Restart,
    /// And stays down until somebody switches it on.
    Shutdown,
}

/// Plans for the box to go down, made through the helper.
#[derive(Debug, Clone)]
pub struct Power {
    helper: Helper,
}

impl Power {
    /// Over this helper.
    pub fn new(helper: Helper) -> Self {
        Self { helper }
    }

    /// Plans that the box goes down, in the place of an earlier plan; `reason` is told to who is logged in.
    ///
    /// # Errors
    /// When the owner does not let the helper do it, when a program holds an inhibitor lock, and when logind says no.
    pub async fn plan(
        &self,
        down: Down,
        delay: Duration,
        reason: Option<String>,
        reference: &str,
    ) -> Result<(), BackendError> {
        let plan = PowerPlan {
            delay_s: u32::try_from(delay.as_secs()).unwrap_or(u32::MAX),
            reason,
        };
        let operation = match down {
            Down::Restart => Operation::Restart { plan },
            Down::Shutdown => Operation::Shutdown { plan },
        };
        ask(&self.helper, operation, PATIENCE, reference)
            .await
            .map(drop)
    }

    /// Calls off what is planned; whether something was.
    ///
    /// # Errors
    /// As for a plan.
    pub async fn cancel(&self, reference: &str) -> Result<bool, BackendError> {
        let said = ask(
            &self.helper,
            Operation::CancelShutdown {},
            PATIENCE,
            reference,
        )
        .await?;
        Ok(said.trim() == "b true")
    }
}
