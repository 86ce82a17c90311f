//! Inspects and updates the firmware of the host's devices through fwupd.

use gatewren_wire::operations::{
    FIRMWARE_MARK, FirmwareAction, FirmwareId, Frame, OperationEnd, Stream,
};

use crate::context::helper_context::HelperContext;
use crate::context::output_relay::OutputRelay;
use crate::context::refusal::OperationRefusal;
use crate::context::tools;
use crate::processes::commands::require_root;

/// Performs one of the operations on firmware.
pub async fn perform(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    deed: &FirmwareAction,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    match deed {
        FirmwareAction::Devices {} => fwupdmgr(helper, relay, &["get-devices"]).await,
        FirmwareAction::Updates {} => fwupdmgr(helper, relay, &["get-updates"]).await,
        FirmwareAction::Refresh {} => fwupdmgr(helper, relay, &["refresh"]).await,
        FirmwareAction::Apply { device } => {
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
            relay.set_steadfast(true);
            let updated = fwupdmgr(helper, relay, &words).await;
            relay.set_steadfast(false);
            let updated = updated?;
            let mark = format!("\n{FIRMWARE_MARK}\n").into_bytes();
            relay.say(&Frame::Output(Stream::Stdout, mark)).await;
            fwupdmgr(helper, relay, &["get-devices"]).await?;
            Ok(updated)
        }
    }
}

/// Runs fwupdmgr with JSON output, which also suppresses its questions.
async fn fwupdmgr(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    words: &[&str],
) -> Result<OperationEnd, OperationRefusal> {
    let words = words.iter().chain(&["--json"]);
    let tool = tools::HostTool {
        name: "fwupdmgr",
        args: words.map(|word| (*word).to_owned()).collect(),
    };
    tools::carry(&tool, relay, &helper.orphans).await
}
