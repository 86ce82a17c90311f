//! The requests that this client can make, and nothing else: no caller supplies a path, a method or a query.

use std::time::Duration;

use hyper::Method;

use super::archive::ArchivePath;
use super::container_id::{EngineContainerId, ImageId, SafeReference};
use super::image_name::ImageName;
use super::log_request::LogQueryString;
use super::version::ApiVersion;

/// How long a request may take, from connecting to the last byte of the answer.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for the sizes of everything: the engines count the files of each volume and container for it.
const DISK_USE_TIMEOUT: Duration = Duration::from_secs(40);
/// The same for deleting data, which may be many files.
const DELETE_TIMEOUT: Duration = Duration::from_mins(10);
/// The most seconds that a container may get to end by itself; a longer time is rejected.
pub const MAX_GRACE_S: u32 = 3600;

/// One request.
#[derive(Clone, Copy)]
pub(super) enum EngineEndpoint<'a> {
    /// Whether the engine answers, and its version of the API. The path has no version.
    Ping,
    /// Facts about the engine.
    Info,
    /// All containers, also those that do not run.
    List,
    /// One container.
    Inspect(SafeReference<'a>),
    /// One volume.
    Volume(SafeReference<'a>),
    /// The running containers that have a volume mounted.
    VolumeUsers(SafeReference<'a>),
    /// Start a container.
    Start(&'a EngineContainerId),
    /// Stop a container.
    Stop(&'a EngineContainerId, GracePeriod),
    /// Freeze a container's processes.
    Pause(&'a EngineContainerId),
    /// Let a container's processes run again.
    Unpause(&'a EngineContainerId),
    /// Change a container's limits; the body has them.
    Update(&'a EngineContainerId),
    /// A part of a container's log.
    Logs(&'a EngineContainerId, LogQueryString),
    /// A file of a container, or a directory with everything below it, as a tar stream. It is never written.
    Archive(&'a EngineContainerId, &'a ArchivePath),
    /// What a path in a container is, without its content.
    PathStat(&'a EngineContainerId, &'a ArchivePath),
    /// The image that has a name now.
    NamedImage(ImageName<'a>),
    /// One image.
    Image(&'a ImageId),
    /// What all images, containers, volumes and the build cache take on the disk.
    DiskUse,
    /// The images without a name that no other image needs.
    DanglingImages,
    /// The volumes that no container uses.
    DanglingVolumes,
    /// Delete an image that no container uses.
    DeleteImage(&'a ImageId),
    /// Delete a volume that no container uses.
    DeleteVolume(SafeReference<'a>),
    /// Delete the parts of the build cache that no build uses.
    PruneBuildCache,
    /// Events of containers, as they happen. The time limit is for the head of the answer.
    Events,
}

/// The seconds between the engine's signal to end and its SIGKILL.
#[derive(Debug, Clone, Copy)]
pub(super) struct GracePeriod(pub(super) u32);

impl EngineEndpoint<'_> {
    /// The method of the request.
    pub(super) fn method(&self) -> Method {
        match self {
            Self::Ping
            | Self::Info
            | Self::List
            | Self::Inspect(_)
            | Self::Volume(_)
            | Self::VolumeUsers(_)
            | Self::Logs(..)
            | Self::Archive(..)
            | Self::Image(_)
            | Self::NamedImage(_)
            | Self::DiskUse
            | Self::DanglingImages
            | Self::DanglingVolumes
            | Self::Events => Method::GET,
            Self::DeleteImage(_) | Self::DeleteVolume(_) => Method::DELETE,
            Self::PathStat(..) => Method::HEAD,
            Self::Start(_)
            | Self::Stop(..)
            | Self::Pause(_)
            | Self::Unpause(_)
            | Self::Update(_)
            | Self::PruneBuildCache => Method::POST,
        }
    }

    /// Whether it only reads, and not a log, for which the engines read a file.
    pub(super) fn only_reads(&self) -> bool {
        self.method() == Method::GET && !matches!(self, Self::Logs(..))
    }

    /// The path and query of the request.
    pub(super) fn path(&self, version: ApiVersion) -> String {
        let rest = match self {
            Self::Ping => return "/_ping".to_owned(),
            Self::Info => "info".to_owned(),
            Self::List => "containers/json?all=1".to_owned(),
            Self::Inspect(reference) => format!("containers/{}/json", reference.as_str()),
            // {"volume":["NAME"]}
            Self::VolumeUsers(name) => format!(
                "containers/json?filters=%7B%22volume%22%3A%5B%22{}%22%5D%7D",
                name.as_str()
            ),
            Self::Start(id) => format!("containers/{id}/start"),
            Self::Stop(id, grace) => format!("containers/{id}/stop?t={}", grace.0),
            Self::Pause(id) => format!("containers/{id}/pause"),
            Self::Unpause(id) => format!("containers/{id}/unpause"),
            Self::Update(id) => format!("containers/{id}/update"),
            Self::Logs(id, query) => format!("containers/{id}/logs?{query}"),
            Self::Archive(id, path) | Self::PathStat(id, path) => {
                format!("containers/{id}/archive?path={}", path.as_str())
            }
            Self::Image(id) => format!("images/{id}/json"),
            Self::NamedImage(name) => format!("images/{}/json", name.as_str()),
            Self::DiskUse => "system/df".to_owned(),
            // {"dangling":["true"]}
            Self::DanglingImages => {
                "images/json?filters=%7B%22dangling%22%3A%5B%22true%22%5D%7D".to_owned()
            }
            Self::DanglingVolumes => {
                "volumes?filters=%7B%22dangling%22%3A%5B%22true%22%5D%7D".to_owned()
            }
            Self::DeleteImage(id) => format!("images/{id}"),
            Self::Volume(name) | Self::DeleteVolume(name) => format!("volumes/{}", name.as_str()),
            Self::PruneBuildCache => "build/prune?all=true".to_owned(),
            // {"type":["container"]}
            Self::Events => "events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D".to_owned(),
        };
        format!("/v{version}/{rest}")
    }

    /// How long it may take.
    pub(super) fn timeout(&self) -> Duration {
        match self {
            Self::Stop(_, grace) => REQUEST_TIMEOUT + Duration::from_secs(grace.0.into()),
            Self::DiskUse => DISK_USE_TIMEOUT,
            Self::DeleteImage(_) | Self::DeleteVolume(_) | Self::PruneBuildCache => DELETE_TIMEOUT,
            _ => REQUEST_TIMEOUT,
        }
    }
}
