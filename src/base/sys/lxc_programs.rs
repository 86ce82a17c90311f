//! Finds which containers of LXC run a program, in the kernel's process table alone: nothing in a container is opened.

use std::collections::BTreeSet;

use super::proc_dir::{process_numbers, read_proc};
use super::process_table::process_name;

/// The most bytes of `/proc/PID/cgroup` that are read.
const MAX_CGROUP_BYTES: u64 = 16 * 1024;

/// The beginning of the name of a container's cgroup.
const PAYLOAD: &str = "lxc.payload.";

/// Returns the names of the running containers of LXC that have a process with this name, as their cgroups have them. LXC
/// appends a number to the name of a cgroup that already exists.
pub fn lxc_containers_that_run(program: &str) -> BTreeSet<String> {
    let running = process_numbers().filter(|pid| process_name(*pid) == program);
    let groups =
        running.filter_map(|pid| read_proc(&format!("{pid}/cgroup"), MAX_CGROUP_BYTES).ok());
    groups
        .filter_map(|groups| container_of(&String::from_utf8_lossy(&groups)))
        .collect()
}

/// Returns the container of a process with this `/proc/PID/cgroup`. Proxmox VE uses `lxc` and the container's number.
fn container_of(groups: &str) -> Option<String> {
    let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.into_iter().find_map(|path| {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        if path.starts_with("/lxc/") {
            let name = parts.nth(1)?;
            return Some(name.strip_prefix(PAYLOAD).unwrap_or(name).to_owned());
        }
        parts.find_map(|part| part.strip_prefix(PAYLOAD).map(str::to_owned))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_container_is_read_from_the_cgroup() {
        for (groups, expected) in [
            ("0::/lxc.payload.media/docker/ab", Some("media")),
            ("0::/init/lxc.payload.media-1/init.scope", Some("media-1")),
            (
                "3:pids:/x\n0::/lxc/101/ns/system.slice/docker.service",
                Some("101"),
            ),
            ("0::/lxc/lxc.payload.media", Some("media")),
            ("0::/system.slice/docker.service", None),
            ("0::/", None),
            ("", None),
        ] {
            assert_eq!(container_of(groups).as_deref(), expected, "{groups}");
        }
    }
}
