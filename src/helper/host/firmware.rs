//! Inspects and updates the firmware of the host's devices through fwupd.

use gatewren_wire::operations::{
    FIRMWARE_MARK, FirmwareAction, FirmwareId, OperationEnd, OperationRefusal,
};

use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::processes::commands::require_root;

/// Performs one of the operations on firmware.
pub async fn perform(
    context: &mut OperationContext<'_>,
    action: &FirmwareAction,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    match action {
        FirmwareAction::Devices {} => fwupdmgr(context, &["get-devices"]).await,
        FirmwareAction::Updates {} => fwupdmgr(context, &["get-updates"]).await,
        FirmwareAction::Refresh {} => fwupdmgr(context, &["refresh"]).await,
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
            context.relay.set_uninterruptible(true);
            let updated = fwupdmgr(context, &words).await;
            context.relay.set_uninterruptible(false);
            let updated = updated?;
            let mark = format!("\n{FIRMWARE_MARK}\n").into_bytes();
            context.relay.write_stdout(mark).await;
            fwupdmgr(context, &["get-devices"]).await?;
            Ok(updated)
        }
    }
}

/// Runs fwupdmgr with JSON output, which also suppresses its questions.
async fn fwupdmgr(
    context: &mut OperationContext<'_>,
    words: &[&str],
) -> Result<OperationEnd, OperationRefusal> {
    let words = words.iter().chain(&["--json"]);
    let tool = tools::HostTool::new("fwupdmgr", words.copied());
    context.run_tool(&tool).await
}
