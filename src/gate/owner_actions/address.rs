//! The host's address for clients, as far as the settings contain it.

use std::net::SocketAddr;

use gatewren_base::config::Settings;
use gatewren_base::sys::{LockHolder, host_name};

/// Returns name and port for clients: the first configured name, or the address if it listens on only one.
pub fn reached_at(settings: &Settings) -> String {
    // systemd gives the service its port, whatever the settings contain.
    let held = LockHolder::of(&settings.state_dir).and_then(|holder| holder.address);
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
