//! Checks whether clients reach the server: at its addresses, and under its names with a valid certificate.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use super::super::console::listener::{LocalServer, in_url};
use super::finding::Finding;
use gatewren_base::config::Settings;
use gatewren_base::sys::interface_addresses;
use gatewren_gate::http::is_local;
use gatewren_server::app::{server_addresses, server_names};

/// The maximum number of addresses and names to try.
const MOST: usize = 8;

/// Where the kernel lists the network interfaces.
const INTERFACES: &str = "/sys/class/net";

/// The addresses at which others in the local network reach this host; those of container networks are the last.
fn lan_addresses() -> Vec<IpAddr> {
    let inner = inner_addresses();
    let mut addresses = server_addresses();
    addresses.retain(|address| {
        let link_local = match address {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        !address.is_loopback() && !link_local
    });
    // Local addresses first.
    addresses.sort_by_key(|address| {
        let is_inner = inner.contains(address);
        (is_inner, !is_local(*address), address.is_ipv6())
    });
    addresses.truncate(MOST);
    addresses
}

/// The addresses of this host in networks that only its containers and virtual machines are in.
fn inner_addresses() -> BTreeSet<IpAddr> {
    let all = interface_addresses().unwrap_or_default().into_iter();
    all.filter(|one| is_inner_bridge(Path::new(INTERFACES), &one.interface))
        .map(|one| one.address)
        .collect()
}

/// Whether an interface is a bridge without hardware. Docker makes one for each network of a Compose project.
fn is_inner_bridge(interfaces: &Path, name: &str) -> bool {
    let Ok(ports) = fs::read_dir(interfaces.join(name).join("brif")) else {
        return false;
    };
    let mut ports = ports.flatten();
    !ports.any(|port| interfaces.join(port.file_name()).join("device").exists())
}

/// Checks whether the server answers. If not, the other checks are skipped.
pub async fn answers(server: &LocalServer) -> Finding {
    let at = server.near.ip();
    match server.probe(at, &in_url(at)).await {
        Ok(()) => Finding::good("answers", format!("it answers at {}", server.near)),
        Err(cause) => Finding::problem(
            "answers",
            format!("it does not answer at {}: {cause}", server.near),
            "systemctl status gatewren; gatewren check; for a server started by hand, give its port with --address",
        ),
    }
}

/// Checks each address and each name; also returns the first local address that answered.
pub async fn look(server: &LocalServer, settings: &Settings) -> (Vec<Finding>, Option<IpAddr>) {
    let (mut found, at) = if server.is_local {
        let seen = "it listens only on a loopback address, so no other machine can reach it";
        (vec![Finding::skipped("network", seen)], None)
    } else {
        network(server).await
    };
    found.extend(names(server, settings).await);
    (found, at)
}

async fn network(server: &LocalServer) -> (Vec<Finding>, Option<IpAddr>) {
    let mut found = Vec::new();
    let addresses = lan_addresses();
    let mut well = Vec::new();
    for at in &addresses {
        match server.probe(*at, &in_url(*at)).await {
            Ok(()) => well.push(*at),
            Err(cause) => found.push(Finding::problem(
                "network",
                format!("it does not answer at {}: {cause}", in_url(*at)),
                "gatewren cert show (does it cover this address?); systemctl cat gatewren.socket (does it listen \
                 there?); allow the port in this host's firewall",
            )),
        }
    }
    if addresses.is_empty() {
        let seen = "this host has only loopback and link-local addresses, so no other machine can reach it";
        let remedy = "connect it to the local network; ip address lists its addresses";
        found.push(Finding::warning("network", seen, remedy));
    } else if !well.is_empty() {
        let shown: Vec<String> = well.iter().map(ToString::to_string).collect();
        let seen = format!("it answers at {}, port {}", shown.join(", "), server.port);
        found.push(Finding::good("network", seen));
    }
    (found, well.first().copied())
}

/// A rejected name is missing in the list of hosts or in the certificate.
async fn names(server: &LocalServer, settings: &Settings) -> Vec<Finding> {
    let (mut well, mut found) = (Vec::new(), Vec::new());
    for name in server_names(&settings.names).into_iter().take(MOST) {
        match server.probe(server.near.ip(), &name).await {
            Ok(()) => well.push(name),
            Err(cause) => found.push(Finding::problem(
                "names",
                format!("it cannot be reached under the name {name}: {cause}"),
                "gatewren cert show; names = [...] in gatewren.toml, then systemctl reload gatewren",
            )),
        }
    }
    if found.is_empty() {
        let seen = format!(
            "the allowed hosts and the certificate include {}",
            well.join(", ")
        );
        found.push(Finding::good("names", seen));
    }
    found
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::*;

    #[test]
    fn a_bridge_without_hardware_is_within_this_host() {
        let scratch = Scratch::new();
        for folder in [
            "docker0/brif/veth1",
            "br-empty/brif",
            "vmbr0/brif/eno1",
            "vmbr0/brif/veth2",
            "eno1/device",
            "veth1",
            "veth2",
        ] {
            fs::create_dir_all(scratch.join(folder)).unwrap();
        }
        let inner = ["docker0", "br-empty", "vmbr0", "eno1", "veth1", "absent"]
            .map(|name| is_inner_bridge(scratch.path(), name));
        assert_eq!(inner, [true, true, false, false, false, false]);
    }
}
