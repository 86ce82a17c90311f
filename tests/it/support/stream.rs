//! A response read as it arrives: server-sent events.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::http::response::Parts;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::client::{Connection, runtime};
use super::machine::IN_TIME;

/// An event.
#[derive(Debug, Clone, Default)]
pub struct Event {
    pub id: Option<String>,
    /// The delay in milliseconds before a client that lost the stream reconnects.
    pub retry: Option<u64>,
    /// `message`, also if absent, or the type of the first event of HTTP+SSE.
    pub kind: String,
    pub data: String,
}

impl Event {
    /// Parses the lines between two empty ones; `None` if they are only comments.
    pub fn parse(text: &str) -> Option<Self> {
        let mut event = Self {
            kind: "message".to_owned(),
            ..Self::default()
        };
        let mut is_event = false;
        for line in text.lines() {
            match line.split_once(':') {
                Some(("id", value)) => event.id = Some(value.trim().to_owned()),
                Some(("retry", value)) => event.retry = Some(value.trim().parse().unwrap()),
                Some(("data", value)) => event.data.push_str(value.trim_start()),
                Some(("event", value)) => value.trim().clone_into(&mut event.kind),
                Some(("", _)) => continue,
                _ if line.is_empty() => continue,
                _ => panic!("a line that is no event's: {line:?}"),
            }
            is_event = true;
        }
        is_event.then_some(event)
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.kind, "message");
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// The next item of a stream.
#[derive(Debug)]
pub enum Next {
    Event(Event),
    /// The stream has ended.
    End,
    /// Nothing arrived within the time.
    Quiet,
}

/// A response in flight. Dropping it closes its connection, or resets its stream on a shared one.
pub struct Stream {
    pub head: Parts,
    body: Incoming,
    text: String,
    _connection: Option<Connection>,
}

impl Stream {
    pub fn new(response: hyper::Response<Incoming>, connection: Option<Connection>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            head,
            body,
            text: String::new(),
            _connection: connection,
        }
    }

    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    /// Returns the next event, without comments.
    pub fn next(&mut self, within: Duration) -> Next {
        runtime().block_on(self.hear(within))
    }

    /// Does the same, async.
    pub async fn hear(&mut self, within: Duration) -> Next {
        let until = Instant::now() + within;
        loop {
            while let Some(at) = self.text.find("\n\n") {
                let event = Event::parse(&self.text[..at]);
                self.text.drain(..at + 2);
                if let Some(event) = event {
                    return Next::Event(event);
                }
            }
            match timeout_at(until, self.body.frame()).await {
                Err(_) => return Next::Quiet,
                Ok(None | Some(Err(_))) => return Next::End,
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.text.push_str(std::str::from_utf8(&data).unwrap());
                    }
                }
            }
        }
    }

    /// Returns the next event, which must come.
    pub fn event(&mut self) -> Event {
        match self.next(IN_TIME) {
            Next::Event(event) => event,
            other => panic!("an event was due: {other:?}"),
        }
    }

    /// Returns the next message, which must come.
    pub fn message(&mut self) -> Value {
        self.message_within(IN_TIME)
    }

    /// Returns the next message, after the empty event that may begin the stream of a session's call.
    pub fn call_message(&mut self) -> Value {
        loop {
            let event = self.event();
            if !event.data.is_empty() {
                return event.json();
            }
        }
    }

    /// Returns the next message, which must come within `bound`.
    pub fn message_within(&mut self, bound: Duration) -> Value {
        match self.next(bound) {
            Next::Event(event) => event.json(),
            other => panic!("a message was due within {bound:?}: {other:?}"),
        }
    }

    /// Returns the URI of the next update notification.
    pub fn updated(&mut self) -> String {
        let message = self.message();
        assert_eq!(
            message["method"], "notifications/resources/updated",
            "{message}"
        );
        message["params"]["uri"].as_str().unwrap().to_owned()
    }

    /// Asserts that nothing comes for `time`.
    pub fn stays_quiet(&mut self, time: Duration) {
        let next = self.next(time);
        assert!(matches!(next, Next::Quiet), "{next:?}");
    }

    /// Waits for the end of the stream, and ignores anything before it.
    pub fn until_it_ends(&mut self) {
        loop {
            match self.next(IN_TIME) {
                Next::Event(_) => {}
                Next::End => return,
                Next::Quiet => panic!("it goes on"),
            }
        }
    }

    /// Asserts that the stream ends with nothing before it.
    pub fn ends(&mut self) {
        let next = self.next(IN_TIME);
        assert!(matches!(next, Next::End), "{next:?}");
    }
}
