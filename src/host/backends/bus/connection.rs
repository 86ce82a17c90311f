//! A connection to the bus: authentication, one call at a time, and incoming signals.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use gatewren_base::sys::own_uid;

use super::address::sockets;
use super::error::BusError;
use super::message::{self, BusCall, BusMessage, BusMessageKind, BusObject};
use super::value::BusValue;

/// The maximum number of signals that are queued while a call waits for its answer. Beyond it the
/// connection is closed, as the bus does with a slow reader.
const MAX_WAITING: usize = 4096;

/// The maximum number of unsent bytes; beyond it the connection is closed.
const MAX_UNSENT: usize = 1 << 20;

/// The longest line during authentication; the specification sets no limit.
const MAX_LINE: usize = 1024;

/// How many unread bytes an idle connection reads ahead. With more, the next call finds out whether
/// the connection is closed.
const MAX_UNREAD: usize = 64 << 10;

/// The buffer capacity that is kept between two messages.
const ROOM: usize = 4096;

/// The bus itself, as a service.
pub(super) const BUS: BusObject<'static> = BusObject {
    service: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
};

/// The first call on every connection.
const HELLO: BusCall<'static> = BusCall {
    object: BUS,
    interface: BUS.service,
    member: "Hello",
    arguments: &[],
};

/// A connection. It owns all state of a call, so dropping a future loses nothing: the next call
/// continues.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    /// Received bytes that are not parsed yet.
    input: Vec<u8>,
    /// Bytes to send.
    output: Vec<u8>,
    /// The serial number of the last call.
    serial: u32,
    signals: VecDeque<BusMessage>,
}

impl Connection {
    /// Connects as this process's user to the first socket of an address that accepts.
    pub(super) async fn open(address: &str) -> Result<Self, BusError> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "its address names no socket");
        for socket in sockets(address) {
            match UnixStream::connect(&socket).await {
                Ok(stream) => return Self::greeted(stream).await,
                Err(cause) => last = named(&socket, &cause),
            }
        }
        Err(last.into())
    }

    async fn greeted(stream: UnixStream) -> Result<Self, BusError> {
        let mut connection = Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            serial: 0,
            signals: VecDeque::new(),
        };
        // After a zero byte: the uid in decimal digits, each in hexadecimal ASCII (7 is 37).
        let user = own_uid().to_string();
        let user: String = user.chars().flat_map(|digit| ['3', digit]).collect();
        connection.output = format!("\0AUTH EXTERNAL {user}\r\n").into_bytes();
        connection.flush().await?;
        if !connection.line().await?.starts_with(b"OK ") {
            return Err(BusError::Malformed("a rejection of this user"));
        }
        connection.output = b"BEGIN\r\n".to_vec();
        connection.call(&HELLO).await?;
        Ok(connection)
    }

    /// Whether the peer has closed the connection, as far as is known without waiting.
    pub(super) fn is_over(&mut self) -> bool {
        while self.input.len() < MAX_UNREAD {
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(cause) => return cause.kind() != io::ErrorKind::WouldBlock,
            }
        }
        false
    }

    /// Sends a call and waits for its answer.
    pub(super) async fn call(&mut self, call: &BusCall<'_>) -> Result<Vec<BusValue>, BusError> {
        // Zero is no valid serial.
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        let serial = u64::from(self.serial);
        self.output.extend(message::write(call, self.serial));
        self.flush().await?;
        loop {
            let message = self.message().await?;
            let ours = message.reply_to == Some(serial);
            match message.kind {
                BusMessageKind::Return if ours => return Ok(message.body),
                BusMessageKind::Error if ours => return Err(answered(message)),
                BusMessageKind::Signal => self.keep(message)?,
                // Answers to calls that were dropped.
                _ => {}
            }
        }
    }

    /// Waits for the next signal.
    pub(super) async fn signal(&mut self) -> Result<BusMessage, BusError> {
        loop {
            if let Some(signal) = self.signals.pop_front() {
                return Ok(signal);
            }
            let message = self.message().await?;
            if message.kind == BusMessageKind::Signal {
                return Ok(message);
            }
        }
    }

    /// Discards received signals, for a connection without a subscriber.
    pub(super) fn forget_signals(&mut self) {
        self.signals.clear();
    }

    fn keep(&mut self, signal: BusMessage) -> Result<(), BusError> {
        if self.signals.len() >= MAX_WAITING {
            return Err(BusError::Malformed("too many signals"));
        }
        self.signals.push_back(signal);
        Ok(())
    }

    async fn message(&mut self) -> Result<BusMessage, BusError> {
        loop {
            let length = message::length(&self.input)?;
            if let Some(bytes) = length.and_then(|length| self.input.get(..length)) {
                let (message, size) = (message::read(bytes), bytes.len());
                self.input.drain(..size);
                if self.input.is_empty() {
                    self.input.shrink_to(ROOM);
                }
                return message;
            }
            self.more().await?;
        }
    }

    /// Reads a line of the authentication.
    async fn line(&mut self) -> Result<Vec<u8>, BusError> {
        loop {
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                return Ok(self.input.drain(..=end).collect());
            }
            if self.input.len() > MAX_LINE {
                return Err(BusError::Malformed("a greeting that is too long"));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), BusError> {
        self.input.reserve(ROOM);
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), BusError> {
        if self.output.len() > MAX_UNSENT {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        while !self.output.is_empty() {
            let sent = self.stream.write(&self.output).await?;
            self.output.drain(..sent);
        }
        Ok(())
    }
}

/// Adds the socket's path to an error.
fn named(socket: &Path, cause: &io::Error) -> io::Error {
    io::Error::new(cause.kind(), format!("{}: {cause}", socket.display()))
}

fn answered(message: BusMessage) -> BusError {
    let words = message
        .body
        .into_iter()
        .next()
        .and_then(BusValue::into_text);
    BusError::Answer {
        name: message.error.unwrap_or_default(),
        words,
    }
}
