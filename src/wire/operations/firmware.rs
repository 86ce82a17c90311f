//! Operations on fwupd, the firmware updater.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use gatewren_base::config::HelperClass::{Updates, UpdatesApply};

use super::operation_facts::{OperationFacts, changes, reads};

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

/// A device id of fwupd: the forty digits of a hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FirmwareId(String);

/// A text that is no valid device id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidFirmwareId;

impl FirmwareId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InvalidFirmwareId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a device's id is 40 digits of 0-9 and a-f, as firmware_check shows it")
    }
}

impl std::error::Error for InvalidFirmwareId {}

impl TryFrom<String> for FirmwareId {
    type Error = InvalidFirmwareId;

    fn try_from(text: String) -> Result<Self, InvalidFirmwareId> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let fits = text.len() == 40 && text.bytes().all(digit);
        fits.then_some(Self(text)).ok_or(InvalidFirmwareId)
    }
}

impl From<FirmwareId> for String {
    fn from(FirmwareId(text): FirmwareId) -> Self {
        text
    }
}

impl schemars::JsonSchema for FirmwareId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FirmwareId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{40}$" })
    }
}

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
