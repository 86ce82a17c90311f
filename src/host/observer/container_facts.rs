//! The state document's entry for a container: only facts, no counters that change by themselves.

use serde_json::{Map, Value, json};

use crate::backends::{ContainerDetails, ContainerListener, Transport};

/// The first ephemeral port of Linux (`ip_local_port_range`, ip(7)): sockets of datagram clients come and go with
/// every DNS query.
const FIRST_EPHEMERAL: u16 = 32768;

/// `/public/packageData/<name>`.
pub fn container(details: &ContainerDetails, ports: &[ContainerListener]) -> Value {
    let mut facts = Map::new();
    for (key, value) in [
        ("name", json!(details.name)),
        ("status", json!(details.state)),
        ("autostart", json!(details.autostart)),
        ("unprivileged", json!(details.unprivileged)),
        ("addresses", json!(details.addresses)),
    ] {
        facts.insert(key.to_owned(), value);
    }
    if let Some(os) = &details.os {
        facts.insert("os".to_owned(), json!(os));
    }
    if let Some(pid) = details.init_pid {
        facts.insert("init_pid".to_owned(), json!(pid));
    }
    if let Some(hostname) = &details.hostname {
        facts.insert("hostname".to_owned(), json!(hostname));
    }
    if let Some(config) = &details.config {
        facts.insert("config".to_owned(), json!(config));
    }
    let lasting: Vec<_> = ports.iter().filter(|port| lasts(port)).collect();
    facts.insert("ports".to_owned(), json!(lasting));
    Value::Object(facts)
}

fn lasts(port: &ContainerListener) -> bool {
    port.protocol == Transport::Tcp || port.port < FIRST_EPHEMERAL
}

#[cfg(test)]
mod tests {
    use crate::backends::ContainerState;

    use super::*;

    #[test]
    fn a_container_without_counters() {
        let details = ContainerDetails {
            name: "alpha".parse().unwrap(),
            hostname: Some("web".into()),
            state: ContainerState::Running,
            init_pid: Some(7),
            addresses: vec!["10.0.3.5".parse().unwrap()],
            os: None,
            autostart: true,
            unprivileged: false,
            memory_bytes: Some(4096),
            cpu_usage_us: Some(1),
            pids: Some(2),
            disk_bytes: None,
            config: None,
        };
        let port = |protocol, port| ContainerListener {
            protocol,
            port,
            address: "0.0.0.0".parse().unwrap(),
        };
        let ports = [
            port(Transport::Tcp, 40_000),
            port(Transport::Udp, 53),
            port(Transport::Udp, 40_000),
        ];
        let expected = json!({
            "name": "alpha", "status": "running", "autostart": true, "unprivileged": false,
            "addresses": ["10.0.3.5"], "init_pid": 7, "hostname": "web", "ports": [
                { "protocol": "tcp", "port": 40_000, "address": "0.0.0.0" },
                { "protocol": "udp", "port": 53, "address": "0.0.0.0" }
            ]
        });
        assert_eq!(container(&details, &ports), expected);
    }
}
