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
        let started_ms = time_ms(state.started_at.as_deref());
        let has_ended = !is_running && started_ms.is_some();
        Self {
            status,
            is_running,
            is_paused,
            pid: pid.filter(|pid| *pid != 0),
            started_ms,
            finished_ms: time_ms(state.finished_at.as_deref()),
            exit_code: state.exit_code.filter(|_| has_ended),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::host_rights::host_rights;
    use crate::engines::restart_policy::RestartPolicy;

    const DOCKER: &str = include_str!("recorded/docker-inspect.json");
    const PODMAN: &str = include_str!("recorded/podman-inspect.json");

    fn inspected(json: &str) -> Result<InspectedContainer, EngineError> {
        let answer: AnsweredContainer = serde_json::from_str(json).unwrap();
        answer.try_into()
    }

    fn with_id(members: &str) -> InspectedContainer {
        let id = "ab".repeat(32);
        inspected(&format!(r#"{{"Id":"{id}",{members}}}"#)).unwrap()
    }

    #[test]
    fn the_answers_of_docker_20_and_podman_4_have_the_same_facts() {
        for (json, runtime, network, health) in [
            (DOCKER, "runc", "host", HealthStatus::Healthy),
            (PODMAN, "oci", "none", HealthStatus::Starting),
        ] {
            let container = inspected(json).unwrap();
            assert_eq!(container.name, "full");
            assert_eq!(container.state.status, EngineStatus::Running);
            assert!(container.state.is_running && !container.state.is_paused);
            assert!(container.state.pid.unwrap() > 1);
            assert!(container.created_ms < container.state.started_ms);
            assert_eq!(container.state.finished_ms, None);
            assert_eq!(container.state.exit_code, None);
            assert_eq!(container.state.health.unwrap().status, health);
            assert_eq!(container.restart_policy, Some(RestartPolicy::UnlessStopped));
            assert_eq!(container.user, "1000:1000");
            assert_eq!(container.runtime, runtime);
            assert_eq!(container.network_mode, network);
            assert!(container.image.ends_with("lab:1"));
            assert!(container.image_id.is_some());
            let labels = &container.labels;
            assert_eq!(labels.compose_project.as_deref(), Some("media"));
            assert_eq!(labels.compose_service.as_deref(), Some("web"));
            assert_eq!(labels.compose_files, ["/srv/c.yml"]);
            assert_eq!(labels.image["version"], "1.2");
            assert!(!format!("{labels:?}").contains("SECRET"), "{labels:?}");
        }
    }

    #[test]
    fn the_rights_of_the_recorded_containers_are_found() {
        for json in [DOCKER, PODMAN] {
            let container = inspected(json).unwrap();
            let mut rights: Vec<String> = host_rights(&container)
                .iter()
                .map(ToString::to_string)
                .collect();
            rights.sort();
            let expected = [
                "it has /run of the host, where services of root take orders",
                "it has the capability SYS_ADMIN",
                "it has the host's processes",
            ];
            assert_eq!(rights, expected);
            // /etc is mounted read-only, and the device is /dev/null.
            assert_eq!(container.mounts.len(), 3);
            assert_eq!(container.confinement.devices[0].host_path, "/dev/null");
        }
    }

    #[test]
    fn an_answer_with_nothing_but_an_id_is_a_container() {
        for members in [
            r#""Name":null"#,
            r#""State":null,"Config":null,"HostConfig":null,"NetworkSettings":null,"Mounts":null"#,
            r#""State":{},"Config":{"Labels":null},"HostConfig":{"CapAdd":null,"Devices":null,"RestartPolicy":null},"NetworkSettings":{"Ports":null}"#,
        ] {
            let container = with_id(members);
            assert_eq!(container.name, "abababababab");
            assert_eq!(container.state.status, EngineStatus::Unknown);
            assert!(!container.state.is_running);
            assert_eq!(container.state.pid, None);
            assert_eq!(host_rights(&container), []);
        }
        for bad in [r#"{"Id":null}"#, r#"{"Id":"../x"}"#, "{}"] {
            let error = inspected(bad).err().unwrap();
            assert!(matches!(&error, EngineError::Unreadable(_)), "{error}");
        }
    }

    #[test]
    fn states_are_read_as_both_engines_write_them() {
        let state = |json: &str| with_id(&format!(r#""State":{json}"#)).state;
        let ended = state(
            r#"{"Status":"exited","Running":false,"Pid":0,"ExitCode":137,"OOMKilled":true,"StartedAt":"2026-11-26T01:49:03Z","FinishedAt":"2026-11-26T01:50:03Z"}"#,
        );
        assert_eq!((ended.exit_code, ended.pid), (Some(137), None));
        assert!(ended.is_oom_killed && ended.finished_ms.is_some());
        let paused = state(r#"{"Status":"paused","Paused":true,"Running":false,"Pid":7}"#);
        assert!(paused.is_running && paused.is_paused);
        assert_eq!(state(r#"{"Pid":-1}"#).pid, None);
        let created =
            state(r#"{"Status":"created","ExitCode":0,"StartedAt":"0001-01-01T00:00:00Z"}"#);
        assert_eq!(created.exit_code, None);
        for (word, status) in [
            ("stopped", EngineStatus::Exited),
            ("configured", EngineStatus::Created),
            ("new", EngineStatus::Unknown),
        ] {
            assert_eq!(state(&format!(r#"{{"Status":"{word}"}}"#)).status, status);
        }
        for none in [r#"{"Status":""}"#, r#"{"Status":"none"}"#, "null"] {
            assert_eq!(state(&format!(r#"{{"Health":{none}}}"#)).health, None);
        }
        let sick = state(
            r#"{"Health":{"Status":"unhealthy","FailingStreak":3,"Log":[{"Output":"SECRET"}]}}"#,
        );
        assert_eq!(sick.health.unwrap().failing_streak, 3);
    }

    #[test]
    fn ports_are_read_with_and_without_the_host() {
        let container = with_id(
            r#""NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"127.0.0.1","HostPort":"8080"},{"HostIp":"::","HostPort":"8080"}],"53/udp":[{"HostIp":"","HostPort":"53"}],"9/tcp":null,"x/tcp":[]}}"#,
        );
        let shown: Vec<String> = container
            .ports
            .iter()
            .map(|port| {
                format!(
                    "{}/{} {:?} {:?}",
                    port.container_port, port.protocol, port.host_ip, port.host_port
                )
            })
            .collect();
        let expected = [
            "53/udp None Some(53)",
            "80/tcp Some(127.0.0.1) Some(8080)",
            "80/tcp Some(::) Some(8080)",
            "9/tcp None None",
        ];
        assert_eq!(shown, expected);
        let many: Vec<String> = (1..2000)
            .map(|port| format!(r#""{port}/tcp":null"#))
            .collect();
        let many = with_id(&format!(
            r#""NetworkSettings":{{"Ports":{{{}}}}}"#,
            many.join(",")
        ));
        assert_eq!(many.ports.len(), MAX_PORTS);
    }

    #[test]
    fn unprotected_settings_of_the_kernel_differ_from_the_usual_and_the_unknown() {
        for (paths, expected) in [("[]", true), ("null", false), (r#"["/proc/sys"]"#, false)] {
            let container = with_id(&format!(r#""HostConfig":{{"ReadonlyPaths":{paths}}}"#));
            assert_eq!(container.confinement.has_writable_proc, expected, "{paths}");
        }
    }
}
