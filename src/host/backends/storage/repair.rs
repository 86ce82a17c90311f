//! Checks disks and file systems for damage and repairs them.

use std::time::Duration;

use crate::helper_client::{HostRepair, Operation, RepairResult};
use gatewren_base::sys::neutralise;

use super::super::error::{BackendError, ErrorKind};
use super::super::long_work::{CallJob, LongOperation, ask_long};
use super::disks::Storage;
use super::health::is_available;

/// The timeout, long enough for a large disk.
const PATIENCE: Duration = Duration::from_hours(48);

impl Storage {
    /// Whether any program for it is installed.
    pub fn has_repair() -> bool {
        ["e2fsck", "btrfs", "xfs_repair", "zpool", "mdadm"]
            .into_iter()
            .any(is_available)
    }

    /// Checks something for damage and repairs it as far as possible.
    ///
    /// # Errors
    /// When the owner's file does not allow it, when it does not exist or is in use, and the
    /// program's error when it fails.
    pub async fn repair(
        &self,
        what: HostRepair,
        job: Option<CallJob>,
        reference: &str,
    ) -> Result<RepairResult, BackendError> {
        let long = LongOperation::new(Operation::HostRepair(what), PATIENCE);
        let answer = ask_long(&self.helper, long, job, reference).await;
        let answer = answer.map_err(|error| BackendError {
            message: neutralise(&error.message).into_owned(),
            ..error
        })?;
        let result: RepairResult = serde_json::from_str(&answer).map_err(|cause| {
            let message = format!("the helper's answer is invalid: {cause}");
            BackendError::new(ErrorKind::Failed, message)
        })?;
        Ok(RepairResult {
            report: neutralise(&result.report).into_owned(),
            ..result
        })
    }
}
