//! The stream of an engine's events. An event states only that a container may have changed; the caller reads the
//! container again.

use std::fmt;

use hyper::body::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

use super::client::EngineClient;
use super::container_id::{EngineContainerId, is_name};
use super::endpoint::EngineEndpoint;
use super::error::EngineError;
use super::exchange::EngineResponse;

/// The most bytes of one event, which has all labels of the container. A longer one is not read; it is reported as a
/// change of an unknown container.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;

/// Events that change nothing which [`InspectedContainer`](super::InspectedContainer) has. Each health check makes
/// three of `exec`; the text of some has the command line, which may be secret.
const UNCHANGING: [&str; 11] = [
    "exec",
    "cleanup",
    "attach",
    "detach",
    "resize",
    "top",
    "mount",
    "unmount",
    "archive-path",
    "extract-to-dir",
    "export",
];

/// A container that may have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedContainer {
    /// Its full id; `None` if the event has none. Then any container may have changed.
    pub id: Option<EngineContainerId>,
    /// Its name at that time, if the event has it.
    pub name: Option<String>,
}

/// An engine's events from now on. Dropping it closes the connection.
pub struct EngineEvents {
    client: EngineClient,
    response: EngineResponse,
    lines: EventLines,
}

/// Separates events, which end with a line feed each.
#[derive(Default)]
struct EventLines {
    unread: Bytes,
    line: Vec<u8>,
    is_too_long: bool,
}

enum EventLine {
    Whole(Vec<u8>),
    TooLong,
}

/// The parts of an event that are read. New versions have `Action` and `Actor` only, old ones `status` and `id` too.
#[derive(Deserialize)]
struct AnsweredEvent {
    #[serde(rename = "Type")]
    object: Option<String>,
    #[serde(rename = "Action")]
    action: Option<EventAction>,
    status: Option<EventAction>,
    id: Option<String>,
    #[serde(rename = "Actor")]
    actor: Option<AnsweredActor>,
}

#[derive(Default, Deserialize)]
struct AnsweredActor {
    #[serde(rename = "ID")]
    id: Option<String>,
    #[serde(rename = "Attributes")]
    attributes: Option<AnsweredAttributes>,
}

#[derive(Deserialize)]
struct AnsweredAttributes {
    name: Option<String>,
}

/// What an event's word means. The word itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EventAction {
    Unchanging,
    Changing,
}

impl<'de> Deserialize<'de> for EventAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ActionVisitor;
        impl Visitor<'_> for ActionVisitor {
            type Value = EventAction;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the word of an event")
            }

            fn visit_str<E>(self, action: &str) -> Result<EventAction, E> {
                // Docker: `exec_create: ARGV`, `health_status: healthy`. Podman: `exec`, `exec_died`.
                let word = action.split(':').next().unwrap_or_default();
                let is_unchanging = UNCHANGING.contains(&word) || word.starts_with("exec_");
                Ok(if is_unchanging {
                    EventAction::Unchanging
                } else {
                    EventAction::Changing
                })
            }
        }
        deserializer.deserialize_str(ActionVisitor)
    }
}

impl EngineEvents {
    pub(super) async fn open(client: EngineClient) -> Result<Self, EngineError> {
        let opened = client.open(&EngineEndpoint::Events, String::new());
        let response = client.within_time(&EngineEndpoint::Events, opened).await?;
        Ok(Self {
            client,
            response,
            lines: EventLines::default(),
        })
    }

    /// Waits for the next container that may have changed. `None` when the engine ends the stream, as at its
    /// restart: events may be lost then, so the caller connects again and lists all containers.
    ///
    /// A call that is dropped before its end loses no event.
    pub async fn next(&mut self) -> Result<Option<ChangedContainer>, EngineError> {
        let next = self.read_next().await;
        if !matches!(next, Ok(Some(_))) {
            // Another version of the engine may answer from now on.
            self.client.forget_version();
        }
        next
    }

