//! Sends the requests of this client to one engine, each with the negotiated version of the API.

use std::sync::{Arc, Mutex};

use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::endpoint::EngineEndpoint;
use super::engine_socket::EngineSocket;
use super::error::EngineError;
use super::exchange::{EngineResponse, Rejection, exchange};
use super::kind::EngineKind;
use super::version::ApiVersion;
use gatewren_base::sys::lock;

/// The client of one engine. Clones share the negotiated version.
#[derive(Clone)]
pub(super) struct EngineClient {
    kind: EngineKind,
    socket: Arc<EngineSocket>,
    /// `None` until it is negotiated, and after the engine went away: the next one may be another version.
    version: Arc<Mutex<Option<ApiVersion>>>,
}

impl EngineClient {
    pub(super) fn new(kind: EngineKind, socket: EngineSocket) -> Self {
        Self {
            kind,
            socket: Arc::new(socket),
            version: Arc::default(),
        }
    }

    /// The engine.
    pub(super) fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Asks the engine for its version, and returns the version to use.
    pub(super) async fn negotiate(&self) -> Result<ApiVersion, EngineError> {
        let ping = self.within_time(&EngineEndpoint::Ping, self.ping());
        let version = ping.await?;
        *lock(&self.version) = Some(version);
        Ok(version)
    }

    /// Negotiates again before the next request.
    pub(super) fn forget_version(&self) {
        *lock(&self.version) = None;
    }

