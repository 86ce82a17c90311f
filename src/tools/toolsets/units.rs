//! `unit_*`: queries and changes of systemd units, on the host and in containers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use gatewren_host::backends::{
    BackendError, ContainerRef, ErrorKind, Glob, InvalidGlob, SystemdUnits, UnitChange, UnitLine,
    UnitName, UnitStatus,
};
use gatewren_wire::registry::{Cx, HelperClass, Interruption, Page, Result, Risk, Scope, Toolset};

/// The maximum number of units in one list: about 33 kB as data and text.
const MAX_LISTED: u32 = 100;

/// The toolset.
pub fn tools(units: Arc<SystemdUnits>) -> Toolset<SystemdUnits> {
    let looking = Toolset::new(units)
        .with_name("units")
        .tool("unit_list", Risk::Read, list)
        .about(Scope::HostOr("container"))
        .titled("List systemd units")
        .tool("unit_status", Risk::Read, status)
        .about(Scope::HostOr("container"))
        .titled("Systemd unit status");
    let starting = looking
        // The same class as unit_restart, which also starts a stopped unit: a unit is a program, and a start can
        // also stop the units that it conflicts with (systemd.unit(5), Conflicts=).
        .tool("unit_start", Risk::Disrupt, start)
        .changes("Start a systemd unit")
        .tool("unit_reload", Risk::Write, reload)
        .changes("Reload a systemd unit")
        .tool("unit_reset_failed", Risk::Write, reset_failed)
        .changes("Reset a failed systemd unit");
    starting
        .tool("unit_stop", Risk::Disrupt, stop)
        .changes("Stop a systemd unit")
        .tool("unit_restart", Risk::Disrupt, restart)
        .changes("Restart a systemd unit")
        .tool("unit_disable", Risk::Disrupt, disable)
        .changes("Disable a systemd unit")
        .tool("unit_enable", Risk::Persist, enable)
        .changes("Enable a systemd unit")
}

/// The settings that all rows for changes of a unit share.
trait Changing {
    fn changes(self, title: &str) -> Self;
}

impl Changing for Toolset<SystemdUnits> {
    fn changes(self, title: &str) -> Self {
        self.about(Scope::HostOr("container"))
            .through(HelperClass::Units)
            .or_through(HelperClass::LxcWrites)
            .titled(title)
            .syncs_state()
    }
}

/// List the loaded systemd units of the host or of a container with systemd, with their states, sorted by name; at most
/// 100 a page. `unit_status` describes one, `logs_query` shows its logs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Default: the host.
    ///
    /// A container must run.
    container: Option<ContainerRef>,
    /// Only unit names that match this pattern, such as `*.timer` or `docker-*`.
    name: Option<Pattern>,
    /// Only units in this state.
    state: Option<State>,
    /// Units to skip: `next_offset` of the previous page.
    #[serde(default)]
    offset: BoundedNumber<0, 100_000, 0>,
}

/// A state that every unit type has.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    Active,
    Reloading,
    Inactive,
    Failed,
    Activating,
    Deactivating,
    Maintenance,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// Sorted by name.
    units: Vec<UnitLine>,
    /// Total matches.
    total: usize,
    /// Whether more match after these.
    truncated: bool,
    /// The next `offset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

async fn list(units: Arc<SystemdUnits>, asked: List, cx: Cx) -> Result<Listed> {
    let List {
        container,
        name,
        state,
        offset,
    } = asked;
    let units = units.view_for(&cx.caller().reach, cx.reference());
    let mut units = units.list(container.as_ref()).await.map_err(failed)?;
    units.retain(|unit| {
        let fits = name
            .as_ref()
            .is_none_or(|name| name.0.matches(unit.name.as_str()));
        fits && state.is_none_or(|state| unit.active == state.word())
    });
    let total = units.len();
    let page = Page::of(units, offset.get().into(), MAX_LISTED);
    Ok(Listed {
        truncated: page.truncated,
        next_offset: page.next_offset,
        units: page.items,
        total,
    })
}

/// Describe a systemd unit of the host or of a container with systemd: states and since when, enabled, main process,
/// last result, restarts, memory, CPU, tasks, and when host timers are due. `logs_query` shows its logs.
///
/// Fields that a unit type does not have are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Status {
    /// The full name, such as `nginx.service`.
    unit: UnitName,
    /// Default: the host.
    ///
    /// A container must run.
    container: Option<ContainerRef>,
}

async fn status(
    units: Arc<SystemdUnits>,
    Status { unit, container }: Status,
    cx: Cx,
) -> Result<UnitStatus> {
    let units = units.view_for(&cx.caller().reach, cx.reference());
    let status = units.status(container.as_ref(), &unit).await;
    status.map_err(failed_unit)
}

