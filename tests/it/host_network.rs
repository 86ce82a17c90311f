//! The network around the host and the use of its disks, on a separate machine.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;

use nix::sched::{CloneFlags, setns};
use serde_json::{Value, json};

use crate::support::machine::skip;
use crate::support::namespace::NetworkNamespace;
use crate::support::pipe::Pipe;

/// gatewren on a separate machine, and a session with it.
struct Box {
    machine: NetworkNamespace,
    pipe: Pipe,
    id: i64,
}

impl Box {
    fn new() -> Option<Self> {
        let machine = NetworkNamespace::new()?;
        let containers = machine.home.join("containers");
        let words = ["try", "--stdio", "--policy", "operate", "--lxcpath"];
        let words = [&words[..], &[containers.to_str().unwrap()]].concat();
        let mut pipe = Pipe::start_apart(&machine, &words);
        pipe.open("2025-11-25", json!({}));
        Some(Self {
            machine,
            pipe,
            id: 0,
        })
    }

    fn result(&mut self, tool: &str, arguments: &Value) -> Value {
        self.id += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        self.pipe.ask(self.id, "tools/call", params);
        self.pipe.answer(self.id)["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.result(tool, arguments);
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    fn failure(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Runs a function in the machine's network. Its sockets stay there, wherever they are used.
    fn within<T: Send + 'static>(&self, make: impl FnOnce() -> T + Send + 'static) -> T {
        let network = self.machine.network();
        let thread = std::thread::spawn(move || {
            setns(network, CloneFlags::CLONE_NEWNET).unwrap();
            make()
        });
        thread.join().unwrap()
    }
}

#[test]
fn a_machine_is_pinged_with_leave_of_the_kernel_and_without() {
    let Some(mut own) = Box::new() else { return };
    // Without the kernel's permission the helper pings, with it the front does.
    for groups in ["1 0", "0 2147483647"] {
        let leave = format!("echo {groups} > /proc/sys/net/ipv4/ping_group_range");
        own.machine.run(&leave);
        let answer = own.call("network_ping", &json!({ "host": "127.0.0.1", "count": 2 }));
        assert_eq!(
            (&answer["sent"], &answer["received"]),
            (&json!(2), &json!(2)),
            "{answer}"
        );
        assert_eq!(answer["answers"], true);
        assert!(
            answer["min_ms"].as_f64() <= answer["max_ms"].as_f64(),
            "{answer}"
        );
    }
    // No route leads out of this network, neither to private addresses nor to public ones.
    for away in ["192.168.77.1", "9.9.9.9"] {
        let answer = own.call("network_ping", &json!({ "host": away }));
        assert_eq!(answer["obstacle"], "unreachable", "{answer}");
        assert_eq!(answer["answers"], false);
    }
    for odd in ["", "-f", "a b", "x\u{1b}[2J"] {
        let said = own.failure("network_ping", &json!({ "host": odd }));
        assert!(
            said.contains("a name or an address") || said.contains("no address"),
            "{said}"
        );
    }
}

#[test]
fn a_port_is_open_or_refused() {
    let Some(mut own) = Box::new() else { return };
    let listener = own.within(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    let asked = json!({ "host": "127.0.0.1", "port": port });
    let answer = own.call("network_check_port", &asked);
    assert_eq!(
        (&answer["open"], &answer["tried"][0]["state"]),
        (&json!(true), &json!("open"))
    );
    drop(listener);
    // No other process on this network could take the port.
    let answer = own.call("network_check_port", &asked);
    assert_eq!(
        (&answer["open"], &answer["tried"][0]["state"]),
        (&json!(false), &json!("refused"))
    );
    let answer = own.call(
        "network_check_port",
        &json!({ "host": "192.168.77.1", "port": 22 }),
    );
    assert_eq!(answer["tried"][0]["state"], "unreachable");
    let said = own.failure(
        "network_check_port",
        &json!({ "host": "127.0.0.1", "port": 0 }),
    );
    assert!(said.contains("port"), "{said}");
}

/// Answers one address query with this address.
fn answer_once(server: &UdpSocket, address: Ipv4Addr) {
    let mut bytes = [0; 512];
    let (length, from) = server.recv_from(&mut bytes).unwrap();
    let question = &bytes[12..length];
    let header = [&bytes[..2], b"\x85\x80\0\x01\0\x01\0\0\0\0"].concat();
    let record = [
        b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04".as_slice(),
        &address.octets(),
    ]
    .concat();
    let answer = [header, question.to_vec(), record].concat();
    server.send_to(&answer, from).unwrap();
}

#[test]
fn a_name_server_is_asked_and_who_is_asked_is_told() {
    let Some(mut own) = Box::new() else { return };
    own.machine.run(
        "rm -f /etc/resolv.conf; printf 'nameserver 127.0.0.1\\nsearch lan\\n' > /etc/resolv.conf; \
         printf '192.168.7.9 nas\\n' >> /etc/hosts",
    );
    let server = own.within(|| UdpSocket::bind("127.0.0.1:53").unwrap());
    let address = Ipv4Addr::new(192, 0, 2, 9);
    for arguments in [
        json!({ "name": "wren.example" }),
        json!({ "name": "wren.example.", "type": "A", "server": "127.0.0.1" }),
    ] {
        let server = server.try_clone().unwrap();
        let answering = std::thread::spawn(move || answer_once(&server, address));
        let told = own.call("dns_query", &arguments);
        answering.join().unwrap();
        assert_eq!(
            (&told["status"], &told["server"]),
            (&json!("NOERROR"), &json!("127.0.0.1"))
        );
        let record =
            json!({ "name": "wren.example", "type": "A", "ttl_s": 60, "value": "192.0.2.9" });
        assert_eq!(told["answers"], json!([record]));
        assert_eq!(told["authoritative"], true);
    }
    drop(server);
    let said = own.failure("dns_query", &json!({ "name": "wren.example" }));
    assert!(said.contains("nothing listens on its port 53"), "{said}");
    let said = own.failure("dns_query", &json!({ "name": "a", "server": "box.lan" }));
    assert!(said.contains("must be an address"), "{said}");
    let config = own.call("dns_config", &json!({}));
    assert_eq!(
        (&config["servers"], &config["search"]),
        (&json!(["127.0.0.1"]), &json!(["lan"]))
    );
    let hosts = config["hosts"].as_array().unwrap();
    assert!(
        hosts.contains(&json!({ "address": "192.168.7.9", "names": ["nas"] })),
        "{config}"
    );
}

#[test]
fn the_rules_of_the_firewall_are_data() {
    if !Path::new("/usr/sbin/nft").exists() {
        return skip("there is no program nft");
    }
    let Some(mut own) = Box::new() else { return };
    own.machine.run(
        "nft add table inet wren; \
         nft 'add chain inet wren input { type filter hook input priority 5; policy drop; }'; \
         nft 'add rule inet wren input tcp dport 22 accept comment \"ssh\"'; \
         nft add table ip other",
    );
    let all = own.call("firewall_rules", &json!({}));
    assert_eq!(
        (&all["total"], all["tables"].as_array().unwrap().len()),
        (&json!(1), 2),
        "{all}"
    );
    let chain = json!({ "family": "inet", "table": "wren", "name": "input", "hook": "input", "type": "filter",
        "priority": 5, "policy": "drop" });
    assert_eq!(all["chains"], json!([chain]));
    let rule = &all["rules"][0];
    assert_eq!(
        (&rule["chain"], &rule["comment"]),
        (&json!("input"), &json!("ssh"))
    );
    assert_eq!(rule["expr"][0]["match"]["right"], 22);
    let other = own.call("firewall_rules", &json!({ "table": "other" }));
    assert_eq!((&other["total"], &other["chains"]), (&json!(0), &json!([])));
}

#[test]
fn the_biggest_directories_are_told_without_what_is_mounted_below() {
    let Some(mut own) = Box::new() else { return };
    let home = own.machine.home.0.display().to_string();
    own.machine.run(&format!(
        "mkdir -p {home}/tree/big/deep {home}/tree/small {home}/tree/mounted; \
         mount -t tmpfs tmpfs {home}/tree/mounted; \
         head -c 3000000 /dev/urandom > {home}/tree/big/deep/file; \
         head -c 1000000 /dev/urandom > {home}/tree/small/file; \
         head -c 9000000 /dev/urandom > {home}/tree/mounted/file; sync"
    ));
    let asked = |more: Value| {
        let mut asked = json!({ "path": format!("{home}/tree") });
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        asked
    };
    let usage = own.call("disk_usage", &asked(json!({ "depth": 1, "limit": 2 })));
    let total = usage["total_bytes"].as_u64().unwrap();
    assert!((4_000_000..8_000_000).contains(&total), "{usage}");
    let paths = [
        &usage["directories"][0]["path"],
        &usage["directories"][1]["path"],
    ];
    assert_eq!(
        paths,
        [
            &json!(format!("{home}/tree/big")),
            &json!(format!("{home}/tree/small"))
        ]
    );
    assert_eq!(usage["incomplete"], false);
    let deeper = own.call("disk_usage", &asked(json!({ "depth": 2 })));
    assert_eq!(
        deeper["directories"][1]["path"],
        format!("{home}/tree/big/deep")
    );
    let said = own.failure("disk_usage", &json!({ "path": "/no/such/place" }));
    assert!(said.contains("No such file"), "{said}");
    let said = own.failure("disk_usage", &json!({ "path": "--help" }));
    assert!(said.contains("must be absolute"), "{said}");
}
