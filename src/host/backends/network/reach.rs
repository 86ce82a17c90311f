//! Probes another machine, from this process or from the helper.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::helper_client::{HelperClient, HostProbe, Operation, Probe, ProbeResult};
use gatewren_base::sys::neutralise;

use super::super::bus::SystemBus;
use super::super::error::{BackendError, ErrorKind};
use super::super::request::ask_json;
use super::super::source::HostTree;

/// The timeout of a name lookup.
const LOOKUP_TIME: Duration = Duration::from_secs(10);

/// How much longer than the probe's own timeout the helper's answer may take.
const GRACE: Duration = Duration::from_secs(20);

/// The longest name of a machine (RFC 1035), with some room for scopes.
const NAME_BYTES: usize = 300;

/// Access to the network around the host.
#[derive(Debug, Clone)]
pub struct Network {
    pub(super) helper: HelperClient,
    pub(super) bus: SystemBus,
    pub(super) tree: HostTree,
}

impl Network {
    /// Returns access through this helper and this bus.
    pub fn new(helper: HelperClient, bus: SystemBus) -> Self {
        Self {
            helper,
            bus,
            tree: HostTree::of_this_machine(),
        }
    }

    /// Probes a machine. The front's sandbox only allows home networks, so the helper probes
    /// machines elsewhere.
    pub(super) async fn probe(
        &self,
        address: IpAddr,
        probe: Probe,
        wait: Duration,
        reference: &str,
    ) -> Result<ProbeResult, BackendError> {
        let times = match &probe {
            Probe::Echo(count) => *count,
            _ => 1,
        };
        let request = HostProbe {
            address,
            probe,
            wait_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
        };
        if is_home_address(address) {
            let own = request.clone();
            // If this process is denied or blocked, the helper may still succeed.
            if let Ok(Ok(result)) = spawn_blocking(move || own.run(false)).await {
                return Ok(result);
            }
        }
        let time_limit = wait * times + GRACE;
        ask_json(
            &self.helper,
            Operation::HostProbe(request),
            time_limit,
            reference,
        )
        .await
    }

    /// Returns the addresses of a machine, which is given by name or address.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, BackendError> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        let shown = neutralise(name);
        let wrong = |words: String| BackendError::new(ErrorKind::NotFound, words);
        if name.is_empty() || name.len() > NAME_BYTES || !name.chars().all(fits_a_name) {
            return Err(BackendError::new(
                ErrorKind::Refused,
                "the host must be a name or an address, such as box.lan or 192.168.1.10",
            ));
        }
        let found = match timeout(LOOKUP_TIME, lookup_host((name, 0))).await {
            Ok(Ok(found)) => found.map(|address: SocketAddr| address.ip()).collect(),
            Ok(Err(_)) => Vec::new(),
            Err(_) => return Err(wrong(format!("the lookup of {shown} timed out"))),
        };
        if found.is_empty() {
            return Err(wrong(format!("no address was found for {shown}")));
        }
        Ok(found)
    }
}

fn fits_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._".contains(c)
}

/// Whether an address is in a home network, as in the front's unit (`IPAddressAllow=`).
fn is_home_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || shared
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_at_home_are_near() {
        for near in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.0.1",
            "::1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(is_home_address(near.parse().unwrap()), "{near}");
        }
        for far in ["9.9.9.9", "172.32.0.1", "100.128.0.1", "2620:fe::fe"] {
            assert!(!is_home_address(far.parse().unwrap()), "{far}");
        }
    }
}
