//! Operations on fwupd, the firmware updater.

use serde::{Deserialize, Serialize};

use gatewren_base::config::HelperClass::{Updates, UpdatesApply};

use super::operation_facts::{OperationFacts, changes, reads};
use super::text_type::text_type;

/// The line between the output of an update and the devices after it.
pub const FIRMWARE_MARK: &str = "gatewren: devices";

/// An operation on the host's firmware. Its output is a JSON document of fwupdmgr, also for errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum FirmwareAction {
    /// Print the devices with firmware.
    Devices {},
    /// Print the devices that can be updated, with the newer firmware.
    Updates {},
    /// Fetch the lists of available firmware.
    Refresh {},
    /// Install newer firmware, and then print a line [`FIRMWARE_MARK`] and the devices.
    Apply {
        /// The device; all devices when absent.
        #[serde(default)]
        device: Option<FirmwareId>,
    },
}

impl FirmwareAction {
    /// The facts of the operation: its row in the table.
    pub fn facts(&self) -> OperationFacts<'_> {
        match self {
            Self::Devices {} => reads("firmware_devices", Updates),
            Self::Updates {} => reads("firmware_updates", Updates),
            Self::Refresh {} => changes("firmware_refresh", UpdatesApply),
            Self::Apply { .. } => changes("firmware_apply", UpdatesApply),
        }
    }
}

text_type!(
    /// A device id of fwupd: the forty digits of a hash.
    FirmwareId,
    { "pattern": "^[0-9a-f]{40}$" },
    |id| id.len() == 40 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
    "a device's id is 40 digits of 0-9 and a-f, as firmware_check shows it"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_neither_an_option_nor_a_path() {
        let id = |text: &str| FirmwareId::try_from(text.to_owned()).is_ok();
        assert!(id("08d460be0f1f9f128413f816022a6439e0078018"));
        for bad in [
            "",
            "--force",
            "08d460be",
            "08D460BE0F1F9F128413F816022A6439E0078018",
            "/8d460be0f1f9f128413f816022a6439e0078018",
            "08d460be0f1f9f128413f816022a6439e0078018\n",
        ] {
            assert!(!id(bad), "{bad:?}");
        }
    }
}
