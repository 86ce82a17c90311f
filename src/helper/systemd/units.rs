//! Changes units through the host's systemd; queries and changes those of a container through its own.
//!
//! It starts none of the container's programs.

use std::collections::BTreeMap;

use gatewren_base::config::HELPER_POLICY_FILE;
use gatewren_wire::operations::{
    Command, Operation, OperationEnd, OperationRefusal, Program, RefusalCode, UnitChange, UnitName,
};

use super::unit_client::{UNIT_CLIENT_NAME, UnitRequest};
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::processes::commands::run_in_container;

/// systemd on the system bus (org.freedesktop.systemd1(5)).
const SYSTEMD: [&str; 3] = [
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
];

/// How long systemd may take to accept a change, in seconds: it serves no requests while it reloads all files.
const ANSWER_TIME: &str = "--timeout=60";

/// Units that stop the host, change its state, or that everything depends on. Use `power` for them, if anything.
const ESSENTIAL_UNITS: [&str; 34] = [
    "ctrl-alt-del.target",
    "emergency.service",
    "emergency.target",
    "exit.target",
    "factory-reset.target",
    "final.target",
    "halt.target",
    "hibernate.target",
    "hybrid-sleep.target",
    "initrd-switch-root.target",
    "kexec.target",
    "poweroff.target",
    "reboot.target",
    "rescue.service",
    "rescue.target",
    "runlevel0.target",
    "runlevel1.target",
    "runlevel6.target",
    "shutdown.target",
    "sleep.target",
    "soft-reboot.target",
    "suspend-then-hibernate.target",
    "suspend.target",
    "systemd-exit.service",
    "systemd-halt.service",
    "systemd-hibernate.service",
    "systemd-hybrid-sleep.service",
    "systemd-kexec.service",
    "systemd-poweroff.service",
    "systemd-reboot.service",
    "systemd-soft-reboot.service",
    "systemd-suspend-then-hibernate.service",
    "systemd-suspend.service",
    "umount.target",
];

/// The helper's own program as the reaper runs it: a sealed copy in memory, independent of the container's files.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Performs one of the operations on units.
pub async fn perform(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    let (container, question) = match operation {
        Operation::UnitChange { unit, change } => {
            return change_unit(context, unit, *change).await;
        }
        Operation::ContainerUnitList { container } => (container, UnitRequest::List),
        Operation::ContainerUnit { container, unit } => {
            (container, UnitRequest::Show(unit.clone()))
        }
        Operation::ContainerUnitChange {
            container,
            unit,
            change,
        } => (container, UnitRequest::Change(unit.clone(), *change)),
        _ => return Err(OperationRefusal::failed("unsupported operation")),
    };
    let command = inside(&question)?;
    run_in_container(context, container, &command, false).await
}

/// The command that runs inside: systemd serves only processes of its own pid namespace, so this program asks it from
/// there.
fn inside(question: &UnitRequest) -> Result<Command, OperationRefusal> {
    let question =
        serde_json::to_string(question).map_err(|e| OperationRefusal::failed(e.to_string()))?;
    let words = [OWN_PROGRAM, UNIT_CLIENT_NAME, &question];
    Ok(Command {
        program: Program::Argv(words.map(str::to_owned).into()),
        user: None,
        cwd: Some("/".to_owned()),
        env: BTreeMap::new(),
    })
}

/// Sends a change to systemd. A change that takes time is a job; systemd signals its end to subscribers.
async fn change_unit(
    context: &mut OperationContext<'_>,
    unit: &UnitName,
    change: UnitChange,
) -> Result<OperationEnd, OperationRefusal> {
    bounded(context.helper, unit)?;
    let ending = context.run_tool(&call(unit, change)).await?;
    if change.is_job() || change == UnitChange::ResetFailed || ending != OperationEnd::SUCCESS {
        return Ok(ending);
    }
    // systemd notices what is enabled when it reloads its files.
    let reload = systemd("Reload", &[]);
    context.run_tool(&reload).await
}

/// Rejects units of gatewren itself, units that `power` is for, and units of containers that the policy file
/// protects.
fn bounded(helper: &HelperContext, unit: &UnitName) -> Result<(), OperationRefusal> {
    let name = unit.as_str();
    if is_own(name) {
        return Err(OperationRefusal::bad_command(format!(
            "{name} is part of gatewren itself, and clients cannot control it; the owner can: systemctl restart \
             {name}"
        )));
    }
    if ESSENTIAL_UNITS.contains(&name) {
        return Err(OperationRefusal::bad_command(format!(
            "{name} changes the state of the whole server; use server_restart or server_shutdown, if the owner allows \
             them"
        )));
    }
    if !helper.policy.now().allows_unit(name) {
        return Err(OperationRefusal::new(
            RefusalCode::Forbidden,
            format!(
                "{name} starts and stops containers that are not allowed: containers and lxc_writes in \
                 {HELPER_POLICY_FILE} set the allowed ones"
            ),
        ));
    }
    Ok(())
}

fn is_own(name: &str) -> bool {
    ["gatewren.", "gatewren-", "gatewren@"]
        .iter()
        .any(|own| name.starts_with(own))
}

fn call(unit: &UnitName, change: UnitChange) -> tools::HostTool {
    let unit = unit.as_str();
    match change {
        UnitChange::Start => systemd("StartUnit", &["ss", unit, "replace"]),
        UnitChange::Stop => systemd("StopUnit", &["ss", unit, "replace"]),
        UnitChange::Restart => systemd("RestartUnit", &["ss", unit, "replace"]),
        UnitChange::Reload => systemd("ReloadUnit", &["ss", unit, "replace"]),
        UnitChange::ResetFailed => systemd("ResetFailedUnit", &["s", unit]),
        UnitChange::Enable => systemd("EnableUnitFiles", &["asbb", "1", unit, "false", "false"]),
        UnitChange::Disable => systemd("DisableUnitFiles", &["asb", "1", unit, "false"]),
    }
}

fn systemd(member: &str, rest: &[&str]) -> tools::HostTool {
    // `--`: a name that begins with a hyphen is not taken for an option of busctl.
    let words = ["--json=short", ANSWER_TIME, "call", "--"].into_iter();
    let words = words.chain(SYSTEMD).chain([member]);
    tools::HostTool::new("busctl", words.chain(rest.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::super::units::*;

    #[test]
    fn gatewren_is_not_its_own_clients_business() {
        for own in [
            "gatewren.service",
            "gatewren.socket",
            "gatewren-helper.service",
            "gatewren-helper.socket",
        ] {
            assert!(is_own(own), "{own}");
        }
        assert!(!is_own("gatewrench.service"));
        assert!(ESSENTIAL_UNITS.is_sorted());
    }

    #[test]
    fn no_name_is_an_option() {
        let unit: UnitName = "--help.service".parse().unwrap();
        for change in [
            UnitChange::Start,
            UnitChange::Enable,
            UnitChange::ResetFailed,
        ] {
            let args = call(&unit, change).args;
            let end = args.iter().position(|word| word == "--").unwrap();
            let at = args.iter().position(|word| word == unit.as_str()).unwrap();
            assert!(end < at, "{args:?}");
        }
        let Program::Argv(words) = inside(&UnitRequest::Show(unit)).unwrap().program else {
            panic!("a shell");
        };
        assert_eq!(words[2], r#"{"show":"--help.service"}"#);
    }
}
