//! The API of one engine: a function for each request, with its arguments and answer typed.

use std::io;

use serde::de::DeserializeOwned;

use super::archive::{ArchiveBytes, ArchivePath, PathKind, read_archive};
use super::client::EngineClient;
use super::container_id::{EngineContainerId, ImageId, SafeReference};
use super::definition::{AnsweredVolumeOptions, EngineDefinition};
use super::disk_use::{
    AnsweredDiskUse, AnsweredPrune, DanglingImage, DanglingVolumes, EngineSizes,
};
use super::endpoint::{EngineEndpoint, GracePeriod, MAX_GRACE_S};
use super::engine_socket::EngineSocket;
use super::error::EngineError;
use super::events::EngineEvents;
use super::exchange::Rejection;
use super::image::{AnsweredImage, ImageFacts};
use super::image_name::ImageName;
use super::info::{AnsweredInfo, EngineInfo};
use super::inspect::InspectedContainer;
use super::inspect_answer::AnsweredContainer;
use super::kind::EngineKind;
use super::limits::{AnsweredUpdate, EngineLimits};
use super::list::{ListedContainer, into_list};
use super::log_reader::{EngineLog, read_log};
use super::log_request::EngineLogRequest;
use super::version::ApiVersion;
use gatewren_base::sys::{sanitize, shorten};

/// How often the sizes are requested, if an engine refuses; then its error is the result.
const SIZE_ATTEMPTS: u32 = 3;

/// The header with the facts about a path.
const PATH_STAT: &str = "x-docker-container-path-stat";

/// The API of an engine on its Unix socket. Each request has its own connection. Cloning is cheap; clones share the
/// negotiated version.
#[derive(Clone)]
pub struct EngineApi {
    client: EngineClient,
}

/// What a request to change a container's state did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineChange {
    /// The engine changed it.
    Done,
    /// It was in that state already.
    Unchanged,
}

impl EngineApi {
    /// Creates the client; connects only for requests.
    pub fn new(kind: EngineKind, socket: EngineSocket) -> Self {
        Self {
            client: EngineClient::new(kind, socket),
        }
    }

    /// The engine.
    pub fn kind(&self) -> EngineKind {
        self.client.kind()
    }

    /// Checks that the engine answers, and negotiates the version of the API again. Returns the version that is used.
    pub async fn ping(&self) -> Result<ApiVersion, EngineError> {
        self.client.negotiate().await
    }

    /// Lists all containers, also those that do not run; at most 10,000.
    pub async fn list(&self) -> Result<Vec<ListedContainer>, EngineError> {
        into_list(self.kind(), self.get(EngineEndpoint::List).await?)
    }

    /// Returns the facts about the container of a name or full id.
    ///
    /// The engines also find a container by a prefix of its id; such an answer is [`EngineError::NotFound`] here.
    pub async fn inspect(&self, reference: &str) -> Result<InspectedContainer, EngineError> {
        let endpoint = EngineEndpoint::Inspect(SafeReference::parse(reference)?);
        let answer: AnsweredContainer = self.get(endpoint).await?;
        let container = InspectedContainer::try_from(answer)?;
        if container.name == reference || container.id.as_str() == reference {
            return Ok(container);
        }
        Err(EngineError::NotFound(format!(
            "{} has no container with the name or full id '{reference}'",
            self.kind()
        )))
    }

    /// Returns all that the engine knows about the container of a full id, with its secrets.
    pub async fn definition(
        &self,
        id: &EngineContainerId,
    ) -> Result<EngineDefinition, EngineError> {
        let endpoint = EngineEndpoint::Inspect(SafeReference::parse(id.as_str())?);
        let answer: serde_json::Value = self.get(endpoint).await?;
        EngineDefinition::parse(&answer, id)
    }

    /// Returns whether the engine mounts something, such as a share, on the directory of a volume, by its name.
    pub async fn is_mounted_volume(&self, name: &str) -> Result<bool, EngineError> {
        let endpoint = EngineEndpoint::Volume(SafeReference::parse(name)?);
        let answer: AnsweredVolumeOptions = self.get(endpoint).await?;
        Ok(answer.is_mounted())
    }

    /// Returns the running containers that have a volume mounted, by its name.
    pub async fn volume_users(&self, name: &str) -> Result<Vec<ListedContainer>, EngineError> {
        let endpoint = EngineEndpoint::VolumeUsers(SafeReference::parse(name)?);
        into_list(self.kind(), self.get(endpoint).await?)
    }

    /// Starts a container.
    pub async fn start(&self, id: &EngineContainerId) -> Result<EngineChange, EngineError> {
        self.change(EngineEndpoint::Start(id)).await
    }

