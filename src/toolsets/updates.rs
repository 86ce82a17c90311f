//! `update_*`: what of the packages of the host and of containers could be upgraded, is, and was.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{failure::failed, long::keep, number::Number};
use crate::backends::{
    BackendError, ContainerName, ErrorKind, PackageName, UpdateApplied, UpdateCheck, UpdateHistory,
    UpdateScope, Updates, Wanted,
};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The group, as a table.
pub fn tools(updates: Arc<Updates>) -> Toolset<Updates> {
    Toolset::over(updates)
        .named("updates")
        .tool("update_check", Risk::Read, check)
        .about(Scope::HostOr("container"))
        .through(HelperClass::Updates)
        .titled("Updates of packages")
        .long()
        .tool("update_apply", Risk::Disrupt, apply)
        .about(Scope::HostOr("container"))
        .through(HelperClass::UpdatesApply)
        .titled("Install updates")
        .startos("server.update", &[])
        .leaving_aside(&[("registry", "string"), ("target", "string")])
        .long()
        .tool("update_history", Risk::Read, history)
        .about(Scope::HostOr("container"))
        .through(HelperClass::Updates)
        .titled("Updates that were installed")
}

/// Lists what apt could upgrade, security updates first, how old its lists are, and whether a reboot waits. Nothing is
/// installed: `update_apply` does that.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    /// Running; the host when absent.
    container: Option<ContainerName>,
    /// Fetch the lists first, where that is allowed; the host's alone.
    #[serde(default)]
    refresh: bool,
}

async fn check(updates: Arc<Updates>, asked: Check, cx: Cx) -> Result<UpdateCheck> {
    let caller = cx.caller();
    let view = updates.seen_by(&caller.reach, (&caller.agent, cx.reference()));
    let container = asked.container.as_ref();
    let checked = view.check(container, asked.refresh, keep(&cx)).await;
    checked.map_err(failed)
}

/// Upgrades packages of the host, or of a running container with apt: all, security updates only, or those that are
/// named. Refreshes the lists first; keeps changed configuration files, and never downgrades, or removes what is
/// essential. Services restart with it. Returns what is different, and whether a reboot waits (`server_restart`). It
/// can be cancelled (`job_cancel`) until all is fetched; after that it goes to its end, so that no package stays half
/// installed; only in a container without systemd it ends with gatewren, and the next one finishes it. Waits up to
/// five minutes for another apt, and says which process that is. Look first with `update_check`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Apply {
    /// A running container; the host when absent.
    container: Option<ContainerName>,
    /// Whether only security updates are installed.
    #[serde(default)]
    security_only: bool,
    /// Only these packages, of those that are installed; at most 200.
    #[serde(default)]
    packages: Vec<PackageName>,
    /// Whether other packages may be removed for it; those that need it stay as they are otherwise.
    #[serde(default)]
    allow_removal: bool,
}

async fn apply(updates: Arc<Updates>, asked: Apply, cx: Cx) -> Result<UpdateApplied> {
    let scope = match (asked.security_only, asked.packages) {
        (false, names) if names.is_empty() => UpdateScope::All,
        (true, names) if names.is_empty() => UpdateScope::Security,
        (false, names) => UpdateScope::Named(names),
        (true, _) => {
            let words = "either security_only or packages: both together say two things";
            return Err(failed(BackendError::new(ErrorKind::Refused, words)));
        }
    };
    let wanted = Wanted {
        container: asked.container,
        scope,
        removals: asked.allow_removal,
    };
    let caller = cx.caller();
    let view = updates.seen_by(&caller.reach, (&caller.agent, cx.reference()));
    view.apply(wanted, keep(&cx)).await.map_err(failed)
}

/// Lists what apt has done on the host, or in a running container: what was installed, upgraded and removed, when,
/// with which command, and by whom where that is known; the newest first. What was done by dpkg alone is not in it.
/// `update_check` tells what is to be done.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct History {
    /// A running container; the host when absent.
    container: Option<ContainerName>,
    /// How many runs of apt, 1 to 50.
    #[serde(default)]
    limit: Number<1, 50, 10>,
    /// How many of the newest are left out: `next_offset` of the page before.
    #[serde(default)]
    offset: Number<0, 100_000, 0>,
}

async fn history(updates: Arc<Updates>, asked: History, cx: Cx) -> Result<UpdateHistory> {
    let caller = cx.caller();
    let view = updates.seen_by(&caller.reach, (&caller.agent, cx.reference()));
    let [offset, limit] =
        [asked.offset.get(), asked.limit.get()].map(|n| usize::try_from(n).unwrap_or_default());
    let page = view
        .history(asked.container.as_ref(), (offset, limit))
        .await;
    page.map_err(failed)
}
