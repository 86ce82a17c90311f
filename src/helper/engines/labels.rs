//! The labels of a container that are read: those of Compose and of the image's description, and no other.
//!
//! Other labels can hold secrets, such as the passwords of Traefik's basic authentication; they are skipped while the
//! answer is parsed.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::text::{MAX_TEXT_CHARS, plain};
use gatewren_wire::operations::{ComposeDependency, DependencyCondition};

/// The start of the labels of an image's description (OCI image specification, annotations).
const IMAGE_PREFIX: &str = "org.opencontainers.image.";
/// The most labels of an image's description that are kept; others are left out.
const MAX_IMAGE_LABELS: usize = 32;
/// The most characters of a label's value; a longer one is cut.
const MAX_VALUE_CHARS: usize = 1024;
/// The most services that a service may depend on; others are left out.
const MAX_DEPENDENCIES: usize = 64;
/// The most files of a Compose project that are kept; others are left out.
const MAX_CONFIG_FILES: usize = 32;

/// What a container's labels state about it. Values are sanitized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerLabels {
    /// The Compose project that it belongs to.
    pub compose_project: Option<String>,
    /// Its service in the project.
    pub compose_service: Option<String>,
    /// The absolute paths of the project's files.
    pub compose_files: Vec<String>,
    /// The services of the project that start before its own.
    pub compose_dependencies: Vec<ComposeDependency>,
    /// Whether it is a single run of its service, by `docker compose run`.
    pub is_compose_one_off: bool,
    /// The image's description: name without `org.opencontainers.image.`, and value.
    pub image: BTreeMap<String, String>,
}

/// A label's name, as far as it matters.
enum LabelName {
    Project,
    Service,
    ConfigFiles,
    DependsOn,
    OneOff,
    Image(String),
    Other,
}

impl<'de> Deserialize<'de> for LabelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = LabelName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a label's name")
            }

            fn visit_str<E>(self, name: &str) -> Result<LabelName, E> {
                Ok(match name {
                    "com.docker.compose.project" => LabelName::Project,
                    "com.docker.compose.service" => LabelName::Service,
                    "com.docker.compose.project.config_files" => LabelName::ConfigFiles,
                    "com.docker.compose.depends_on" => LabelName::DependsOn,
                    "com.docker.compose.oneoff" => LabelName::OneOff,
                    name => match name.strip_prefix(IMAGE_PREFIX) {
                        Some(rest) => LabelName::Image(plain(rest, MAX_VALUE_CHARS)),
                        None => LabelName::Other,
                    },
                })
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de> Deserialize<'de> for ContainerLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LabelsVisitor;
        impl<'de> Visitor<'de> for LabelsVisitor {
            type Value = ContainerLabels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut labels = ContainerLabels::default();
                while let Some(name) = map.next_key::<LabelName>()? {
                    if let LabelName::Other = name {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        labels.set(name, &map.next_value::<String>()?);
                    }
                }
                Ok(labels)
            }
        }
        deserializer.deserialize_map(LabelsVisitor)
    }
}

impl ContainerLabels {
    fn set(&mut self, name: LabelName, value: &str) {
        let text = || plain(value, MAX_VALUE_CHARS);
        match name {
            LabelName::Project => self.compose_project = Some(text()),
            LabelName::Service => self.compose_service = Some(text()),
            LabelName::ConfigFiles => {
                let files = value.split(',').filter(|file| !file.is_empty());
                let files = files.take(MAX_CONFIG_FILES);
                self.compose_files = files.map(|file| plain(file, MAX_VALUE_CHARS)).collect();
            }
            LabelName::DependsOn => {
                let services = value.split(',').filter_map(dependency);
                self.compose_dependencies = services.take(MAX_DEPENDENCIES).collect();
            }
            LabelName::OneOff => self.is_compose_one_off = value.eq_ignore_ascii_case("true"),
            LabelName::Image(name) => {
                if self.image.len() < MAX_IMAGE_LABELS {
                    self.image.insert(name, text());
                }
            }
            LabelName::Other => {}
        }
    }
}

/// Parses `db:service_healthy:false`, as Compose writes it: the service, the condition, and whether a restart of the
/// service restarts the other one. A condition that is missing or unknown is that the service was started.
fn dependency(text: &str) -> Option<ComposeDependency> {
    let mut parts = text.split(':');
    let service = parts.next().filter(|service| !service.is_empty())?;
    Some(ComposeDependency {
        service: plain(service, MAX_TEXT_CHARS),
        condition: match parts.next() {
            Some("service_healthy") => DependencyCondition::Healthy,
            Some("service_completed_successfully") => DependencyCondition::Completed,
            _ => DependencyCondition::Started,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labels_of_compose_and_of_the_image_are_kept() {
        let labels: ContainerLabels = serde_json::from_str(
            r#"{
                "com.docker.compose.project": "media",
                "com.docker.compose.service": "jelly\u001b[2Jfin",
                "com.docker.compose.project.config_files": "/srv/a.yml,/srv/b.yml",
                "com.docker.compose.config-hash": "x",
                "org.opencontainers.image.version": "1.2",
                "traefik.http.middlewares.auth.basicauth.users": "admin:secret",
                "a label that is no text": {"deep": [1, null]}
            }"#,
        )
        .unwrap();
        assert_eq!(labels.compose_project.as_deref(), Some("media"));
        let service = labels.compose_service.as_deref();
        assert_eq!(service, Some(r"jelly\u{1b}[2Jfin"));
        assert_eq!(labels.compose_files, ["/srv/a.yml", "/srv/b.yml"]);
        let image: Vec<_> = labels.image.iter().collect();
        assert_eq!(image, [(&"version".to_owned(), &"1.2".to_owned())]);
    }

    #[test]
    fn the_services_before_a_service_are_read_with_their_conditions() {
        let labels: ContainerLabels = serde_json::from_str(
            r#"{
                "com.docker.compose.depends_on": "db:service_healthy:false,job:service_completed_successfully,a,,:x",
                "com.docker.compose.oneoff": "True"
            }"#,
        )
        .unwrap();
        let dependencies = labels.compose_dependencies.iter();
        let dependencies: Vec<_> = dependencies
            .map(|dependency| (dependency.service.as_str(), dependency.condition))
            .collect();
        let expected = [
            ("db", DependencyCondition::Healthy),
            ("job", DependencyCondition::Completed),
            ("a", DependencyCondition::Started),
        ];
        assert_eq!(dependencies, expected);
        assert!(labels.is_compose_one_off);
        let many = "a,".repeat(1000);
        let many = format!(r#"{{"com.docker.compose.depends_on": "{many}"}}"#);
        let labels: ContainerLabels = serde_json::from_str(&many).unwrap();
        assert_eq!(labels.compose_dependencies.len(), MAX_DEPENDENCIES);
        assert!(!labels.is_compose_one_off);
    }

    #[test]
    fn labels_without_end_are_bounded() {
        let many: BTreeMap<String, String> = (0..1000)
            .map(|n| (format!("{IMAGE_PREFIX}{n}"), "x".repeat(5000)))
            .collect();
        let json = serde_json::to_string(&many).unwrap();
        let labels: ContainerLabels = serde_json::from_str(&json).unwrap();
        assert_eq!(labels.image.len(), MAX_IMAGE_LABELS);
        let longest = labels.image.values().map(|value| value.chars().count());
        assert_eq!(longest.max(), Some(MAX_VALUE_CHARS));
    }
}