    /// Stops a container. After `grace_s` seconds, at most 3,600, the engine kills its processes.
    pub async fn stop(
        &self,
        id: &EngineContainerId,
        grace_s: u32,
    ) -> Result<EngineChange, EngineError> {
        self.change(EngineEndpoint::Stop(id, grace_period(grace_s)?))
            .await
    }

    /// Freezes a container's processes.
    pub async fn pause(&self, id: &EngineContainerId) -> Result<EngineChange, EngineError> {
        self.change(EngineEndpoint::Pause(id)).await
    }

    /// Lets a container's processes run again.
    pub async fn unpause(&self, id: &EngineContainerId) -> Result<EngineChange, EngineError> {
        self.change(EngineEndpoint::Unpause(id)).await
    }

    /// Changes a container's limits; returns the engine's warnings. Podman before version 5 does not have it.
    pub async fn update(
        &self,
        id: &EngineContainerId,
        limits: EngineLimits,
    ) -> Result<Vec<String>, EngineError> {
        let body = limits.to_json()?;
        let answer: AnsweredUpdate = self.client.ask(&EngineEndpoint::Update(id), body).await?;
        Ok(answer.into_warnings())
    }

    /// Reads a part of a container's log: at most 10,000 lines, 16 KiB of each, and 1 MiB of text. Reading ends after
    /// 10 s with an error; the engines read all of a log for its lines before a time or position.
    pub async fn logs(
        &self,
        id: &EngineContainerId,
        request: &EngineLogRequest,
    ) -> Result<EngineLog, EngineError> {
        read_log(&self.client, id, request).await
    }

    /// Returns what a path in a container is; `None` if nothing is there. A link is not followed if it is the last part
    /// of the path.
    pub async fn path_kind(
        &self,
        id: &EngineContainerId,
        path: &str,
    ) -> Result<Option<PathKind>, EngineError> {
        let path = ArchivePath::of(path);
        let endpoint = EngineEndpoint::PathStat(id, &path);
        let answer = self.client.try_open(&endpoint, String::new());
        let response = match self.client.within_time(&endpoint, answer).await? {
            Ok(response) => response,
            Err(rejection) if rejection.is_not_found() => return Ok(None),
            Err(rejection) => return Err(rejection.into_error()),
        };
        let kind = response.header(PATH_STAT).and_then(PathKind::parse);
        kind.map(Some).ok_or_else(|| {
            let kind = self.kind();
            EngineError::Unreadable(format!("{kind} does not say what a path in a container is"))
        })
    }

