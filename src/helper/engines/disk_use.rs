//! What an engine keeps on the disk, and which of it nothing uses.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::container_id::{ImageId, is_name};
use super::text::short_text;

/// The most volumes and the most images that nothing uses that are kept, the largest; others are left out.
const MAX_UNUSED: usize = 200;

/// What an engine keeps on the disk, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineSizes {
    /// All layers of images.
    pub images_bytes: u64,
    /// All volumes.
    pub volumes_bytes: u64,
    /// The build cache.
    pub build_cache_bytes: u64,
    /// The part of the build cache that no build uses.
    pub unused_cache_bytes: u64,
    /// What each container has written, by its full id.
    pub containers: BTreeMap<String, u64>,
    /// The volumes that no container uses, largest first.
    pub volumes: Vec<UnusedVolume>,
    /// The images without a name that no container uses, largest first.
    pub images: Vec<UnusedImage>,
}

/// A volume that no container uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedVolume {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The Compose project that made it.
    pub project: Option<String>,
}

/// An image without a name that no container uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedImage {
    /// Its id.
    pub id: ImageId,
    /// Its size without the layers that it shares with others.
    pub bytes: u64,
}

/// What the engine answers about everything.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct AnsweredDiskUse {
    layers_size: Option<i64>,
    images: Option<Vec<AnsweredImageSize>>,
    containers: Option<Vec<AnsweredContainerSize>>,
    volumes: Option<Vec<AnsweredVolume>>,
    build_cache: Option<Vec<AnsweredCachePart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredImageSize {
    id: Option<String>,
    size: Option<i64>,
    shared_size: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredContainerSize {
    id: Option<String>,
    size_rw: Option<i64>,
    #[serde(rename = "ImageID")]
    image_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredVolume {
    name: Option<String>,
    usage_data: Option<AnsweredUsage>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredUsage {
    size: Option<i64>,
    ref_count: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AnsweredCachePart {
    size: Option<i64>,
    in_use: Option<bool>,
}

/// An image of the list of those without a name.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DanglingImage {
    id: Option<String>,
}

/// The list of volumes that no container uses.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct DanglingVolumes {
    volumes: Option<Vec<DanglingVolume>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DanglingVolume {
    name: Option<String>,
}

/// What the engine answers after deleting the build cache.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct AnsweredPrune {
    space_reclaimed: Option<i64>,
}

impl AnsweredPrune {
    pub(super) fn freed_bytes(&self) -> u64 {
        bytes(self.space_reclaimed)
    }
}

impl EngineSizes {
    /// Combines the answers. What the engine lists as unused is left out if its sizes show a user of it.
    pub(super) fn of(
        answer: &AnsweredDiskUse,
        images: &[DanglingImage],
        volumes: &DanglingVolumes,
    ) -> Self {
        let caches = answer.build_cache.as_deref().unwrap_or_default();
        let unused = caches.iter().filter(|part| part.in_use == Some(false));
        let listed = answer.volumes.as_deref().unwrap_or_default();
        let containers = answer.containers.as_deref().unwrap_or_default();
        let containers = containers.iter();
        Self {
            images_bytes: bytes(answer.layers_size),
            volumes_bytes: listed.iter().map(AnsweredVolume::bytes).sum(),
            build_cache_bytes: caches.iter().map(|part| bytes(part.size)).sum(),
            unused_cache_bytes: unused.map(|part| bytes(part.size)).sum(),
            containers: containers
                .filter_map(|one| Some((one.id.clone()?, bytes(one.size_rw))))
                .collect(),
            volumes: unused_volumes(listed, volumes),
            images: unused_images(answer, images),
        }
    }
}

impl AnsweredVolume {
    fn bytes(&self) -> u64 {
        bytes(self.usage_data.as_ref().and_then(|usage| usage.size))
    }

    fn unused(&self) -> Option<UnusedVolume> {
        let name = self.name.clone().filter(|name| is_name(name))?;
        let users = self.usage_data.as_ref()?.ref_count?;
        let labels = self.labels.as_ref();
        let project = labels.and_then(|labels| labels.get("com.docker.compose.project"));
        (users == 0).then(|| UnusedVolume {
            name,
            bytes: self.bytes(),
            project: project.map(|project| short_text(Some(project))),
        })
    }
}

fn unused_volumes(listed: &[AnsweredVolume], dangling: &DanglingVolumes) -> Vec<UnusedVolume> {
    let dangling = dangling.volumes.as_deref().unwrap_or_default().iter();
    let dangling: BTreeSet<&str> = dangling.filter_map(|one| one.name.as_deref()).collect();
    let unused = listed.iter().filter_map(AnsweredVolume::unused);
    let mut unused: Vec<_> = unused
        .filter(|volume| dangling.contains(volume.name.as_str()))
        .collect();
    unused.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
    unused.truncate(MAX_UNUSED);
    unused
}

fn unused_images(answer: &AnsweredDiskUse, dangling: &[DanglingImage]) -> Vec<UnusedImage> {
    let parse = |id: &Option<String>| id.as_deref().and_then(ImageId::parse);
    let containers = answer.containers.as_deref().unwrap_or_default();
    let used: BTreeSet<ImageId> = containers
        .iter()
        .filter_map(|one| parse(&one.image_id))
        .collect();
    let dangling: BTreeSet<ImageId> = dangling.iter().filter_map(|one| parse(&one.id)).collect();
    let listed = answer.images.as_deref().unwrap_or_default().iter();
    let unused = listed.filter_map(|image| {
        let id = parse(&image.id)?;
        let is_unused = dangling.contains(&id) && !used.contains(&id);
        is_unused.then(|| UnusedImage {
            id,
            bytes: bytes(image.size).saturating_sub(bytes(image.shared_size)),
        })
    });
    let mut unused: Vec<_> = unused.collect();
    unused.sort_by(|a, b| (b.bytes, &a.id).cmp(&(a.bytes, &b.id)));
    unused.truncate(MAX_UNUSED);
    unused
}

/// The engines mean "unknown" with -1.
fn bytes(answered: Option<i64>) -> u64 {
    answered
        .and_then(|bytes| u64::try_from(bytes).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(answer: &str, images: &str, volumes: &str) -> EngineSizes {
        EngineSizes::of(
            &serde_json::from_str(answer).unwrap(),
            &serde_json::from_str::<Vec<DanglingImage>>(images).unwrap(),
            &serde_json::from_str(volumes).unwrap(),
        )
    }

    #[test]
    fn only_what_the_engine_and_its_sizes_call_unused_is_unused() {
        let id = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let (old, used, named) = (id("a"), id("b"), id("c"));
        let answer = format!(
            r#"{{"LayersSize":100,"Images":[
            {{"Id":"{old}","Size":50,"SharedSize":20}},{{"Id":"{used}","Size":9,"SharedSize":-1}},{{"Id":"{named}","Size":8}}],
            "Containers":[{{"Id":"c1","SizeRw":7,"ImageID":"{used}"}}],
            "Volumes":[{{"Name":"old","UsageData":{{"Size":5,"RefCount":0}},"Labels":{{"com.docker.compose.project":"media"}}}},
                       {{"Name":"big","UsageData":{{"Size":6,"RefCount":0}},"Labels":null}},
                       {{"Name":"used","UsageData":{{"Size":4,"RefCount":1}}}},
                       {{"Name":"unlisted","UsageData":{{"Size":4,"RefCount":0}}}},
                       {{"Name":"../x","UsageData":{{"Size":4,"RefCount":0}}}},
                       {{"Name":"unknown","UsageData":{{"Size":-1,"RefCount":-1}}}}],
            "BuildCache":[{{"Size":3,"InUse":false}},{{"Size":2,"InUse":true}},{{"Size":1}}]}}"#
        );
        let images = format!(r#"[{{"Id":"{old}"}},{{"Id":"{used}"}}]"#);
        let volumes = r#"{"Volumes":[{"Name":"old"},{"Name":"big"},{"Name":"used"},{"Name":"unknown"},{"Name":"../x"}]}"#;
        let found = sizes(&answer, &images, volumes);
        assert_eq!(found.images_bytes, 100);
        assert_eq!((found.volumes_bytes, found.build_cache_bytes), (23, 6));
        assert_eq!(found.unused_cache_bytes, 3);
        assert_eq!(found.containers.get("c1"), Some(&7));
        let unused: Vec<&str> = found.volumes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(unused, ["big", "old"]);
        assert_eq!(found.volumes[1].project.as_deref(), Some("media"));
        let id = ImageId::parse(&old).unwrap();
        assert_eq!(found.images, [UnusedImage { id, bytes: 30 }]);
    }

    #[test]
    fn an_empty_answer_has_nothing() {
        let found = sizes("{}", "[]", r#"{"Volumes":null}"#);
        assert_eq!(found, EngineSizes::default());
    }
}
