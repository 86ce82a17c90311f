//! Looks whether another machine answers; the front does it by itself where its sandbox lets it, else the helper.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::sys::{ask_name_server, echo, knock};

/// The longest that one answer is waited for; a longer time is cut to it.
const WAIT: Duration = Duration::from_secs(10);

/// The most echo requests of one probe; more are not sent.
const ECHOES: u32 = 10;

/// The pause between two of them, as long as ping leaves to users without rights.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest question to a name server.
const QUESTION_BYTES: usize = 512;

/// The port of name servers.
const DNS: u16 = 53;

/// One machine, and what it is to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProbe {
    /// Its address.
    pub address: IpAddr,
    /// What it is to answer.
    pub probe: Probe,
    /// How long each answer is waited for, in milliseconds.
    pub wait_ms: u32,
}

/// What a machine is to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// So many echo requests.
    Echo(u32),
    /// A connection to this TCP port.
    Port(u16),
    /// A message to its name server, in base64.
    Name(String),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// Whether it answered, the last time.
    pub answer: Answered,
    /// How long each answer took, in microseconds; nothing for one that did not come.
    pub times_us: Vec<Option<u64>>,
    /// What a name server said, in base64.
    #[serde(default)]
    pub message: String,
}

/// How a machine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// It does.
    Yes,
    /// It says that nobody is there.
    Refused,
    /// Nobody says anything.
    Silent,
    /// There is no way to it.
    Unreachable,
}

impl HostProbe {
    /// Does it; blocks until the answer or the end of the time. With `raw`, echo requests need root's rights.
    ///
    /// # Errors
    /// `PermissionDenied` where this process may not, and what else the kernel says.
    pub fn run(&self, raw: bool) -> io::Result<Probed> {
        let wait = Duration::from_millis(self.wait_ms.into()).min(WAIT);
        match &self.probe {
            Probe::Echo(count) => echoes(self.address, (*count).clamp(1, ECHOES), wait, raw),
            Probe::Port(port) => {
                let to = SocketAddr::new(self.address, *port);
                timed(|| knock(to, wait).map(|()| String::new()))
            }
            Probe::Name(question) => {
                let to = SocketAddr::new(self.address, DNS);
                let question = STANDARD.decode(question).map_err(io::Error::other)?;
                if question.len() > QUESTION_BYTES {
                    return Err(ErrorKind::InvalidInput.into());
                }
                timed(|| ask_name_server(to, &question, wait).map(|said| STANDARD.encode(said)))
            }
        }
    }
}

fn echoes(address: IpAddr, count: u32, wait: Duration, raw: bool) -> io::Result<Probed> {
    let mut probed = Probed {
        answer: Answered::Silent,
        times_us: Vec::new(),
        message: String::new(),
    };
    for number in 0..count {
        if number > 0 {
            std::thread::sleep(PAUSE);
        }
        let time = match echo(address, wait, raw) {
            Ok(time) => time,
            Err(cause) => {
                probed.answer = obstacle(cause)?;
                return Ok(probed);
            }
        };
        if time.is_some() {
            probed.answer = Answered::Yes;
        }
        probed.times_us.push(time.map(us));
    }
    Ok(probed)
}

fn timed(ask: impl FnOnce() -> io::Result<String>) -> io::Result<Probed> {
    let begun = Instant::now();
    let (answer, message) = match ask() {
        Ok(message) => (Answered::Yes, message),
        Err(cause) => (obstacle(cause)?, String::new()),
    };
    let time = (answer != Answered::Silent).then(|| us(begun.elapsed()));
    Ok(Probed {
        answer,
        times_us: vec![time],
        message,
    })
}

/// What an error says of the other machine; one that says something of ours stays an error.
fn obstacle(cause: io::Error) -> io::Result<Answered> {
    match cause.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Ok(Answered::Refused),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Ok(Answered::Silent),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Ok(Answered::Unreachable),
        _ => Err(cause),
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
