//! Tests whether a machine answers, and whether a port is open.

use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{Probe, ProbeAnswer};

use super::super::error::BackendError;
use super::reach::Network;

/// The timeout of one echo request.
const ECHO_TIME: Duration = Duration::from_secs(2);

/// The maximum number of addresses of one machine that are tried.
const ADDRESSES: usize = 4;

/// The result of echo requests to a machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PingAnswer {
    /// The address that was asked.
    pub address: IpAddr,
    /// Whether any reply arrived.
    pub answers: bool,
    /// The number of requests sent.
    pub sent: usize,
    /// The number of replies received.
    pub received: usize,
    /// The shortest round trip in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<f64>,
    /// The mean round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// The longest round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
    /// The obstacle, if it was reported: `unreachable` or `refused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<&'static str>,
}

/// Whether a port is open.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PortAnswer {
    /// Whether a connection succeeded.
    pub open: bool,
    /// The addresses that were tried, in order; trying stops at the first open one.
    pub tried: Vec<TriedAddress>,
}

/// The result for one address.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TriedAddress {
    /// The address.
    pub address: IpAddr,
    /// The result.
    pub state: PortState,
    /// The duration in milliseconds; absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<f64>,
}

/// The result of a connection attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// The connection succeeded.
    Open,
    /// The machine reports that the port is closed.
    Refused,
    /// No answer: the machine is off, or the packets are dropped on the way.
    NoAnswer,
    /// There is no route to the machine.
    Unreachable,
}

impl PortState {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Refused => "refused",
            Self::NoAnswer => "no answer",
            Self::Unreachable => "unreachable",
        }
    }
}

impl Network {
    /// Sends echo requests to a machine, one after the other.
    ///
    /// # Errors
    /// When the name has no address, and when neither this process nor the helper may send them.
    pub async fn ping(
        &self,
        host: &str,
        count: u32,
        reference: &str,
    ) -> Result<PingAnswer, BackendError> {
        let addresses = self.addresses(host).await?;
        let address = addresses.first().copied().unwrap_or([0; 4].into());
        let probe = Probe::Echo(count);
        let result = self.probe(address, probe, ECHO_TIME, reference).await?;
        let times: Vec<f64> = result.times_us.iter().flatten().copied().map(ms).collect();
        let sum: f64 = times.iter().sum();
        let received = times.len();
        let mean = sum / f64::from(u32::try_from(received).unwrap_or(u32::MAX));
        Ok(PingAnswer {
            address,
            answers: received > 0,
            sent: result.times_us.len(),
            received,
            min_ms: times.iter().copied().reduce(f64::min),
            mean_ms: (received > 0).then(|| round_to_us(mean)),
            max_ms: times.iter().copied().reduce(f64::max),
            obstacle: match result.answer {
                ProbeAnswer::Refused => Some("refused"),
                ProbeAnswer::Unreachable => Some("unreachable"),
                ProbeAnswer::Yes | ProbeAnswer::Silent => None,
            },
        })
    }

    /// Tries to connect to a TCP port of a machine, at its addresses in turn.
    ///
    /// # Errors
    /// As for [`Self::ping`].
    pub async fn check_port(
        &self,
        host: &str,
        port: u16,
        wait: Duration,
        reference: &str,
    ) -> Result<PortAnswer, BackendError> {
        let mut tried = Vec::new();
        for address in self.addresses(host).await?.into_iter().take(ADDRESSES) {
            let probe = Probe::Port(port);
            let result = self.probe(address, probe, wait, reference).await?;
            let state = match result.answer {
                ProbeAnswer::Yes => PortState::Open,
                ProbeAnswer::Refused => PortState::Refused,
                ProbeAnswer::Silent => PortState::NoAnswer,
                ProbeAnswer::Unreachable => PortState::Unreachable,
            };
            tried.push(TriedAddress {
                address,
                state,
                time_ms: result.times_us.first().copied().flatten().map(ms),
            });
            if state == PortState::Open {
                break;
            }
        }
        Ok(PortAnswer {
            open: tried.iter().any(|one| one.state == PortState::Open),
            tried,
        })
    }
}

/// Converts microseconds to milliseconds.
pub(super) fn ms(us: u64) -> f64 {
    f64::from(u32::try_from(us).unwrap_or(u32::MAX)) / 1000.0
}

/// Rounds to whole microseconds.
fn round_to_us(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}
