//! Facts about an engine itself.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::text::{MAX_PATH_CHARS, MAX_TEXT_CHARS, plain, short_text};

/// The most runtimes, and the most security options, that are kept; others are left out.
const MAX_ENTRIES: usize = 64;

/// An engine. Texts are sanitized and shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// The version of the engine, such as `20.10.24`.
    pub server_version: String,
    /// The number of its containers.
    pub containers: u32,
    /// How it makes cgroups: `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    /// The version of cgroups: `1` or `2`.
    pub cgroup_version: String,
    /// Whether containers run on while the engine restarts.
    pub has_live_restore: bool,
    /// Such as `name=seccomp,profile=default`, `name=userns` or `name=rootless`.
    pub security_options: Vec<String>,
    /// Whether it runs without root; Podman also states it in a field of its own.
    pub is_rootless: bool,
    /// The OCI runtime of containers that name none.
    pub default_runtime: String,
    /// The OCI runtimes by name, with their program: an absolute path, or a name to find in `PATH`.
    pub runtimes: BTreeMap<String, String>,
    /// The directory with its images and containers.
    pub data_directory: String,
    /// How it stores file systems, such as `overlay2`.
    pub storage_driver: String,
}

/// What the engine answers about itself. It also has proxies with passwords, which are not read.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AnsweredInfo {
    server_version: Option<String>,
    containers: Option<i64>,
    cgroup_driver: Option<String>,
    cgroup_version: Option<String>,
    live_restore_enabled: Option<bool>,
    security_options: Option<Vec<String>>,
    rootless: Option<bool>,
    default_runtime: Option<String>,
    runtimes: Option<BTreeMap<String, Option<AnsweredRuntime>>>,
    docker_root_dir: Option<String>,
    driver: Option<String>,
}

#[derive(Deserialize)]
struct AnsweredRuntime {
    path: Option<String>,
}

impl From<AnsweredInfo> for EngineInfo {
    fn from(answer: AnsweredInfo) -> Self {
        let options = answer.security_options.unwrap_or_default().into_iter();
        let options = options.take(MAX_ENTRIES);
        let security_options: Vec<String> =
            options.map(|option| short_text(Some(&option))).collect();
        let is_option_rootless = security_options
            .iter()
            .any(|option| option.split(',').any(|part| part == "name=rootless"));
        let path = |path: Option<String>| plain(&path.unwrap_or_default(), MAX_PATH_CHARS);
        let runtimes = answer.runtimes.unwrap_or_default().into_iter();
        let runtimes = runtimes.take(MAX_ENTRIES).map(|(name, runtime)| {
            let program = path(runtime.and_then(|runtime| runtime.path));
            (plain(&name, MAX_TEXT_CHARS), program)
        });
        let containers = answer.containers.unwrap_or(0);
        Self {
            server_version: short_text(answer.server_version.as_deref()),
            containers: u32::try_from(containers).unwrap_or(0),
            cgroup_driver: short_text(answer.cgroup_driver.as_deref()),
            cgroup_version: short_text(answer.cgroup_version.as_deref()),
            has_live_restore: answer.live_restore_enabled.unwrap_or(false),
            is_rootless: answer.rootless.unwrap_or(false) || is_option_rootless,
            security_options,
            default_runtime: short_text(answer.default_runtime.as_deref()),
            runtimes: runtimes.collect(),
            data_directory: path(answer.docker_root_dir),
            storage_driver: short_text(answer.driver.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(json: &str) -> EngineInfo {
        serde_json::from_str::<AnsweredInfo>(json).unwrap().into()
    }

    #[test]
    fn docker_20_and_podman_4_describe_themselves() {
        let docker = info(include_str!("recorded/docker-info.json"));
        assert_eq!(docker.server_version, "20.10.24+dfsg1");
        assert_eq!(docker.runtimes["runc"], "runc");
        assert_eq!(docker.data_directory, "/var/lib/docker");
        let podman = info(include_str!("recorded/podman-info.json"));
        assert_eq!(podman.server_version, "4.3.1");
        assert_eq!(podman.runtimes["crun"], "/usr/bin/crun");
        assert_eq!(podman.default_runtime, "crun");
        for engine in [docker, podman] {
            assert_eq!(engine.cgroup_driver, "cgroupfs");
            assert_eq!(engine.cgroup_version, "2");
            assert!(!engine.has_live_restore && !engine.is_rootless);
            let seccomp = "name=seccomp,profile=default".to_owned();
            assert!(engine.security_options.contains(&seccomp));
        }
    }

    #[test]
    fn an_engine_without_root_is_recognized() {
        for json in [
            r#"{"Rootless":true}"#,
            r#"{"SecurityOptions":["name=seccomp,profile=default","name=rootless"]}"#,
        ] {
            assert!(info(json).is_rootless, "{json}");
        }
        assert!(!info(r#"{"SecurityOptions":null,"Runtimes":null}"#).is_rootless);
    }
}
