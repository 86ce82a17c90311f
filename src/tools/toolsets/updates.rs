//! `update_*`: available and past package upgrades of the host and of containers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use super::long_call::call_job;
use gatewren_host::backends::{
    ApprovedUpdate, BackendError, ContainerRef, ErrorKind, PackageName, TargetName, UpdateApplied,
    UpdateCheck, UpdateHistory, UpdatePage, UpdatePlan, UpdateProtection, UpdateRunRequest,
    UpdateRunResult, UpdateScope, Updates, UpgradeRequest,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(updates: Arc<Updates>) -> Toolset<Updates> {
    Toolset::new(updates)
        .with_name("updates")
        .tool("update_check", Risk::Read, check)
        .reaches_other_machines()
        .about(Scope::HostOr("container"))
        .through(HelperClass::Updates)
        .titled("Check for package updates")
        .long()
        .tool("update_apply", Risk::Disrupt, apply)
        .reaches_other_machines()
        .about(Scope::HostOr("container"))
        .through(HelperClass::UpdatesApply)
        .titled("Install package updates")
        .startos("server.update", &[])
        .ignoring_arguments(&[("registry", "string"), ("target", "string")])
        .long()
        .tool("update_plan", Risk::Read, plan)
        .reaches_other_machines()
        .about(Scope::Within)
        .through(HelperClass::Updates)
        .titled("Plan updates of everything")
        .tool("update_run", Risk::Disrupt, run)
        .reaches_other_machines()
        .about(Scope::Within)
        .through(HelperClass::UpdatesApply)
        .titled("Update everything safely")
        .syncs_state()
        .long()
        .tool("update_history", Risk::Read, history)
        .about(Scope::HostOr("container"))
        .through(HelperClass::Updates)
        .titled("Package update history")
}

/// Summarise the apt upgrades of the host or one container and list a page of them, security updates first, with the
/// age of the package lists and whether a reboot is needed. `update_plan` looks at everything at once.
///
/// Cannot refresh a container's lists.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    /// Default: the host.
    ///
    /// A container must run.
    container: Option<ContainerRef>,
    /// Refresh the lists first, if allowed; host only.
    #[serde(default)]
    refresh: bool,
    /// Only packages whose names contain this.
    name: Option<PackageName>,
    /// Maximum packages, 1 to 100.
    #[serde(default)]
    limit: BoundedNumber<1, 100, 25>,
    /// Packages to skip: `next_offset` of the previous page.
    #[serde(default)]
    offset: BoundedNumber<0, 100_000, 0>,
}

async fn check(updates: Arc<Updates>, asked: Check, cx: Cx) -> Result<UpdateCheck> {
    let caller = cx.caller();
    let view = updates.view_for(&caller.reach, &caller.agent, cx.reference());
    let container = asked.container.as_ref();
    let [offset, limit] =
        [asked.offset.get(), asked.limit.get()].map(|n| usize::try_from(n).unwrap_or_default());
    let page = UpdatePage {
        name: asked.name.as_ref().map(ToString::to_string),
        offset,
        limit,
    };
    let check = view.check(container, asked.refresh, &page, call_job(&cx));
    check.await.map_err(failed)
}

/// Install apt updates on the host or in a running container: all, security only, or the named packages. Services may
/// restart. Returns the changes, and whether to reboot. `update_check` lists updates, `update_run` protects and checks
/// too.
///
/// Keeps changed configuration files, does not downgrade.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Apply {
    /// Default: the host.
    ///
    /// A container must run.
    ///
    /// Waits up to five minutes for another apt, and names its process. In a container without systemd, the upgrade
    /// stops with gatewren, and the next run finishes it.
    container: Option<ContainerRef>,
    /// Install only security updates.
    #[serde(default)]
    security_only: bool,
    /// Only these installed packages; at most 200.
    #[serde(default)]
    packages: Vec<PackageName>,
    /// Allow removal of other packages, never of essential ones; else such upgrades are skipped.
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

