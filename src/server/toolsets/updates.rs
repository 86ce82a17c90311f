//! `update_*`: available and past package upgrades of the host and of containers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use super::long_call::call_job;
use gatewren_host::backends::{
    BackendError, ContainerRef, ErrorKind, PackageName, UpdateApplied, UpdateCheck, UpdateHistory,
    UpdateScope, Updates, UpgradeRequest,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(updates: Arc<Updates>) -> Toolset<Updates> {
    Toolset::new(updates)
        .with_name("updates")
        .tool("update_check", Risk::Read, check)
        .about(Scope::HostOr("container"))
        .through(HelperClass::Updates)
        .titled("Check for package updates")
        .long()
        .tool("update_apply", Risk::Disrupt, apply)
        .about(Scope::HostOr("container"))
        .through(HelperClass::UpdatesApply)
        .titled("Install package updates")
        .startos("server.update", &[])
        .ignoring_arguments(&[("registry", "string"), ("target", "string")])
        .long()
        .tool("update_history", Risk::Read, history)
        .about(Scope::HostOr("container"))
        .through(HelperClass::Updates)
        .titled("Package update history")
}

/// List available apt upgrades, security updates first, the age of the package lists, and whether a reboot is needed.
/// Does not install: use `update_apply`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    /// A running container; default: the host.
    container: Option<ContainerRef>,
    /// Refresh the lists first, if allowed; host only.
    #[serde(default)]
    refresh: bool,
}

async fn check(updates: Arc<Updates>, asked: Check, cx: Cx) -> Result<UpdateCheck> {
    let caller = cx.caller();
    let view = updates.view_for(&caller.reach, &caller.agent, cx.reference());
    let container = asked.container.as_ref();
    let check = view.check(container, asked.refresh, call_job(&cx));
    check.await.map_err(failed)
}

/// Upgrade apt packages of the host or a running container. Keeps changed configuration files, does not downgrade.
/// Services restart. Returns the changes, and whether to reboot (`server_restart`). `job_cancel` stops it only until
/// all packages are fetched. Call `update_check` first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Apply {
    /// A running container; default: the host. On both, waits up to five minutes for another apt, and names its process.
    /// Without systemd in a container, the upgrade stops with gatewren, and the next run finishes it.
    container: Option<ContainerRef>,
    /// Install only security updates.
    #[serde(default)]
    security_only: bool,
    /// Only these installed packages; at most 200.
    #[serde(default)]
    packages: Vec<PackageName>,
    /// Allow removal of other packages, but never of essential ones; otherwise upgrades that need it are skipped.
    #[serde(default)]
    allow_removal: bool,
}

async fn apply(updates: Arc<Updates>, asked: Apply, cx: Cx) -> Result<UpdateApplied> {
    let scope = match (asked.security_only, asked.packages) {
        (false, names) if names.is_empty() => UpdateScope::All,
        (true, names) if names.is_empty() => UpdateScope::Security,
        (false, names) => UpdateScope::Named(names),
        (true, _) => {
            let words = "give either security_only or packages, not both";
            return Err(failed(BackendError::new(ErrorKind::Refused, words)));
        }
    };
    let wanted = UpgradeRequest {
        container: asked.container,
        scope,
        removals: asked.allow_removal,
    };
    let caller = cx.caller();
    let view = updates.view_for(&caller.reach, &caller.agent, cx.reference());
    view.apply(wanted, call_job(&cx)).await.map_err(failed)
}

/// List past apt runs on the host or in a running container, newest first: packages installed, upgraded and removed,
/// when, the command, and the user if known. Changes by dpkg alone are not included. `update_check` lists available
/// updates.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct History {
    /// A running container; default: the host.
    container: Option<ContainerRef>,
    /// Maximum apt runs, 1 to 50.
    #[serde(default)]
    limit: BoundedNumber<1, 50, 10>,
    /// Newest runs to skip: `next_offset` of the previous page.
    #[serde(default)]
    offset: BoundedNumber<0, 100_000, 0>,
}

async fn history(updates: Arc<Updates>, asked: History, cx: Cx) -> Result<UpdateHistory> {
    let caller = cx.caller();
    let view = updates.view_for(&caller.reach, &caller.agent, cx.reference());
    let [offset, limit] =
        [asked.offset.get(), asked.limit.get()].map(|n| usize::try_from(n).unwrap_or_default());
    let page = view.history(asked.container.as_ref(), offset, limit);
    page.await.map_err(failed)
}
