//! Checks whether another machine answers. The front does it itself if its sandbox permits, else the helper does.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use gatewren_base::sys::{ask_name_server, connect_tcp, echo};

/// The maximum time to wait for an answer; a longer time is cut to it.
const WAIT: Duration = Duration::from_secs(10);

/// The maximum number of echo requests of a probe; no more are sent.
const ECHOES: u32 = 10;

/// The pause between two echo requests: the minimum that ping allows to unprivileged users.
const PAUSE: Duration = Duration::from_millis(200);

/// The maximum size of a DNS query in bytes.
const QUESTION_BYTES: usize = 512;

/// The DNS port.
const DNS: u16 = 53;

/// A probe of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProbe {
    /// The machine's address.
    pub address: IpAddr,
    /// The kind of probe.
    pub probe: Probe,
    /// How long to wait for each answer, in milliseconds.
    pub wait_ms: u32,
}

/// A kind of probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// This number of echo requests.
    Echo(u32),
    /// A connection to this TCP port.
    Port(u16),
    /// A DNS query to the machine's name server, in base64.
    Name(String),
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Whether the machine answered the last request.
    pub answer: ProbeAnswer,
    /// How long each answer took, in microseconds; `None` for a missing answer.
    pub times_us: Vec<Option<u64>>,
    /// The name server's answer, in base64.
    #[serde(default)]
    pub message: String,
}

/// How a machine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeAnswer {
    /// It answers.
    Yes,
    /// It rejects the connection.
    Refused,
    /// No answer arrives.
    Silent,
    /// No route to it exists.
    Unreachable,
}

impl HostProbe {
    /// Runs the probe; blocks until the answer or the timeout. With `raw`, echo requests need root.
    ///
    /// # Errors
    /// `PermissionDenied` where this process lacks the permission, and other errors of the kernel.
    pub fn run(&self, raw: bool) -> io::Result<ProbeResult> {
        let wait = Duration::from_millis(self.wait_ms.into()).min(WAIT);
        match &self.probe {
            Probe::Echo(count) => echoes(self.address, (*count).clamp(1, ECHOES), wait, raw),
            Probe::Port(port) => {
                let to = SocketAddr::new(self.address, *port);
                timed(|| connect_tcp(to, wait).map(|()| String::new()))
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

fn echoes(address: IpAddr, count: u32, wait: Duration, raw: bool) -> io::Result<ProbeResult> {
    let mut probed = ProbeResult {
        answer: ProbeAnswer::Silent,
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
            probed.answer = ProbeAnswer::Yes;
        }
        probed.times_us.push(time.map(us));
    }
    Ok(probed)
}

fn timed(ask: impl FnOnce() -> io::Result<String>) -> io::Result<ProbeResult> {
    let begun = Instant::now();
    let (answer, message) = match ask() {
        Ok(message) => (ProbeAnswer::Yes, message),
        Err(cause) => (obstacle(cause)?, String::new()),
    };
    let time = (answer != ProbeAnswer::Silent).then(|| us(begun.elapsed()));
    Ok(ProbeResult {
        answer,
        times_us: vec![time],
        message,
    })
}

/// Converts an error that describes the other machine; an error of this machine stays an error.
fn obstacle(cause: io::Error) -> io::Result<ProbeAnswer> {
    match cause.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Ok(ProbeAnswer::Refused),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Ok(ProbeAnswer::Silent),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Ok(ProbeAnswer::Unreachable),
        _ => Err(cause),
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
