//! One stream as it is kept: its events, how far its connection has read them, and whether more can come.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::watch;

use super::event_id::Origin;

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its number in the stream, from 1.
    pub count: u64,
    /// The revision of the resources that the stream has told with it.
    pub revision: u64,
    /// The message.
    pub data: Bytes,
    /// When it came, counted over all streams of the session.
    at: u64,
}

/// What there is for a connection.
#[derive(Debug)]
pub enum Taken {
    /// This.
    Event(Event),
    /// Nothing yet.
    Later,
    /// Nothing any more.
    End,
}

/// A stream.
pub struct Kept {
    origin: Origin,
    events: VecDeque<Event>,
    /// How many bytes they have.
    bytes: usize,
    /// How many events there have been.
    given: u64,
    /// What the newest of them told.
    revision: u64,
    /// How far the connection has read.
    read: u64,
    /// Which connection reads; 0 when none does.
    reader: u64,
    /// How many there have been.
    connections: u64,
    /// The connection that is to end, and the last event that it is to send.
    hung_up: Option<(u64, u64)>,
    over: bool,
    bell: watch::Sender<()>,
}

impl Kept {
    /// A stream on which nothing has been said.
    pub fn new(origin: Origin, revision: u64) -> Self {
        Self {
            origin,
            events: VecDeque::new(),
            bytes: 0,
            given: 0,
            revision,
            read: 0,
            reader: 0,
            connections: 0,
            hung_up: None,
            over: false,
            bell: watch::Sender::new(()),
        }
    }

    /// What it was opened for.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Rings whenever something has changed.
    pub fn listen(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }

    /// Makes a new connection its reader, from behind this event on.
    pub fn connect(&mut self, seen: u64) -> u64 {
        self.connections += 1;
        self.reader = self.connections;
        self.read = seen.min(self.given);
        self.ring();
        self.connections
    }

    /// A connection is gone.
    pub fn disconnect(&mut self, connection: u64) {
        if self.reader == connection {
            self.reader = 0;
            self.ring();
        }
    }

    /// What comes behind this event on this connection.
    pub fn take(&mut self, connection: u64, seen: u64) -> Taken {
        if self.reader != connection {
            return Taken::End;
        }
        let last = self.hung_up.filter(|(whose, _)| *whose == connection);
        let last = last.map(|(_, last)| last);
        let next = self.events.iter().find(|event| event.count > seen);
        match next.filter(|event| last.is_none_or(|last| event.count <= last)) {
            Some(event) => {
                let event = event.clone();
                self.read = event.count;
                self.ring();
                Taken::Event(event)
            }
            None if self.over || last.is_some() => Taken::End,
            None => Taken::Later,
        }
    }

    /// Whether more can come behind this event.
    pub fn can_follow(&self, seen: u64) -> bool {
        !self.over || self.events.back().is_some_and(|last| last.count > seen)
    }

    /// Whether everything behind this event is still there.
    pub fn is_whole(&self, seen: u64) -> bool {
        match self.events.front() {
            Some(oldest) => oldest.count <= seen + 1,
            None => self.given <= seen,
        }
    }

    /// Whether a connection reads it.
    pub fn is_read(&self) -> bool {
        self.reader != 0
    }

    /// How many events the connection has before it.
    pub fn unread(&self) -> u64 {
        self.given - self.read
    }

    /// Adds an event.
    pub fn push(&mut self, at: u64, data: Bytes, revision: Option<u64>) {
        self.given += 1;
        self.bytes += data.len();
        self.revision = revision.unwrap_or(self.revision);
        self.events.push_back(Event {
            count: self.given,
            revision: self.revision,
            data,
            at,
        });
        self.ring();
    }

    /// Ends its connection behind what has been said until now.
    pub fn hang_up(&mut self) {
        if self.reader != 0 {
            self.hung_up = Some((self.reader, self.given));
            self.ring();
        }
    }

    /// Nothing more will be said.
    pub fn end(&mut self) {
        self.over = true;
        self.ring();
    }

    /// Nobody reads it, nothing is left of it and nothing more will be said.
    pub fn is_spent(&self) -> bool {
        self.over && self.reader == 0 && self.events.is_empty()
    }

    /// When its oldest event came, if that one may go: nobody is about to read it.
    pub fn oldest_that_may_go(&self) -> Option<u64> {
        let oldest = self.events.front()?;
        (self.reader == 0 || oldest.count <= self.read).then_some(oldest.at)
    }

    /// Lets the oldest event go: its bytes.
    pub fn drop_oldest(&mut self) -> usize {
        let bytes = self.events.pop_front().map_or(0, |event| event.data.len());
        self.bytes -= bytes;
        bytes
    }

    /// When its newest event came; 0 without any.
    pub fn newest(&self) -> u64 {
        self.events.back().map_or(0, |event| event.at)
    }

    /// How many events it keeps.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn ring(&self) {
        self.bell.send_replace(());
    }
}
