//! Facts about the host: its mounts and their free space, its clock, and which programs own sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use gatewren_base::sys::source::text;
use gatewren_base::sys::{
    DiskSpace, clock_is_synchronised, disk_space, mount_places, socket_programs,
};
use gatewren_wire::operations::HostView;

/// The most file systems to measure and sockets to look up; more are left out.
const MOST: usize = 4096;

/// Returns the mounts of the helper's namespace, the one that the commands it runs are in too.
pub fn view() -> Vec<u8> {
    json(&HostView {
        mountinfo: text("/proc/self/mountinfo").unwrap_or_default(),
        clock_synchronised: clock_is_synchronised(),
    })
}

/// Returns the sizes of the file systems mounted at these places. Other places are left out.
pub fn spaces(places: &[String]) -> Vec<u8> {
    let table = text("/proc/self/mountinfo").unwrap_or_default();
    let mounted: BTreeSet<String> = mount_places(&table).collect();
    let asked = places.iter().take(MOST).filter(|at| mounted.contains(*at));
    let measured = asked.filter_map(|at| Some((at, disk_space(Path::new(at)).ok()?)));
    json(&measured.collect::<BTreeMap<&String, DiskSpace>>())
}

/// Returns the programs that own these sockets.
pub fn programs(sockets: &[u64]) -> Vec<u8> {
    let sockets = sockets.iter().take(MOST).copied().collect();
    json(&socket_programs(Path::new("/proc"), sockets))
}

/// Plain numbers and strings always serialize.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::facts::*;

    #[test]
    fn only_what_is_mounted_is_measured() {
        let places = ["/", "/etc/passwd", "/no/such/place"].map(str::to_owned);
        let sizes: BTreeMap<String, DiskSpace> = serde_json::from_slice(&spaces(&places)).unwrap();
        assert_eq!(sizes.keys().collect::<Vec<_>>(), ["/"]);
    }
}
