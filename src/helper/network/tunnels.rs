//! `WireGuard` tunnels: lists those with a profile on this host and brings them up and down.
//!
//! Their keys never leave the helper.

use std::collections::BTreeMap;
use std::fs;

use gatewren_base::sys::rfc3339;
use gatewren_wire::operations::{OperationEnd, OperationRefusal, Tunnel, TunnelName, TunnelPeer};

use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::context::tools;
use crate::context::tools::HostTool;
use crate::processes::commands::require_root;
use crate::processes::printing::print;

/// The directory of the profiles (wg-quick(8)).
const PROFILES: &str = "/etc/wireguard";

/// The suffix of a profile's file name, after the tunnel's name.
const SUFFIX: &str = ".conf";

/// The most profiles that are read.
const MOST: usize = 256;

/// Prints the tunnels as JSON, sorted by name.
pub async fn list(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    find("wg")?;
    let show = HostTool::new("wg", ["show", "all", "dump"]);
    let dump = tools::output(&show, &context.helper.orphans).await?;
    print(context.relay, move || {
        let tunnels = parse_dump(&dump, &profiles());
        // Plain numbers and strings always serialize.
        Ok(serde_json::to_vec(&tunnels).unwrap_or_default())
    })
    .await
}

/// Brings a tunnel up or down.
pub async fn switch(
    context: &mut OperationContext<'_>,
    tunnel: &TunnelName,
    word: &str,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    if !profiles().contains(tunnel) {
        let name = tunnel.as_str();
        return Err(OperationRefusal::failed(format!(
            "there is no profile {PROFILES}/{name}{SUFFIX}; tunnel_list shows those that exist"
        )));
    }
    // The name begins with a letter or a digit, so it is neither an option nor a path.
    let tool = HostTool::new("wg-quick", [word, tunnel.as_str()]);
    context.run_tool(&tool).await
}

fn profiles() -> Vec<TunnelName> {
    let entries = fs::read_dir(PROFILES).into_iter().flatten().flatten();
    let names = entries.take(MOST).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(SUFFIX)?.to_owned().try_into().ok()
    });
    names.collect()
}

/// Joins the profiles with the output of `wg show all dump`: a line of five words for each interface and of nine for
/// each peer. The keys in it are dropped here.
fn parse_dump(dump: &str, profiles: &[TunnelName]) -> Vec<Tunnel> {
    let mut tunnels = BTreeMap::new();
    for profile in profiles {
        let name = profile.as_str().to_owned();
        let mut tunnel = new_tunnel(&name);
        tunnel.has_profile = true;
        tunnels.insert(name, tunnel);
    }
    for line in dump.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        match words.as_slice() {
            [name, _private, _public, port, _mark] => {
                let tunnel = tunnels
                    .entry((*name).to_owned())
                    .or_insert_with(|| new_tunnel(name));
                tunnel.up = true;
                tunnel.listen_port = port.parse().ok().filter(|port| *port != 0);
            }
            [
                name,
                _public,
                _shared,
                endpoint,
                allowed,
                handshake,
                received,
                sent,
                _,
            ] => {
                if let Some(tunnel) = tunnels.get_mut(*name) {
                    let peer = peer(endpoint, allowed, handshake, received, sent);
                    tunnel.peers.push(peer);
                }
            }
            _ => {}
        }
    }
    tunnels.into_values().collect()
}

fn new_tunnel(name: &str) -> Tunnel {
    Tunnel {
        name: name.to_owned(),
        has_profile: false,
        up: false,
        listen_port: None,
        peers: Vec::new(),
    }
}

fn peer(endpoint: &str, allowed: &str, handshake: &str, received: &str, sent: &str) -> TunnelPeer {
    let known = |text: &str| text != "(none)";
    let networks = allowed.split(',').filter(|network| known(network));
    let seconds: u64 = handshake.parse().unwrap_or(0);
    TunnelPeer {
        endpoint: Some(endpoint.to_owned()).filter(|text| known(text)),
        allowed_ips: networks.map(str::to_owned).collect(),
        last_handshake: (seconds > 0).then(|| rfc3339(seconds.saturating_mul(1000))),
        received_bytes: received.parse().unwrap_or(0),
        sent_bytes: sent.parse().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tunnels::*;

    /// In the format of `wg show all dump` of wireguard-tools 1.0.20210914 (wg(8)), for a tunnel with two peers.
    const DUMP: &str = "wg0\tcHJpdmF0ZQ==\tcHVibGlj\t51820\toff\n\
        wg0\tcGVlcjE=\tc2hhcmVk\t192.0.2.9:51820\t10.9.0.0/24,fd09::/64\t1785230400\t123\t456\t25\n\
        wg0\tcGVlcjI=\t(none)\t(none)\t(none)\t0\t0\t0\toff\n";

    #[test]
    fn everything_is_told_but_the_keys() {
        let profiles: Vec<TunnelName> = ["home", "wg0"]
            .map(|name| name.to_owned().try_into().unwrap())
            .into();
        let tunnels = parse_dump(DUMP, &profiles);
        let output = serde_json::to_string(&tunnels).unwrap();
        for key in ["cHJpdmF0ZQ", "cHVibGlj", "cGVlcjE", "c2hhcmVk", "cGVlcjI"] {
            assert!(!output.contains(key), "{output}");
        }
        let [home, wg0] = tunnels.as_slice() else {
            panic!("{output}");
        };
        assert!(home.has_profile && !home.up && wg0.has_profile && wg0.up);
        assert_eq!(wg0.listen_port, Some(51820));
        let [first, second] = wg0.peers.as_slice() else {
            panic!("{output}");
        };
        assert_eq!(first.allowed_ips, ["10.9.0.0/24", "fd09::/64"]);
        assert_eq!(
            first.last_handshake.as_deref(),
            Some("2026-07-28T09:20:00.000Z")
        );
        assert_eq!((first.received_bytes, first.sent_bytes), (123, 456));
        assert_eq!(
            (second.endpoint.as_deref(), second.last_handshake.as_deref()),
            (None, None)
        );
        assert!(second.allowed_ips.is_empty());
    }

    #[test]
    fn odd_lines_are_passed_over() {
        for odd in ["", "x", "a\tb\tc", "wg1\tk\ts\te\ta\th\tr\ts\t0\n"] {
            assert_eq!(parse_dump(odd, &[]), [], "{odd}");
        }
    }
}
