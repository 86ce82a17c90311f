//! `update_check`: what of the host's packages could be upgraded.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{failure::failed, long::keep};
use crate::backends::{UpdateCheck, Updates};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The group, as a table.
pub fn tools(updates: Arc<Updates>) -> Toolset<Updates> {
    Toolset::over(updates)
        .named("updates")
        .tool("update_check", Risk::Read, check)
        .about(Scope::Host)
        .through(HelperClass::Updates)
        .titled("Updates of the server")
        .long()
}

/// Lists the host's packages that apt could upgrade, with installed and new version, origin, and whether it is a
/// security update; and says when the lists were last refreshed, and whether an update waits for a reboot
/// (`server_restart`). Nothing is fetched or installed: the lists are as old as it says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {}

async fn check(updates: Arc<Updates>, Check {}: Check, cx: Cx) -> Result<UpdateCheck> {
    let checked = updates.check((keep(&cx), cx.reference())).await;
    checked.map_err(failed)
}
