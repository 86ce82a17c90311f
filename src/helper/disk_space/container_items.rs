//! What of containers can be deleted: snapshots of LXC, and what Docker and Podman keep that nothing uses.

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::{CleanupFinding, CleanupItem, ContainerRef, SnapshotName};

use crate::engines::EngineSizes;

/// The least size of a build cache that is reported.
const LEAST_CACHE: u64 = 1 << 20;

/// Where a snapshot of LXC is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPlace {
    /// The container.
    pub container: ContainerRef,
    /// The snapshot.
    pub snapshot: SnapshotName,
    /// Its directory.
    pub path: String,
}

/// Returns a snapshot as an item.
pub fn snapshot_item(place: &SnapshotPlace, bytes: u64) -> CleanupFinding {
    CleanupFinding {
        id: CleanupItem::Snapshot {
            container: place.container.clone(),
            snapshot: place.snapshot.clone(),
        },
        bytes,
        path: Some(place.path.clone()),
        why: "a snapshot: the container cannot be restored to it afterwards".to_owned(),
        irreversible: true,
    }
}

/// Returns what an engine keeps that nothing uses.
pub fn engine_items(engine: RuntimeKind, sizes: &EngineSizes) -> Vec<CleanupFinding> {
    let volumes = sizes.volumes.iter().filter_map(|volume| {
        let name = volume.name.parse().ok()?;
        let why = match &volume.project {
            Some(project) => format!(
                "no container uses this volume; its data is lost, also for the Compose project {project}"
            ),
            None => "no container uses this volume; its data is lost".to_owned(),
        };
        Some(CleanupFinding {
            id: CleanupItem::Volume { engine, name },
            bytes: volume.bytes,
            path: None,
            why,
            irreversible: true,
        })
    });
    let images = sizes.images.iter().filter_map(|image| {
        let id = image.id.as_str().parse().ok()?;
        Some(CleanupFinding {
            id: CleanupItem::Image { engine, id },
            bytes: image.bytes,
            path: None,
            why: "an image without a name that no container uses, such as an older version"
                .to_owned(),
            irreversible: false,
        })
    });
    let cache = CleanupFinding {
        id: CleanupItem::BuildCache { engine },
        bytes: sizes.unused_cache_bytes,
        path: None,
        why: "the build cache; the next build of an image takes longer".to_owned(),
        irreversible: false,
    };
    let cache = (cache.bytes >= LEAST_CACHE).then_some(cache);
    volumes.chain(images).chain(cache).collect()
}