    /// Reads a file of a container, or a directory with everything below it, as a tar stream on a blocking thread: at
    /// most 64 MiB within 10 s. Returns what the reader returns.
    pub async fn archive<T: Send + 'static>(
        &self,
        id: &EngineContainerId,
        path: &str,
        read: impl FnOnce(ArchiveBytes) -> io::Result<T> + Send + 'static,
    ) -> Result<io::Result<T>, EngineError> {
        let path = ArchivePath::of(path);
        let endpoint = EngineEndpoint::Archive(id, &path);
        let answer = async {
            let response = self.client.open(&endpoint, String::new()).await?;
            read_archive(response, read).await
        };
        self.client.within_time(&endpoint, answer).await
    }

    /// Returns the facts about an image.
    pub async fn image(&self, id: &ImageId) -> Result<ImageFacts, EngineError> {
        let answer: AnsweredImage = self.get(EngineEndpoint::Image(id)).await?;
        ImageFacts::try_from(answer)
    }

    /// Returns the facts about the image that has a name now, such as `jellyfin/jellyfin:latest`.
    ///
    /// The engines also find an image by its id or the beginning of it; such a name is [`EngineError::Invalid`] here.
    pub async fn named_image(&self, name: &str) -> Result<ImageFacts, EngineError> {
        let name = ImageName::parse(name).ok_or_else(|| {
            let shown = sanitize(&shorten(name, 80));
            EngineError::Invalid(format!("'{shown}' is not the name of an image"))
        })?;
        let answer: AnsweredImage = self.get(EngineEndpoint::NamedImage(name)).await?;
        ImageFacts::try_from(answer)
    }

    /// Returns facts about the engine.
    pub async fn info(&self) -> Result<EngineInfo, EngineError> {
        let answer: AnsweredInfo = self.get(EngineEndpoint::Info).await?;
        Ok(answer.into())
    }

    /// Returns what containers, images, volumes and the build cache take on the disk, and which of them nothing uses.
    pub async fn sizes(&self) -> Result<EngineSizes, EngineError> {
        let images: Vec<DanglingImage> = self.get(EngineEndpoint::DanglingImages).await?;
        let volumes: DanglingVolumes = self.get(EngineEndpoint::DanglingVolumes).await?;
        let mut attempts = 1;
        let answer: AnsweredDiskUse = loop {
            match self.get(EngineEndpoint::DiskUse).await {
                // Podman counts files of volumes, and fails if a container deletes one during the count.
                Err(EngineError::Refused(_)) if attempts < SIZE_ATTEMPTS => {
                    attempts += 1;
                }
                answer => break answer?,
            }
        };
        Ok(EngineSizes::of(&answer, &images, &volumes))
    }

    /// Deletes an image. The engine rejects it for one that a container uses.
    pub async fn delete_image(&self, id: &ImageId) -> Result<(), EngineError> {
        self.send(EngineEndpoint::DeleteImage(id)).await
    }

    /// Deletes a volume. The engine rejects it for one that a container uses.
    pub async fn delete_volume(&self, name: &str) -> Result<(), EngineError> {
        let name = SafeReference::parse(name)?;
        self.send(EngineEndpoint::DeleteVolume(name)).await
    }

    /// Deletes what no build uses of the build cache, and returns the freed bytes.
    pub async fn prune_build_cache(&self) -> Result<u64, EngineError> {
        let answer: AnsweredPrune = self.get(EngineEndpoint::PruneBuildCache).await?;
        Ok(answer.freed_bytes())
    }

    /// Opens the stream of events from now on. A caller that lists all containers afterwards misses no change.
    pub async fn events(&self) -> Result<EngineEvents, EngineError> {
        EngineEvents::open(self.client.clone()).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        endpoint: EngineEndpoint<'_>,
    ) -> Result<T, EngineError> {
        self.client.ask(&endpoint, String::new()).await
    }

    async fn send(&self, endpoint: EngineEndpoint<'_>) -> Result<(), EngineError> {
        let answer = self.client.open(&endpoint, String::new());
        self.client.within_time(&endpoint, answer).await.map(drop)
    }

    async fn change(&self, endpoint: EngineEndpoint<'_>) -> Result<EngineChange, EngineError> {
        let answer = self.client.try_open(&endpoint, String::new());
        match self.client.within_time(&endpoint, answer).await? {
            Ok(response) if response.is_unchanged() => Ok(EngineChange::Unchanged),
            Ok(_) => Ok(EngineChange::Done),
            Err(rejection) if is_already_so(&endpoint, &rejection) => Ok(EngineChange::Unchanged),
            Err(rejection) => Err(rejection.into_error()),
        }
    }
}

/// Whether a container is paused or not paused already. The engines answer 304 only for starting and stopping.
fn is_already_so(endpoint: &EngineEndpoint<'_>, rejection: &Rejection) -> bool {
    match endpoint {
        EngineEndpoint::Pause(_) => rejection.mentions("is already paused"),
        EngineEndpoint::Unpause(_) => rejection.mentions("is not paused"),
        _ => false,
    }
}

