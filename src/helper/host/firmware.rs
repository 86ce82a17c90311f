//! Inspects and updates the firmware of the host's devices through fwupd.

use gatewren_wire::operations::{Ending, FIRMWARE_MARK, FirmwareDeed, FirmwareId, Frame, Stream};

use crate::context::helper_context::House;
use crate::context::output_relay::Pump;
use crate::context::refusal::Refusal;
use crate::context::tools;
use crate::processes::commands::require_root;

/// Performs one of the operations on firmware.
pub async fn perform(
    house: &House,
    pump: &mut Pump,
    deed: &FirmwareDeed,
) -> Result<Ending, Refusal> {
    require_root()?;
    match deed {
        FirmwareDeed::Devices {} => fwupdmgr(house, pump, &["get-devices"]).await,
        FirmwareDeed::Updates {} => fwupdmgr(house, pump, &["get-updates"]).await,
        FirmwareDeed::Refresh {} => fwupdmgr(house, pump, &["refresh"]).await,
        FirmwareDeed::Apply { device } => {
            // No questions, no reports to others, no reboot.
            let mut words = vec![
                "update",
                "--assume-yes",
                "--no-reboot-check",
                "--no-unreported-check",
                "--no-metadata-check",
            ];
            words.extend(device.iter().map(FirmwareId::as_str));
            // A device with partly written firmware may never start again.
            pump.set_steadfast(true);
            let updated = fwupdmgr(house, pump, &words).await;
            pump.set_steadfast(false);
            let updated = updated?;
            let mark = format!("\n{FIRMWARE_MARK}\n").into_bytes();
            pump.say(&Frame::Output(Stream::Stdout, mark)).await;
            fwupdmgr(house, pump, &["get-devices"]).await?;
            Ok(updated)
        }
    }
}

/// Runs fwupdmgr with JSON output, which also suppresses its questions.
async fn fwupdmgr(house: &House, pump: &mut Pump, words: &[&str]) -> Result<Ending, Refusal> {
    let words = words.iter().chain(&["--json"]);
    let tool = tools::Tool {
        name: "fwupdmgr",
        args: words.map(|word| (*word).to_owned()).collect(),
    };
    tools::carry(&tool, pump, &house.strays).await
}
