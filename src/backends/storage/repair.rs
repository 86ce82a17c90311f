//! Looking for damage, and repairing it.

use std::time::Duration;

use crate::helper_client::{HostRepair, Operation, Repaired};
use crate::sys::neutralise;

use super::super::error::{BackendError, ErrorKind};
use super::super::keep::{Keep, ask_kept};
use super::disks::Storage;
use super::health::is_here;

/// How long a large disk may take.
const PATIENCE: Duration = Duration::from_hours(48);

impl Storage {
    /// Whether anything here looks for damage.
    pub fn has_repair() -> bool {
        ["e2fsck", "btrfs", "xfs_repair", "zpool", "mdadm"]
            .into_iter()
            .any(is_here)
    }

    /// Looks through something for damage, and repairs what can be repaired.
    ///
    /// # Errors
    /// When the owner's file does not let it be done, it is not there or in use, and what the program says that cannot
    /// do it.
    pub async fn repair(
        &self,
        what: HostRepair,
        as_what: (Option<Keep>, &str),
    ) -> Result<Repaired, BackendError> {
        let operation = Operation::HostRepair(what);
        let said = ask_kept(&self.helper, operation, PATIENCE, as_what).await;
        let said = said.map_err(|error| BackendError {
            message: neutralise(&error.message).into_owned(),
            ..error
        })?;
        let told: Repaired = serde_json::from_str(&said).map_err(|cause| {
            let message = format!("what the helper says cannot be read: {cause}");
            BackendError::new(ErrorKind::Failed, message)
        })?;
        Ok(Repaired {
            report: neutralise(&told.report).into_owned(),
            ..told
        })
    }
}
