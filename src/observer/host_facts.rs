//! The document's view of the host: facts alone, no counter that moves by itself.

use serde_json::{Map, Value, json};

use crate::backends::{Mount, ServerInfo};

/// `/public/serverInfo`.
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
    use crate::backends::Host;

    use super::*;

    #[test]
    fn the_facts_of_this_machine_do_not_move() {
        let host = Host::new();
        let first = server(&host.info(), &Host::mounts());
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!(server(&host.info(), &Host::mounts()), first);
        assert!(first.get("name").is_some_and(Value::is_string));
    }
}
