//! A D-Bus client for the systemd of this host or container, over its private socket for root.
//!
//! One call at a time, in the format of the D-Bus Specification, "Message Protocol" and "Authentication Protocol".

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// The socket where systemd serves root without a message bus. `systemctl` uses it too.
const SOCKET: &str = "/run/systemd/private";

/// The longest message that is read; a list of 10,000 units takes a quarter of it. A longer one ends the connection.
const MAX_MESSAGE: usize = 16 << 20;

/// The longest line of the authentication.
const MAX_AUTH_LINE: u64 = 512;

/// How many ended jobs are kept until they are queried. For one more the oldest is dropped.
const MAX_JOBS: usize = 256;

/// Message types.
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;
const SIGNAL: u8 = 4;

/// A connection to systemd.
#[derive(Debug)]
pub struct ManagerBus {
    stream: BufReader<UnixStream>,
    serial: u32,
    ended: Vec<EndedJob>,
}

/// A systemd job that has ended.
#[derive(Debug)]
struct EndedJob {
    path: String,
    result: String,
}

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub enum BusArgument<'a> {
    /// A string.
    Text(&'a str),
    /// A list of one string.
    OneText(&'a str),
    /// A boolean.
    Flag(bool),
}

/// Why a call failed.
#[derive(Debug)]
pub enum BusFault {
    /// The connection broke.
    Broken(io::Error),
    /// systemd returned an error, with this message.
    Refused(String),
}

impl fmt::Display for BusFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(cause) => write!(f, "systemd does not answer: {cause}"),
            Self::Refused(words) => f.write_str(words),
        }
    }
}

impl From<io::Error> for BusFault {
    fn from(cause: io::Error) -> Self {
        Self::Broken(cause)
    }
}

impl ManagerBus {
    /// Connects to systemd and authenticates as root.
    ///
    /// # Errors
    /// `NotFound` if no systemd runs.
    pub fn connect() -> io::Result<Self> {
        let stream = UnixStream::connect(SOCKET)?;
        Self::authenticate(stream)
    }

    fn authenticate(mut stream: UnixStream) -> io::Result<Self> {
        // The user id 0 in decimal digits, encoded in hexadecimal. Written in one piece, as systemctl does: a message
        // that arrives in one piece with BEGIN stays unread in systemd until another one follows.
        stream.write_all(b"\0AUTH EXTERNAL 30\r\nBEGIN\r\n")?;
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        let mut limited = (&mut stream).take(MAX_AUTH_LINE);
        limited.read_until(b'\n', &mut line)?;
        if !line.starts_with(b"OK ") {
            let kind = io::ErrorKind::PermissionDenied;
            return Err(io::Error::new(kind, "systemd did not authenticate root"));
        }
        Ok(Self {
            stream,
            serial: 0,
            ended: Vec::new(),
        })
    }

    /// Calls a method and returns the body of the reply.
    ///
    /// # Errors
    /// `Refused` with systemd's message, without an error code.
    pub fn call(
        &mut self,
        path: &str,
        interface: &str,
        member: &str,
        arguments: &[BusArgument<'_>],
    ) -> Result<BusBody, BusFault> {
        self.serial += 1;
        let message = message(self.serial, path, interface, member, arguments);
        self.stream.get_mut().write_all(&message)?;
        loop {
            let mut received = self.receive()?;
            if received.reply_to != Some(self.serial) {
                continue;
            }
            return match received.kind {
                METHOD_RETURN => Ok(received.body),
                _ => Err(BusFault::Refused(
                    received.body.text().unwrap_or(received.error),
                )),
            };
        }
    }

    /// Waits until a job has ended and returns systemd's name for its result: `done`, `failed` and so on.
    pub fn job_result(&mut self, job: &str) -> Result<String, BusFault> {
        loop {
            if let Some(at) = self.ended.iter().position(|ended| ended.path == job) {
                return Ok(self.ended.swap_remove(at).result);
            }
            self.receive()?;
        }
    }

    /// Reads the next message; records it if it reports an ended job.
    fn receive(&mut self) -> io::Result<ReceivedMessage> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        let mut fixed = BusBody::of(head.to_vec());
        let (order, kind) = (fixed.byte()?, fixed.byte()?);
        fixed.at = 4;
        let (body, _serial, fields) = (fixed.length()?, fixed.length()?, fixed.length()?);
        let padded = fields
            .checked_next_multiple_of(8)
            .ok_or_else(invalid_message)?;
        let rest = padded.checked_add(body).ok_or_else(invalid_message)?;
        if order != b'l' || rest > MAX_MESSAGE {
            return Err(invalid_message());
        }
        let mut bytes = vec![0; rest];
        self.stream.read_exact(&mut bytes)?;
        let body = bytes.split_off(padded);
        bytes.truncate(fields);
        let mut received = ReceivedMessage::of(kind, bytes, body)?;
        if kind == SIGNAL && received.member == "JobRemoved" {
            self.note(&mut received.body)?;
        }
        Ok(received)
    }

