//! What Docker or Podman says about a container, as the helper passes it on: nothing that may be secret.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The facts about a container of Docker or Podman. Its environment, its command, its labels other than those below, and
/// the output of its health checks are not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EngineFacts {
    /// The engine's word for its state: created, running, paused, restarting, exited, removing or dead.
    pub engine_state: String,
    /// Its full id.
    pub id: String,
    /// The image, as it was named when the container was created.
    pub image: String,
    /// The image's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// When it was created, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_ms: Option<u64>,
    /// When it was last started, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When its main process last ended, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
    /// The exit code of its main process; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Whether the kernel killed a process of it because memory was used up.
    #[serde(skip_serializing_if = "is_false")]
    pub oom_killed: bool,
    /// What its health check found; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<ContainerHealth>,
    /// When the engine starts it again: no, on-failure, always or unless-stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
    /// The Compose project that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compose: Option<ComposeService>,
    /// The ports that the host forwards to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published_ports: Vec<PublishedPort>,
    /// Its mounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<EngineMountFacts>,
    /// The user of its main process; absent for root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its network: host, none, bridge, the name of a network, or container: and an id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    /// What gives a process in it the rights of the host's root, a phrase each. With any of them it counts as the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_rights: Vec<String>,
    /// What gives a process in it the rights of root in the container of LXC that its Docker runs in, a phrase each. With
    /// any of them, a command in it needs access to that container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lxc_rights: Vec<String>,
    /// Why commands cannot run in it while it runs; absent if they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_commands: Option<String>,
}

impl EngineFacts {
    /// Returns whether the engine starts the container again after a restart of the host.
    pub fn starts_by_itself(&self) -> bool {
        let policy = self.restart_policy.as_deref();
        matches!(policy, Some("always" | "unless-stopped"))
    }
}

/// The result of a container's health checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerHealth {
    /// starting, healthy or unhealthy.
    pub status: String,
    /// How many checks in a row have failed.
    pub failing_streak: u32,
}

/// A service of a Compose project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ComposeService {
    /// The project's name.
    pub project: String,
    /// The service's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The project's files on the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_files: Vec<String>,
    /// The services that start before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<ComposeDependency>,
    /// Whether it is a single run of the service (`docker compose run`), which does not start and stop with the
    /// project.
    #[serde(default, skip_serializing_if = "is_false")]
    pub one_off: bool,
}

/// A service that another one of its project depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComposeDependency {
    /// The service's name.
    pub service: String,
    /// What must be true of it first.
    pub condition: DependencyCondition,
}

/// What must be true of a service before those that depend on it start (Compose specification, `depends_on`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DependencyCondition {
    /// It has been started.
    Started,
    /// Its health check has succeeded.
    Healthy,
    /// It has ended with exit code 0.
    Completed,
}

/// A container's image, and the image that has the same name now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerImage {
    /// The name of the image when the container was created.
    pub image: String,
    /// The id of the image that the container was created from.
    pub image_id: Option<String>,
    /// That image's names with digests of registries, such as `jellyfin/jellyfin@sha256:…`; none if it was not pulled.
    pub digests: Vec<String>,
    /// The id of the image that has the name now; absent if none has, or if the name is an id.
    pub named_image_id: Option<String>,
}

/// A port that the host forwards to a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedPort {
    /// The port inside.
    pub container_port: u16,
    /// tcp, udp or sctp.
    pub protocol: String,
    /// The address of the host; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_address: Option<IpAddr>,
    /// The port of the host.
    pub host_port: u16,
}

/// A mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineMountFacts {
    /// bind, volume, tmpfs or another word of the engine.
    pub kind: String,
    /// The path in the container.
    pub destination: String,
    /// The path on the host, or the volume's; shown to callers that may see the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether the container cannot write to it.
    pub read_only: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn is_false(value: &bool) -> bool {
    !value
}