/// Plan the apt updates of the host and all running LXC containers: counts, security updates, kernel, restart, space,
/// and what can protect each. Changes nothing. Pass `run` unchanged to `update_run` as `targets`. `update_check` lists
/// the packages of one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// Refresh the host's lists first, if allowed.
    #[serde(default)]
    refresh: bool,
    /// Only these containers, without the host.
    containers: Option<Vec<ContainerRef>>,
}

async fn plan(updates: Arc<Updates>, asked: Plan, cx: Cx) -> Result<UpdatePlan> {
    let caller = cx.caller();
    let view = updates.view_for(&caller.reach, &caller.agent, cx.reference());
    let plan = view.plan(asked.containers, asked.refresh);
    plan.await.map_err(failed)
}

/// Install the updates of an `update_plan`, one by one: save the container, upgrade, check units, ports and packages,
/// restore if asked. Installs the plan exactly, or all offered with `refresh`; the host is not saved.
///
/// Returns each result.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "RunFields")]
#[schemars(with = "RunFields")]
struct Run(UpdateRunRequest);

/// The arguments of `update_run`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunFields {
    /// `run` of `update_plan`, or some of it.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    targets: Vec<ApprovedUpdate>,
    /// How to save containers.
    #[serde(default)]
    protect: Protect,
    /// For `backup`.
    backup_target: Option<TargetName>,
    /// Restore containers that fail.
    #[serde(default)]
    undo_on_failure: bool,
    /// End at the first failure.
    #[serde(default)]
    stop_on_failure: bool,
    /// Fetch lists first and install all they offer; `targets` are then [{"container": NAME}], {} for the host.
    #[serde(default)]
    refresh: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Protect {
    #[default]
    Snapshot,
    Backup,
    None,
}

impl TryFrom<RunFields> for Run {
    type Error = &'static str;

    fn try_from(asked: RunFields) -> std::result::Result<Self, Self::Error> {
        let protect = match (asked.protect, asked.backup_target) {
            (Protect::Snapshot, None) => UpdateProtection::Snapshot,
            (Protect::None, None) => UpdateProtection::Nothing,
            (Protect::Backup, Some(target)) => UpdateProtection::Backup(target),
            _ => return Err("`backup_target` and protect \"backup\" belong together"),
        };
        Ok(Self(UpdateRunRequest {
            targets: asked.targets,
            protect,
            refresh: asked.refresh,
            undo_on_failure: asked.undo_on_failure,
            stop_on_failure: asked.stop_on_failure,
        }))
    }
}

async fn run(updates: Arc<Updates>, Run(wanted): Run, cx: Cx) -> Result<UpdateRunResult> {
    let caller = cx.caller();
    let view = updates.view_for(&caller.reach, &caller.agent, cx.reference());
    view.run_plan(wanted, call_job(&cx)).await.map_err(failed)
}

/// List past apt runs on the host or in a running container, newest first: packages installed, upgraded and removed,
/// when, the command, and the user if known. `update_check` lists available updates.
///
/// Changes by dpkg alone are not included.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct History {
    /// Default: the host.
    ///
    /// A container must run.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_backup_target_without_a_backup_is_refused_before_the_owner_is_asked() {
        let run = |more: serde_json::Value| {
            let mut arguments = json!({ "targets": [] });
            let fields = arguments.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            serde_json::from_value::<Run>(arguments).map_err(|why| why.to_string())
        };
        for refused in [
            json!({ "protect": "backup" }),
            json!({ "backup_target": "local" }),
            json!({ "protect": "none", "backup_target": "local" }),
        ] {
            assert!(run(refused).is_err_and(|why| why.contains("belong together")));
        }
        let both = json!({ "protect": "backup", "backup_target": "local" });
        let Run(wanted) = run(both).unwrap();
        assert!(matches!(wanted.protect, UpdateProtection::Backup(_)));
    }
}
