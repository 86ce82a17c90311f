//! A container's state and details.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use gatewren_base::sys::rfc3339;

use crate::helper_client::{ContainerRef, EngineFacts};

use super::super::os_release::OsRelease;
use super::super::source::field;
use super::config::ContainerConfig;

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContainerState {
    /// It is running.
    Running,
    /// It is stopped.
    Stopped,
    /// Its processes are paused.
    Frozen,
    /// It is starting.
    Starting,
    /// It is stopping.
    Stopping,
}

/// The parts of `lxc-info`'s output that rarely change while a container's state stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerStatus {
    /// Its state.
    pub state: ContainerState,
    /// The pid of its first process on the host, while it runs.
    pub init_pid: Option<u32>,
    /// Its addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// What its engine says about it; `None` for a container of LXC.
    pub engine: Option<EngineFacts>,
}

/// A container in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContainerDetails {
    /// Its reference, which other tools take: its name, after `docker:` or `podman:` for one of those. On Proxmox the
    /// name is a number.
    pub name: ContainerRef,
    /// Its runtime: lxc, docker or podman.
    pub runtime: &'static str,
    /// The container of LXC that its Docker runs in; absent for one of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ContainerRef>,
    /// Its host name, if its configuration sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its state.
    pub state: ContainerState,
    /// The pid of its first process on the host, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_pid: Option<u32>,
    /// Its addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// Its operating system; absent if its root file system does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<OsRelease>,
    /// Whether it starts when the host boots.
    pub autostart: bool,
    /// Whether its root is an unprivileged user on the host.
    pub unprivileged: bool,
    /// Memory in use, in bytes, while it runs and the kernel counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// CPU time used since it started, in microseconds, while it runs and the kernel counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_usage_us: Option<u64>,
    /// Processes in it, while it runs and the kernel counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// The size of its root file system's content in bytes; absent in a list, and if counting takes too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Its configuration; absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ContainerConfig>,
    /// What Docker or Podman says about it.
    // Its members are not in the schema: they would be in the list of tools once for each tool that returns a container.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "engine_answer"
    )]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub engine: Option<EngineFacts>,
}

/// The times of an engine's facts: as the helper sends them, and as answers have them.
const ENGINE_TIMES: [(&str, &str); 3] = [
    ("created_ms", "created_at"),
    ("started_ms", "started_at"),
    ("finished_ms", "finished_at"),
];

/// Writes an engine's facts for an answer, with times in RFC 3339.
#[expect(clippy::ref_option, reason = "serde passes the field like this")]
pub fn engine_answer<S: Serializer>(
    engine: &Option<EngineFacts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut facts = serde_json::to_value(engine).map_err(S::Error::custom)?;
    if let Some(members) = facts.as_object_mut() {
        for (sent, shown) in ENGINE_TIMES {
            if let Some(ms) = members.remove(sent).and_then(|ms| ms.as_u64()) {
                members.insert(shown.to_owned(), rfc3339(ms).into());
            }
        }
    }
    facts.serialize(serializer)
}

impl ContainerState {
    /// Parses LXC's name of a state. LXC has more states, which lie between two of these.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "RUNNING" | "FREEZING" | "THAWED" => Self::Running,
            "STOPPED" => Self::Stopped,
            "FROZEN" => Self::Frozen,
            "STARTING" => Self::Starting,
            "STOPPING" | "ABORTING" => Self::Stopping,
            _ => return None,
        })
    }
}

impl ContainerStatus {
    /// Parses the output of `lxc-info`; `None` if it contains no state.
    pub fn parse(info: &str) -> Option<Self> {
        let addresses = info.lines().filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == "IP").then(|| value.trim().parse().ok()).flatten()
        });
        let mut addresses: Vec<IpAddr> = addresses.collect();
        addresses.sort();
        addresses.dedup();
        Some(Self {
            state: ContainerState::parse(field(info, "State", ':')?)?,
            init_pid: field(info, "PID", ':').and_then(|pid| pid.parse().ok()),
            addresses,
            engine: field(info, "Engine", ':').and_then(|facts| serde_json::from_str(facts).ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_container() {
        let info = "Name:           sigma\nState:          RUNNING\nPID:            14961\n\
                    IP:             fd00::5\nIP:             10.0.3.5\nCPU use:        0.01 seconds\n\
                    Memory use:     432.00 KiB\nLink:           vethAB\n TX bytes:      1 bytes\n";
        let status = ContainerStatus::parse(info).unwrap();
        assert_eq!(
            (status.state, status.init_pid),
            (ContainerState::Running, Some(14961))
        );
        let addresses: Vec<_> = status.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.3.5", "fd00::5"]);
    }

    #[test]
    fn a_stopped_container_has_no_process() {
        let status = ContainerStatus::parse("Name: tau\nState:          STOPPED\n").unwrap();
        assert_eq!(
            (status.state, status.init_pid),
            (ContainerState::Stopped, None)
        );
        for odd in ["", "State: ODD", "State", "PID: 5", "\u{fffd}:\n"] {
            assert_eq!(ContainerStatus::parse(odd), None, "{odd}");
        }
        let odd = ContainerStatus::parse("State: FROZEN\nPID: -1\nIP: x").unwrap();
        assert_eq!((odd.init_pid, odd.addresses.len()), (None, 0));
        assert_eq!(odd.engine, None);
    }

    #[test]
    fn a_container_of_an_engine() {
        let info = "State: STOPPED\nEngine: {\"engine_state\":\"exited\",\"image\":\"a:1\",\"exit_code\":3}\n";
        let engine = ContainerStatus::parse(info).unwrap().engine.unwrap();
        assert_eq!((engine.image.as_str(), engine.exit_code), ("a:1", Some(3)));
    }
}
