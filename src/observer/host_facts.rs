//! The document's view of the host: facts alone, no counter that moves by itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::backends::{
    Content, Data, Disk, HostFacts, Interface, Mounted, Partition, Route, Temperature,
};

use super::level::{Level, Levels, Limits};

/// The most of one kind in the document, and of addresses on one interface. What is beyond it is left out of
/// the document, not of what the tools say, and `left_out` beside the list says how many that are.
const MAX_ITEMS: usize = 256;

/// How full a file system may be, in percent.
const FULLNESS: Limits = Limits {
    high: 85.0,
    critical: 95.0,
    margin: 3.0,
};

/// How many degrees below its limits a sensor must be to have cooled down.
const COOLED_DOWN: f64 = 5.0;

/// Makes `/public/serverInfo`; remembers what it said last of things that move.
#[derive(Debug, Default)]
pub struct HostDocument {
    fullness: Levels,
    warmth: Levels,
}

impl HostDocument {
    /// The document of a host that was looked at.
    pub fn of(&mut self, host: &HostFacts) -> Value {
        let info = &host.info;
        let mut facts = Map::new();
        for (key, value) in [
            ("hostname", json!(info.hostname)),
            ("os", json!(info.os)),
            ("kernel", json!(info.kernel)),
            ("architecture", json!(info.architecture)),
            ("virtualization", json!(info.virtualization)),
            ("hardware", json!(info.hardware)),
            ("cpu", json!(info.cpu)),
            ("memory_bytes", json!(info.memory_bytes)),
            ("swap_bytes", json!(info.swap_bytes)),
            ("gpus", json!(info.gpus)),
            ("boot_time", json!(info.boot_time)),
            ("reboot_required", json!(info.reboot_required)),
            ("reboot_packages", json!(info.reboot_packages)),
            ("time", time(host)),
            ("network", network(host)),
            ("disks", named(host.disks.iter().map(disk))),
            ("mounts", self.mounts(&host.mounts)),
            ("temperatures", self.temperatures(&host.temperatures)),
            ("gatewren", json!(info.gatewren)),
        ] {
            facts.insert(key.to_owned(), value);
        }
        known(Value::Object(facts))
    }

    /// By path.
    fn mounts(&mut self, all: &[Mounted]) -> Value {
        let measured = all.iter().filter_map(|(_, mount)| mount.as_ref());
        let fullness = self
            .fullness
            .of(measured.map(|mount| (mount.path.as_str(), mount.used_percent, FULLNESS)));
        named(all.iter().map(|one| mount(one, fullness)))
    }

    /// By sensor; one without limits would never be anything but normal.
    fn temperatures(&mut self, all: &[Temperature]) -> Value {
        let limited = all.iter().filter_map(|one| {
            let high = one.high_celsius.or(one.critical_celsius)?;
            let critical = one.critical_celsius.unwrap_or(f64::INFINITY);
            let limits = Limits {
                high,
                critical,
                margin: COOLED_DOWN,
            };
            Some((one.sensor.as_str(), one.celsius, limits))
        });
        let levels = self.warmth.of(limited).iter();
        named(levels.map(|(sensor, level)| (sensor.clone(), json!(level))))
    }
}

fn time(host: &HostFacts) -> Value {
    json!({ "zone": host.zone, "ntp_synced": host.ntp_synced })
}

fn network(host: &HostFacts) -> Value {
    let lasting = host.interfaces.iter().filter(|one| one.is_lasting());
    let defaults = host.routes.iter().filter(|route| route.is_default());
    json!({
        "interfaces": named(lasting.map(interface)),
        "default_routes": defaults.take(MAX_ITEMS).map(route).collect::<Vec<_>>(),
        "dns": host.resolver,
    })
}

fn interface(one: &Interface) -> (String, Value) {
    let (addresses, left_out) = listed(&one.lasting);
    let value = json!({
        "kind": one.kind,
        "state": one.state,
        "speed_mbit": one.speed_mbit,
        "part_of": one.part_of,
        "addresses": addresses,
    });
    (one.name.clone(), with_left_out(value, left_out))
}

fn route(route: &Route) -> Value {
    json!({ "gateway": route.gateway, "interface": route.interface, "metric": route.metric })
}

fn disk(disk: &Disk) -> (String, Value) {
    let mut value = content(&disk.content, disk.size_bytes);
    for (key, fact) in [
        ("kind", json!(disk.kind)),
        ("model", json!(disk.model)),
        ("removable", json!(disk.removable)),
        ("read_only", json!(disk.read_only)),
        ("usb", json!(disk.usb)),
        ("volume", json!(disk.volume)),
        ("made_of", json!(disk.made_of)),
        ("partitions", named(disk.partitions.iter().map(partition))),
    ] {
        value.insert(key.to_owned(), fact);
    }
    (disk.name.clone(), Value::Object(value))
}

fn partition(part: &Partition) -> (String, Value) {
    let value = content(&part.content, part.size_bytes);
    (part.name.clone(), Value::Object(value))
}

fn content(content: &Content, size_bytes: u64) -> Map<String, Value> {
    let facts = [
        ("size_bytes", json!(size_bytes)),
        ("filesystem", json!(content.filesystem)),
        ("label", json!(content.label)),
        ("mounted_at", json!(content.mounted_at)),
    ];
    facts
        .into_iter()
        .map(|(key, fact)| (key.to_owned(), fact))
        .collect()
}

fn mount((point, size): &Mounted, fullness: &BTreeMap<String, Level>) -> (String, Value) {
    // The size of a data set of ZFS is what is free in its pool: it moves with every write.
    let size = size.as_ref().filter(|_| point.filesystem != "zfs");
    let value = json!({
        "filesystem": point.filesystem,
        "source": point.source,
        "read_only": point.read_only,
        "network": point.data == Data::Network,
        "total_bytes": size.map(|size| size.total_bytes),
        "fullness": fullness.get(&point.path),
    });
    (point.path.clone(), value)
}

/// As many as the document may have, by name.
fn named(all: impl Iterator<Item = (String, Value)>) -> Value {
    let mut all: Vec<_> = all.collect();
    let left_out = all.len().saturating_sub(MAX_ITEMS);
    all.truncate(MAX_ITEMS);
    with_left_out(Value::Object(all.into_iter().collect()), left_out)
}

fn listed(all: &[String]) -> (&[String], usize) {
    let kept = all.get(..MAX_ITEMS).unwrap_or(all);
    (kept, all.len() - kept.len())
}

fn with_left_out(mut value: Value, left_out: usize) -> Value {
    if let Value::Object(object) = &mut value
        && left_out > 0
    {
        object.insert("left_out".to_owned(), json!(left_out));
    }
    value
}

/// Without what is not known: it is absent from the document.
fn known(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, known(value))).collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(known).collect()),
        value => value,
    }
}
