//! Reads what the kernel shows of running containers: no program is started, and nothing in them is touched.

use crate::exec::{ContainerName, Usage, Vitals};
use crate::sys::own_pid;
use crate::sys::source::text;

use super::{
    containers::Running,
    network::{Network, same_network},
    usage::usage,
};

/// What the kernel shows of one; nothing if it ended meanwhile.
pub fn vitals(container: ContainerName, running: &Running) -> Option<Vitals> {
    let init = running.init;
    let network = Network::of(init);
    let groups = text(format!("/proc/{init}/cgroup")).unwrap_or_default();
    let traffic = network.traffic();
    let vitals = Vitals {
        container,
        init_pid: init.try_into().ok()?,
        frozen: running.is_frozen(),
        addresses: network.addresses(),
        listeners: network.listeners(),
        shares_host_network: same_network(init, own_pid()),
        usage: Usage {
            network_received_bytes: traffic.map(|(received, _)| received),
            network_sent_bytes: traffic.map(|(_, sent)| sent),
            ..usage(&groups)
        },
    };
    // Its number may have become another's while it was read.
    running.still_runs().then_some(vitals)
}

/// A line each.
pub fn lines(all: impl IntoIterator<Item = Vitals>) -> Vec<u8> {
    let mut text = Vec::new();
    for vitals in all {
        // Plain numbers and words: there is nothing that JSON cannot hold.
        if serde_json::to_writer(&mut text, &vitals).is_ok() {
            text.push(b'\n');
        }
    }
    text
}
