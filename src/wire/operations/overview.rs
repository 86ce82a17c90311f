//! A container in the answer about all containers at once.

use serde::{Deserialize, Serialize};

use super::container_ref::ContainerRef;

/// A container, with what is known of it if it is one of LXC, or of an engine that root runs on the host. The others are
/// asked about one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverviewEntry {
    /// The container.
    pub container: ContainerRef,
    /// What [`ContainerInfo`](super::operation::Operation::ContainerInfo) prints about it; absent if that must be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<String>,
    /// Its definition, if it is one of LXC, as [`ContainerConfig`](super::operation::Operation::ContainerConfig) prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Its `os-release`; absent if it cannot be read or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_release: Option<String>,
}

impl OverviewEntry {
    /// Returns the entry of a container that must be asked about.
    pub fn unasked(container: ContainerRef) -> Self {
        Self {
            container,
            info: None,
            config: None,
            os_release: None,
        }
    }
}
