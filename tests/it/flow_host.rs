//! The host in the state document: changes on a separate machine are seen through the kernel's events.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::machine::skip;
use crate::support::namespace::NetworkNamespace;
use crate::support::pipe::Pipe;

const HOST: &str = "gatewren:///public/serverInfo";

/// The interval between looks at the host without an event.
const SLOW_LOOK: Duration = Duration::from_secs(30);

/// A client that subscribes to the host's state, on a separate machine.
struct Watching {
    machine: NetworkNamespace,
    pipe: Pipe,
    id: i64,
    /// The time until each change was seen.
    took: Vec<Duration>,
}

impl Watching {
    fn new() -> Option<Self> {
        let machine = NetworkNamespace::new()?;
        let containers = machine.home.join("containers");
        let words = ["try", "--stdio", "--policy", "observe", "--lxcpath"];
        let pipe = Pipe::start_apart(
            &machine,
            &[&words[..], &[containers.to_str().unwrap()]].concat(),
        );
        let (id, took) = (0, Vec::new());
        let mut watching = Self {
            machine,
            pipe,
            id,
            took,
        };
        watching.pipe.open("2025-11-25", json!({}));
        watching.ask("resources/subscribe", json!({ "uri": HOST }));
        watching.wait_for("the first look", |host| host["kernel"].is_string());
        Some(watching)
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        self.pipe.ask(self.id, method, params);
        self.pipe.answer(self.id)["result"].clone()
    }

