//! The list of an engine's containers.

use serde::Deserialize;

use super::container_id::{EngineContainerId, ImageId, answered_id, own_name};
use super::error::EngineError;
use super::facts::{AnsweredMount, EngineMount, EnginePort, EngineStatus, ListedPort, MAX_PORTS};
use super::kind::EngineKind;
use super::labels::ContainerLabels;
use super::text::short_text;

/// The most containers of an engine; a longer list is an error, because a part of it would be taken for all.
pub const MAX_CONTAINERS: usize = 10_000;

/// A container in the list. Texts are sanitized and shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedContainer {
    /// Its full id.
    pub id: EngineContainerId,
    /// Its name; its short id while it has none.
    pub name: String,
    /// The image as it was named when the container was created.
    pub image: String,
    /// The image's id.
    pub image_id: Option<ImageId>,
    /// When it was created, in milliseconds since 1970; Docker gives whole seconds here.
    pub created_ms: Option<u64>,
    /// Its state.
    pub status: EngineStatus,
    /// The engine's words about it, such as `Exited (0) 2 minutes ago` or `Up 8 minutes (healthy)`.
    pub status_text: String,
    /// Its labels of Compose and of the image.
    pub labels: ContainerLabels,
    /// Its ports, at most 1,024.
    pub ports: Vec<EnginePort>,
    /// Its mounts.
    pub mounts: Vec<EngineMount>,
}

/// What a list shows of a container that can change, without the time since it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedState {
    name: String,
    image: String,
    image_id: Option<ImageId>,
    status: EngineStatus,
    /// The parts in parentheses of the engine's words: an exit code, or what the health check found.
    remarks: Vec<String>,
    /// Sorted: the engines list them in any order.
    ports: Vec<EnginePort>,
}

/// The units of the times of one minute or more since a container ended.
const LONG_UNITS: [&str; 6] = ["minute", "hour", "day", "week", "month", "year"];

impl ListedContainer {
    /// Returns what can change.
    pub(super) fn state(&self) -> ListedState {
        let opened = self.status_text.split('(').skip(1);
        let remarks = opened.filter_map(|rest| rest.split_once(')'));
        let mut ports = self.ports.clone();
        ports.sort_unstable();
        ListedState {
            name: self.name.clone(),
            image: self.image.clone(),
            image_id: self.image_id.clone(),
            status: self.status,
            remarks: remarks.map(|(remark, _)| remark.to_owned()).collect(),
            ports,
        }
    }

    /// Whether its main process may have ended less than a minute ago.
    pub(super) fn has_just_ended(&self) -> bool {
        let is_long_ago = LONG_UNITS
            .iter()
            .any(|unit| self.status_text.contains(unit));
        self.status == EngineStatus::Exited && !is_long_ago
    }
}

/// What the engine answers for one container.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AnsweredListEntry {
    id: Option<String>,
    names: Option<Vec<String>>,
    image: Option<String>,
    #[serde(rename = "ImageID")]
    image_id: Option<String>,
    created: Option<i64>,
    state: Option<String>,
    status: Option<String>,
    labels: Option<ContainerLabels>,
    ports: Option<Vec<ListedPort>>,
    mounts: Option<Vec<AnsweredMount>>,
}

/// Converts the engine's answer.
pub(super) fn into_list(
    kind: EngineKind,
    answer: Vec<AnsweredListEntry>,
) -> Result<Vec<ListedContainer>, EngineError> {
    if answer.len() > MAX_CONTAINERS {
        return Err(EngineError::Unreadable(format!(
            "{kind} lists {} containers, at most {MAX_CONTAINERS} are read",
            answer.len()
        )));
    }
    answer.into_iter().map(ListedContainer::try_from).collect()
}

impl TryFrom<AnsweredListEntry> for ListedContainer {
    type Error = EngineError;

    fn try_from(entry: AnsweredListEntry) -> Result<Self, EngineError> {
        let id = answered_id(entry.id.as_deref())?;
        let names = entry.names.unwrap_or_default();
        let created_s = entry.created.and_then(|s| u64::try_from(s).ok());
        let ports = entry.ports.unwrap_or_default().into_iter();
        let mounts = entry.mounts.unwrap_or_default().into_iter();
        Ok(Self {
            name: own_name(names.iter().map(String::as_str), &id),
            id,
            image: short_text(entry.image.as_deref()),
            image_id: entry.image_id.as_deref().and_then(ImageId::parse),
            created_ms: created_s.and_then(|s| s.checked_mul(1000)),
            status: EngineStatus::parse(entry.state.as_deref().unwrap_or_default()),
            status_text: short_text(entry.status.as_deref()),
            labels: entry.labels.unwrap_or_default(),
            ports: ports
                .filter_map(ListedPort::into_port)
                .take(MAX_PORTS)
                .collect(),
            mounts: mounts.map(EngineMount::from).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(kind: EngineKind, json: &str) -> Vec<ListedContainer> {
        into_list(kind, serde_json::from_str(json).unwrap()).unwrap()
    }

    #[test]
    fn the_lists_of_docker_20_and_podman_4_have_the_same_facts() {
        for (kind, json) in [
            (
                EngineKind::Docker,
                include_str!("recorded/docker-list.json"),
            ),
            (
                EngineKind::Podman,
                include_str!("recorded/podman-list.json"),
            ),
        ] {
            let list = listed(kind, json);
            let full = list.iter().find(|entry| entry.name == "full").unwrap();
            assert_eq!(full.status, EngineStatus::Running);
            assert!(full.image.ends_with("lab:1") && full.image_id.is_some());
            assert_eq!(full.created_ms, Some(1_795_657_803_000));
            assert_eq!(full.labels.compose_service.as_deref(), Some("web"));
            assert!(!format!("{full:?}").contains("SECRET"));
            let mut mounts: Vec<(&str, bool)> = full
                .mounts
                .iter()
                .map(|mount| (mount.destination.as_str(), mount.is_writable))
                .collect();
            mounts.sort_unstable();
            assert_eq!(
                mounts,
                [("/data", true), ("/host/etc", false), ("/host/run", true)]
            );
            let unmask = list.iter().find(|entry| entry.name == "unmask").unwrap();
            assert_eq!(unmask.status, EngineStatus::Created);
        }
    }

    #[test]
    fn published_ports_are_read() {
        let id = "ab".repeat(32);
        let json = format!(
            r#"[{{"Id":"{id}","Ports":[{{"IP":"0.0.0.0","PrivatePort":80,"PublicPort":8080,"Type":"tcp"}},{{"PrivatePort":9,"Type":"udp"}},{{"Type":"tcp"}}]}}]"#
        );
        let ports = listed(EngineKind::Docker, &json).remove(0).ports;
        assert_eq!(ports.len(), 2);
        assert_eq!(
            (ports[0].container_port, ports[0].host_port),
            (80, Some(8080))
        );
        assert_eq!((ports[1].container_port, ports[1].host_port), (9, None));
    }

    #[test]
    fn a_list_of_too_many_containers_is_an_error() {
        let id = "ab".repeat(32);
        let entries = vec![format!(r#"{{"Id":"{id}"}}"#); MAX_CONTAINERS + 1];
        let json = format!("[{}]", entries.join(","));
        let refused = into_list(EngineKind::Docker, serde_json::from_str(&json).unwrap());
        let message = refused.unwrap_err().to_string();
        assert!(
            message.contains("10001 containers, at most 10000"),
            "{message}"
        );
    }
}