    /// Sends a request and reads the answer's JSON. Parts of the JSON that `T` does not have are not kept.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        endpoint: &EngineEndpoint<'_>,
        body: String,
    ) -> Result<T, EngineError> {
        let answer = async {
            let response = self.open(endpoint, body).await?;
            response.read_body(self.socket.max_answer_bytes()).await
        };
        let answer = self.within_time(endpoint, answer).await?;
        self.parse(&answer)
    }

    /// Sends a request and waits for the head of the answer, which is a success.
    pub(super) async fn open(
        &self,
        endpoint: &EngineEndpoint<'_>,
        body: String,
    ) -> Result<EngineResponse, EngineError> {
        match self.try_open(endpoint, body).await? {
            Ok(response) => Ok(response),
            Err(rejection) => Err(rejection.into_error()),
        }
    }

    /// Like [`Self::open`], and returns an error of the engine as it is.
    pub(super) async fn try_open(
        &self,
        endpoint: &EngineEndpoint<'_>,
        body: String,
    ) -> Result<Result<EngineResponse, Rejection>, EngineError> {
        let known = *lock(&self.version);
        let version = match known {
            Some(version) => version,
            None => self.negotiate().await?,
        };
        let answer = self.send(version, endpoint, body.clone()).await?;
        match answer {
            // The engine was replaced by another version. It has done nothing, so the request can be repeated.
            Err(rejection) if rejection.is_about_version() => {
                let again = self.negotiate().await?;
                if again == version {
                    return Ok(Err(rejection));
                }
                self.send(again, endpoint, body).await
            }
            answer => Ok(answer),
        }
    }

    /// Limits the time of a request. After an engine that did not answer, the version is negotiated again.
    pub(super) async fn within_time<T>(
        &self,
        endpoint: &EngineEndpoint<'_>,
        request: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let limit = self
            .socket
            .timeout(endpoint.timeout(), endpoint.only_reads());
        let answer = timeout(limit, request).await.unwrap_or_else(|_| {
            self.socket.note_silence();
            Err(EngineError::Unavailable(format!(
                "{} did not answer within {} s",
                self.kind,
                limit.as_secs()
            )))
        });
        if let Err(EngineError::Unavailable(_)) = &answer {
            self.forget_version();
        }
        answer
    }

    /// Parses the JSON of an answer.
    pub(super) fn parse<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, EngineError> {
        // The error's own text may contain a value, so only its place is shown.
        serde_json::from_slice(body).map_err(|error| {
            EngineError::Unreadable(format!(
                "the answer of {} is not the JSON that its API describes (byte {} of line {})",
                self.kind,
                error.column(),
                error.line()
            ))
        })
    }

    async fn ping(&self) -> Result<ApiVersion, EngineError> {
        let kind = self.kind;
        let answer = self.send(ApiVersion::OLDEST, &EngineEndpoint::Ping, String::new());
        let response = answer.await?.map_err(Rejection::into_error)?;
        let is_podman = response.header("libpod-api-version").is_some();
        if is_podman != (kind == EngineKind::Podman) {
            let socket = &self.socket;
            return Err(EngineError::Untrusted(format!(
                "the engine on {socket} is not {kind}; set the socket of {kind}"
            )));
        }
        let newest = response.header("api-version").and_then(ApiVersion::parse);
        let newest = newest.ok_or_else(|| {
            EngineError::Unreadable(format!(
                "{kind} answered a ping without its version of the API"
            ))
        })?;
        ApiVersion::negotiate(kind, newest)
    }

    async fn send(
        &self,
        version: ApiVersion,
        endpoint: &EngineEndpoint<'_>,
        body: String,
    ) -> Result<Result<EngineResponse, Rejection>, EngineError> {
        let mut request = Request::builder()
            .method(endpoint.method())
            .uri(endpoint.path(version))
            // The name means nothing on a Unix socket, but HTTP/1.1 requires one.
            .header(HOST, "localhost")
            .header(USER_AGENT, concat!("gatewren/", env!("CARGO_PKG_VERSION")));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(body).map_err(|cause| {
            EngineError::Invalid(format!("the request cannot be written: {cause}"))
        })?;
        let response = exchange(self.kind, &self.socket, request).await?;
        response.into_success().await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::engines::fake_engine::{FakeAnswer, FakeEngine, chunked, json, pong};

    const PODMAN: &str = "Api-Version: 1.41\r\nLibpod-Api-Version: 4.3.1\r\n";

    #[tokio::test]
    async fn the_version_is_negotiated_once_and_clones_share_it() {
        let engine = FakeEngine::docker(|_| json("200 OK", "[]"));
        let api = engine.api(EngineKind::Docker);
        assert!(api.list().await.unwrap().is_empty());
        assert!(api.clone().list().await.unwrap().is_empty());
        let list = "GET /v1.41/containers/json?all=1";
        assert_eq!(engine.requests(), ["GET /_ping", list, list]);
    }

    #[tokio::test]
    async fn an_engine_with_a_floor_of_1_44_gets_our_newest_version() {
        let engine = FakeEngine::start(|request| match request.line.as_str() {
            "GET /_ping" => pong("Api-Version: 1.52\r\n"),
            "GET /v1.47/containers/json?all=1" => json("200 OK", "[]"),
            _ => json(
                "400 Bad Request",
                r#"{"message":"client version 1.41 is too old. Minimum supported API version is 1.44"}"#,
            ),
        });
        let api = engine.api(EngineKind::Docker);
        assert!(api.list().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_engine_that_became_older_is_asked_again_with_its_new_version() {
        let is_downgraded = Arc::new(AtomicBool::new(false));
        let flag = is_downgraded.clone();
        let engine = FakeEngine::start(move |request| {
            let is_old = flag.load(Ordering::Relaxed);
            match request.line.as_str() {
                "GET /_ping" if is_old => pong("Api-Version: 1.41\r\n"),
                "GET /_ping" => pong("Api-Version: 1.52\r\n"),
                "GET /v1.47/containers/json?all=1" if is_old => json(
                    "400 Bad Request",
                    r#"{"message":"client version 1.47 is too new. Maximum supported API version is 1.41"}"#,
                ),
                _ => json("200 OK", "[]"),
            }
        });
        let api = engine.api(EngineKind::Docker);
        api.list().await.unwrap();
        is_downgraded.store(true, Ordering::Relaxed);
        api.list().await.unwrap();
        let requests = engine.requests();
        assert_eq!(requests.last().unwrap(), "GET /v1.41/containers/json?all=1");
    }

    #[tokio::test]
    async fn an_engine_that_refuses_each_version_is_asked_no_third_time() {
        let engine = FakeEngine::start(|request| match request.line.as_str() {
            "GET /_ping" => pong("Api-Version: 1.60\r\n"),
            _ => json(
                "400 Bad Request",
                r#"{"message":"client version 1.47 is too old. Minimum supported API version is 1.50"}"#,
            ),
        });
        let refused = engine.api(EngineKind::Docker).list().await.err().unwrap();
        assert!(matches!(&refused, EngineError::TooOld(_)), "{refused}");
        assert!(refused.message().contains("1.50"), "{refused}");
        assert_eq!(engine.requests().len(), 3);
    }

    #[tokio::test]
    async fn too_old_engines_and_pings_without_a_version_are_errors() {
        let old = FakeEngine::start(|_| pong("Api-Version: 1.39\r\n"));
        let refused = old.api(EngineKind::Docker).ping().await.unwrap_err();
        assert!(matches!(&refused, EngineError::TooOld(_)), "{refused}");
        for headers in ["", "Api-Version: new\r\n"] {
            let engine = FakeEngine::start(move |_| pong(headers));
            let refused = engine.api(EngineKind::Docker).ping().await.unwrap_err();
            assert!(matches!(&refused, EngineError::Unreadable(_)), "{refused}");
        }
    }

    #[tokio::test]
    async fn podman_and_docker_are_not_taken_for_each_other() {
        let podman = FakeEngine::start(|_| pong(PODMAN));
        let version = podman.api(EngineKind::Podman).ping().await.unwrap();
        assert_eq!(version.to_string(), "1.41");
        let refused = podman.api(EngineKind::Docker).ping().await.unwrap_err();
        assert!(matches!(&refused, EngineError::Untrusted(_)), "{refused}");
        let docker = FakeEngine::docker(|_| json("200 OK", "[]"));
        let refused = docker.api(EngineKind::Podman).list().await.err().unwrap();
        assert!(refused.message().contains("is not Podman"), "{refused}");
    }

    #[tokio::test]
    async fn errors_of_both_engines_have_their_kind_and_message() {
        let cases = [
            (
                "404 Not Found",
                r#"{"message":"No such container: x"}"#,
                "NotFound",
                "No such container: x",
            ),
            (
                "404 Not Found",
                r#"{"cause":"no such container","message":"no container with name \"x\" found","response":404}"#,
                "NotFound",
                "no container with name",
            ),
            (
                "404 Not Found",
                r#"{"message":"page not found"}"#,
                "Refused",
                "page not found",
            ),
            ("404 Not Found", "Not Found\n", "Refused", "404"),
            (
                "409 Conflict",
                r#"{"message":"removal is in progress"}"#,
                "Conflict",
                "removal is in progress",
            ),
            (
                "500 Internal Server Error",
                r#"{"cause":"container state improper","message":"paused","response":500}"#,
                "Conflict",
                "paused",
            ),
            (
                "500 Internal Server Error",
                r#"{"message":"a\u001b[2J\nb"}"#,
                "Refused",
                r"a\u{1b}[2J\u{a}b",
            ),
            ("502 Bad Gateway", "<html>", "Refused", "502"),
            ("200 OK", "{", "Unreadable", "JSON"),
        ];
        for (status, body, variant, words) in cases {
            let engine = FakeEngine::docker(move |_| json(status, body));
            let error = engine.api(EngineKind::Docker).list().await.err().unwrap();
            assert!(format!("{error:?}").starts_with(variant), "{error:?}");
            assert!(error.message().contains(words), "{error}");
        }
    }

    #[tokio::test]
    async fn a_message_without_end_is_shortened() {
        let engine = FakeEngine::docker(|_| {
            let body = format!(r#"{{"message":"{}"}}"#, "x".repeat(60_000));
            json("500 Internal Server Error", &body)
        });
        let error = engine.api(EngineKind::Docker).list().await.err().unwrap();
        assert!(error.message().len() < 500, "{error}");
    }

    #[tokio::test]
    async fn a_list_of_100_mb_is_an_error_and_is_not_read() {
        let engine = FakeEngine::docker(|_| {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n".to_vec();
            let mut chunk = b"10000\r\n".to_vec();
            chunk.extend(vec![b' '; 0x10000]);
            chunk.extend_from_slice(b"\r\n");
            FakeAnswer::Flood(head, chunk, 100_000_000)
        });
        let error = engine.api(EngineKind::Docker).list().await.err().unwrap();
        assert!(matches!(&error, EngineError::Unreadable(_)), "{error}");
        assert!(
            error.message().contains("more than 16777216 bytes"),
            "{error}"
        );
        // The rest is what the sockets' buffers hold.
        assert!(engine.sent() < 16_777_216 + 2_000_000, "{}", engine.sent());
    }

    #[tokio::test]
    async fn an_answer_in_chunks_is_put_together() {
        let engine = FakeEngine::docker(|_| chunked(&[b"[", b" ", b"]"]));
        let list = engine.api(EngineKind::Docker).list().await;
        assert_eq!(list, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn an_engine_that_hangs_up_or_is_missing_is_unavailable() {
        let part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[".to_vec();
        for parts in [vec![], vec![part]] {
            let engine = FakeEngine::docker(move |_| FakeAnswer::Parts(parts.clone()));
            let api = engine.api(EngineKind::Docker);
            for _ in 0..2 {
                let error = api.list().await.err().unwrap();
                assert!(matches!(&error, EngineError::Unavailable(_)), "{error}");
            }
            // After a broken connection the version is asked for again.
            let requests = engine.requests();
            assert_eq!(requests[2], "GET /_ping", "{requests:?}");
            let missing = EngineClient::new(
                EngineKind::Docker,
                EngineSocket::OfRoot(engine.scratch.join("none")),
            );
            let error = missing.negotiate().await.unwrap_err();
            assert!(matches!(&error, EngineError::Unavailable(_)), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_answers_nothing_is_given_up_after_10_s() {
        let engine = FakeEngine::docker(|_| FakeAnswer::Silence);
        let start = tokio::time::Instant::now();
        let error = engine.api(EngineKind::Docker).list().await.err().unwrap();
        assert!(error.message().contains("within 10 s"), "{error}");
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test]
    async fn what_is_not_http_is_unreadable() {
        let engine = FakeEngine::start(|_| FakeAnswer::Parts(vec![b"SSH-2.0-x\r\n\r\n".to_vec()]));
        let error = engine.api(EngineKind::Docker).list().await.err().unwrap();
        assert!(matches!(&error, EngineError::Unreadable(_)), "{error}");
        let engine = FakeEngine::start(|_| pong(&format!("X: {}\r\n", "x".repeat(100_000))));
        let error = engine.api(EngineKind::Docker).list().await.err().unwrap();
        assert!(matches!(&error, EngineError::Unreadable(_)), "{error}");
    }

    #[tokio::test]
    async fn a_socket_behind_a_link_gets_no_request() {
        let engine = FakeEngine::docker(|_| json("200 OK", "[]"));
        let link = engine.scratch.join("link.sock");
        symlink(engine.socket(), &link).unwrap();
        let client = EngineClient::new(EngineKind::Docker, EngineSocket::OfRoot(link));
        let error = client.negotiate().await.unwrap_err();
        assert!(matches!(&error, EngineError::Untrusted(_)), "{error}");
        assert!(error.message().contains("symbolic link"), "{error}");
        assert!(engine.requests().is_empty());
    }
}