    fn call(&mut self, tool: &str) -> Value {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": {} }));
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Returns the host from the document, and its revision.
    fn host(&mut self) -> (Value, u64) {
        let read = self.ask("resources/read", json!({ "uri": HOST }));
        let contents = &read["contents"][0];
        let Some(text) = contents["text"].as_str() else {
            return (Value::Null, 0);
        };
        let revision = contents["_meta"]["gatewren/revision"].as_u64();
        (serde_json::from_str(text).unwrap(), revision.unwrap())
    }

    /// Reads again after each update, until the condition holds.
    fn wait_for(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> u64 {
        const UPDATED: &str = "notifications/resources/updated";
        let begun = Instant::now();
        loop {
            let (host, revision) = self.host();
            if holds(&host) {
                self.took.push(begun.elapsed());
                return revision;
            }
            // An update that came before the response may be newer than the response.
            let passed = self.pipe.passed();
            if !passed.iter().any(|message| message["method"] == UPDATED) {
                self.pipe.told(UPDATED);
            }
            assert!(begun.elapsed() < 4 * SLOW_LOOK, "{what}: {host}");
        }
    }

    /// Makes a change, and waits until it is seen.
    fn see(&mut self, lines: &str, holds: impl Fn(&Value) -> bool) {
        self.machine.run(lines);
        self.wait_for(lines, holds);
    }

    /// Asserts that events were used: without them each change would wait for the next slow look.
    fn saw_by_events(&mut self) {
        // The first read is not a change.
        let took = self.took.split_off(1);
        let slowly = SLOW_LOOK * u32::try_from(took.len()).unwrap();
        let all: Duration = took.iter().sum();
        assert!(all < slowly / 2, "{took:?}");
    }
}

#[test]
fn the_network_of_the_host_is_seen_to_change() {
    let Some(mut watching) = Watching::new() else {
        return;
    };
    let made = "ip link add seen0 type veth peer name seen1; ip link set seen1 up; \
                ip link set seen0 up; ip address add 192.0.2.7/24 dev seen0";
    watching.see(made, |host| {
        let interface = &host["network"]["interfaces"]["seen0"];
        interface["state"] == "up" && interface["addresses"] == json!(["192.0.2.7/24"])
    });
    watching.see("ip route add default via 192.0.2.1 metric 7", |host| {
        let expected = json!([{ "gateway": "192.0.2.1", "interface": "seen0", "metric": 7 }]);
        host["network"]["default_routes"] == expected
    });

    let interfaces = watching.call("network_interfaces")["interfaces"].take();
    let names: Vec<_> = interfaces
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["lo", "seen0", "seen1"]);
    let seen = &interfaces[1];
    assert_eq!(
        (&seen["kind"], &seen["state"]),
        (&json!("virtual"), &json!("up"))
    );
    assert!(
        seen["traffic"]["rx_bytes"].is_u64() && seen["mtu"] == 1500,
        "{seen}"
    );
    let routes = watching.call("network_routes")["routes"].take();
    assert_eq!(routes[0]["destination"], "default");
    assert_eq!(routes[1]["destination"], "192.0.2.0/24");
    let info = watching.call("server_info");
    let mut address = json!({ "interface": "seen0", "address": "192.0.2.7", "prefix": 24 });
    assert_eq!(info["addresses"], json!([address]));
    let reached = watching.call("network_addresses");
    assert_eq!(reached["hostname"], info["hostname"]);
    // A network for documents has no route from elsewhere.
    address["reach"] = json!("private");
    assert_eq!(reached["addresses"], json!([address]));
    let made = "ip neighbor add 192.0.2.9 lladdr 02:00:00:00:00:09 nud permanent dev seen0";
    watching.machine.run(made);
    let neighbor = json!({
        "interface": "seen0", "address": "192.0.2.9", "mac": "02:00:00:00:00:09", "state": "fixed",
        "router": false,
    });
    let neighbors = watching.call("network_neighbors");
    let neighbors = neighbors["neighbors"].as_array().unwrap();
    assert!(neighbors.contains(&neighbor), "{neighbors:?}");

    watching.see("ip link set seen1 down", |host| {
        host["network"]["interfaces"]["seen0"]["state"] == "no_carrier"
    });
    watching.see("ip link del seen0", |host| {
        let network = &host["network"];
        network["interfaces"] == json!({}) && network["default_routes"] == json!([])
    });
    watching.saw_by_events();
}

/// Opens a port of each kind until standard input closes.
const OPEN_PORTS: &str = "
import socket, sys
stream, datagrams = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
stream.bind(('127.0.0.1', 2222))
stream.listen()
datagrams.bind(('127.0.0.1', 5353))
chosen = socket.socket()
chosen.bind(('127.0.0.1', 0))
chosen.listen()
print(chosen.getsockname()[1], flush=True)
sys.stdin.read()
";

#[test]
fn open_ports_are_told_with_who_opened_them() {
    let Some(mut watching) = Watching::new() else {
        return;
    };
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no python3 to open ports");
    }
    let mut opener = watching.machine.inside("python3");
    opener.args(["-c", OPEN_PORTS]);
    let mut opener = opener
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut chosen = String::new();
    let mut said = BufReader::new(opener.stdout.take().unwrap());
    said.read_line(&mut chosen).unwrap();
    let listed = watching.call("network_listeners")["listeners"].take();
    let ports: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["protocol"].as_str().unwrap(),
                one["port"].as_u64().unwrap(),
            )
        })
        .collect();
    let chosen = chosen.trim().parse().unwrap();
    assert_eq!(ports, [("tcp", 2222), ("tcp", chosen), ("udp", 5353)]);
    let first = &listed[0];
    assert_eq!(
        (&first["address"], &first["user"]),
        (&json!("127.0.0.1"), &json!("root"))
    );
    assert!(
        first["program"].as_str().unwrap().starts_with("python3"),
        "{first}"
    );

    // Ports have no events, but a change of the network triggers a look.
    let keys = |host: &Value| {
        let listeners = host["network"]["listeners"].as_object().unwrap();
        listeners.keys().cloned().collect::<Vec<_>>()
    };
    watching.see("ip address add 192.0.2.3/32 dev lo", |host| {
        keys(host) == ["tcp:2222", "udp:5353"]
    });
    drop(opener.stdin.take());
    opener.wait().unwrap();
    watching.see("ip address add 192.0.2.4/32 dev lo", |host| {
        keys(host).is_empty()
    });
}

#[test]
fn names_zone_and_a_waiting_reboot_are_seen_to_change() {
    let Some(mut watching) = Watching::new() else {
        return;
    };
    let dns = "rm -f /etc/resolv.conf; echo nameserver 192.0.2.53 > /etc/resolv.conf";
    watching.see(dns, |host| {
        host["network"]["dns"]["servers"] == json!(["192.0.2.53"])
    });
    watching.see("hostname renamed", |host| host["hostname"] == "renamed");
    let zone = "ln -sfn ../usr/share/zoneinfo/Europe/Vienna /etc/localtime";
    watching.see(zone, |host| host["time"]["zone"] == "Europe/Vienna");
    watching.see(
        "echo libc6 > /run/reboot-required.pkgs; : > /run/reboot-required",
        |host| host["reboot_required"] == true && host["reboot_packages"] == json!(["libc6"]),
    );
    let info = watching.call("server_info");
    assert_eq!(
        (&info["hostname"], &info["reboot_required"]),
        (&json!("renamed"), &json!(true))
    );
    let time = watching.call("server_time");
    assert_eq!(time["zone"], "Europe/Vienna");
    assert!(
        time["uptime_s"].is_u64() && time["gatewren_uptime_s"].is_u64(),
        "{time}"
    );
    watching.see("rm /run/reboot-required*", |host| {
        host["reboot_required"] == false
    });
    watching.saw_by_events();
}

