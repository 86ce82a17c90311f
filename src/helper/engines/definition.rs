//! A container's definition as its engine has it, complete, and where its data is. It holds secrets, such as the
//! environment, so it is written only where root alone reads it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::container_id::{EngineContainerId, ImageId, answered_id};
use super::error::EngineError;

/// The storage drivers that keep a container's own files in a directory, as the engines name them.
const OVERLAY: [&str; 2] = ["overlay2", "overlay"];

/// The driver of volumes that keeps them in a directory of the engine.
const LOCAL: &str = "local";

/// What an engine answers about a container, with everything that it was given.
pub struct EngineDefinition {
    /// The whole answer, as indented JSON.
    pub json: String,
    /// The image's id.
    pub image: Option<ImageId>,
    /// The directory with the files that it changed in those of its image; `None` if its storage driver has no such
    /// directory.
    pub layer: Option<PathBuf>,
    /// Its mounts.
    pub mounts: Vec<DefinedMount>,
}

/// A mount of a container, with the paths as the engine names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedMount {
    /// What is mounted.
    pub kind: DefinedMountKind,
    /// Its path on the host.
    pub source: PathBuf,
    /// Its path in the container.
    pub destination: String,
    /// Whether the container may write to it.
    pub is_writable: bool,
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinedMountKind {
    /// A volume in a directory of the engine, by its name.
    LocalVolume(String),
    /// A volume of another driver, by the driver's name.
    ForeignVolume(String),
    /// A volume whose directory the engine mounts from elsewhere, such as a share, while a container uses it.
    MountedVolume,
    /// A directory or file of the host.
    Bind,
    /// A file system in memory.
    Memory,
    /// Something else, by the engine's word.
    Other(String),
}

/// What an engine answers about a volume.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AnsweredVolumeOptions {
    options: Option<BTreeMap<String, String>>,
}