fn grace_period(seconds: u32) -> Result<GracePeriod, EngineError> {
    if seconds <= MAX_GRACE_S {
        return Ok(GracePeriod(seconds));
    }
    Err(EngineError::Invalid(format!(
        "a container may get at most {MAX_GRACE_S} s to stop, and {seconds} s were requested"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake_engine::{FakeAnswer, FakeEngine, json};

    fn an_id() -> EngineContainerId {
        EngineContainerId::parse(&"ab".repeat(32)).unwrap()
    }

    #[tokio::test]
    async fn each_change_has_its_path_and_304_means_unchanged() {
        let engine = FakeEngine::docker(|request| {
            let status = if request.line.ends_with("/start") {
                "304 Not Modified"
            } else {
                "204 No Content"
            };
            FakeAnswer::Parts(vec![format!("HTTP/1.1 {status}\r\n\r\n").into_bytes()])
        });
        let api = engine.api(EngineKind::Docker);
        let id = an_id();
        assert_eq!(api.start(&id).await, Ok(EngineChange::Unchanged));
        assert_eq!(api.stop(&id, 7).await, Ok(EngineChange::Done));
        assert_eq!(api.pause(&id).await, Ok(EngineChange::Done));
        assert_eq!(api.unpause(&id).await, Ok(EngineChange::Done));
        let refused = api.stop(&id, 3601).await.unwrap_err();
        assert!(matches!(&refused, EngineError::Invalid(_)), "{refused}");
        let expected: Vec<String> = ["start", "stop?t=7", "pause", "unpause"]
            .map(|action| format!("POST /v1.41/containers/{id}/{action}"))
            .into();
        assert_eq!(engine.requests()[1..], expected);
    }

    #[tokio::test]
    async fn an_image_is_found_by_its_name_and_never_by_the_beginning_of_an_id() {
        let engine = FakeEngine::docker(|_| {
            let id = "ab".repeat(32);
            json(
                "200 OK",
                &format!(r#"{{"Id":"sha256:{id}","RepoTags":null}}"#),
            )
        });
        let api = engine.api(EngineKind::Docker);
        let image = api.named_image("localhost:5000/a/web:1").await.unwrap();
        assert_eq!(image.id, ImageId::parse(&"ab".repeat(32)).unwrap());
        for bad in ["../containers/x", "abab", "a?b", image.id.as_str()] {
            let error = api.named_image(bad).await.unwrap_err();
            assert!(matches!(&error, EngineError::Invalid(_)), "{error}");
        }
        let requests = engine.requests();
        assert_eq!(
            requests[1..],
            ["GET /v1.41/images/localhost:5000/a/web:1/json"]
        );
    }

    #[tokio::test]
    async fn pausing_what_is_paused_and_unpausing_what_is_not_change_nothing() {
        let engine = FakeEngine::docker(|request| {
            if request.line.ends_with("/pause") {
                return json(
                    "409 Conflict",
                    r#"{"message":"Container ab is already paused"}"#,
                );
            }
            json(
                "500 Internal Server Error",
                r#"{"cause":"container state improper","message":"\"ab\" is not paused, can't unpause: container state improper","response":500}"#,
            )
        });
        let api = engine.api(EngineKind::Docker);
        assert_eq!(api.pause(&an_id()).await, Ok(EngineChange::Unchanged));
        assert_eq!(api.unpause(&an_id()).await, Ok(EngineChange::Unchanged));
        let error = api.start(&an_id()).await.unwrap_err();
        assert!(matches!(&error, EngineError::Conflict(_)), "{error}");
    }

    #[tokio::test]
    async fn a_container_found_by_a_prefix_of_its_id_is_not_found() {
        let engine = FakeEngine::docker(|_| {
            let id = "ab".repeat(32);
            json("200 OK", &format!(r#"{{"Id":"{id}","Name":"/web"}}"#))
        });
        let api = engine.api(EngineKind::Docker);
        assert_eq!(api.inspect("web").await.unwrap().id, an_id());
        assert!(api.inspect(an_id().as_str()).await.is_ok());
        let error = api.inspect("abab").await.err().unwrap();
        assert!(matches!(&error, EngineError::NotFound(_)), "{error}");
    }

    #[tokio::test]
    async fn a_reference_that_is_no_name_is_not_sent() {
        let engine = FakeEngine::docker(|_| json("200 OK", "{}"));
        let api = engine.api(EngineKind::Docker);
        for bad in ["../images/x", "a/b", "a?b", ""] {
            let error = api.inspect(bad).await.err().unwrap();
            assert!(matches!(&error, EngineError::Invalid(_)), "{error}");
        }
        assert!(engine.requests().is_empty());
        let error = api.inspect("x").await.err().unwrap();
        assert!(matches!(&error, EngineError::Unreadable(_)), "{error}");
    }

    #[tokio::test]
    async fn a_list_with_a_bad_id_is_unreadable() {
        let engine = FakeEngine::docker(|_| json("200 OK", r#"[{"Id":"../x","Names":["/a"]}]"#));
        let error = engine.api(EngineKind::Docker).list().await.err().unwrap();
        assert!(matches!(&error, EngineError::Unreadable(_)), "{error}");
    }

    #[tokio::test]
    async fn null_lists_are_empty() {
        let id = "ab".repeat(32);
        let entry = format!(
            r#"[{{"Id":"{id}","Names":null,"Ports":null,"Labels":null,"Mounts":null,"ImageID":null}}]"#
        );
        let engine = FakeEngine::docker(move |_| json("200 OK", &entry));
        let list = engine.api(EngineKind::Docker).list().await.unwrap();
        assert_eq!(list[0].name, "abababababab");
        assert!(list[0].ports.is_empty() && list[0].mounts.is_empty());
    }

    #[tokio::test]
    async fn an_update_sends_three_settings_at_most_and_returns_warnings() {
        let engine = FakeEngine::docker(|request| {
            if request.body == r#"{"Memory":67108864}"# {
                return json("200 OK", r#"{"Warnings":["no swap\u0007"]}"#);
            }
            json("400 Bad Request", r#"{"message":"another body"}"#)
        });
        let api = engine.api(EngineKind::Docker);
        let limits = EngineLimits {
            memory_bytes: Some(64 << 20),
            ..EngineLimits::default()
        };
        let warnings = api.update(&an_id(), limits).await;
        assert_eq!(warnings, Ok(vec![r"no swap\u{7}".to_owned()]));
        let line = format!("POST /v1.41/containers/{}/update", an_id());
        assert_eq!(engine.requests().pop(), Some(line));
        let nothing = api.update(&an_id(), EngineLimits::default()).await;
        assert!(matches!(nothing, Err(EngineError::Invalid(_))));
    }
}
