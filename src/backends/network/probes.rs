//! Whether a machine answers, and whether one of its ports is open.

use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{Answered, Probe};

use super::super::error::BackendError;
use super::reach::Network;

/// How long one answer to an echo request is waited for.
const ECHO_TIME: Duration = Duration::from_secs(2);

/// The most addresses of one machine that are tried.
const ADDRESSES: usize = 4;

/// How a machine has answered echo requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PingAnswer {
    /// The address that was asked.
    pub address: IpAddr,
    /// Whether any answer came.
    pub answers: bool,
    /// How many requests were sent.
    pub sent: usize,
    /// How many answers came.
    pub received: usize,
    /// The shortest time that an answer took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<f64>,
    /// The mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
    /// What is in the way, when something says so: `unreachable` or `refused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<&'static str>,
}

/// Whether a port is open.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PortAnswer {
    /// Whether a connection could be made.
    pub open: bool,
    /// Each address that was tried, in this order; the first that is open is the last.
    pub tried: Vec<TriedAddress>,
}

/// An address with the port that was tried there.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TriedAddress {
    /// The address.
    pub address: IpAddr,
    /// What came of it.
    pub state: PortState,
    /// How long that took, in milliseconds; absent when nothing came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<f64>,
}

/// What came of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// It was made.
    Open,
    /// The machine says that nobody listens.
    Refused,
    /// Nobody says anything: the machine is off, or something on the way drops it.
    NoAnswer,
    /// There is no way to the machine.
    Unreachable,
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
        let asked = (address, Probe::Echo(count), ECHO_TIME);
        let probed = self.probe(asked, reference).await?;
        let times: Vec<f64> = probed.times_us.iter().flatten().copied().map(ms).collect();
        let sum: f64 = times.iter().sum();
        let received = times.len();
        let mean = sum / f64::from(u32::try_from(received).unwrap_or(u32::MAX));
        Ok(PingAnswer {
            address,
            answers: received > 0,
            sent: probed.times_us.len(),
            received,
            min_ms: times.iter().copied().reduce(f64::min),
            mean_ms: (received > 0).then(|| rounded(mean)),
            max_ms: times.iter().copied().reduce(f64::max),
            obstacle: match probed.answer {
                Answered::Refused => Some("refused"),
                Answered::Unreachable => Some("unreachable"),
                Answered::Yes | Answered::Silent => None,
            },
        })
    }

    /// Tries to connect to one TCP port of a machine, at its addresses in turn.
    ///
    /// # Errors
    /// As for [`Self::ping`].
    pub async fn check_port(
        &self,
        (host, port): (&str, u16),
        wait: Duration,
        reference: &str,
    ) -> Result<PortAnswer, BackendError> {
        let mut tried = Vec::new();
        for address in self.addresses(host).await?.into_iter().take(ADDRESSES) {
            let asked = (address, Probe::Port(port), wait);
            let probed = self.probe(asked, reference).await?;
            let state = match probed.answer {
                Answered::Yes => PortState::Open,
                Answered::Refused => PortState::Refused,
                Answered::Silent => PortState::NoAnswer,
                Answered::Unreachable => PortState::Unreachable,
            };
            tried.push(TriedAddress {
                address,
                state,
                time_ms: probed.times_us.first().copied().flatten().map(ms),
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

/// Microseconds in milliseconds.
pub(super) fn ms(us: u64) -> f64 {
    f64::from(u32::try_from(us).unwrap_or(u32::MAX)) / 1000.0
}

/// To whole microseconds.
fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}
