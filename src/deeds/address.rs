//! Where others reach this box, as far as its settings say.

use std::net::SocketAddr;

use crate::config::Settings;
use crate::sys::{Holder, host_name};

/// Where others reach the box, with the port: by its first name, or by the one address on which it listens.
pub fn reached_at(settings: &Settings) -> String {
    // A service has its port from systemd, whatever the settings say.
    let held = Holder::of(&settings.state_dir).and_then(|holder| holder.address);
    let first = held.as_ref().or(settings.listen.first());
    let address = first.filter(|address| !address.ip().is_unspecified());
    let name = settings.names.first().cloned();
    match (name, address) {
        (None, Some(address)) => address.to_string(),
        (name, _) => {
            let name = name.or_else(host_name);
            let name = name.unwrap_or_else(|| "localhost".to_owned());
            let port = first.map_or(8443, SocketAddr::port);
            format!("{name}:{port}")
        }
    }
}