/// A unit's state after a change.
#[derive(Serialize, JsonSchema)]
struct Changed {
    /// `done`; `skipped`, if a condition of the unit was not met; or `running`, if it takes longer than 45 s.
    outcome: String,
    /// The unit.
    #[serde(flatten)]
    status: UnitStatus,
}

async fn apply_change(
    units: &SystemdUnits,
    unit: UnitName,
    container: Option<ContainerRef>,
    change: UnitChange,
    cx: &Cx,
) -> Result<Changed> {
    let units = units.view_for(&cx.caller().reach, cx.reference());
    let container = container.as_ref();
    let outcome = units.change(container, &unit, change).await;
    let outcome = outcome.map_err(failed_unit)?;
    let status = units.status(container, &unit).await.map_err(failed_unit)?;
    Ok(Changed { outcome, status })
}

/// Defines a tool that changes a unit: its arguments and its function.
macro_rules! change {
    ($(#[$doc:meta])* $change:ident, $function:ident) => {
        $(#[$doc])*
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $change {
            /// The full name, such as `nginx.service`.
            unit: UnitName,
            /// Default: the host.
            ///
            /// A container must run.
            container: Option<ContainerRef>,
        }

        async fn $function(units: Arc<SystemdUnits>, request: $change, cx: Cx) -> Result<Changed> {
            apply_change(&units, request.unit, request.container, UnitChange::$change, &cx).await
        }
    };
}

change!(
    /// Start a systemd unit, wait until it runs or fails, at most 45 s, and return its state. A running unit is not
    /// changed.
    ///
    /// After a failure, read `logs_query` with the unit.
    Start,
    start
);

change!(
    /// Reload a running service's configuration without stopping it (`systemctl reload`), and return its state. Fails
    /// if the unit cannot reload: use `unit_restart`.
    Reload,
    reload
);

change!(
    /// Reset a systemd unit that failed or restarted too often, so that it can be started again, and return its state.
    /// Does not start it: use `unit_start`.
    ResetFailed,
    reset_failed
);

change!(
    /// Stop a systemd unit, wait until it has ended, at most 45 s, and return its state. Its service becomes
    /// unavailable, and units that require it stop too. An enabled unit starts again at boot: `unit_disable`
    /// prevents that.
    ///
    /// Not allowed: gatewren's own units, and units that shut the host down.
    Stop,
    stop
);

change!(
    /// Restart a systemd unit, or start it if stopped; its service is interrupted. Waits until it runs or fails, at
    /// most 45 s, and returns its state.
    ///
    /// After a failure, read `logs_query` with the unit.
    Restart,
    restart
);

change!(
    /// Disable a systemd unit, so that it does not start at boot, and return its state. A running unit continues:
    /// `unit_stop` stops it.
    Disable,
    disable
);

change!(
    /// Enable a systemd unit to start at boot, as its file defines; returns its state. Does not start it: use
    /// `unit_start`.
    Enable,
    enable
);

fn failed_unit(mut error: BackendError) -> Interruption {
    if error.kind == ErrorKind::NotFound && error.hint.is_none() {
        error.hint = Some("unit_list lists the loaded units.".to_owned());
    }
    failed(error)
}

impl State {
    /// The state's name in systemd.
    fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Reloading => "reloading",
            Self::Inactive => "inactive",
            Self::Failed => "failed",
            Self::Activating => "activating",
            Self::Deactivating => "deactivating",
            Self::Maintenance => "maintenance",
        }
    }
}

/// A pattern for unit names.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "", extend("minLength" = 1, "maxLength" = 128))]
struct Pattern(Glob);

impl TryFrom<String> for Pattern {
    type Error = InvalidGlob;

    fn try_from(text: String) -> std::result::Result<Self, InvalidGlob> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let list: List = serde_json::from_str("{}").unwrap();
        assert!(list.name.is_none() && list.state.is_none());
        let list: List = serde_json::from_str(r#"{"name":"*.timer","state":"failed"}"#).unwrap();
        assert!(list.name.unwrap().0.matches("a.timer"));
        let state = list.state.unwrap();
        assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        for bad in [
            r#"{"name":""}"#,
            r#"{"state":"odd"}"#,
            r#"{"unit":"a.service"}"#,
        ] {
            assert!(serde_json::from_str::<List>(bad).is_err(), "{bad}");
        }
        for bad in [r#"{"unit":"nginx"}"#, r#"{"unit":"../a.service"}"#, "{}"] {
            assert!(serde_json::from_str::<Status>(bad).is_err(), "{bad}");
        }
    }
}
