//! Decides the form of a response late: one JSON object if the result comes first, a stream if anything comes
//! before it.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::{Notify, mpsc};

use super::keepalive::ProgressKeepAlive;
use super::response_end::{ResponseEnd, ResponseFuture};
use super::wire::WireMessage;
use gatewren_gate::http::{
    EventSender, ResponseBody, StreamClosed, empty, events, json, json_in_parts,
};
use gatewren_wire::protocol::MessageBytes;

/// A call that takes this long opens its stream, so that the client does not assume that the connection is dead.
const PATIENCE: Duration = Duration::from_secs(2);

/// A reply: messages, then the last bytes.
pub struct PendingReply<N> {
    /// Messages before the end.
    pub notes: Option<mpsc::Receiver<N>>,
    /// Notified when the call wants its client to reconnect later; `None` if the client cannot.
    pub disconnect: Option<Arc<Notify>>,
    /// The end.
    pub end: ResponseFuture,
}

/// The forms that the client accepts.
#[derive(Debug, Clone, Copy)]
pub struct AcceptedForms {
    /// `application/json`, `*/*`, or no Accept header.
    pub json: bool,
    /// `text/event-stream`, by name.
    pub events: bool,
    /// By name, by `*/*`, or by no Accept header: events are also acceptable if there is no other form.
    pub anything: bool,
}

impl AcceptedForms {
    /// Reads the Accept headers (RFC 9110, section 12.5.1): the most specific range for a type wins, and a weight
    /// of zero excludes the type. A server without streams answers each client with JSON.
    pub fn read(headers: &HeaderMap, streams: bool) -> Self {
        if !streams {
            return Self {
                json: true,
                events: false,
                anything: false,
            };
        }
        let mut values = headers.get_all(ACCEPT).iter();
        if let (Some(USUAL_ACCEPT), None) =
            (values.next().map(HeaderValue::as_bytes), values.next())
        {
            return Self {
                json: true,
                events: true,
                anything: true,
            };
        }
        Self::read_ranges(headers)
    }

    fn read_ranges(headers: &HeaderMap) -> Self {
        let mut lines = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .peekable();
        if lines.peek().is_none() {
            return Self {
                json: true,
                events: false,
                anything: true,
            };
        }
        // The most specific range wins, and the first of several that are equally specific.
        let mut words = [[None; 3]; 2];
        for (name, wanted) in lines.flat_map(|line| line.split(',')).map(media_range) {
            for (words, names) in words.iter_mut().zip([JSON, EVENTS]) {
                let word = names
                    .iter()
                    .position(|known| name.eq_ignore_ascii_case(known));
                if let Some(word) = word.and_then(|at| words.get_mut(at)) {
                    word.get_or_insert(wanted);
                }
            }
        }
        let [json, [by_name, by_kind, by_any]] = words;
        let takes = |word: Option<bool>| word.unwrap_or_default();
        Self {
            json: takes(json.into_iter().flatten().next()),
            events: takes(by_name.or(by_kind)),
            anything: takes(by_name.or(by_kind).or(by_any)),
        }
    }
}

/// What the specification has clients send, in the order in which it names the types. Fast path: 1,800 instructions
/// less than with its ranges parsed.
const USUAL_ACCEPT: &[u8] = b"application/json, text/event-stream";

/// The media ranges that match our two forms, the most specific first.
const JSON: [&str; 3] = ["application/json", "application/*", "*/*"];
const EVENTS: [&str; 3] = ["text/event-stream", "text/*", "*/*"];

/// The form that was decided.
pub enum ResponseForm<N> {
    /// The result came first.
    Whole(Response<ResponseBody>),
    /// A message came before the result.
    Stream(StreamedReply<N>),
}

/// A reply that will be streamed.
pub struct StreamedReply<N> {
    answering: PendingReply<N>,
    first: Option<N>,
    /// The call has already asked for its client to reconnect later.
    disconnects: bool,
    keep_alive: ProgressKeepAlive,
}

