//! Queries and changes units through the systemd of the container it runs in.
//!
//! gatewren's own program runs there, none of the container's.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use gatewren_wire::operations::{UnitChange, UnitName};

use super::manager_bus::{BusArgument, BusFault, ManagerBus};
use gatewren_base::sys::neutralise_line;

/// The hidden subcommand of the client.
pub const UNIT_CLIENT_NAME: &str = "__units";

/// systemd's object and its interface (org.freedesktop.systemd1(5)).
const MANAGER: &str = "/org/freedesktop/systemd1";
const INTERFACE: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// The most units of one list that are printed.
const MAX_UNITS: usize = 10_000;

/// Properties that all units have.
const COMMON: [&str; 13] = [
    "Description",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "FragmentPath",
    "NeedDaemonReload",
    "Triggers",
    "TriggeredBy",
    "ActiveEnterTimestamp",
    "ActiveExitTimestamp",
    "InactiveEnterTimestamp",
    "InactiveExitTimestamp",
];

/// Properties that some types of units have.
const OF_A_KIND: [&str; 10] = [
    "MainPID",
    "Result",
    "StatusText",
    "NRestarts",
    "ExecMainStatus",
    "MemoryCurrent",
    "CPUUsageNSec",
    "TasksCurrent",
    "NextElapseUSecRealtime",
    "LastTriggerUSec",
];

/// A request to a container's systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitRequest {
    /// Print all loaded units: name, load state, active state, sub state and description, a unit a line.
    List,
    /// Print a unit's properties, `NAME=value` a line. Times are in microseconds since 1970.
    Show(UnitName),
    /// Change a unit, and wait until that is done.
    Change(UnitName, UnitChange),
}

/// The main function of the client process.
pub fn ask_units() -> ExitCode {
    match answer() {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(words) => {
            // An error of this write cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "{words}");
            ExitCode::FAILURE
        }
    }
}

fn answer() -> Result<String, String> {
    let question = std::env::args().nth(2).unwrap_or_default();
    let question: UnitRequest = serde_json::from_str(&question).map_err(|e| e.to_string())?;
    let bus = ManagerBus::connect();
    let mut bus = bus.map_err(|cause| format!("it does not run systemd ({cause})"))?;
    let answered = match question {
        UnitRequest::List => list(&mut bus),
        UnitRequest::Show(unit) => show(&mut bus, &unit),
        UnitRequest::Change(unit, change) => do_change(&mut bus, &unit, change),
    };
    answered.map_err(|fault| fault.to_string())
}

/// Prints the loaded units. In the reply, each unit is name, description, load, active and sub state, the unit that
/// it follows, path, job, and the job's type and path.
fn list(bus: &mut ManagerBus) -> Result<String, BusFault> {
    let mut units = bus.call(MANAGER, INTERFACE, "ListUnits", &[])?;
    units.length()?;
    let mut text = String::new();
    for _ in 0..MAX_UNITS {
        units.align(8);
        if !units.has_more() {
            break;
        }
        let [name, description, load, active, sub] = [
            units.text()?,
            units.text()?,
            units.text()?,
            units.text()?,
            units.text()?,
        ]
        .map(|text| neutralise_line(&text));
        let (_follows, _path, _job) = (units.text()?, units.text()?, units.number()?);
        let (_job_type, _job_path) = (units.text()?, units.text()?);
        text.push_str(&[name, load, active, sub, description].join(" "));
        text.push('\n');
    }
    Ok(text)
}

fn show(bus: &mut ManagerBus, unit: &UnitName) -> Result<String, BusFault> {
    let name = BusArgument::Text(unit.as_str());
    let path = bus.call(MANAGER, INTERFACE, "LoadUnit", &[name])?.text()?;
    let common = COMMON.map(|property| ("org.freedesktop.systemd1.Unit".to_owned(), property));
    let of_a_kind = OF_A_KIND.map(|property| (interface_of(unit), property));
    let mut text = String::new();
    for (interface, property) in common.into_iter().chain(of_a_kind) {
        let arguments = [BusArgument::Text(&interface), BusArgument::Text(property)];
        let value = match bus.call(&path, PROPERTIES, "Get", &arguments) {
            Ok(mut answer) => answer.variant()?,
            // Units of this type do not have it.
            Err(BusFault::Refused(_)) => None,
            Err(broken) => return Err(broken),
        };
        if let Some(value) = value {
            text.push_str(&[property, "=", &neutralise_line(&value), "\n"].concat());
        }
    }
    Ok(text)
}

fn do_change(
    bus: &mut ManagerBus,
    unit: &UnitName,
    change: UnitChange,
) -> Result<String, BusFault> {
    let name = unit.as_str();
    let (text, list, no) = (
        BusArgument::Text(name),
        BusArgument::OneText(name),
        BusArgument::Flag(false),
    );
    let job = [text, BusArgument::Text("replace")];
    let (method, arguments): (_, &[BusArgument<'_>]) = match change {
        UnitChange::Start => ("StartUnit", &job),
        UnitChange::Stop => ("StopUnit", &job),
        UnitChange::Restart => ("RestartUnit", &job),
        UnitChange::Reload => ("ReloadUnit", &job),
        UnitChange::ResetFailed => ("ResetFailedUnit", &[text]),
        UnitChange::Enable => ("EnableUnitFiles", &[list, no, no]),
        UnitChange::Disable => ("DisableUnitFiles", &[list, no]),
    };
    let mut answer = bus.call(MANAGER, INTERFACE, method, arguments)?;
    let verb = change.verb();
    if change.is_job() {
        let result = bus.job_result(&answer.text()?)?;
        return match result.as_str() {
            "done" | "skipped" => Ok(String::new()),
            _ => Err(BusFault::Refused(format!(
                "the {verb} of {name} ended with the result '{}'",
                neutralise_line(&result)
            ))),
        };
    }
    if change == UnitChange::Enable && !answer.flag()? {
        return Err(BusFault::Refused(format!(
            "{name} cannot be enabled: its file has no section [Install]"
        )));
    }
    if matches!(change, UnitChange::Enable | UnitChange::Disable) {
        // systemd notices what is enabled when it reloads its files.
        bus.call(MANAGER, INTERFACE, "Reload", &[])?;
    }
    Ok(String::new())
}

/// Returns the interface of a unit's type: `org.freedesktop.systemd1.Service` for `a.service`.
fn interface_of(unit: &UnitName) -> String {
    let kind = unit.as_str().rsplit('.').next().unwrap_or_default();
    let (first, rest) = kind.split_at_checked(1).unwrap_or((kind, ""));
    format!("org.freedesktop.systemd1.{}{rest}", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::super::unit_client::*;

    #[test]
    fn a_units_kind_names_its_interface() {
        let of = |name: &str| interface_of(&name.parse().unwrap());
        assert_eq!(of("a.service"), "org.freedesktop.systemd1.Service");
        assert_eq!(of("a.b.timer"), "org.freedesktop.systemd1.Timer");
    }
}