impl AnsweredVolumeOptions {
    /// Whether the engine mounts something on the volume's directory. Other options are owners and quotas.
    pub(super) fn is_mounted(&self) -> bool {
        let options = self.options.as_ref();
        options.is_some_and(|all| all.contains_key("device") || all.contains_key("type"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredDefinition {
    id: Option<String>,
    image: Option<String>,
    graph_driver: Option<AnsweredDriver>,
    mounts: Option<Vec<AnsweredDefinedMount>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredDriver {
    name: Option<String>,
    data: Option<AnsweredDriverData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredDriverData {
    upper_dir: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredDefinedMount {
    #[serde(rename = "Type")]
    kind: Option<String>,
    name: Option<String>,
    source: Option<PathBuf>,
    destination: Option<String>,
    driver: Option<String>,
    #[serde(rename = "RW")]
    is_writable: Option<bool>,
}

impl EngineDefinition {
    /// Converts the engine's answer for the container with this id.
    ///
    /// # Errors
    /// Fails if it is not the answer that the API describes, or another container's. The error has no value of it.
    pub(super) fn parse(answer: &Value, id: &EngineContainerId) -> Result<Self, EngineError> {
        let unreadable = || {
            let text = "the engine's answer about the container is not what its API describes";
            EngineError::Unreadable(text.to_owned())
        };
        let parts = AnsweredDefinition::deserialize(answer).map_err(|_| unreadable())?;
        if answered_id(parts.id.as_deref())? != *id {
            return Err(unreadable());
        }
        let driver = parts.graph_driver;
        let driver =
            driver.filter(|one| OVERLAY.contains(&one.name.as_deref().unwrap_or_default()));
        let layer = driver.and_then(|one| one.data?.upper_dir);
        let mounts = parts.mounts.unwrap_or_default().into_iter();
        Ok(Self {
            json: serde_json::to_string_pretty(answer).map_err(|_| unreadable())?,
            image: parts.image.as_deref().and_then(ImageId::parse),
            layer,
            mounts: mounts.map(DefinedMount::from).collect(),
        })
    }
}

impl fmt::Debug for EngineDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON has secrets.
        let mut shown = f.debug_struct("EngineDefinition");
        shown.field("mounts", &self.mounts).finish_non_exhaustive()
    }
}

impl From<AnsweredDefinedMount> for DefinedMount {
    fn from(mount: AnsweredDefinedMount) -> Self {
        let kind = mount.kind.unwrap_or_default();
        let driver = mount.driver.unwrap_or_default();
        let kind = match (kind.as_str(), mount.name) {
            ("volume", Some(name)) if driver == LOCAL => DefinedMountKind::LocalVolume(name),
            ("volume", _) => DefinedMountKind::ForeignVolume(driver),
            ("bind", _) => DefinedMountKind::Bind,
            ("tmpfs", _) => DefinedMountKind::Memory,
            _ => DefinedMountKind::Other(kind),
        };
        Self {
            kind,
            source: mount.source.unwrap_or_default(),
            destination: mount.destination.unwrap_or_default(),
            // A mount without the fact is left as it is by a restore.
            is_writable: mount.is_writable.unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<EngineDefinition, EngineError> {
        let value: Value = serde_json::from_str(json).unwrap();
        let id = value["Id"].as_str().and_then(EngineContainerId::parse);
        EngineDefinition::parse(&value, &id.unwrap())
    }

    #[test]
    fn docker_and_podman_name_the_layer_and_the_volumes() {
        for (json, root) in [
            (
                include_str!("recorded/docker-inspect.json"),
                "/var/lib/docker/overlay2/970cd239",
            ),
            (
                include_str!("recorded/podman-inspect.json"),
                "/var/lib/containers/storage/overlay/b68022f0",
            ),
        ] {
            let found = parsed(json).unwrap();
            let layer = found.layer.clone().unwrap();
            let shown = layer.display().to_string();
            assert!(
                shown.starts_with(root) && shown.ends_with("/diff"),
                "{shown}"
            );
            let volume = found.mounts.iter().find(|one| one.destination == "/data");
            let volume = volume.unwrap();
            let kind = DefinedMountKind::LocalVolume("vol1".to_owned());
            assert_eq!((&volume.kind, volume.is_writable), (&kind, true));
            assert!(volume.source.ends_with("volumes/vol1/_data"), "{volume:?}");
            let binds = found
                .mounts
                .iter()
                .filter(|one| one.kind == DefinedMountKind::Bind);
            assert!(binds.count() >= 1);
            assert!(found.image.is_some() && found.json.contains("\"Env\""));
            assert!(!format!("{found:?}").contains("Env"));
        }
    }

    #[test]
    fn a_volume_with_a_device_is_mounted_from_elsewhere() {
        let is_mounted = |options: &str| {
            let answer = format!(r#"{{"Name":"v","Options":{options}}}"#);
            let answer: AnsweredVolumeOptions = serde_json::from_str(&answer).unwrap();
            answer.is_mounted()
        };
        for plain in ["null", "{}", r#"{"size":"1G"}"#, r#"{"o":"uid=1000"}"#] {
            assert!(!is_mounted(plain), "{plain}");
        }
        assert!(is_mounted(
            r#"{"type":"nfs","o":"addr=nas","device":":/x"}"#
        ));
        assert!(is_mounted(r#"{"device":"/srv"}"#) && is_mounted(r#"{"type":"tmpfs"}"#));
    }

    #[test]
    fn another_containers_answer_and_other_drivers_are_recognized() {
        let id = "ab".repeat(32);
        let value: Value = serde_json::from_str(&format!(r#"{{"Id":"{id}"}}"#)).unwrap();
        let other = EngineContainerId::parse(&"cd".repeat(32)).unwrap();
        assert!(EngineDefinition::parse(&value, &other).is_err());
        let found = parsed(&format!(
            r#"{{"Id":"{id}","GraphDriver":{{"Name":"vfs","Data":null}},"Mounts":[
                {{"Type":"volume","Name":"v","Driver":"nfs","Source":"/x","Destination":"/y","RW":true}},
                {{"Type":"volume","Driver":"local"}},{{"Type":"tmpfs","Destination":"/t"}},{{"Type":"npipe"}}]}}"#
        ));
        let found = found.unwrap();
        assert_eq!(found.layer, None);
        let kinds: Vec<_> = found.mounts.into_iter().map(|one| one.kind).collect();
        assert_eq!(
            kinds,
            [
                DefinedMountKind::ForeignVolume("nfs".to_owned()),
                DefinedMountKind::ForeignVolume("local".to_owned()),
                DefinedMountKind::Memory,
                DefinedMountKind::Other("npipe".to_owned())
            ]
        );
    }
}