    /// Parses id, path, unit and result.
    fn note(&mut self, body: &mut BusBody) -> io::Result<()> {
        body.length()?;
        let (path, _unit, result) = (body.text()?, body.text()?, body.text()?);
        if self.ended.len() >= MAX_JOBS {
            self.ended.remove(0);
        }
        self.ended.push(EndedJob { path, result });
        Ok(())
    }
}

#[derive(Debug)]
struct ReceivedMessage {
    kind: u8,
    member: String,
    error: String,
    reply_to: Option<u32>,
    body: BusBody,
}

impl ReceivedMessage {
    fn of(kind: u8, fields: Vec<u8>, body: Vec<u8>) -> io::Result<Self> {
        let (mut member, mut error, mut reply_to) = (String::new(), String::new(), None);
        let mut fields = BusBody::of(fields);
        while fields.has_more() {
            fields.align(8);
            let code = fields.byte()?;
            match fields.signature()?.as_str() {
                "s" | "o" => {
                    let text = fields.text()?;
                    match code {
                        3 => member = text,
                        4 => error = text,
                        _ => {}
                    }
                }
                "u" => {
                    let number = fields.number()?;
                    if code == 5 && matches!(kind, METHOD_RETURN | ERROR) {
                        reply_to = Some(number);
                    }
                }
                "g" => drop(fields.signature()?),
                _ => return Err(invalid_message()),
            }
        }
        Ok(Self {
            kind,
            member,
            error,
            reply_to,
            body: BusBody::of(body),
        })
    }
}

/// The values of a message, read in order.
#[derive(Debug)]
pub struct BusBody {
    bytes: Vec<u8>,
    at: usize,
}

impl BusBody {
    fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns whether values are left to read.
    pub fn has_more(&self) -> bool {
        self.at < self.bytes.len()
    }

    /// Skips the padding before a value that is aligned to `size` bytes.
    pub fn align(&mut self, size: usize) {
        self.at = self.at.next_multiple_of(size);
    }

    /// Reads a string or an object path. Invalid UTF-8 is replaced.
    pub fn text(&mut self) -> io::Result<String> {
        let length = self.length()?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.byte()?;
        Ok(text)
    }

    /// Reads a 32-bit number.
    pub fn number(&mut self) -> io::Result<u32> {
        self.align(4);
        let bytes = self.take(4)?.first_chunk().copied();
        bytes.map(u32::from_le_bytes).ok_or_else(invalid_message)
    }

    /// Reads a boolean.
    pub fn flag(&mut self) -> io::Result<bool> {
        Ok(self.number()? != 0)
    }

    /// Reads a variant as text: a number in decimal digits, a boolean as `yes` or `no`, a list of strings separated
    /// by spaces. `None` for other types.
    pub fn variant(&mut self) -> io::Result<Option<String>> {
        Ok(Some(match self.signature()?.as_str() {
            "s" | "o" => self.text()?,
            "b" => if self.flag()? { "yes" } else { "no" }.to_owned(),
            "u" => self.number()?.to_string(),
            "i" => self.number()?.cast_signed().to_string(),
            "t" => self.wide_number()?.to_string(),
            "as" => {
                let length = self.length()?;
                let end = self.at.saturating_add(length);
                let mut texts = Vec::new();
                while self.at < end {
                    texts.push(self.text()?);
                }
                texts.join(" ")
            }
            _ => return Ok(None),
        }))
    }

    fn wide_number(&mut self) -> io::Result<u64> {
        self.align(8);
        let bytes = self.take(8)?.first_chunk().copied();
        bytes.map(u64::from_le_bytes).ok_or_else(invalid_message)
    }

