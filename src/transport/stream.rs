//! The form of a response, decided late: the result first is one JSON object, anything before it is a stream.

use std::pin::Pin;
use std::time::Duration;

use hyper::header::{ACCEPT, HeaderMap};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::wire::{self, Wire};
use crate::http::{Body, EventSender, empty, events, json};
use crate::protocol::{Id, Notification, RpcError};

/// A call that is this long under way opens its stream, so that nobody takes silence for death.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// A reply on its way out: messages, then the last bytes.
pub struct Answering<N> {
    /// Messages before the end.
    pub notes: Option<mpsc::Receiver<N>>,
    /// The end; `None` when the client has cancelled and must hear no more.
    pub end: Pin<Box<dyn Future<Output = Option<End>> + Send>>,
}

/// The last bytes of a response and the status that they have when nothing came before them.
pub struct End {
    /// The status, if it is still free to choose.
    pub status: StatusCode,
    /// A JSON-RPC message.
    pub body: Vec<u8>,
}

impl End {
    /// For an agent that lost its token while its call was under way.
    pub fn expelled(id: &Id) -> Self {
        let error = RpcError::invalid_request(
            "this agent's token was revoked or has expired; the call was ended",
        );
        Self {
            status: StatusCode::UNAUTHORIZED,
            body: wire::error(Some(id), &error),
        }
    }
}

/// What the client takes.
#[derive(Debug, Clone, Copy)]
pub struct Accepts {
    /// `application/json`, `*/*`, or no word on it.
    pub json: bool,
    /// `text/event-stream`, by name.
    pub events: bool,
    /// `*/*`, or no word on it: events too, where there is no other form.
    pub anything: bool,
}

impl Accepts {
    /// Reads the Accept headers.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut media = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .peekable();
        if media.peek().is_none() {
            return Self {
                json: true,
                events: false,
                anything: true,
            };
        }
        let types: Vec<String> = media
            .flat_map(|line| line.split(','))
            .map(|item| {
                item.split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase()
            })
            .collect();
        let has = |name: &str| types.iter().any(|t| t == name);
        Self {
            json: has("application/json") || has("application/*") || has("*/*"),
            events: has("text/event-stream") || has("text/*"),
            anything: has("*/*"),
        }
    }
}

/// Answers with JSON or a stream. `held` lives as long as the answer does.
pub async fn respond<N: Wire, H: Send + 'static>(
    mut answering: Answering<N>,
    accepts: Accepts,
    progress_token: Option<Value>,
    held: H,
) -> Response<Body> {
    if !accepts.events {
        return whole(answering).await;
    }
    let began = Instant::now();
    let mut first = None;
    if accepts.json {
        tokio::select! {
            biased;
            Some(note) = next(&mut answering.notes) => first = Some(note),
            end = &mut answering.end => match last_note(&mut answering.notes) {
                None => return finished(end),
                // It spoke and ended in the same breath.
                Some(note) => {
                    first = Some(note);
                    answering.end = Box::pin(std::future::ready(end));
                }
            },
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
    }
    events(move |sender| async move {
        let _held = held;
        let mut pulse = Pulse {
            began,
            token: progress_token,
            own: None,
            last: f64::NEG_INFINITY,
        };
        let _ = pump(answering, first, &sender, &mut pulse).await;
    })
}

/// For a client that takes no stream: what is said on the way is not for it.
async fn whole<N: Wire>(mut answering: Answering<N>) -> Response<Body> {
    loop {
        tokio::select! {
            biased;
            Some(_) = next(&mut answering.notes) => {}
            end = &mut answering.end => return finished(end),
        }
    }
}

fn finished(end: Option<End>) -> Response<Body> {
    match end {
        Some(End { status, body }) => json(status, body),
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

/// Progress on behalf of a call that reports none itself.
struct Pulse {
    /// When the call began.
    began: Instant,
    token: Option<Value>,
    /// The call's own last report; it silences ours.
    own: Option<f64>,
    last: f64,
}

impl Pulse {
    /// A report of the seconds that have passed; none for a client that has not asked, and none twice.
    fn beat(&mut self) -> Option<Vec<u8>> {
        let token = self.token.as_ref().filter(|_| self.own.is_none())?;
        let seconds = self.began.elapsed().as_secs_f64().floor();
        if seconds < 1.0 || seconds <= self.last {
            return None;
        }
        self.last = seconds;
        Some(Notification::progress(token, seconds, None, Some("still running")).write())
    }

    /// Progress increases strictly; a report that would not is dropped.
    fn lets_pass(&mut self, note: &impl Wire) -> bool {
        let Some(progress) = note.progress() else {
            return true;
        };
        self.own = Some(progress);
        let increases = progress > self.last;
        self.last = self.last.max(progress);
        increases
    }
}

async fn pump<N: Wire>(
    mut answering: Answering<N>,
    first: Option<N>,
    sender: &EventSender,
    pulse: &mut Pulse,
) -> Result<(), crate::http::Closed> {
    let mut beats = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    match first {
        Some(note) if pulse.lets_pass(&note) => sender.message(None, &note.write()).await?,
        Some(_) => {}
        None => match pulse.beat() {
            Some(beat) => sender.message(None, &beat).await?,
            None => sender.comment("the answer follows").await?,
        },
    }
    let end = loop {
        tokio::select! {
            biased;
            Some(note) = next(&mut answering.notes) => {
                if pulse.lets_pass(&note) {
                    sender.message(None, &note.write()).await?;
                }
            }
            end = &mut answering.end => break end,
            _ = beats.tick() => {
                if let Some(beat) = pulse.beat() {
                    sender.message(None, &beat).await?;
                }
            }
        }
    };
    while let Some(note) = last_note(&mut answering.notes) {
        if pulse.lets_pass(&note) {
            sender.message(None, &note.write()).await?;
        }
    }
    match end {
        Some(End { body, .. }) => sender.message(None, &body).await,
        None => Ok(()),
    }
}
