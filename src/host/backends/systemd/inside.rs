//! Parses a container's units from the helper's output.

use zbus::wire::{OwnedVariant, Variant};

use super::super::bus::Properties;
use super::unit::{UnitLine, UnitStatus};
use crate::helper_client::UnitName;
use gatewren_base::sys::neutralise;

/// The maximum number of units in a list; a container controls its own output.
const MAX_UNITS: usize = 10_000;

/// Properties that are numbers; times are in microseconds since 1970.
const NUMBERS: [&str; 12] = [
    "ActiveEnterTimestamp",
    "ActiveExitTimestamp",
    "CPUUsageNSec",
    "ExecMainStatus",
    "InactiveEnterTimestamp",
    "InactiveExitTimestamp",
    "LastTriggerUSec",
    "MainPID",
    "MemoryCurrent",
    "NRestarts",
    "NextElapseUSecRealtime",
    "TasksCurrent",
];

/// Properties that are lists of units.
const LISTS: [&str; 2] = ["TriggeredBy", "Triggers"];

/// Parses one unit a line: name, load, active and sub state, description.
pub fn lines(text: &str) -> Vec<UnitLine> {
    let mut lines: Vec<UnitLine> = text.lines().take(MAX_UNITS).filter_map(line).collect();
    lines.sort_by(|a, b| a.name.cmp(&b.name));
    lines
}

fn line(text: &str) -> Option<UnitLine> {
    let mut rest = text.trim();
    let mut word = || {
        let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = behind.trim_start();
        (!word.is_empty()).then(|| plain(word))
    };
    let (name, load, active, sub) = (word()?, word()?, word()?, word()?);
    Some(UnitLine {
        name: name.parse().ok()?,
        description: plain(rest),
        load,
        active,
        sub,
    })
}

/// Parses one property a line.
pub fn status(name: UnitName, text: &str) -> UnitStatus {
    let properties: Properties = text.lines().filter_map(property).collect();
    UnitStatus::of(name, &properties, &properties)
}

/// Unset and malformed properties are left out.
fn property(line: &str) -> Option<(String, OwnedVariant)> {
    let (name, text) = line.split_once('=')?;
    let value = if NUMBERS.contains(&name) {
        Variant::U64(text.parse().ok()?)
    } else if LISTS.contains(&name) {
        let units: Vec<String> = text.split_whitespace().map(plain).collect();
        Variant::from(units)
    } else if name == "NeedDaemonReload" {
        Variant::Bool(text == "yes")
    } else {
        Variant::from(plain(text))
    };
    Some((name.to_owned(), value.try_into_owned().ok()?))
}

fn plain(text: &str) -> String {
    neutralise(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read() {
        // Printed by the helper with systemd 252.
        let text = "nginx.service   loaded    active   running A high performance web server\n\
                    -.mount         loaded    active   mounted /\n\
                    old.service     not-found inactive dead    old.service\n\
                    no unit\n";
        let got = lines(text);
        let names: Vec<&str> = got.iter().map(|unit| unit.name.as_str()).collect();
        assert_eq!(names, ["-.mount", "nginx.service", "old.service"]);
        assert_eq!(got[1].description, "A high performance web server");
        assert_eq!(
            (got[2].load.as_str(), got[2].sub.as_str()),
            ("not-found", "dead")
        );
    }

    #[test]
    fn a_unit_is_read() {
        // The same for one unit.
        let text = "MainPID=312\nNRestarts=0\nMemoryCurrent=18446744073709551615\nCPUUsageNSec=12000\nExecMainStatus=0\n\
                    Result=success\nDescription=Web\u{1b}[2J\nLoadState=loaded\nActiveState=active\nSubState=running\n\
                    FragmentPath=/lib/systemd/system/nginx.service\nUnitFileState=enabled\nNeedDaemonReload=no\n\
                    ActiveEnterTimestamp=1785231000000000\nInactiveEnterTimestamp=0\nTriggeredBy=a.timer b.path\n";
        let got = status("nginx.service".parse().unwrap(), text);
        assert_eq!((got.unit.main_pid, got.memory_bytes), (Some(312), None));
        assert_eq!((got.restarts, got.cpu_usage_us), (Some(0), Some(12)));
        assert_eq!(got.unit.since.as_deref(), Some("2026-07-28T09:30:00.000Z"));
        assert_eq!(got.triggered_by, ["a.timer", "b.path"]);
        assert_eq!(got.unit.line.description, "Web^[[2J");
        assert_eq!(got.unit.enabled.unwrap().as_str(), "enabled");
    }
}
