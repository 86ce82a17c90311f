//! The document's view of the host and of a container: facts alone, no counter that moves by itself.

use serde_json::{Map, Value, json};

use crate::backends::{ContainerDetails, Mount, ServerInfo};

/// `/public/serverInfo` but for `containers`.
pub fn server(info: &ServerInfo, mounts: &[Mount]) -> Map<String, Value> {
    let mounts: Vec<Value> = mounts.iter().map(mount).collect();
    let mut facts = Map::new();
    for (key, value) in [
        ("name", json!(info.hostname)),
        ("os", json!(info.os)),
        ("kernel", json!(info.kernel)),
        ("architecture", json!(info.architecture)),
        ("virtualization", json!(info.virtualization)),
        ("cpu", json!(info.cpu)),
        ("memory_bytes", json!(info.memory_bytes)),
        ("addresses", json!(info.addresses)),
        ("boot_time", json!(info.boot_time)),
        ("reboot_required", json!(info.reboot_required)),
        ("mounts", json!(mounts)),
        ("gatewren", json!(info.gatewren)),
    ] {
        facts.insert(key.to_owned(), value);
    }
    facts
}

/// `/public/packageData/<name>`.
pub fn container(details: &ContainerDetails) -> Value {
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
    Value::Object(facts)
}

/// `/public/serverInfo/containers`.
pub fn availability(why_not: Option<&str>) -> Value {
    match why_not {
        None => json!({ "available": true }),
        Some(why) => json!({ "available": false, "why": why }),
    }
}

fn mount(mount: &Mount) -> Value {
    // The size of a data set of ZFS is what is free in its pool: it moves with every write.
    if mount.filesystem == "zfs" {
        return json!({ "path": mount.path, "filesystem": mount.filesystem });
    }
    json!({
        "path": mount.path,
        "filesystem": mount.filesystem,
        "total_bytes": mount.total_bytes,
    })
}

#[cfg(test)]
mod tests {
    use crate::backends::{ContainerState, Host};

    use super::*;

    #[test]
    fn the_facts_of_this_machine_do_not_move() {
        let host = Host::new();
        let first = server(&host.info(), &Host::mounts());
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!(server(&host.info(), &Host::mounts()), first);
        assert!(first.get("name").is_some_and(Value::is_string));
    }

    #[test]
    fn a_container_without_counters() {
        let details = ContainerDetails {
            name: "alpha".parse().unwrap(),
            state: ContainerState::Running,
            init_pid: Some(7),
            addresses: vec!["10.0.3.5".parse().unwrap()],
            os: None,
            autostart: true,
            unprivileged: false,
            memory_bytes: Some(4096),
            cpu_usage_us: Some(1),
            pids: Some(2),
        };
        let expected = json!({
            "name": "alpha", "status": "running", "autostart": true, "unprivileged": false,
            "addresses": ["10.0.3.5"], "init_pid": 7
        });
        assert_eq!(container(&details), expected);
    }
}
