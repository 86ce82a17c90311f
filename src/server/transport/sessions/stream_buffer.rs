//! The buffer of one stream: its events, the position of its reader, and whether more events can follow.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::watch;

use super::event_id::StreamOrigin;

/// An event.
#[derive(Debug, Clone)]
pub struct BufferedEvent {
    /// Its number in the stream, from 1.
    pub count: u64,
    /// The revision of the resources that the stream has reported with it.
    pub revision: u64,
    /// The message.
    pub data: Bytes,
    /// Its position in the order of all events of the session.
    at: u64,
}

/// What a connection gets next.
#[derive(Debug)]
pub enum NextEvent {
    /// An event.
    Event(BufferedEvent),
    /// Nothing yet.
    Later,
    /// Nothing more.
    End,
}

/// A stream.
pub struct StreamBuffer {
    origin: StreamOrigin,
    events: VecDeque<BufferedEvent>,
    /// The size of the events in bytes.
    bytes: usize,
    /// The number of events so far.
    given: u64,
    /// The revision that the newest event reported.
    revision: u64,
    /// The last event that the connection has read.
    read: u64,
    /// The connection that reads; 0 if none does.
    reader: u64,
    /// The number of connections so far.
    connections: u64,
    /// A connection that must end, and the last event that it sends.
    ended_connection: Option<(u64, u64)>,
    over: bool,
    changes: watch::Sender<()>,
}

impl StreamBuffer {
    /// A stream without events.
    pub fn new(origin: StreamOrigin, revision: u64) -> Self {
        Self {
            origin,
            events: VecDeque::new(),
            bytes: 0,
            given: 0,
            revision,
            read: 0,
            reader: 0,
            connections: 0,
            ended_connection: None,
            over: false,
            changes: watch::Sender::new(()),
        }
    }

    /// The kind of request that opened it.
    pub fn origin(&self) -> StreamOrigin {
        self.origin
    }

    /// Returns a receiver that is notified of every change.
    pub fn listen(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Adds a connection, which becomes the reader and continues after this event.
    pub fn connect(&mut self, seen: u64) -> u64 {
        self.connections += 1;
        self.reader = self.connections;
        self.read = seen.min(self.given);
        self.notify_reader();
        self.connections
    }

    /// Removes a connection.
    pub fn disconnect(&mut self, connection: u64) {
        if self.reader == connection {
            self.reader = 0;
            self.notify_reader();
        }
    }

    /// Returns the next event after this one for this connection.
    pub fn take(&mut self, connection: u64, seen: u64) -> NextEvent {
        if self.reader != connection {
            return NextEvent::End;
        }
        let last = self
            .ended_connection
            .filter(|(whose, _)| *whose == connection);
        let last = last.map(|(_, last)| last);
        let next = self.events.iter().find(|event| event.count > seen);
        match next.filter(|event| last.is_none_or(|last| event.count <= last)) {
            Some(event) => {
                let event = event.clone();
                self.read = event.count;
                self.notify_reader();
                NextEvent::Event(event)
            }
            None if self.over || last.is_some() => NextEvent::End,
            None => NextEvent::Later,
        }
    }

    /// Whether more events can follow this one.
    pub fn can_follow(&self, seen: u64) -> bool {
        !self.over || self.events.back().is_some_and(|last| last.count > seen)
    }

    /// Whether all events after this one are still in the buffer.
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

    /// The number of events that the connection has not read yet.
    pub fn unread(&self) -> u64 {
        self.given - self.read
    }

    /// Adds an event.
    pub fn push(&mut self, at: u64, data: Bytes, revision: Option<u64>) {
        self.given += 1;
        self.bytes += data.len();
        self.revision = revision.unwrap_or(self.revision);
        self.events.push_back(BufferedEvent {
            count: self.given,
            revision: self.revision,
            data,
            at,
        });
        self.notify_reader();
    }

    /// Ends the current connection after the last event so far.
    pub fn end_connection(&mut self) {
        if self.reader != 0 {
            self.ended_connection = Some((self.reader, self.given));
            self.notify_reader();
        }
    }

    /// Marks the stream as complete: no event will follow.
    pub fn end(&mut self) {
        self.over = true;
        self.notify_reader();
    }

    /// Whether the stream is complete and empty, and no connection reads it.
    pub fn is_finished(&self) -> bool {
        self.over && self.reader == 0 && self.events.is_empty()
    }

    /// The position of its oldest event, if that one may be dropped because no connection is about to read it.
    pub fn oldest_that_may_go(&self) -> Option<u64> {
        let oldest = self.events.front()?;
        (self.reader == 0 || oldest.count <= self.read).then_some(oldest.at)
    }

    /// Drops the oldest event and returns its size in bytes.
    pub fn drop_oldest(&mut self) -> usize {
        let bytes = self.events.pop_front().map_or(0, |event| event.data.len());
        self.bytes -= bytes;
        bytes
    }

    /// The position of its newest event; 0 if there is none.
    pub fn newest(&self) -> u64 {
        self.events.back().map_or(0, |event| event.at)
    }

    /// The number of events in the buffer.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// The size of the events in the buffer, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn notify_reader(&self) {
        self.changes.send_replace(());
    }
}