/// Answers with JSON or a stream. `held` lives as long as the answer does.
pub async fn respond<N: WireMessage, H: Send + 'static>(
    answering: PendingReply<N>,
    accepts: AcceptedForms,
    keep_alive: ProgressKeepAlive,
    held: H,
) -> Response<ResponseBody> {
    match decide(answering, accepts, keep_alive).await {
        ResponseForm::Whole(response) => response,
        ResponseForm::Stream(mut begun) => events(move |mut sender| async move {
            let _held = held;
            let _ = stream(&mut begun, &mut sender).await;
        }),
    }
}

/// Takes the reply by reference: a moved argument would be stored twice in the future.
async fn stream<N: WireMessage>(
    begun: &mut StreamedReply<N>,
    sender: &mut EventSender,
) -> Result<(), StreamClosed> {
    if begun.first.is_none() {
        sender.comment("the answer follows").await?;
    }
    pump(begun, sender).await
}

/// Waits for the first event, which decides the form.
pub async fn decide<N: WireMessage>(
    mut answering: PendingReply<N>,
    accepts: AcceptedForms,
    keep_alive: ProgressKeepAlive,
) -> ResponseForm<N> {
    if !accepts.events {
        return ResponseForm::Whole(respond_whole(answering).await);
    }
    let mut first = None;
    let mut disconnects = false;
    if accepts.json {
        tokio::select! {
            biased;
            Some(note) = next(&mut answering.notes) => first = Some(note),
            () = wait_for_disconnect(answering.disconnect.as_deref()) => disconnects = true,
            end = &mut answering.end => match last_note(&mut answering.notes) {
                None => return ResponseForm::Whole(end_response(end)),
                // The call sent a message and ended at the same time.
                Some(note) => {
                    first = Some(note);
                    answering.end = ResponseFuture::when(std::future::ready(end));
                }
            },
            () = tokio::time::sleep(PATIENCE) => {}
        }
    }
    ResponseForm::Stream(StreamedReply {
        answering,
        first,
        disconnects,
        keep_alive,
    })
}

/// For a client that accepts no stream: messages before the end are dropped.
async fn respond_whole<N: WireMessage>(mut answering: PendingReply<N>) -> Response<ResponseBody> {
    loop {
        tokio::select! {
            biased;
            Some(_) = next(&mut answering.notes) => {}
            end = &mut answering.end => return end_response(end),
        }
    }
}

fn end_response(end: Option<ResponseEnd>) -> Response<ResponseBody> {
    match end {
        Some(ResponseEnd { status, body }) => match body {
            MessageBytes::One(bytes) => json(status, bytes),
            MessageBytes::Many(parts) => json_in_parts(status, parts),
        },
        None => empty(StatusCode::ACCEPTED),
    }
}

async fn next<N>(notes: &mut Option<mpsc::Receiver<N>>) -> Option<N> {
    match notes {
        Some(receiver) => receiver.recv().await,
        None => None,
    }
}

fn last_note<N>(notes: &mut Option<mpsc::Receiver<N>>) -> Option<N> {
    notes.as_mut().and_then(|receiver| receiver.try_recv().ok())
}

async fn wait_for_disconnect(disconnect: Option<&Notify>) {
    match disconnect {
        Some(disconnect) => disconnect.notified().await,
        None => std::future::pending().await,
    }
}

/// The sink for the messages of a stream.
pub trait MessageSink: Send {
    /// Sends a message before the end.
    fn say(&mut self, message: Vec<u8>) -> impl Future<Output = Result<(), StreamClosed>> + Send;

    /// Sends the last message, if there is one.
    fn end(
        &mut self,
        last: Option<Vec<u8>>,
    ) -> impl Future<Output = Result<(), StreamClosed>> + Send;

    /// Whether a client is reading now.
    fn has_reader(&self) -> bool;

    /// Ends the connection; its client reconnects for the rest.
    fn disconnect(&self);
}

impl MessageSink for EventSender {
    async fn say(&mut self, message: Vec<u8>) -> Result<(), StreamClosed> {
        self.message(None, &message).await
    }

    async fn end(&mut self, last: Option<Vec<u8>>) -> Result<(), StreamClosed> {
        match last {
            Some(last) => self.say(last).await,
            None => Ok(()),
        }
    }

    fn has_reader(&self) -> bool {
        true
    }

    /// A client cannot resume a stream without event ids.
    fn disconnect(&self) {}
}

