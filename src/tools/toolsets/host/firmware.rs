//! `firmware_*`: firmware updates of the host's devices.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::failure::failed;
use crate::toolsets::long_call::call_job;
use gatewren_host::backends::{Firmware, FirmwareCheck, FirmwareId, FirmwareUpdateResult};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(firmware: Arc<Firmware>) -> Toolset<Firmware> {
    Toolset::new(firmware)
        .with_name("updates")
        .tool("firmware_check", Risk::Read, check)
        .about(Scope::Host)
        .through(HelperClass::Updates)
        .titled("Check for firmware updates")
        .long()
        .tool("firmware_update", Risk::Disrupt, update)
        .reaches_other_machines()
        .about(Scope::Host)
        .through(HelperClass::UpdatesApply)
        .titled("Install firmware updates")
        .startos("server.update-firmware", &[])
        .long()
}

/// List the host's devices whose firmware fwupd can update, those with newer firmware first, and whether a restart is
/// pending. Nothing is installed: `firmware_update` does that.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    /// Fetch the lists of firmware first, if that is allowed.
    #[serde(default)]
    refresh: bool,
}

async fn check(firmware: Arc<Firmware>, asked: Check, cx: Cx) -> Result<FirmwareCheck> {
    let check = firmware.check(asked.refresh, call_job(&cx), cx.reference());
    check.await.map_err(failed)
}

/// Install newer firmware on one device of the host, or on all that have it, and return the changes. It cannot be
/// cancelled; the host must not lose power during it.
///
/// Check first with `firmware_check`. The host is never restarted: the answer says if firmware needs that (`server_restart`).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// The `device` that `firmware_check` shows; default: all devices.
    device: Option<FirmwareId>,
}

async fn update(firmware: Arc<Firmware>, asked: Update, cx: Cx) -> Result<FirmwareUpdateResult> {
    let update = firmware.update(asked.device, call_job(&cx), cx.reference());
    update.await.map_err(failed)
}
