//! The engine's answer for one container, and its conversion. All parts are optional: engines and their versions
//! differ, and an empty list may be `null`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::container_id::{ImageId, answered_id, own_name};
use super::error::EngineError;
use super::facts::{AnsweredMount, EngineMount, EnginePort, EngineStatus, MAX_PORTS};
use super::inspect::{
    Confinement, EngineDevice, EngineHealth, HealthStatus, InspectedContainer, InspectedState,
};
use super::labels::ContainerLabels;
use super::restart_policy::RestartPolicyJson;
use super::text::{MAX_PATH_CHARS, plain, short_text, time_ms};

/// What the engine answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AnsweredContainer {
    id: Option<String>,
    name: Option<String>,
    created: Option<String>,
    state: Option<AnsweredState>,
    image: Option<String>,
    mounts: Option<Vec<AnsweredMount>>,
    config: Option<AnsweredConfig>,
    host_config: Option<AnsweredHostConfig>,
    network_settings: Option<AnsweredNetwork>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredState {
    status: Option<String>,
    running: Option<bool>,
    paused: Option<bool>,
    pid: Option<i64>,
    started_at: Option<String>,
    finished_at: Option<String>,
    exit_code: Option<i64>,
    #[serde(rename = "OOMKilled")]
    oom_killed: Option<bool>,
    health: Option<AnsweredHealth>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredHealth {
    status: Option<String>,
    failing_streak: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredConfig {
    user: Option<String>,
    tty: Option<bool>,
    image: Option<String>,
    labels: Option<ContainerLabels>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredHostConfig {
    network_mode: Option<String>,
    restart_policy: Option<RestartPolicyJson>,
    privileged: Option<bool>,
    pid_mode: Option<String>,
    cap_add: Option<Vec<String>>,
    devices: Option<Vec<AnsweredDevice>>,
    device_cgroup_rules: Option<Vec<String>>,
    /// Docker lists the protected paths; an empty list means that none is protected. Podman answers `null`, as Docker
    /// does for privileged containers.
    readonly_paths: Option<Vec<IgnoredAny>>,
    runtime: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredDevice {
    path_on_host: Option<String>,
    path_in_container: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredNetwork {
    /// By `80/tcp`; `null` for a port that is not published.
    ports: Option<BTreeMap<String, Option<Vec<AnsweredBinding>>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredBinding {
    host_ip: Option<String>,
    host_port: Option<String>,
}

impl TryFrom<AnsweredContainer> for InspectedContainer {
    type Error = EngineError;

    fn try_from(answer: AnsweredContainer) -> Result<Self, EngineError> {
        let id = answered_id(answer.id.as_deref())?;
        let config = answer.config.unwrap_or_default();
        let mut host_config = answer.host_config.unwrap_or_default();
        let policy = host_config.restart_policy.take();
        let mounts = answer.mounts.unwrap_or_default().into_iter();
        Ok(Self {
            name: own_name(answer.name.as_deref(), &id),
            id,
            created_ms: time_ms(answer.created.as_deref()),
            state: answer.state.unwrap_or_default().into(),
            image: short_text(config.image.as_deref()),
            image_id: answer.image.as_deref().and_then(ImageId::parse),
            restart_policy: policy.and_then(RestartPolicyJson::into_policy),
            labels: config.labels.unwrap_or_default(),
            ports: answer.network_settings.unwrap_or_default().into_ports(),
            mounts: mounts.map(EngineMount::from).collect(),
            user: short_text(config.user.as_deref()),
            has_tty: config.tty.unwrap_or(false),
            network_mode: short_text(host_config.network_mode.as_deref()),
            runtime: short_text(host_config.runtime.as_deref()),
            confinement: host_config.into(),
        })
    }
}

impl From<AnsweredState> for InspectedState {
    fn from(state: AnsweredState) -> Self {
        let status = EngineStatus::parse(state.status.as_deref().unwrap_or_default());
        let is_paused = state.paused.unwrap_or(status == EngineStatus::Paused);
        let is_running = state.running.unwrap_or(status == EngineStatus::Running);
        let is_running = is_running || is_paused;
        let pid = state.pid.and_then(|pid| u32::try_from(pid).ok());
        Self {
            status,
            is_running,
            is_paused,
            pid: pid.filter(|pid| *pid != 0),
            started_ms: time_ms(state.started_at.as_deref()),
            finished_ms: time_ms(state.finished_at.as_deref()),
            exit_code: state.exit_code.filter(|_| !is_running),
            is_oom_killed: state.oom_killed.unwrap_or(false),
            health: state.health.and_then(AnsweredHealth::into_health),
        }
    }
}

impl AnsweredHealth {
    /// Converts it; `None` if the container has no health check: Docker then answers `none` or nothing, Podman an
    /// empty word.
    fn into_health(self) -> Option<EngineHealth> {
        let status = match self.status.as_deref().unwrap_or_default() {
            "starting" => HealthStatus::Starting,
            "healthy" => HealthStatus::Healthy,
            "unhealthy" => HealthStatus::Unhealthy,
            _ => return None,
        };
        let streak = self.failing_streak.unwrap_or(0);
        Some(EngineHealth {
            status,
            failing_streak: u32::try_from(streak).unwrap_or(0),
        })
    }
}

impl From<AnsweredHostConfig> for Confinement {
    fn from(config: AnsweredHostConfig) -> Self {
        let devices = config.devices.unwrap_or_default().into_iter();
        let path = |path: Option<String>| plain(&path.unwrap_or_default(), MAX_PATH_CHARS);
        let texts = |list: Option<Vec<String>>| {
            let list = list.unwrap_or_default().into_iter();
            list.map(|text| short_text(Some(&text))).collect()
        };
        Self {
            is_privileged: config.privileged.unwrap_or(false),
            pid_mode: short_text(config.pid_mode.as_deref()),
            added_capabilities: texts(config.cap_add),
            devices: devices
                .map(|device| EngineDevice {
                    host_path: path(device.path_on_host),
                    container_path: path(device.path_in_container),
                })
                .collect(),
            device_rules: texts(config.device_cgroup_rules),
            has_writable_proc: config.readonly_paths.is_some_and(|paths| paths.is_empty()),
        }
    }
}

impl AnsweredNetwork {
    fn into_ports(self) -> Vec<EnginePort> {
        let mut ports = Vec::new();
        for (name, bindings) in self.ports.unwrap_or_default() {
            let (port, protocol) = name.split_once('/').unwrap_or((&name, "tcp"));
            let Ok(container_port) = port.parse() else {
                continue;
            };
            let unpublished = EnginePort {
                container_port,
                protocol: short_text(Some(protocol)),
                host_ip: None,
                host_port: None,
            };
            let bindings = bindings.unwrap_or_default();
            if bindings.is_empty() {
                ports.push(unpublished);
                continue;
            }
            ports.extend(bindings.into_iter().map(|binding| EnginePort {
                host_ip: binding.host_ip.and_then(|ip| ip.parse().ok()),
                host_port: binding.host_port.and_then(|port| port.parse().ok()),
                ..unpublished.clone()
            }));
        }
        ports.truncate(MAX_PORTS);
        ports
    }
}
