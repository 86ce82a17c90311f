//! The state document's entry for the host: only facts, no counters that change by themselves.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::backends::{
    DataLocation, Disk, DiskContent, HostFacts, HostListener, Interface, MountedFilesystem,
    Partition, Route, Temperature, Transport,
};

use gatewren_base::config::{Reach, Space};

use super::level::{LevelThresholds, ValueLevel, ValueLevels};

/// The maximum number of items of one kind in the document, and of addresses on one interface. Further items are
/// missing in the document, but not in the tools' output; `left_out` next to the list holds their number.
const MAX_ITEMS: usize = 256;

/// Thresholds for the usage of a file system, in percent.
const FULLNESS: LevelThresholds = LevelThresholds {
    high: 90.0,
    critical: 95.0,
    margin: 3.0,
};

/// How many degrees below its limits a sensor counts as cooled down.
const COOLED_DOWN: f64 = 5.0;

/// Creates `/public/serverInfo`; remembers the last levels of fluctuating values.
#[derive(Debug, Default)]
pub struct HostDocument {
    fullness: ValueLevels,
    warmth: ValueLevels,
}

impl HostDocument {
    /// Returns the document of a host.
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
            ("disks", by_name(host.disks.iter().map(disk))),
            ("mounts", self.mounts(&host.mounts)),
            ("temperatures", self.temperatures(&host.temperatures)),
            ("gatewren", json!(info.gatewren)),
        ] {
            facts.insert(key.to_owned(), value);
        }
        without_nulls(Value::Object(facts))
    }

    /// The mounts, by path.
    fn mounts(&mut self, all: &[MountedFilesystem]) -> Value {
        let measured = all.iter().filter_map(|(_, mount)| mount.as_ref());
        let fullness = self
            .fullness
            .of(measured.map(|mount| (mount.path.as_str(), mount.used_percent, FULLNESS)));
        by_name(all.iter().map(|one| mount(one, fullness)))
    }

    /// The temperatures, by sensor; a sensor without limits is left out, because it would always be normal.
    fn temperatures(&mut self, all: &[Temperature]) -> Value {
        let limited = all.iter().filter_map(|one| {
            let high = one.high_celsius.or(one.critical_celsius)?;
            let critical = one.critical_celsius.unwrap_or(f64::INFINITY);
            let limits = LevelThresholds {
                high,
                critical,
                margin: COOLED_DOWN,
            };
            Some((one.sensor.as_str(), one.celsius, limits))
        });
        let levels = self.warmth.of(limited).iter();
        by_name(levels.map(|(sensor, level)| (sensor.clone(), json!(level))))
    }
}

fn time(host: &HostFacts) -> Value {
    json!({ "zone": host.zone, "ntp_synced": host.ntp_synced })
}

fn network(host: &HostFacts) -> Value {
    let lasting = host.interfaces.iter().filter(|one| one.is_permanent());
    let defaults = host.routes.iter().filter(|route| route.is_default());
    json!({
        "interfaces": by_name(lasting.map(interface)),
        "default_routes": defaults.take(MAX_ITEMS).map(route).collect::<Vec<_>>(),
        "listeners": listeners(&host.listeners),
        "dns": host.resolver,
    })
}

