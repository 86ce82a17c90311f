//! Server-sent events (WHATWG HTML 9.2): a strict parser of the standard reads exactly what was sent.

use std::sync::LazyLock;
use std::time::Duration;

use http_body_util::BodyExt as _;
use tokio::runtime::{Builder, Runtime};

use super::input::{parts, text};
use gatewren_gate::http::{EventSender, events};
use gatewren_wire::protocol::Notification;

/// The retry time for clients; any time will do.
const RETRY: Duration = Duration::from_secs(1);

static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().ok());

/// First part: an event id; second part: a notification's parameters as JSON.
pub fn is_read_as_it_was_meant(data: &[u8]) {
    let [id, params] = parts(data);
    let (Some(id), Ok(params)) = (text(id), serde_json::from_slice(params)) else {
        return;
    };
    // Ids are issued by us: a revision, a stream, a count.
    let ours = |c: char| c.is_ascii_graphic();
    let id = Some(id).filter(|id| !id.is_empty() && id.chars().all(ours));
    let note = Notification::new("notifications/message", params);
    let message = String::from_utf8_lossy(&note.write()).into_owned();
    let Some(bytes) = sent(id.map(str::to_owned), message.clone()) else {
        return;
    };
    let mut wanted = Vec::new();
    wanted.extend(id.map(|id| event(id, "message", "")));
    wanted.push(event(id.unwrap_or_default(), "message", &message));
    wanted.push(event(id.unwrap_or_default(), "message", &message));
    assert_eq!(read(&bytes).as_ref(), Some(&wanted), "{bytes:?}");
}

/// Everything that a stream sends, as bytes.
fn sent(id: Option<String>, message: String) -> Option<Vec<u8>> {
    let response = {
        let _time = RUNTIME.as_ref()?.enter();
        events(|sender: EventSender| async move {
            let id = id.as_deref();
            match id {
                Some(id) => drop(sender.prime(id, RETRY).await),
                None => drop(sender.comment("the answer follows").await),
            }
            drop(sender.message(id, message.as_bytes()).await);
            drop(sender.comment("keep-alive").await);
            drop(sender.message(None, message.as_bytes()).await);
        })
    };
    let body = RUNTIME.as_ref()?.block_on(response.into_body().collect());
    Some(body.ok()?.to_bytes().to_vec())
}

/// An event: the last id of the stream, its type, its data.
type Event = (String, String, String);

fn event(id: &str, kind: &str, data: &str) -> Event {
    (id.to_owned(), kind.to_owned(), data.to_owned())
}

/// The standard's parser (9.2.6), except that it returns `None` for an unknown field or an incomplete stream.
fn read(bytes: &[u8]) -> Option<Vec<Event>> {
    let stream = text(bytes)?;
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let (mut id, mut kind, mut data) = (String::new(), String::new(), String::new());
    let mut events = Vec::new();
    for line in stream.strip_suffix('\n')?.split('\n') {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                if let Some(data) = data.strip_suffix('\n') {
                    let kind = if kind.is_empty() { "message" } else { &kind };
                    events.push(event(&id, kind, data));
                }
                (kind, data) = (String::new(), String::new());
            }
            // A comment.
            "" => {}
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            "event" => value.clone_into(&mut kind),
            "data" => data = format!("{data}{value}\n"),
            "retry" if value.bytes().all(|b| b.is_ascii_digit()) => {}
            _ => return None,
        }
    }
    (kind.is_empty() && data.is_empty()).then_some(events)
}
