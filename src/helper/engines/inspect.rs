//! The facts about one container. Its environment, its command, its other labels and the output of its health checks
//! are skipped while the answer is parsed.

use super::container_id::{EngineContainerId, ImageId};
use super::facts::{EngineMount, EnginePort, EngineStatus};
use super::labels::ContainerLabels;
use super::restart_policy::RestartPolicy;

/// A container. Texts are sanitized and shortened.
#[derive(Clone, PartialEq, Eq)]
pub struct InspectedContainer {
    /// Its full id.
    pub id: EngineContainerId,
    /// Its name; its short id while it has none.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: Option<u64>,
    /// Its state.
    pub state: InspectedState,
    /// The image as it was named when the container was created.
    pub image: String,
    /// The image's id.
    pub image_id: Option<ImageId>,
    /// When the engine starts it again; `None` for a policy that this client does not know.
    pub restart_policy: Option<RestartPolicy>,
    /// Its labels of Compose and of the image.
    pub labels: ContainerLabels,
    /// Its ports, at most 1,024; none while it does not run.
    pub ports: Vec<EnginePort>,
    /// Its mounts.
    pub mounts: Vec<EngineMount>,
    /// The user of its main process, as it was set: a name or number, perhaps with a group; empty for root.
    pub user: String,
    /// Whether its main process has a terminal. Its log then does not separate stdout and stderr.
    pub has_tty: bool,
    /// The network: `host`, `none`, `bridge`, the name of a network, or `container:` and an id.
    pub network_mode: String,
    /// The OCI runtime by the engine's name for it. Podman answers `oci` for each.
    pub runtime: String,
    /// What it was given of the host.
    pub confinement: Confinement,
}

/// A container's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedState {
    /// The engine's word for it.
    pub status: EngineStatus,
    /// Whether its main process exists. A paused container counts as running.
    pub is_running: bool,
    /// Whether its processes are frozen.
    pub is_paused: bool,
    /// The main process in the PID namespace of the engine; `None` while it does not run.
    pub pid: Option<u32>,
    /// When it was last started, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// When its main process last ended.
    pub finished_ms: Option<u64>,
    /// The exit code of its main process; `None` while it runs, and before its first start.
    pub exit_code: Option<i64>,
    /// Whether the kernel killed a process of it because memory was used up.
    pub is_oom_killed: bool,
    /// What its health check found; `None` if it has none.
    pub health: Option<EngineHealth>,
}

/// The result of health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineHealth {
    /// The verdict.
    pub status: HealthStatus,
    /// How many checks in a row have failed.
    pub failing_streak: u32,
}

/// The verdict of health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthStatus {
    /// None has succeeded or failed often enough since the start.
    Starting,
    /// The last one succeeded.
    Healthy,
    /// As many as configured have failed in a row.
    Unhealthy,
}

/// What a container was given of the host when it was created. `host_rights` interprets it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Whether it was created with `--privileged`.
    pub is_privileged: bool,
    /// Its PID namespace: `host`, `container:` and an id, or empty or `private` for its own.
    pub pid_mode: String,
    /// The capabilities that were added to the usual ones, with or without `CAP_`.
    pub added_capabilities: Vec<String>,
    /// Devices of the host.
    pub devices: Vec<EngineDevice>,
    /// Rules that open further devices to it, such as `c 13:* rmw`.
    pub device_rules: Vec<String>,
    /// Whether the protection of `/proc/sys` and the like was switched off (`systempaths=unconfined`). Podman 4 does
    /// not report its option for it.
    pub has_writable_proc: bool,
}

/// A device of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EngineDevice {
    /// Its path on the host.
    pub host_path: String,
    /// Its path in the container.
    pub container_path: String,
}

impl HealthStatus {
    /// The word for it, which is the engines'.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}
