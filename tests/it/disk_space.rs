//! Disk space: the report on what fills the disks, and deleting what can go, on real containers and real caches.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::agents::{UNASKED, admit, wait_for_tool};
use crate::support::client::Client;
use crate::support::command::{add_agent, tell_by};
use crate::support::container::Containers;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, marker, wait_until};
use crate::support::server::{Directory, Place, Server, server};

const NEAR: &str = "heron-k4";
const FAR: &str = "plover-x9";

const ALL_ON: &str = "cleanup = \"on\"\nlxc_manage = \"on\"\n";

/// Adds an agent that may delete without a confirmation, within these options.
fn agent(server: &Server, name: &str, options: &[&str]) -> Client {
    let agent = admit(server, name, &[&UNASKED, options].concat());
    wait_for_tool(&agent, "disk_cleanup");
    agent
}

fn report(client: &Client) -> Value {
    client.call("disk_report", json!({})).send().data()
}

/// Returns an item of a report as an order, if the report has it.
fn order(report: &Value, id: &str) -> Option<Value> {
    let mut items = report["items"].as_array().unwrap().iter();
    let item = items.find(|item| item["id"] == id)?;
    Some(json!({ "id": id, "bytes": item["bytes"] }))
}

fn clean(client: &Client, items: &[Value]) -> Value {
    let call = client.call("disk_cleanup", json!({ "items": items }));
    call.send().data()
}

fn errors(cleaned: &Value) -> Vec<&str> {
    let results = cleaned["results"].as_array().unwrap().iter();
    results.filter_map(|one| one["error"].as_str()).collect()
}

/// Makes a snapshot with a large file in it.
fn snapshot(containers: &Containers, name: &str) -> PathBuf {
    let root = containers.lxcpath().join(name).join("rootfs");
    fs::write(root.join("root/large"), vec![7; 3 << 20]).unwrap();
    containers.tool("lxc-snapshot", name, &[]);
    containers.lxcpath().join(name).join("snaps/snap0")
}

/// A host with two containers, each with a snapshot, a cache of apt and a core dump.
struct Home {
    files: Directory,
    containers: Containers,
    server: Server,
}

impl Home {
    fn new(bounds: &str) -> Option<Self> {
        let mut containers = Containers::new()?;
        for name in [NEAR, FAR] {
            containers.make(name);
            snapshot(&containers, name);
        }
        let files = Directory::new();
        fs::create_dir_all(files.join("apt/archives/partial")).unwrap();
        fs::create_dir_all(files.join("systemd/coredump")).unwrap();
        fs::write(files.join("apt/archives/wren_1_all.deb"), vec![7; 5 << 20]).unwrap();
        fs::write(files.join("systemd/coredump/core.wren.0"), vec![7; 2 << 20]).unwrap();
        let places = [("/var/cache/apt", "apt"), ("/var/lib/systemd", "systemd")];
        let places = places.map(|(of_host, own)| Place {
            of_host,
            own: files.join(own),
        });
        let settings = format!(
            "[lxc]\nlxcpath = \"{}\"\n[spaces.pond]\ncontainers = [\"{NEAR}\"]\n",
            containers.lxcpath().display()
        );
        let server = server()
            .policy("admin")
            .settings(&settings)
            .bounds(bounds)
            .with_places(&places)
            .start();
        Some(Self {
            files,
            containers,
            server,
        })
    }

    fn snapshot_of(&self, name: &str) -> PathBuf {
        self.containers.lxcpath().join(name).join("snaps/snap0")
    }
}

