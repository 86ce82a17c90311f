//! Files of a container that does not run, as an archive of the engine: a tar stream that is read as it arrives and
//! never stored.

use std::fmt::Write as _;
use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::{Buf as _, Bytes};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::error::EngineError;
use super::exchange::EngineResponse;

/// The most bytes of an archive that are read; then reading fails with [`io::ErrorKind::FileTooLarge`]. The engines give
/// a directory with everything below it.
pub const MAX_ARCHIVE_BYTES: u64 = 64 << 20;

/// How many parts of the stream wait for the reader.
const QUEUED_PARTS: usize = 4;

/// The bits of Go's `fs.FileMode` for the kind of a file.
const MODE_DIRECTORY: u64 = 1 << 31;
const MODE_LINK: u64 = 1 << 27;

/// A path in a container, encoded for a query: no byte of it has a meaning there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchivePath(String);

impl ArchivePath {
    /// Encodes a path.
    pub(super) fn of(path: &str) -> Self {
        let mut encoded = String::new();
        for byte in path.bytes() {
            if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        Self(encoded)
    }

    /// The encoded path.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a path in a container is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKind {
    /// A symbolic link, with the path that it leads to.
    Link(String),
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}

/// The header with the facts about a path.
#[derive(Deserialize)]
struct AnsweredStat {
    mode: u64,
    #[serde(rename = "linkTarget", default)]
    link_target: String,
}

impl PathKind {
    /// Parses the header `X-Docker-Container-Path-Stat`; `None` if it is not what the API describes.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let stat: AnsweredStat = serde_json::from_slice(&STANDARD.decode(header).ok()?).ok()?;
        Some(match stat.mode {
            mode if mode & MODE_LINK != 0 => Self::Link(stat.link_target),
            mode if mode & MODE_DIRECTORY != 0 => Self::Directory,
            _ => Self::Other,
        })
    }
}

/// The bytes of an archive, for a reader on a blocking thread.
pub struct ArchiveBytes {
    parts: mpsc::Receiver<io::Result<Bytes>>,
    part: Bytes,
}

impl Read for ArchiveBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.parts.blocking_recv() {
                Some(part) => self.part = part?,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.part.len());
        self.part
            .copy_to_slice(buffer.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Passes the body of an answer to a reader on a blocking thread, until the reader has enough. Returns the reader's
/// result.
pub(super) async fn read_archive<T: Send + 'static>(
    mut response: EngineResponse,
    read: impl FnOnce(ArchiveBytes) -> io::Result<T> + Send + 'static,
) -> Result<io::Result<T>, EngineError> {
    let (sender, parts) = mpsc::channel(QUEUED_PARTS);
    let bytes = ArchiveBytes {
        parts,
        part: Bytes::new(),
    };
    let reading = tokio::task::spawn_blocking(move || read(bytes));
    let passed = pass_on(&mut response, sender).await;
    let read = reading.await.map_err(|cause| {
        EngineError::Unavailable(format!("reading the engine's archive was aborted: {cause}"))
    })?;
    match (read, passed) {
        // The reader saw only that the stream ended.
        (Err(_), Err(error)) => Err(error),
        (read, _) => Ok(read),
    }
}

async fn pass_on(
    response: &mut EngineResponse,
    parts: mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), EngineError> {
    let mut count = 0;
    while let Some(part) = response.next_part().await? {
        count += part.len() as u64;
        let is_too_much = count > MAX_ARCHIVE_BYTES;
        let part = if is_too_much {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(part)
        };
        // An error of sending means that the reader has enough.
        if parts.send(part).await.is_err() || is_too_much {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::container_id::EngineContainerId;
    use crate::engines::fake_engine::{FakeAnswer, FakeEngine};
    use crate::engines::kind::EngineKind;

    #[test]
    fn no_byte_of_a_path_has_a_meaning_in_a_query() {
        let path = ArchivePath::of("/a b&c=d#e?f%2e/ä\n+");
        assert_eq!(path.as_str(), "/a%20b%26c%3Dd%23e%3Ff%252e/%C3%A4%0A%2B");
    }

    #[test]
    fn the_kind_of_a_path_is_in_its_mode() {
        let kind = |json: &str| PathKind::parse(&STANDARD.encode(json));
        let link = r#"{"name":"l","size":1,"mode":134218239,"linkTarget":"/d/f"}"#;
        assert_eq!(kind(link), Some(PathKind::Link("/d/f".to_owned())));
        let directory = r#"{"name":"d","mode":2147484141,"isDir":true,"linkTarget":"/d"}"#;
        assert_eq!(kind(directory), Some(PathKind::Directory));
        assert_eq!(kind(r#"{"mode":420}"#), Some(PathKind::Other));
        for wrong in ["", "{}", r#"{"mode":"x"}"#] {
            assert_eq!(kind(wrong), None, "{wrong}");
        }
        assert_eq!(PathKind::parse("*"), None);
    }

    fn an_id() -> EngineContainerId {
        EngineContainerId::parse(&"ab".repeat(32)).unwrap()
    }

    #[tokio::test]
    async fn an_archive_is_read_up_to_the_limit_and_no_further_than_its_reader_wants() {
        let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        let engine = FakeEngine::docker(move |_| {
            FakeAnswer::Flood(head.clone(), vec![7; 1 << 20], 200 << 20)
        });
        let api = engine.api(EngineKind::Docker);
        let id = an_id();
        let all = api.archive(&id, "/x", |mut bytes| io::copy(&mut bytes, &mut io::sink()));
        let error = all.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let some = api.archive(&id, "/x y", |mut bytes| {
            let mut buffer = [0; 3];
            bytes.read_exact(&mut buffer).map(|()| buffer)
        });
        assert_eq!(some.await.unwrap().unwrap(), [7; 3]);
        let path = format!("GET /v1.41/containers/{id}/archive?path=/x%20y");
        assert_eq!(engine.requests().last(), Some(&path));
    }
}
