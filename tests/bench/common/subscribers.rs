//! Clients that hold a stream each and report when they were notified.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::Error;
use super::connection::{Address, Events};
use super::follower::revision_in;
use super::peers::{DOCUMENT, Started};
use super::servers::Gatewren;
use super::wire::{Head, Question, Repeated, Wire};

/// The time limit of a notification.
const TOLD_WITHIN: Duration = Duration::from_secs(20);

/// A notification of one subscriber.
struct Heard {
    at: Instant,
    event: String,
}

/// Open streams of one server; dropping this closes them.
pub struct Subscribers {
    heard: UnboundedReceiver<Result<Heard, Error>>,
    /// Aborted on drop.
    _tasks: JoinSet<()>,
    /// The length of the last event in bytes.
    pub event_bytes: usize,
}

impl Subscribers {
    /// Opens this number of streams to gatewren; `uri` returns the resource of the n-th.
    pub async fn ours(
        ours: &Gatewren,
        many: u32,
        uri: impl Fn(u32) -> String,
    ) -> Result<Self, Error> {
        let token = format!("Bearer {}", ours.token);
        let mut opened = Opened::default();
        for n in 0..many {
            let head = Head::new(ours.address.socket()).with("authorization", &token);
            opened.keep(listen(&ours.address, head, &uri(n)).await?);
        }
        Ok(opened.into())
    }

    /// Opens this number of streams to a peer, all to its only resource.
    pub async fn peer(peer: &Started, many: u32) -> Result<Self, Error> {
        let mut opened = Opened::default();
        for _ in 0..many {
            let head = Head::to(peer.path(), peer.address.socket());
            opened.keep(listen(&peer.address, head, DOCUMENT).await?);
        }
        Ok(opened.into())
    }

    /// Opens this number of streams to the anchor.
    pub async fn bare(address: &Address, many: u32) -> Result<Self, Error> {
        let host = address.socket();
        let request = format!("GET /events HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let mut opened = Opened::default();
        for _ in 0..many {
            opened.keep(open(address, request.as_bytes()).await?);
        }
        Ok(opened.into())
    }

    /// Waits for this number of notifications, of a given revision if any; returns their times.
    pub async fn told(&mut self, many: u32, revision: Option<i64>) -> Result<Vec<Instant>, Error> {
        let mut told = Vec::new();
        for _ in 0..many {
            let heard = tokio::time::timeout(TOLD_WITHIN, self.heard.recv()).await;
            let heard = heard.map_err(|_| format!("only {} of {many} were told", told.len()))?;
            let Heard { at, event } = heard.ok_or("nobody listens any more")??;
            if revision.is_some() && revision_in(event.as_bytes()) != revision {
                return Err(format!("not what was expected: {event}").into());
            }
            self.event_bytes = event.len();
            told.push(at);
        }
        Ok(told)
    }
}

/// Opens a stream of the stateless wire, and reads its acknowledgement.
async fn listen(address: &Address, head: Head, uri: &str) -> Result<Events, Error> {
    let filter = format!(r#""notifications":{{"resourceSubscriptions":["{uri}"]}}"#);
    let question = Question {
        wire: Wire::Stateless,
        method: "subscriptions/listen",
        name: None,
        params: &filter,
    };
    let mut request = Repeated::new(&head.with_question(&question), &question);
    let mut events = open(address, request.next()?.0).await?;
    let first = events.next().await?;
    if !first.contains("notifications/subscriptions/acknowledged") {
        return Err(format!("no acknowledgement: {first}").into());
    }
    Ok(events)
}

/// A server that is set to respond with one JSON object, as Python's mcp can be, never opens a stream.
async fn open(address: &Address, request: &[u8]) -> Result<Events, Error> {
    let opened = async { address.open().await?.listen(request).await };
    let opened = tokio::time::timeout(TOLD_WITHIN, opened).await;
    opened.map_err(|_| "no stream was begun")?
}

struct Opened {
    tasks: JoinSet<()>,
    ear: UnboundedSender<Result<Heard, Error>>,
    heard: UnboundedReceiver<Result<Heard, Error>>,
}

impl Default for Opened {
    fn default() -> Self {
        let (ear, heard) = unbounded_channel();
        Self {
            tasks: JoinSet::new(),
            ear,
            heard,
        }
    }
}

impl Opened {
    fn keep(&mut self, events: Events) {
        self.tasks.spawn(hear(events, self.ear.clone()));
    }
}

impl From<Opened> for Subscribers {
    fn from(Opened { tasks, heard, .. }: Opened) -> Self {
        Self {
            heard,
            _tasks: tasks,
            event_bytes: 0,
        }
    }
}

async fn hear(mut events: Events, ear: UnboundedSender<Result<Heard, Error>>) {
    loop {
        let event = events.next().await;
        let at = Instant::now();
        let failed = event.is_err();
        let heard = event.map(|event| Heard { at, event });
        if ear.send(heard).is_err() || failed {
            return;
        }
    }
}
