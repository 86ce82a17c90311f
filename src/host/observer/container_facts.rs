//! The state document's entry for a container: only facts, no counters that change by themselves.

use serde_json::{Map, Value, json};

use crate::backends::{ContainerDetails, ContainerListener, EngineFacts, Transport};

/// The first ephemeral port of Linux (`ip_local_port_range`, ip(7)): sockets of datagram clients come and go with
/// every DNS query.
const FIRST_EPHEMERAL: u16 = 32768;

/// `/public/packageData/<name>`.
pub fn container(details: &ContainerDetails, ports: &[ContainerListener]) -> Value {
    let mut facts = Map::new();
    for (key, value) in [
        ("name", json!(details.name)),
        ("runtime", json!(details.runtime)),
        ("status", json!(details.state)),
        ("autostart", json!(details.autostart)),
        ("unprivileged", json!(details.unprivileged)),
        ("addresses", json!(details.addresses)),
    ] {
        facts.insert(key.to_owned(), value);
    }
    if let Some(parent) = &details.parent {
        facts.insert("parent".to_owned(), json!(parent));
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
    if let Some(engine) = &details.engine {
        facts.insert("engine".to_owned(), engine_facts(engine));
    }
    let lasting: Vec<_> = ports.iter().filter(|port| lasts(port)).collect();
    facts.insert("ports".to_owned(), json!(lasting));
    Value::Object(facts)
}

/// The facts of an engine, as the state has them. Agents without access to the host read the state too, so it has no
/// paths of the host. The number of failed health checks in a row grows with each check, so it is left out.
fn engine_facts(engine: &EngineFacts) -> Value {
    let mut facts = engine.clone();
    for mount in &mut facts.mounts {
        mount.source = None;
    }
    if let Some(compose) = &mut facts.compose {
        compose.config_files.clear();
    }
    let mut facts = json!(facts);
    if let Some(health) = facts.get_mut("health").and_then(Value::as_object_mut) {
        health.remove("failing_streak");
    }
    facts
}

fn lasts(port: &ContainerListener) -> bool {
    port.protocol == Transport::Tcp || port.port < FIRST_EPHEMERAL
}

#[cfg(test)]
mod tests {
    use crate::backends::{ComposeService, ContainerHealth, ContainerState, EngineMountFacts};

    use super::*;

    fn details() -> ContainerDetails {
        ContainerDetails {
            name: "alpha".parse().unwrap(),
            runtime: "lxc",
            parent: None,
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
            engine: None,
        }
    }

    #[test]
    fn a_container_without_counters() {
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
            "name": "alpha", "runtime": "lxc", "status": "running", "autostart": true, "unprivileged": false,
            "addresses": ["10.0.3.5"], "init_pid": 7, "hostname": "web", "ports": [
                { "protocol": "tcp", "port": 40_000, "address": "0.0.0.0" },
                { "protocol": "udp", "port": 53, "address": "0.0.0.0" }
            ]
        });
        assert_eq!(container(&details(), &ports), expected);
    }

    #[test]
    fn a_container_of_an_engine_without_counters_and_paths_of_the_host() {
        let engine = EngineFacts {
            image: "web:1".into(),
            health: Some(ContainerHealth {
                status: "unhealthy".into(),
                failing_streak: 3,
            }),
            mounts: vec![EngineMountFacts {
                kind: "bind".into(),
                destination: "/data".into(),
                source: Some("/srv/secret".into()),
                read_only: true,
            }],
            compose: Some(ComposeService {
                project: "media".into(),
                service: None,
                config_files: vec!["/srv/secret/compose.yaml".into()],
                ..ComposeService::default()
            }),
            ..EngineFacts::default()
        };
        let details = ContainerDetails {
            name: "docker:web".parse().unwrap(),
            runtime: "docker",
            engine: Some(engine),
            ..details()
        };
        let shown = container(&details, &[]);
        assert_eq!(shown["engine"]["image"], "web:1");
        assert_eq!(shown["engine"]["health"], json!({ "status": "unhealthy" }));
        assert!(!shown.to_string().contains("secret"), "{shown}");
    }
}