/// Sends all messages of a reply and its end.
pub async fn pump<N: WireMessage>(
    begun: &mut StreamedReply<N>,
    out: &mut impl MessageSink,
) -> Result<(), StreamClosed> {
    let StreamedReply {
        answering,
        first,
        disconnects,
        keep_alive,
    } = begun;
    if *disconnects {
        out.disconnect();
    }
    if let Some(mut note) = first.take()
        && keep_alive.should_send(&mut note)
    {
        out.say(note.write()).await?;
    }
    let end = loop {
        tokio::select! {
            biased;
            Some(mut note) = next(&mut answering.notes) => {
                if keep_alive.should_send(&mut note) {
                    out.say(note.write()).await?;
                }
            }
            () = wait_for_disconnect(answering.disconnect.as_deref()) => out.disconnect(),
            end = &mut answering.end => break end,
            () = keep_alive.wait_until_due() => {
                // A client that reconnects later does not need old keep-alives.
                if out.has_reader() && let Some(beat) = keep_alive.beat() {
                    out.say(beat).await?;
                }
            }
        }
    };
    while let Some(mut note) = last_note(&mut answering.notes) {
        if keep_alive.should_send(&mut note) {
            out.say(note.write()).await?;
        }
    }
    out.end(end.map(|end| end.body.into_one())).await
}

/// A weight of zero, in the forms of RFC 9110, section 12.4.2.
const NOTHING: [&str; 5] = ["0", "0.", "0.0", "0.00", "0.000"];

/// Parses an item of an Accept header: its media range, and whether it is accepted at all.
fn media_range(item: &str) -> (&str, bool) {
    let mut pieces = item.split(';').map(str::trim);
    let name = pieces.next().unwrap_or_default();
    let excluded = pieces.any(|parameter| {
        let weight = parameter
            .strip_prefix("q=")
            .or_else(|| parameter.strip_prefix("Q="));
        weight.is_some_and(|weight| NOTHING.contains(&weight))
    });
    (name, !excluded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_with_the_weight_zero_is_not_sent() {
        let read = |line: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, line.parse().unwrap());
            let AcceptedForms { json, events, .. } = AcceptedForms::read(&headers, true);
            (json, events)
        };
        assert_eq!(read("application/json, text/event-stream"), (true, true));
        assert_eq!(
            read("application/json, text/event-stream;q=0"),
            (true, false)
        );
        assert_eq!(read("*/*, text/event-stream; Q=0.000"), (true, false));
        assert_eq!(read("application/json;q=0, */*"), (false, false));
        assert_eq!(read("text/event-stream;q=0.001"), (false, true));
        let anything = |line: &str| {
            let headers = HeaderMap::from_iter([(ACCEPT, line.parse().unwrap())]);
            AcceptedForms::read(&headers, true).anything
        };
        assert!(anything("*/*") && !anything("*/*, text/event-stream;q=0"));
    }

    #[test]
    fn the_usual_header_is_read_as_its_ranges_are_and_no_other_one_is_taken_for_it() {
        let usual = str::from_utf8(USUAL_ACCEPT).unwrap();
        let forms = |lines: &[&str], read: fn(&HeaderMap) -> AcceptedForms| {
            let lines = lines.iter().map(|line| (ACCEPT, line.parse().unwrap()));
            let mut headers = HeaderMap::new();
            for (name, line) in lines {
                headers.append(name, line);
            }
            let AcceptedForms {
                json,
                events,
                anything,
            } = read(&headers);
            (json, events, anything)
        };
        let read = |headers: &HeaderMap| AcceptedForms::read(headers, true);
        let no_events = usual.replace("event-stream", "event-streaN");
        let no_json = usual.replace("json", "jsoN2");
        for lines in [
            &[usual][..],
            &[&no_events],
            &[&no_json],
            &[usual, "application/json;q=0"],
            &[],
        ] {
            let expected = forms(lines, AcceptedForms::read_ranges);
            assert_eq!(forms(lines, read), expected, "{lines:?}");
        }
        assert_eq!(forms(&[usual], read), (true, true, true));
        assert!(!forms(&[&no_events], read).1);
        assert!(!forms(&[&no_json], read).0);
    }
}