    /// Reads a length in bytes.
    pub fn length(&mut self) -> io::Result<usize> {
        usize::try_from(self.number()?).map_err(io::Error::other)
    }

    fn signature(&mut self) -> io::Result<String> {
        let length = usize::from(self.byte()?);
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.byte()?;
        Ok(text)
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.take(1)?.first().copied().ok_or_else(invalid_message)
    }

    fn take(&mut self, length: usize) -> io::Result<&[u8]> {
        let end = self.at.checked_add(length).ok_or_else(invalid_message)?;
        let bytes = self.bytes.get(self.at..end).ok_or_else(invalid_message)?;
        self.at = end;
        Ok(bytes)
    }
}

/// Builds a complete method call.
fn message(
    serial: u32,
    path: &str,
    interface: &str,
    member: &str,
    arguments: &[BusArgument<'_>],
) -> Vec<u8> {
    let mut body = Vec::new();
    let mut signature = String::new();
    for argument in arguments {
        signature.push_str(match argument {
            BusArgument::Text(_) => "s",
            BusArgument::OneText(_) => "as",
            BusArgument::Flag(_) => "b",
        });
        match argument {
            BusArgument::Text(text) => put_text(&mut body, text),
            BusArgument::OneText(text) => {
                // The list's length is that of its only string: four bytes, the text and its NUL.
                put_number(&mut body, length(text.len() + 5));
                put_text(&mut body, text);
            }
            BusArgument::Flag(flag) => put_number(&mut body, (*flag).into()),
        }
    }
    let mut fields = Vec::new();
    for (code, kind, text) in [(1, b'o', path), (2, b's', interface), (3, b's', member)] {
        pad(&mut fields, 8);
        fields.extend([code, 1, kind, 0]);
        put_text(&mut fields, text);
    }
    if !signature.is_empty() {
        pad(&mut fields, 8);
        fields.extend([8, 1, b'g', 0, length(signature.len()).to_le_bytes()[0]]);
        fields.extend(signature.as_bytes());
        fields.push(0);
    }
    // Little-endian, a method call, no flags, version 1.
    let mut message = vec![b'l', 1, 0, 1];
    for number in [length(body.len()), serial, length(fields.len())] {
        put_number(&mut message, number);
    }
    message.extend(fields);
    pad(&mut message, 8);
    message.extend(body);
    message
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, length(text.len()));
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn put_number(bytes: &mut Vec<u8>, number: u32) {
    pad(bytes, 4);
    bytes.extend(number.to_le_bytes());
}

fn pad(bytes: &mut Vec<u8>, size: usize) {
    bytes.resize(bytes.len().next_multiple_of(size), 0);
}

/// Fits in 32 bits: only names of units and of systemd's methods are sent.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn invalid_message() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "invalid D-Bus message")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::manager_bus::*;

    /// A message from systemd.
    fn systemd_message(kind: u8, fields: &[u8], body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![b'l', kind, 0, 1];
        for number in [length(body.len()), 7, length(fields.len())] {
            put_number(&mut bytes, number);
        }
        bytes.extend(fields);
        pad(&mut bytes, 8);
        bytes.extend(body);
        bytes
    }

    fn reply_to(serial: u8) -> Vec<u8> {
        vec![5, 1, b'u', 0, serial, 0, 0, 0]
    }

    fn member(name: &str) -> Vec<u8> {
        let mut field = vec![3, 1, b's', 0];
        put_text(&mut field, name);
        field
    }

    /// A connection in which systemd sends these bytes after the authentication.
    fn bus_with(bytes: Vec<u8>) -> io::Result<ManagerBus> {
        let (ours, mut theirs) = UnixStream::pair()?;
        thread::spawn(move || {
            theirs.write_all(b"OK 0123\r\n").unwrap();
            theirs.write_all(&bytes).unwrap();
            // Keeps this end open until the other is done, so that its writes do not fail.
            let _ = theirs.shutdown(std::net::Shutdown::Write);
            let _ = io::copy(&mut theirs, &mut io::sink());
        });
        ManagerBus::authenticate(ours)
    }

    #[test]
    fn a_call_is_written_as_the_specification_says() {
        let arguments = [
            BusArgument::OneText("a.service"),
            BusArgument::Flag(false),
            BusArgument::Text("replace"),
        ];
        let bytes = message(1, "/o", "i.f", "M", &arguments);
        let mut head = BusBody::of(bytes.clone());
        head.at = 4;
        let (body, serial, fields) = (
            head.number().unwrap(),
            head.number().unwrap(),
            head.length().unwrap(),
        );
        assert_eq!(serial, 1);
        let begin = (16 + fields).next_multiple_of(8);
        assert_eq!(bytes.len() - begin, body as usize);
        let mut body = BusBody::of(bytes[begin..].to_vec());
        assert_eq!(body.length().unwrap(), 14);
        assert_eq!(body.text().unwrap(), "a.service");
        assert!(!body.flag().unwrap());
        assert_eq!(body.text().unwrap(), "replace");
        assert!(!body.has_more());
    }

    #[test]
    fn answers_errors_and_ended_jobs_are_read() {
        let mut path = Vec::new();
        put_text(&mut path, "/job/1");
        let mut ended = Vec::new();
        put_number(&mut ended, 1);
        for text in ["/job/1", "a.service", "failed"] {
            put_text(&mut ended, text);
        }
        let mut words = Vec::new();
        put_text(&mut words, "Unit b.service not found.");
        let bytes = [
            systemd_message(SIGNAL, &member("JobRemoved"), &ended),
            systemd_message(METHOD_RETURN, &reply_to(1), &path),
            systemd_message(ERROR, &reply_to(2), &words),
        ];
        let mut bus = bus_with(bytes.concat()).unwrap();
        let mut answer = bus.call("/o", "i", "Start", &[]).unwrap();
        assert_eq!(answer.text().unwrap(), "/job/1");
        assert_eq!(bus.job_result("/job/1").unwrap(), "failed");
        let refused = bus.call("/o", "i", "Start", &[]).unwrap_err();
        assert_eq!(refused.to_string(), "Unit b.service not found.");
        assert!(matches!(
            bus.call("/o", "i", "M", &[]),
            Err(BusFault::Broken(_))
        ));
    }

    #[test]
    fn a_variant_becomes_text() {
        let variant = |signature: &str, value: &[u8]| {
            let mut bytes = vec![u8::try_from(signature.len()).unwrap()];
            bytes.extend(signature.as_bytes());
            bytes.push(0);
            pad(&mut bytes, if signature == "t" { 8 } else { 4 });
            bytes.extend(value);
            BusBody::of(bytes).variant()
        };
        let mut text = Vec::new();
        put_text(&mut text, "active");
        assert_eq!(variant("s", &text).unwrap().unwrap(), "active");
        assert_eq!(variant("i", &[255; 4]).unwrap().unwrap(), "-1");
        assert_eq!(
            variant("t", &[255; 8]).unwrap().unwrap(),
            u64::MAX.to_string()
        );
        assert_eq!(variant("b", &[1, 0, 0, 0]).unwrap().unwrap(), "yes");
        let mut list = Vec::new();
        put_text(&mut list, "a.timer");
        pad(&mut list, 4);
        put_text(&mut list, "b.path");
        let mut array = Vec::new();
        put_number(&mut array, length(list.len()));
        array.extend(list);
        assert_eq!(variant("as", &array).unwrap().unwrap(), "a.timer b.path");
        assert_eq!(variant("a{sv}", &[0; 8]).unwrap(), None);
        assert!(variant("s", &[255, 0, 0, 0]).is_err(), "cut off");
    }

    #[test]
    fn what_is_no_message_ends_the_conversation() {
        let huge = [
            b'l', 2, 0, 1, 255, 255, 255, 255, 1, 0, 0, 0, 255, 255, 255, 255,
        ];
        let odd = systemd_message(METHOD_RETURN, &[5, 1, b'v', 0, 1, 0, 0, 0], &[]);
        let big_endian = [b'B'; 64];
        for bytes in [huge.to_vec(), odd, big_endian.to_vec(), b"x".to_vec()] {
            let mut bus = bus_with(bytes).unwrap();
            let failed = bus.call("/o", "i", "M", &[]).unwrap_err();
            assert!(matches!(failed, BusFault::Broken(_)), "{failed}");
        }
    }
}