fn interface(one: &Interface) -> (String, Value) {
    let (addresses, left_out) = truncate_list(&one.lasting);
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

/// The open ports by protocol and number, such as `tcp:22`. Ephemeral ports and neighbours in the network come and
/// go by themselves, so only the tools list them. Every agent with access to the host sees this list, so it names
/// no container: ports of containers in the host's network are part of their own entries.
fn listeners(all: &[HostListener]) -> Value {
    let host_alone = Reach::of(&Space {
        containers: Vec::new(),
        host: true,
    });
    let mut ports: BTreeMap<(Transport, u16), Vec<&HostListener>> = BTreeMap::new();
    for one in all
        .iter()
        .filter(|one| one.is_permanent && one.container.is_none())
    {
        ports.entry((one.protocol, one.port)).or_default().push(one);
    }
    by_name(ports.into_iter().map(|((protocol, port), all)| {
        let protocol = match protocol {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        let mut addresses: Vec<String> = all.iter().map(|one| one.address.to_string()).collect();
        addresses.dedup();
        let (addresses, left_out) = truncate_list(&addresses);
        let value = json!({
            "addresses": addresses,
            "unit": all.iter().filter_map(|one| one.unit.as_ref()).find(|unit| host_alone.unit(unit)),
        });
        (format!("{protocol}:{port}"), with_left_out(value, left_out))
    }))
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
        ("partitions", by_name(disk.partitions.iter().map(partition))),
    ] {
        value.insert(key.to_owned(), fact);
    }
    (disk.name.clone(), Value::Object(value))
}

fn partition(part: &Partition) -> (String, Value) {
    let value = content(&part.content, part.size_bytes);
    (part.name.clone(), Value::Object(value))
}

fn content(content: &DiskContent, size_bytes: u64) -> Map<String, Value> {
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

fn mount(
    (point, size): &MountedFilesystem,
    fullness: &BTreeMap<String, ValueLevel>,
) -> (String, Value) {
    // The size of a ZFS data set is derived from the free space of its pool: it changes with every write.
    let size = size.as_ref().filter(|_| point.filesystem != "zfs");
    let value = json!({
        "filesystem": point.filesystem,
        "source": point.source,
        "read_only": point.read_only,
        "network": point.data == DataLocation::Network,
        "total_bytes": size.map(|size| size.total_bytes),
        "fullness": fullness.get(&point.path),
    });
    (point.path.clone(), value)
}

/// The items by name, up to the document's maximum.
fn by_name(all: impl Iterator<Item = (String, Value)>) -> Value {
    let mut all: Vec<_> = all.collect();
    let left_out = all.len().saturating_sub(MAX_ITEMS);
    all.truncate(MAX_ITEMS);
    with_left_out(Value::Object(all.into_iter().collect()), left_out)
}

fn truncate_list(all: &[String]) -> (&[String], usize) {
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

/// Removes unknown values: they are absent from the document.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(key, value)| (key, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(all) => Value::Array(all.into_iter().map(without_nulls).collect()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crate::backends::Host;
    use gatewren_base::sys::Scratch;

    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    /// Facts that do not change, as the kernel of a small server with one `NVMe` disk writes them.
    const LASTING: &[(&str, &str)] = &[
        ("proc/sys/kernel/hostname", "cellar\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-30-amd64\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Intel(R) N100\nflags\t\t: fpu vme\n",
        ),
        ("proc/stat", "cpu  1 2 3 4 5\nbtime 1763760000\n"),
        (
            "proc/self/mountinfo",
            "31 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n",
        ),
        ("sys/class/dmi/id/sys_vendor", "Beelink\n"),
        ("sys/class/dmi/id/product_name", "EQ12\n"),
        ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
        ("sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n"),
        ("sys/class/hwmon/hwmon0/temp1_max", "80000\n"),
        ("sys/class/hwmon/hwmon0/temp1_crit", "100000\n"),
        ("sys/class/net/enp1s0/ifindex", "2\n"),
        ("sys/class/net/enp1s0/flags", "0x1003\n"),
        ("sys/class/net/enp1s0/operstate", "up\n"),
        ("sys/block/nvme0n1/size", "1000215216\n"),
        ("sys/block/nvme0n1/nvme0n1p2/partition", "2\n"),
        ("sys/block/nvme0n1/nvme0n1p2/size", "999000000\n"),
        ("sys/block/nvme0n1/nvme0n1p2/dev", "259:2\n"),
        ("etc/resolv.conf", "nameserver 192.168.1.1\n"),
        (
            "proc/net/tcp6",
            "0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A \
             00000000:00000000 00:00000000 00000000 0 0 1002 1\n",
        ),
    ];

    /// Values that change all the time.
    fn moving(root: &Path, n: u32) {
        let number = |text: &str| text.replace('#', &n.to_string());
        let files = [
            ("proc/uptime", "10#.5 20#.5\n"),
            ("proc/loadavg", "0.#1 0.#2 0.#3 1/97 5#\n"),
            (
                "proc/meminfo",
                "MemTotal: 16000000 kB\nMemAvailable: 100# kB\nSwapTotal: 4 kB\nSwapFree: # kB\n",
            ),
            ("proc/net/dev", "enp1s0: 1# 2 3 4 5 6 7 8 9# 10 11 12\n"),
            (
                "proc/diskstats",
                "259 0 nvme0n1 1 2 3# 4 5 6 7# 8 9 10# 11\n",
            ),
            (
                "proc/pressure/cpu",
                "some avg10=0.# avg60=0.# avg300=0.# total=#\n",
            ),
            (
                "proc/net/tcp",
                "0: 00000000:0016 00000000:0000 0A 00000000:0000000# 00:00000000 00000000 0 0 1001 1\n\
                 1: 0100007F:C00# 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 200# 1\n\
                 2: 0100007F:0016 0100007F:C00# 01 00000000:00000000 00:00000000 00000000 0 0 300# 1\n",
            ),
            ("sys/class/net/enp1s0/statistics/rx_bytes", "#\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "4#500\n"),
            (
                "proc/net/ipv6_route",
                "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
              fe800000000000000000000000000001 00000400 0000000# 0000000# 00450003 enp1s0\n",
            ),
        ];
        write(
            root,
            &files.map(|(path, text)| (path, &*number(text).leak())),
        );
    }

    #[test]
    fn what_moves_all_the_time_does_not_move_the_document() {
        let scratch = Scratch::new();
        write(scratch.path(), LASTING);
        moving(scratch.path(), 1);
        let host = Host::recorded(scratch.path());
        let mut document = HostDocument::default();
        let mut first = document.of(&host.facts());
        assert_eq!(first["hostname"], "cellar");
        assert_eq!(first["boot_time"], "2025-11-21T21:20:00.000Z");
        assert_eq!(first["virtualization"], Value::Null);
        assert_eq!(
            first["hardware"],
            json!({ "vendor": "Beelink", "product": "EQ12" })
        );
        assert_eq!(
            first["temperatures"],
            json!({ "coretemp Package id 0": "normal" })
        );
        let partition = &first["disks"]["nvme0n1"]["partitions"]["nvme0n1p2"];
        assert_eq!(
            (&partition["filesystem"], &partition["mounted_at"]),
            (&json!("ext4"), &json!("/"))
        );
        assert_eq!(first["network"]["default_routes"][0]["gateway"], "fe80::1");
        assert_eq!(first["network"]["interfaces"]["enp1s0"]["state"], "up");
        let ssh = json!({ "addresses": ["0.0.0.0", "::"] });
        assert_eq!(first["network"]["listeners"], json!({ "tcp:22": ssh }));
        for n in 2..10 {
            moving(scratch.path(), n);
            let mut next = document.of(&host.facts());
            for document in [&mut first, &mut next] {
                // The root file system and the clock are this machine's, and other processes fill the disk during
                // the test.
                document["mounts"]["/"]["fullness"].take();
                document["time"].take();
            }
            assert_eq!(next, first, "{n}");
        }
    }

    #[test]
    fn ports_that_last_are_told_and_no_container_is_named() {
        let port = |port, address: &str, unit: Option<&str>| HostListener {
            protocol: Transport::Tcp,
            port,
            address: address.parse().unwrap(),
            user: "root".to_owned(),
            unit: unit.map(str::to_owned),
            container: None,
            program: None,
            is_permanent: true,
        };
        let mut all = vec![
            port(22, "0.0.0.0", Some("ssh.service")),
            port(22, "::", Some("ssh.service")),
            port(53, "10.0.3.1", Some("lxc@db.service")),
            port(80, "0.0.0.0", None),
            port(40_000, "0.0.0.0", None),
        ];
        all[3].container = Some("db".to_owned());
        all[4].is_permanent = false;
        let expected = json!({
            "tcp:22": { "addresses": ["0.0.0.0", "::"], "unit": "ssh.service" },
            "tcp:53": { "addresses": ["10.0.3.1"] },
        });
        assert_eq!(without_nulls(listeners(&all)), expected);
    }

    #[test]
    fn a_part_that_is_too_warm_is_told_once() {
        let scratch = Scratch::new();
        write(scratch.path(), LASTING);
        let host = Host::recorded(scratch.path());
        let mut document = HostDocument::default();
        for (millidegrees, level) in [
            ("79000", "normal"),
            ("81000", "high"),
            ("79000", "high"),
            ("70000", "normal"),
        ] {
            write(
                scratch.path(),
                &[("sys/class/hwmon/hwmon0/temp1_input", millidegrees)],
            );
            let json = document.of(&host.facts())["temperatures"].take();
            assert_eq!(
                json,
                json!({ "coretemp Package id 0": level }),
                "{millidegrees}"
            );
        }
    }

    #[test]
    fn too_many_are_left_out_and_counted() {
        let scratch = Scratch::new();
        for n in 0..MAX_ITEMS + 10 {
            write(
                scratch.path(),
                &[(&format!("sys/class/net/tun{n:04}/ifindex"), "1\n")],
            );
        }
        let document = HostDocument::default().of(&Host::recorded(scratch.path()).facts());
        let interfaces = document["network"]["interfaces"].as_object().unwrap();
        assert_eq!(interfaces.len(), MAX_ITEMS + 1);
        assert_eq!(interfaces["left_out"], 10);
    }
}
