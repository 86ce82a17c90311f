//! Whether an agent may watch something now: a watch needs the same permission as a call of the tool that looks at it.

use super::condition::{WatchKind, WatchSpec};
use gatewren_base::config::{Mode, Risk};
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{PolicySubject, mode};

/// The tool that creates watches.
pub const CREATE: PolicySubject<'static> = subject("watch_create", "watches", Risk::Write);

/// Returns the tool that looks at the same thing.
const fn probing_tool(kind: WatchKind) -> PolicySubject<'static> {
    match kind {
        WatchKind::Container => subject("container_list", "containers", Risk::Read),
        WatchKind::Unit => subject("unit_status", "units", Risk::Read),
        WatchKind::PortClosed | WatchKind::PortOpen | WatchKind::Http | WatchKind::Certificate => {
            subject("network_check_port", "network", Risk::Scan)
        }
        WatchKind::Disk | WatchKind::Temperature => subject("server_metrics", "server", Risk::Read),
        WatchKind::Backup => subject("backup_list", "backup", Risk::Read),
    }
}

const fn subject(name: &'static str, toolset: &'static str, risk: Risk) -> PolicySubject<'static> {
    PolicySubject {
        name,
        toolset,
        risk,
    }
}

/// The tools whose permission a watch needs, for a test that compares them with the real ones.
pub fn probing_tools() -> impl Iterator<Item = PolicySubject<'static>> {
    WatchKind::ALL.into_iter().map(probing_tool).chain([CREATE])
}

/// Checks that an agent may watch something, with its policy and its space of now.
///
/// # Errors
/// The missing permission.
pub fn check_permission(who: &Principal, spec: &WatchSpec) -> Result<(), String> {
    for subject in [probing_tool(spec.kind), CREATE] {
        if mode(who.policy(), subject) == Mode::Deny {
            return Err(format!(
                "the agent's policy does not allow {}",
                subject.name
            ));
        }
    }
    let reach = who.reach();
    let words = match (&spec.container, &spec.target) {
        (Some(name), _) if !reach.container(name.as_str()) => "no such container",
        (None, _) if !reach.host() => "the host is outside this agent's reach",
        (None, Some(unit)) if spec.kind == WatchKind::Unit && !reach.unit(unit) => "no such unit",
        (None, Some(path)) if is_path(spec.kind) && !reach.path(path) => "no such path",
        _ => return Ok(()),
    };
    Err(words.to_owned())
}

fn is_path(kind: WatchKind) -> bool {
    matches!(kind, WatchKind::Disk | WatchKind::Backup)
}