#[test]
fn what_a_report_shows_is_deleted_and_nothing_else() {
    let Some(home) = Home::new(ALL_ON) else {
        return;
    };
    let agent = agent(&home.server, "tidy", &["--space", "*"]);
    let seen = report(&agent);
    assert!(
        !seen["filesystems"].as_array().unwrap().is_empty(),
        "{seen}"
    );
    let mut containers = seen["containers"].as_array().unwrap().iter();
    let near = containers.find(|one| one["container"] == NEAR).unwrap();
    assert!(near["bytes"].as_u64() > Some(3 << 20), "{near}");
    assert!(near["snapshot_bytes"].as_u64() > Some(3 << 20), "{near}");
    let dump = "core-dump:/var/lib/systemd/coredump/core.wren.0";
    let own = format!("snapshot:{NEAR}/snap0");
    let orders = [own.as_str(), "apt-cache", dump].map(|id| order(&seen, id).unwrap());
    let gone = json!({ "id": format!("snapshot:{NEAR}/snap7"), "bytes": 1 });
    let cleaned = clean(&agent, &[&orders[..], &[gone]].concat());
    assert!(
        cleaned["freed_bytes"].as_u64() > Some(10 << 20),
        "{cleaned}"
    );
    assert_eq!(errors(&cleaned).len(), 1, "{cleaned}");
    assert!(errors(&cleaned)[0].contains("does not exist any more"));
    assert!(!home.snapshot_of(NEAR).exists());
    assert!(!home.files.join("apt/archives/wren_1_all.deb").exists());
    assert!(!home.files.join("systemd/coredump/core.wren.0").exists());
    assert!(home.snapshot_of(FAR).exists(), "it was not ordered");
    let after = report(&agent);
    for id in [own.as_str(), "apt-cache", dump] {
        assert_eq!(order(&after, id), None, "{after}");
    }
    assert!(order(&after, &format!("snapshot:{FAR}/snap0")).is_some());
}

#[test]
fn an_item_that_has_grown_since_the_report_stays() {
    let Some(home) = Home::new(ALL_ON) else {
        return;
    };
    let agent = agent(&home.server, "tidy", &["--space", "*"]);
    let package = home.files.join("apt/archives/wren_1_all.deb");
    let order = order(&report(&agent), "apt-cache").unwrap();
    fs::write(&package, vec![7; 40 << 20]).unwrap();
    let call = agent.call("disk_cleanup", json!({ "items": [order] }));
    let refused = call.send().failure();
    assert!(refused.contains("it has changed"), "{refused}");
    assert!(package.exists());
}

#[test]
fn an_agent_of_a_space_sees_and_deletes_its_own_containers_things_only() {
    let Some(home) = Home::new(ALL_ON) else {
        return;
    };
    let kept = agent(&home.server, "kept", &["--space", "pond"]);
    let seen = report(&kept);
    let text = seen.to_string();
    assert!(text.contains(NEAR), "{text}");
    for other in [FAR, "/var", "apt-cache", "core-dump", "rootfs"] {
        assert!(!text.contains(other), "{other}: {text}");
    }
    let refused = |id: &str| {
        let items = json!({ "items": [{ "id": id, "bytes": 100 << 20 }] });
        kept.call("disk_cleanup", items).send().failure()
    };
    let other = refused(&format!("snapshot:{FAR}/snap0")).replace(FAR, "x");
    let missing = refused("snapshot:never-0q/snap0").replace("never-0q", "x");
    assert_eq!(other, missing);
    for id in [
        "apt-cache",
        "journal",
        "volume:docker/x",
        "build-cache:podman",
    ] {
        assert!(
            refused(id).contains("not within this agent's reach"),
            "{id}"
        );
    }
    assert!(home.snapshot_of(FAR).exists());
    let own = order(&seen, &format!("snapshot:{NEAR}/snap0")).unwrap();
    clean(&kept, &[own]);
    assert!(!home.snapshot_of(NEAR).exists());
}

#[test]
fn the_owners_file_decides_what_can_be_deleted() {
    let Some(home) = Home::new("cleanup = \"on\"\n") else {
        return;
    };
    let agent = agent(&home.server, "tidy", &["--space", "*"]);
    let own = order(&report(&agent), &format!("snapshot:{NEAR}/snap0")).unwrap();
    let call = agent.call("disk_cleanup", json!({ "items": [own] }));
    let refused = call.send().failure();
    assert!(refused.contains("lxc_manage"), "{refused}");
    assert!(home.snapshot_of(NEAR).exists());
}