#[test]
fn file_systems_are_seen_to_come_and_go() {
    let Some(mut watching) = Watching::new() else {
        return;
    };
    let place = watching.machine.home.join("place");
    let place = place.to_str().unwrap().to_owned();
    let mounted = |host: &Value| host["mounts"][&place].clone();
    watching.see(
        &format!("mkdir {place}; mount -t tmpfs -o size=1m seen {place}"),
        |host| {
            let mount = mounted(host);
            mount["filesystem"] == "tmpfs" && mount["total_bytes"] == 1 << 20
        },
    );
    watching.see(
        &format!("head -c 950k /dev/zero > {place}/x; mount -o remount,ro {place}"),
        |host| {
            let mount = mounted(host);
            mount["read_only"] == true && mount["fullness"] == "high"
        },
    );
    let metrics = watching.call("server_metrics");
    assert!(metrics["memory"]["total_bytes"].is_u64(), "{metrics}");
    watching.see(&format!("umount {place}"), |host| mounted(host).is_null());
    watching.saw_by_events();
}

#[test]
fn disks_are_seen_to_come_and_go() {
    let Some(mut watching) = Watching::new() else {
        return;
    };
    let place = watching.machine.home.join("place");
    let place = place.to_str().unwrap().to_owned();
    let mounted = |host: &Value| host["mounts"][&place].clone();
    let file = watching.machine.home.join("disk");
    let file = file.to_str().unwrap().to_owned();
    let attach =
        format!("truncate -s 16M {file}; mkfs.ext4 -q -L seen {file}; losetup -f --show {file}");
    let attached = watching
        .machine
        .inside("sh")
        .args(["-ec", &attach])
        .output()
        .unwrap();
    if !attached.status.success() {
        return skip("no loop devices, or no mkfs.ext4");
    }
    let device = String::from_utf8(attached.stdout)
        .unwrap()
        .trim()
        .to_owned();
    let name = device.strip_prefix("/dev/").unwrap().to_owned();
    // Other processes may have loop devices too, but not of this file.
    watching.wait_for("a disk", |host| {
        let disk = &host["disks"][&name];
        disk["kind"] == "loop" && disk["volume"] == file && disk["size_bytes"] == 16 << 20
    });
    // Detached with its last mount, even if the test fails.
    let mount = format!("mkdir {place}; mount {device} {place}; losetup -d {device}");
    watching.see(&mount, |host| {
        mounted(host)["source"] == device && host["disks"][&name]["mounted_at"] == place
    });
    let list = watching.call("disk_list");
    let disks = list["disks"].as_array().unwrap();
    let disk = disks.iter().find(|disk| disk["name"] == name).unwrap();
    assert_eq!(
        (&disk["filesystem"], &disk["mounted_at"]),
        (&json!("ext4"), &json!(place))
    );
    assert!(disk["space"]["available_bytes"].is_u64(), "{disk}");
    let filesystems = list["filesystems"].as_array().unwrap();
    assert!(
        filesystems
            .iter()
            .any(|one| one["path"] == place && one["total_bytes"].is_u64())
    );

    watching.see(&format!("umount {place}"), |host| {
        mounted(host).is_null() && host["disks"][&name]["volume"] != file
    });
    watching.saw_by_events();
}

#[test]
fn a_storm_of_addresses_makes_few_revisions() {
    const ADDRESSES: u64 = 1000;
    let Some(mut watching) = Watching::new() else {
        return;
    };
    let begun = Instant::now();
    let (_, before) = watching.host();
    let storm = format!(
        "for n in $(seq {ADDRESSES}); do echo address add 10.0.$((n / 256)).$((n % 256))/32 dev lo; \
         done | ip -batch -"
    );
    watching.machine.run(&storm);
    let all_seen = |host: &Value| {
        let addresses = &host["network"]["interfaces"]["lo"];
        let kept = addresses["addresses"].as_array().map_or(0, Vec::len);
        let left_out = addresses["left_out"].as_u64().unwrap_or(0);
        kept <= 256 && kept as u64 + left_out == ADDRESSES
    };
    let after = watching.wait_for("all addresses", all_seen);
    // A burst of looks, then one in eight seconds, the slow looks, and other changes on the machine.
    let slow = begun.elapsed().as_secs() / 8 + begun.elapsed().as_secs() / 30;
    assert!(after - before <= 8 + slow + 4, "{before}..{after}");
}
