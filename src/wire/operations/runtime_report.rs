//! What the helper reports about the container runtimes of the host, for the owner's checks.

use serde::{Deserialize, Serialize};

use gatewren_base::config::RuntimeKind;

use super::container_ref::ContainerRef;

/// A container runtime: whether it is here, served and answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeReport {
    /// The runtime.
    pub runtime: RuntimeKind,
    /// The user whose own Podman it is; absent for a runtime of root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether `helper.toml` serves its containers.
    pub is_served: bool,
    /// Whether its programs are installed, or the socket of its engine exists.
    pub is_here: bool,
    /// The socket of its engine; absent for LXC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// For Docker inside LXC, the running containers of LXC that have its socket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<ContainerRef>,
    /// What its engine says about itself; absent for LXC, and if it is not served or does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineDescription>,
    /// Why it does not answer although it is served, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What Docker or Podman says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineDescription {
    /// Its version, such as `20.10.24`.
    pub version: String,
    /// The version of the API that is used with it, such as `1.41`.
    pub api_version: String,
    /// The version of cgroups: `1` or `2`.
    pub cgroup_version: String,
    /// How it makes cgroups: `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    /// The OCI runtime of containers that name none, such as `runc`.
    pub oci_runtime: String,
    /// Whether containers run on while it restarts.
    pub has_live_restore: bool,
    /// Whether it runs without root.
    pub is_rootless: bool,
}
