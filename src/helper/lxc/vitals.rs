//! Reads the state of running containers from the kernel, without starting a program or touching anything in them.

use gatewren_base::sys::own_pid;
use gatewren_base::sys::source::text;
use gatewren_wire::operations::{ContainerRef, ContainerUsage, Vitals};

use super::network::{NetworkNamespace, same_network};
use super::usage::usage;
use crate::context::containers::{CommandEntry, RunningContainer};

/// Returns a container's state without its usage; `None` if it has already ended.
pub fn vitals(container: ContainerRef, running: &RunningContainer) -> Option<Vitals> {
    let init = running.init;
    let network = NetworkNamespace::of(init);
    let vitals = Vitals {
        container,
        init_pid: init.try_into().ok()?,
        frozen: running.is_frozen(),
        addresses: network.addresses(),
        listeners: network.listeners(),
        shares_host_network: same_network(init, own_pid()),
        usage: ContainerUsage::default(),
    };
    // The process id may have been reused during the reads.
    running.still_runs().then_some(vitals)
}

/// Returns a container's state with its usage.
pub fn vitals_and_usage(container: ContainerRef, running: &RunningContainer) -> Option<Vitals> {
    let is_inner = matches!(running.entry, CommandEntry::OciInLxc { .. });
    // These groups would lead to the container of LXC that it runs in.
    let groups = text(format!("/proc/{}/cgroup", running.init)).filter(|_| !is_inner);
    let groups = groups.unwrap_or_default();
    let traffic = NetworkNamespace::of(running.init).traffic();
    let usage = ContainerUsage {
        network_received_bytes: traffic.map(|(received, _)| received),
        network_sent_bytes: traffic.map(|(_, sent)| sent),
        ..usage(&groups, running.payload.as_deref())
    };
    let vitals = vitals(container, running)?;
    Some(Vitals { usage, ..vitals })
}

/// Serializes each as one line.
pub fn lines(all: impl IntoIterator<Item = Vitals>) -> Vec<u8> {
    let mut text = Vec::new();
    for vitals in all {
        // Plain numbers and strings always serialize.
        if serde_json::to_writer(&mut text, &vitals).is_ok() {
            text.push(b'\n');
        }
    }
    text
}
