//! The names and addresses of this host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gatewren_base::sys::{host_name, interface_addresses};

/// The names: those of the settings, or else the system's, always with `localhost`.
pub fn server_names(configured: &[String]) -> Vec<String> {
    let mut names = configured.to_vec();
    if names.is_empty()
        && let Some(host) = host_name()
    {
        let short = host.split('.').next().unwrap_or_default().to_owned();
        names.extend([format!("{short}.local"), short, host]);
    }
    names.push("localhost".to_owned());
    for name in &mut names {
        *name = name.to_ascii_lowercase();
    }
    names.retain(|name| !name.is_empty() && name != ".local");
    names.sort();
    names.dedup();
    names
}

/// The addresses of the interfaces, always with loopback.
pub fn server_addresses() -> Vec<IpAddr> {
    let found = interface_addresses().unwrap_or_else(|cause| {
        tracing::warn!(%cause, "cannot list the network interfaces");
        Vec::new()
    });
    let mut addresses: Vec<IpAddr> = found.into_iter().map(|found| found.address).collect();
    addresses.extend([
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ]);
    addresses.sort();
    addresses.dedup();
    addresses
}