#[test]
fn an_operator_frees_disk_space_in_three_calls() {
    let Some(home) = Home::new(ALL_ON) else {
        return;
    };
    let args = ["agent", "add", "op", "--policy", "operate", "--space", "*"];
    let said = tell_by(&home.server.settings_file(), &args);
    let operator = home
        .server
        .client()
        .with_token(said["token"].as_str().unwrap());
    wait_until("it is listed", IN_TIME, || {
        let answer = operator.modern("tools/list").send();
        let listed = answer.status == 200;
        listed && answer.names("tools").contains(&"disk_cleanup".to_owned())
    });
    let order = order(&report(&operator), "apt-cache").unwrap();
    let call = operator.call("disk_cleanup", json!({ "items": [order] }));
    let change = call.send().data()["change"].as_str().unwrap().to_owned();
    assert!(home.files.join("apt/archives/wren_1_all.deb").exists());
    let shown = tell_by(&home.server.settings_file(), &["inbox", "show", &change]);
    let bytes = order["bytes"].to_string();
    assert!(shown.to_string().contains(&bytes), "{shown}");
    let args = ["inbox", "approve", &change, "--wait"];
    tell_by(&home.server.settings_file(), &args);
    let done = operator.call("change_get", json!({ "change": change }));
    let done = done.send().data();
    assert!(done.to_string().contains("freed_bytes"), "{done}");
    assert!(!home.files.join("apt/archives/wren_1_all.deb").exists());
}

/// Makes a volume with data, through a container with this name.
fn volume(engine: &Engine, container: &str, volume: &str) {
    let mount = format!("{volume}:/data");
    let words = ["run", "--network", "none", "--name", container, "--volume"];
    let fill = "dd if=/dev/zero of=/data/large bs=1048576 count=3; exit 0";
    let line = [mount.as_str(), "gatewren-lab", "/bin/sh", "-c", fill];
    engine.cli(&[&words[..], &line].concat());
}

fn frees_what_nothing_uses(engine: &Engine) {
    let server = server()
        .policy("admin")
        .engines(std::slice::from_ref(engine));
    let server = server.start();
    let options = ["--policy", "admin", "--mode", "disrupt=allow"];
    let said = add_agent(&server.state_dir(), "tidy", &options);
    let agent = server.client().with_token(said["token"].as_str().unwrap());
    let mark = marker();
    let (used, unused) = (format!("used-{mark}"), format!("unused-{mark}"));
    let (keeper, goer) = (format!("keeper-{mark}"), format!("goer-{mark}"));
    volume(engine, &keeper, &used);
    volume(engine, &goer, &unused);
    let old = engine.cli(&["commit", &goer]);
    let needed = engine.cli(&["commit", &keeper]);
    let holder = format!("holder-{mark}");
    engine.cli(&["create", "--network", "none", "--name", &holder, &needed]);
    engine.cli(&["rm", &goer]);
    let kind = engine.kind.name();
    let [old, needed] = [old, needed].map(|id| {
        let digits = id.rsplit(':').next().unwrap().trim().to_owned();
        format!("image:{kind}/sha256:{digits}")
    });
    let [used, unused] = [used, unused].map(|name| format!("volume:{kind}/{name}"));
    wait_until("the agent comes in", IN_TIME, || {
        agent.modern("tools/list").send().status == 200
    });
    let seen = report(&agent);
    assert!(
        order(&seen, &used).is_none() && order(&seen, &needed).is_none(),
        "{seen}"
    );
    let orders =
        [&old, &unused].map(|id| order(&seen, id).unwrap_or_else(|| panic!("{id}: {seen}")));
    assert!(
        orders[1]["bytes"].as_u64() > Some(3 << 20) || orders[1]["bytes"] == 3 << 20,
        "{seen}"
    );
    let in_use = [&used, &needed].map(|id| json!({ "id": id, "bytes": 1_u64 << 30 }));
    let cleaned = clean(&agent, &[&orders[..], &in_use[..]].concat());
    assert_eq!(errors(&cleaned).len(), 2, "{cleaned}");
    assert!(
        errors(&cleaned).iter().all(|one| one.contains("in use")),
        "{cleaned}"
    );
    let name = |id: &str| id.rsplit('/').next().unwrap().to_owned();
    let volumes = engine.cli(&["volume", "ls", "--quiet"]);
    assert!(volumes.contains(&name(&used)) && !volumes.contains(&name(&unused)));
    let images = engine.cli(&["images", "--all", "--quiet", "--no-trunc"]);
    assert!(
        images.contains(&name(&needed)) && !images.contains(&name(&old)),
        "{images}"
    );
    engine.cli(&["rm", &holder, &keeper]);
    engine.cli(&["volume", "rm", &name(&used)]);
    engine.cli(&["rmi", name(&needed).trim_start_matches("sha256:")]);
}

#[test]
fn volumes_and_images_that_nothing_uses_are_freed_and_those_in_use_are_kept() {
    for kind in EngineKind::ALL {
        if let Some(engine) = Engine::shared(kind) {
            frees_what_nothing_uses(&engine);
        }
    }
}
