//! What there is to say of a unit: in a list, as facts, and in full.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::bus::Properties;
use super::files::UnitFileState;
use super::properties::{flag, moment, quantity, text, texts};
use crate::helper_client::UnitName;

/// A loaded unit as a list of all of them shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnitLine {
    /// Its name.
    pub name: UnitName,
    /// What its file says of it.
    pub description: String,
    /// Whether its file could be read: `loaded`, `not-found`, `bad-setting`, `error` or `masked`.
    pub load: String,
    /// Its state in one word for all kinds: `active`, `inactive`, `failed`, `activating`, `deactivating`,
    /// `reloading` or `maintenance`.
    pub active: String,
    /// Its state in the words of its kind, such as `running`, `exited`, `dead`, `listening` or `mounted`.
    pub sub: String,
}

/// What a unit is and how it stands: facts, no counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unit {
    /// How it stands.
    #[serde(flatten)]
    pub line: UnitLine,
    /// Whether it is started at boot, such as `enabled`, `disabled`, `static` or `masked`; absent for a unit
    /// without a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<UnitFileState>,
    /// Since when it stands so, RFC 3339; absent if that never changed since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The main process of a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_pid: Option<u64>,
    /// How its last run ended: `success`, `exit-code`, `signal`, `timeout`, `start-limit-hit` and the like;
    /// absent for kinds that do not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Units that it starts when it is due: of a timer, a socket or a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
}

/// A unit in full, with what is measured of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnitStatus {
    /// What it is and how it stands.
    #[serde(flatten)]
    pub unit: Unit,
    /// What the service says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_text: Option<String>,
    /// How often systemd has restarted it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// Exit code of its last main process, or the number of the signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u64>,
    /// Memory of its processes in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Time that its processes have used, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_usage_us: Option<u64>,
    /// Its processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// When a timer is due next, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When a timer was due last, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The timers, sockets and paths that start it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggered_by: Vec<String>,
    /// The file that describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether that file has changed since systemd read it (`systemctl daemon-reload` reads it again).
    pub needs_daemon_reload: bool,
}

impl UnitLine {
    /// Whether the unit failed.
    pub fn is_failed(&self) -> bool {
        self.active == "failed"
    }
}

impl Unit {
    /// From the properties that all units have, and `specific` ones of its kind.
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
    /// From the properties that all units have and those of its kind.
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
    /// Tells of another unit what was told of this one, which nobody has made.
    pub(super) fn rename(&mut self, asked: &UnitName, name: &UnitName) {
        self.unit.line.name = name.clone();
        let texts = [Some(&mut self.unit.line.description), self.file.as_mut()];
        for text in texts.into_iter().flatten() {
            *text = text.replace(asked.instance(), name.instance());
        }
    }
}

/// When the unit came into the state that it has, as `systemctl status` tells it.
fn since(common: &Properties, active: &str) -> Option<String> {
    let entered = match active {
        "active" | "reloading" => "ActiveEnterTimestamp",
        "inactive" | "failed" => "InactiveEnterTimestamp",
        "activating" => "InactiveExitTimestamp",
        _ => "ActiveExitTimestamp",
    };
    moment(common, entered)
}
