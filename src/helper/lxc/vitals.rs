//! Reads the state of running containers from the kernel, without starting a program or touching anything in them.

use std::path::Path;

use gatewren_base::sys::source::text;
use gatewren_base::sys::{DiskSpace, disk_space, own_pid};
use gatewren_wire::operations::{
    ContainerDelays, ContainerRef, ContainerUsage, MeasuredContainer, Vitals,
};
use serde::Serialize;

use super::delays::delays;
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
        delays: ContainerDelays::default(),
        root_space: None,
    };
    // The process id may have been reused during the reads.
    running.still_runs().then_some(vitals)
}

/// Returns a container's state with its usage.
pub fn vitals_and_usage(container: ContainerRef, running: &RunningContainer) -> Option<Vitals> {
    let root_space = root_space(&container, running);
    let measured = measure(container.clone(), running)?;
    let vitals = vitals(container, running)?;
    Some(Vitals {
        usage: measured.usage,
        delays: measured.delays,
        root_space,
        ..vitals
    })
}

/// Returns a container's counters; `None` if it has already ended. Its ports and addresses are not read.
pub fn measure(container: ContainerRef, running: &RunningContainer) -> Option<MeasuredContainer> {
    let is_inner = matches!(running.entry, CommandEntry::OciInLxc { .. });
    // These groups would lead to the container of LXC that it runs in.
    let groups = text(format!("/proc/{}/cgroup", running.init)).filter(|_| !is_inner);
    let groups = groups.unwrap_or_default();
    let traffic = NetworkNamespace::of(running.init).traffic();
    let measured = MeasuredContainer {
        container,
        init_pid: running.init.try_into().ok()?,
        usage: ContainerUsage {
            network_received_bytes: traffic.map(|(received, _)| received),
            network_sent_bytes: traffic.map(|(_, sent)| sent),
            ..usage(&groups, running.payload.as_deref())
        },
        delays: delays(&groups, running.payload.as_deref()),
    };
    running.still_runs().then_some(measured)
}

/// Returns the sizes of the file system of its root directory. A user who decides what is mounted there could make
/// the helper wait for a file system of theirs, so theirs is not read.
fn root_space(container: &ContainerRef, running: &RunningContainer) -> Option<DiskSpace> {
    running.check_files(container).ok()?;
    disk_space(Path::new(&format!("/proc/{}/root/", running.init))).ok()
}

/// Serializes each as one line.
pub fn lines<T: Serialize>(all: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut text = Vec::new();
    for one in all {
        // Plain numbers and strings always serialize.
        if serde_json::to_writer(&mut text, &one).is_ok() {
            text.push(b'\n');
        }
    }
    text
}