    async fn read_next(&mut self) -> Result<Option<ChangedContainer>, EngineError> {
        loop {
            while let Some(line) = self.lines.take_line() {
                let changed = match line {
                    EventLine::TooLong => Some(ChangedContainer::default()),
                    EventLine::Whole(line) => parse_event(&self.client, &line)?,
                };
                if changed.is_some() {
                    return Ok(changed);
                }
            }
            match self.response.next_part().await {
                Ok(Some(part)) => self.lines.unread = part,
                // The engine was killed, or it ended the answer properly: both are the end.
                Ok(None) | Err(EngineError::Unavailable(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Parses an event; `None` if no container changed.
fn parse_event(
    client: &EngineClient,
    line: &[u8],
) -> Result<Option<ChangedContainer>, EngineError> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let event: AnsweredEvent = client.parse(line)?;
    let is_of_container = event.object.is_none_or(|object| object == "container");
    let action = event.action.or(event.status);
    if !is_of_container || action == Some(EventAction::Unchanging) {
        return Ok(None);
    }
    let actor = event.actor.unwrap_or_default();
    let id = actor.id.or(event.id);
    let name = actor.attributes.and_then(|attributes| attributes.name);
    Ok(Some(ChangedContainer {
        id: id.as_deref().and_then(EngineContainerId::parse),
        name: name.filter(|name| is_name(name)),
    }))
}

impl EventLines {
    /// Returns the next whole line of what has arrived.
    fn take_line(&mut self) -> Option<EventLine> {
        let end = self.unread.iter().position(|b| *b == b'\n');
        let part = self.unread.split_to(end.unwrap_or(self.unread.len()));
        self.is_too_long |= self.line.len() + part.len() > MAX_EVENT_BYTES;
        if self.is_too_long {
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(&part);
        }
        end?;
        // The line feed itself.
        let _ = self.unread.split_to(1);
        let line = std::mem::take(&mut self.line);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        Some(if is_too_long {
            EventLine::TooLong
        } else {
            EventLine::Whole(line)
        })
    }
}

/// Returns what each event of a stream means that arrives in pieces of at most this many bytes, as fuzz targets read it.
#[cfg(feature = "testing")]
pub fn read_events(
    bytes: &[u8],
    piece: usize,
) -> Vec<Result<Option<ChangedContainer>, EngineError>> {
    let client = EngineClient::new(
        super::kind::EngineKind::Docker,
        super::EngineSocket::OfRoot(std::path::PathBuf::new()),
    );
    let mut lines = EventLines::default();
    let mut events = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        lines.unread = Bytes::copy_from_slice(piece);
        while let Some(line) = lines.take_line() {
            events.push(match line {
                EventLine::TooLong => Ok(Some(ChangedContainer::default())),
                EventLine::Whole(line) => parse_event(&client, &line),
            });
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake_engine::{FakeAnswer, FakeEngine, chunked, json};
    use crate::engines::kind::EngineKind;

    fn id() -> String {
        "ab".repeat(32)
    }

    fn event(action: &str) -> String {
        let id = id();
        format!(
            r#"{{"status":"{action}","id":"{id}","from":"lab:1","Type":"container","Action":"{action}","Actor":{{"ID":"{id}","Attributes":{{"image":"lab:1","name":"web","secret.label":"x"}}}},"scope":"local","time":1795657803,"timeNano":1795657803408185988}}
"#
        )
    }

    async fn read_all(
        answer: impl Fn() -> FakeAnswer + Send + Sync + 'static,
    ) -> Vec<Result<ChangedContainer, EngineError>> {
        let engine = FakeEngine::docker(move |_| answer());
        let mut events = engine.api(EngineKind::Docker).events().await.unwrap();
        let mut all = Vec::new();
        while let Some(event) = events.next().await.transpose() {
            let is_end = event.is_err();
            all.push(event);
            if is_end {
                break;
            }
        }
        all
    }

    fn web() -> ChangedContainer {
        ChangedContainer {
            id: EngineContainerId::parse(&id()),
            name: Some("web".to_owned()),
        }
    }

    #[tokio::test]
    async fn noise_is_dropped_and_changes_are_kept() {
        let noise = [
            "exec_create: /bin/sh -c true",
            "exec_start: x",
            "exec_die",
            "exec",
            "exec_died",
            "cleanup",
            "top",
            "attach",
        ];
        let changes = [
            "create",
            "init",
            "start",
            "die",
            "kill",
            "oom",
            "pause",
            "unpause",
            "stop",
            "destroy",
            "remove",
            "rename",
            "update",
            "health_status: healthy",
            "health_status",
        ];
        let text: String = noise.into_iter().chain(changes).map(event).collect();
        let all = read_all(move || chunked(&[text.as_bytes()])).await;
        assert_eq!(all, vec![Ok(web()); changes.len()]);
    }

    #[tokio::test]
    async fn an_event_may_arrive_in_any_parts() {
        for size in [1, 2, 7, 100] {
            let text = event("start") + &event("die");
            let all =
                read_all(move || chunked(&text.as_bytes().chunks(size).collect::<Vec<_>>())).await;
            assert_eq!(all, [Ok(web()), Ok(web())], "{size}");
        }
    }

    #[tokio::test]
    async fn new_engines_have_neither_status_nor_id() {
        let text = format!(
            "{{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{{\"ID\":\"{0}\",\"Attributes\":{{\"name\":\"web\"}}}}}}\n\
             {{\"Type\":\"container\",\"Action\":\"exec_die\",\"Actor\":{{\"ID\":\"{0}\"}}}}\n\
             {{\"Type\":\"network\",\"Action\":\"connect\",\"Actor\":{{\"ID\":\"{0}\"}}}}\n\n\
             {{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{{\"ID\":\"../x\",\"Attributes\":{{\"name\":\"a/b\"}}}}}}\n",
            id()
        );
        let all = read_all(move || chunked(&[text.as_bytes()])).await;
        assert_eq!(all, [Ok(web()), Ok(ChangedContainer::default())]);
    }

    #[tokio::test]
    async fn the_end_within_an_event_is_the_end_and_the_version_is_asked_again() {
        let engine = FakeEngine::docker(|request| {
            if request
                .line
                .starts_with("GET /v1.41/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D")
            {
                let text = event("start") + r#"{"status":"die","#;
                let length = text.len();
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                return FakeAnswer::Parts(vec![
                    format!("{head}{length:x}\r\n{text}\r\n").into_bytes(),
                ]);
            }
            json("200 OK", "[]")
        });
        let api = engine.api(EngineKind::Docker);
        let mut events = api.events().await.unwrap();
        assert_eq!(events.next().await, Ok(Some(web())));
        assert_eq!(events.next().await, Ok(None));
        api.list().await.unwrap();
        let requests = engine.requests();
        assert_eq!(
            requests.iter().filter(|line| *line == "GET /_ping").count(),
            2
        );
    }

    #[tokio::test]
    async fn an_event_that_is_too_long_may_be_of_any_container() {
        let long = event(&"x".repeat(MAX_EVENT_BYTES)) + &event("start");
        let all =
            read_all(move || chunked(&long.as_bytes().chunks(50_000).collect::<Vec<_>>())).await;
        assert_eq!(all, [Ok(ChangedContainer::default()), Ok(web())]);
    }

    #[tokio::test]
    async fn an_event_that_is_not_json_is_unreadable() {
        let all = read_all(|| chunked(&[b"{\"secret\": oops}\n"])).await;
        let [Err(EngineError::Unreadable(message))] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert!(!message.contains("oops"), "{message}");
    }
}
