//! The facts about a unit: in a list, on its own, and in full.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::bus::Properties;
use super::files::UnitFileState;
use super::properties::{flag, moment, quantity, text, texts};
use crate::helper_client::UnitName;

/// A loaded unit in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnitLine {
    /// Its name.
    pub name: UnitName,
    /// The description in its file.
    pub description: String,
    /// Whether its file was loaded: `loaded`, `not-found`, `bad-setting`, `error` or `masked`.
    pub load: String,
    /// Its general state: `active`, `inactive`, `failed`, `activating`, `deactivating`, `reloading`
    /// or `maintenance`.
    pub active: String,
    /// Its state specific to its kind, such as `running`, `exited`, `dead`, `listening` or
    /// `mounted`.
    pub sub: String,
}

/// A unit's facts and state, without counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unit {
    /// Its name and state.
    #[serde(flatten)]
    pub line: UnitLine,
    /// Whether it starts at boot, such as `enabled`, `disabled`, `static` or `masked`; absent for a
    /// unit without a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<UnitFileState>,
    /// The time of its last change of state, RFC 3339; absent if it never changed since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The pid of a service's main process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_pid: Option<u64>,
    /// The result of its last run: `success`, `exit-code`, `signal`, `timeout`, `start-limit-hit`
    /// and the like; absent for kinds that do not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The units that a timer, socket or path starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
}

/// A unit in full, with its resource usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnitStatus {
    /// Its facts and state.
    #[serde(flatten)]
    pub unit: Unit,
    /// The status that the service reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_text: Option<String>,
    /// How often systemd has restarted it automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// The exit code of its last main process, or the number of the signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u64>,
    /// The memory of its processes in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The CPU time of its processes in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_usage_us: Option<u64>,
    /// The number of its processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// The next time of a timer, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The last time of a timer, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The timers, sockets and paths that start it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggered_by: Vec<String>,
    /// The file that defines it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether that file has changed since systemd read it (`systemctl daemon-reload` reads it
    /// again).
    pub needs_daemon_reload: bool,
}

impl UnitLine {
    /// Whether the unit failed.
    pub fn is_failed(&self) -> bool {
        self.active == "failed"
    }
}

impl Unit {
    /// Builds it from the properties that all units have and from `specific` ones of its kind.
    pub(super) fn of(name: UnitName, common: &Properties, specific: &Properties) -> Self {
        let common_text = |property| text(common, property).unwrap_or_default();
        let active = common_text("ActiveState");
        let since = since(common, &active);
        Self {
            enabled: text(common, "UnitFileState").map(UnitFileState::from),
            since,
            main_pid: quantity(specific, "MainPID").filter(|pid| *pid != 0),
            result: text(specific, "Result"),
            triggers: texts(common, "Triggers"),
            line: UnitLine {
                name,
                description: common_text("Description"),
                load: common_text("LoadState"),
                active,
                sub: common_text("SubState"),
            },
        }
    }
}

impl UnitStatus {
    /// Builds it from the properties that all units have and those of its kind.
    pub(super) fn of(name: UnitName, common: &Properties, specific: &Properties) -> Self {
        Self {
            unit: Unit::of(name, common, specific),
            status_text: text(specific, "StatusText"),
            restarts: quantity(specific, "NRestarts"),
            exit_status: quantity(specific, "ExecMainStatus"),
            memory_bytes: quantity(specific, "MemoryCurrent"),
            cpu_usage_us: quantity(specific, "CPUUsageNSec").map(|ns| ns / 1000),
            tasks: quantity(specific, "TasksCurrent"),
            next: moment(specific, "NextElapseUSecRealtime"),
            last: moment(specific, "LastTriggerUSec"),
            triggered_by: texts(common, "TriggeredBy"),
            file: text(common, "FragmentPath"),
            needs_daemon_reload: flag(common, "NeedDaemonReload"),
        }
    }
}

impl UnitStatus {
    /// Renames the unit that was queried in place of an inaccessible one; no unit has the queried
    /// name.
    pub(super) fn rename(&mut self, asked: &UnitName, name: &UnitName) {
        self.unit.line.name = name.clone();
        let texts = [Some(&mut self.unit.line.description), self.file.as_mut()];
        for text in texts.into_iter().flatten() {
            *text = text.replace(asked.instance(), name.instance());
        }
    }
}

/// Returns the time of the last change of state, as `systemctl status` does.
fn since(common: &Properties, active: &str) -> Option<String> {
    let entered = match active {
        "active" | "reloading" => "ActiveEnterTimestamp",
        "inactive" | "failed" => "InactiveEnterTimestamp",
        "activating" => "InactiveExitTimestamp",
        _ => "ActiveExitTimestamp",
    };
    moment(common, entered)
}
