//! Facts about an image.

use serde::Deserialize;

use super::container_id::ImageId;
use super::error::EngineError;
use super::text::{plain, short_text, time_ms};

/// The most tags and the most digests of an image that are kept; others are left out.
const MAX_NAMES: usize = 64;
/// The most characters of a tag or digest; a longer one is cut.
const MAX_NAME_CHARS: usize = 512;

/// An image. Texts are sanitized and shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFacts {
    /// Its id.
    pub id: ImageId,
    /// Its names with tags, such as `jellyfin/jellyfin:latest`; at most 64.
    pub tags: Vec<String>,
    /// Its names with the digest of the registry, such as `jellyfin/jellyfin@sha256:…`; at most 64. None if it was
    /// not pulled.
    pub digests: Vec<String>,
    /// When it was built, in milliseconds since 1970.
    pub created_ms: Option<u64>,
    /// Its size on the disk in bytes, with layers that it shares with others.
    pub size_bytes: Option<u64>,
    /// The architecture, such as `amd64`.
    pub architecture: String,
}

/// What the engine answers for an image.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AnsweredImage {
    id: Option<String>,
    repo_tags: Option<Vec<String>>,
    repo_digests: Option<Vec<String>>,
    created: Option<String>,
    size: Option<i64>,
    architecture: Option<String>,
}

impl TryFrom<AnsweredImage> for ImageFacts {
    type Error = EngineError;

    fn try_from(answer: AnsweredImage) -> Result<Self, EngineError> {
        let id = answer.id.as_deref().and_then(ImageId::parse);
        let id = id.ok_or_else(|| {
            EngineError::Unreadable("the engine's answer has an image without an id".to_owned())
        })?;
        let names = |names: Option<Vec<String>>| {
            let names = names.unwrap_or_default().into_iter().take(MAX_NAMES);
            names.map(|name| plain(&name, MAX_NAME_CHARS)).collect()
        };
        Ok(Self {
            id,
            tags: names(answer.repo_tags),
            digests: names(answer.repo_digests),
            created_ms: time_ms(answer.created.as_deref()),
            size_bytes: answer.size.and_then(|bytes| u64::try_from(bytes).ok()),
            architecture: short_text(answer.architecture.as_deref()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(json: &str) -> Result<ImageFacts, EngineError> {
        serde_json::from_str::<AnsweredImage>(json)
            .unwrap()
            .try_into()
    }

    #[test]
    fn images_of_docker_20_and_podman_4_are_read() {
        let docker = image(include_str!("recorded/docker-image.json")).unwrap();
        assert_eq!(
            (docker.tags, docker.digests.len()),
            (vec!["lab:1".to_owned()], 0)
        );
        let podman = image(include_str!("recorded/podman-image.json")).unwrap();
        assert_eq!(podman.tags, ["localhost/lab:1"]);
        assert!(podman.digests[0].starts_with("localhost/lab@sha256:"));
        assert_eq!(podman.architecture, "amd64");
        assert!(podman.size_bytes > Some(1_000_000) && podman.created_ms.is_some());
    }

    #[test]
    fn an_image_without_an_id_is_unreadable_and_null_lists_are_empty() {
        assert!(matches!(
            image(r#"{"Id":"lab:1"}"#),
            Err(EngineError::Unreadable(_))
        ));
        let id = "ab".repeat(32);
        let bare = image(&format!(
            r#"{{"Id":"{id}","RepoTags":null,"RepoDigests":null}}"#
        ));
        assert!(bare.unwrap().tags.is_empty());
    }
}
