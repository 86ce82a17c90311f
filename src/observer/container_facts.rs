//! The document's view of a container: facts alone, no counter that moves by itself.

use serde_json::{Map, Value, json};

use crate::backends::ContainerDetails;

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

#[cfg(test)]
mod tests {
    use crate::backends::ContainerState;

    use super::*;

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
