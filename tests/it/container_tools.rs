//! Containers through the tools: freeze, configure, snapshot, restore, clone, create, destroy and inspect.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::helper::{Helper, LONG_MS, container};
use crate::support::machine::{IN_TIME, install_program, is_fork_server, marked, skip, wait_until};
use crate::support::server::{Server, server};

/// A host with the test's own containers, and an agent that may do everything without confirmation.
struct Home {
    containers: Containers,
    _server: Server,
    agent: Client,
}

impl Home {
    fn new() -> Option<Self> {
        let containers = Containers::new()?;
        if !Path::new("/usr/bin/rsync").exists() {
            skip("rsync, with which LXC copies, is not installed");
            return None;
        }
        let lxcpath = containers.lxcpath().display();
        let settings = format!("[lxc]\nlxcpath = \"{lxcpath}\"\n");
        let server = server().policy("admin").settings(&settings).start();
        let args = ["agent", "add", "keeper", "--policy", "admin"];
        let modes = [
            "read", "scan", "write", "disrupt", "execute", "reveal", "persist",
        ];
        let modes = modes.map(|class| format!("{class}=allow"));
        let modes = modes.iter().flat_map(|mode| ["--mode", mode.as_str()]);
        let args: Vec<&str> = args.into_iter().chain(modes).collect();
        let said = tell_by(&server.settings_file(), &args);
        let agent = server.client().with_token(said["token"].as_str().unwrap());
        let list = agent.modern("tools/list");
        wait_until("it comes in", IN_TIME, || list.send().status == 200);
        Some(Self {
            containers,
            _server: server,
            agent,
        })
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.agent.call(tool, arguments).send().data()
    }

    /// Returns the error of a call that fails.
    fn refused(&self, tool: &str, arguments: Value) -> String {
        self.agent.call(tool, arguments).send().failure()
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.containers.lxcpath().join(name)
    }

    /// Returns the names in the containers' directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.containers.lxcpath()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

#[test]
fn the_list_says_of_each_container_what_is_said_of_it_alone() {
    let Some(mut home) = Home::new() else { return };
    for (name, os) in [
        ("wren", Some("debian")),
        ("robin", None),
        ("finch", Some("alpine")),
    ] {
        let root = home.containers.make(name);
        if let Some(os) = os {
            fs::create_dir_all(root.join("etc")).unwrap();
            fs::write(root.join("etc/os-release"), format!("ID={os}\n")).unwrap();
        }
    }
    home.call("container_start", json!({ "container": "wren" }));
    home.call("container_start", json!({ "container": "finch" }));
    home.call("container_freeze", json!({ "container": "finch" }));
    let autostart = json!({ "container": "robin", "enabled": true });
    home.call("container_autostart", autostart);
    // Its root is at no path of this host, so that nothing is known of its system.
    let config = home.directory("robin").join("config");
    let defined = fs::read_to_string(&config).unwrap();
    let elsewhere = defined
        .lines()
        .map(|line| match line.split_once("rootfs.path") {
            Some((before, _)) => format!("{before}rootfs.path = dir:/nowhere"),
            None => line.to_owned(),
        });
    fs::write(&config, elsewhere.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let list = home.call("container_list", json!({}));
    let listed = list["containers"].as_array().unwrap();
    let names: Vec<&Value> = listed.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["finch", "robin", "wren"]);
    let states = listed.iter().map(|one| one["state"].as_str().unwrap());
    assert_eq!(states.collect::<Vec<_>>(), ["frozen", "stopped", "running"]);
    let systems = listed.iter().map(|one| one["os"]["id"].as_str());
    assert_eq!(
        systems.collect::<Vec<_>>(),
        [Some("alpine"), None, Some("debian")]
    );
    for shown in listed {
        let alone = home.call("container_info", json!({ "container": shown["name"] }));
        for member in [
            "addresses",
            "autostart",
            "hostname",
            "init_pid",
            "os",
            "runtime",
            "state",
            "unprivileged",
        ] {
            assert_eq!(shown[member], alone[member], "{member} of {shown:#}");
        }
        assert!(
            shown["config"].is_null() && alone["config"].is_object(),
            "{shown:#}"
        );
    }
}

#[test]
fn a_container_stands_still_and_goes_on() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let wren = || json!({ "container": "wren" });
    let said = home.refused("container_freeze", wren());
    assert!(said.contains("stopped"), "{said}");
    home.call("container_start", wren());
    for (tool, state) in [
        ("container_freeze", "frozen"),
        ("container_freeze", "frozen"),
        ("container_unfreeze", "running"),
        ("container_unfreeze", "running"),
    ] {
        assert_eq!(home.call(tool, wren())["state"], state, "{tool}");
    }
    assert_eq!(home.containers.state("wren"), "RUNNING");
}

#[test]
fn a_container_is_set_and_its_definition_before_is_kept() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let file = home.directory("wren").join("config");
    let before = fs::read_to_string(&file).unwrap();
    let on = home.call(
        "container_autostart",
        json!({ "container": "wren", "on": true }),
    );
    assert_eq!(on["autostart"], true);
    let old = home.directory("wren").join("config.old");
    assert_eq!(fs::read_to_string(&old).unwrap(), before);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, format!("{before}lxc.start.auto = 1\n"));

    let set = json!({
        "container": "wren", "hostname": "robin", "memory_limit_bytes": 67_108_864,
        "cpu_limit_percent": 50, "processes_limit": 100, "start_delay_s": 5, "start_order": 2
    });
    let mut said = home.call("container_config_set", set);
    said.as_object_mut().unwrap().remove("revision");
    // Where the cgroups have no controller for a limit, the answer says so.
    said.as_object_mut().unwrap().remove("note");
    assert_eq!(
        said,
        home.call("container_config_get", json!({ "container": "wren" }))
    );
    assert_eq!(
        (&said["hostname"], &said["autostart"]),
        (&json!("robin"), &json!(true))
    );
    assert_eq!(said["memory_limit_bytes"], 67_108_864);
    assert_eq!(
        (&said["cpu_limit_percent"], &said["processes_limit"]),
        (&json!(50), &json!(100))
    );
    assert_eq!(
        (&said["start_delay_s"], &said["start_order"]),
        (&json!(5), &json!(2))
    );
    home.call("container_start", json!({ "container": "wren" }));
    let hostname = json!({ "container": "wren", "command": "cat /proc/sys/kernel/hostname" });
    assert_eq!(home.call("container_shell", hostname)["stdout"], "robin\n");

    let less = json!({ "container": "wren", "memory_limit_bytes": 0, "start_order": 0 });
    let said = home.call("container_config_set", less);
    assert!(said.get("memory_limit_bytes").is_none() && said.get("start_order").is_none());
    let text = fs::read_to_string(&file).unwrap();
    for bad in [
        json!({ "container": "wren", "hostname": "a\nlxc.hook.pre-start = /bin/true" }),
        json!({ "container": "wren", "memory_limit_bytes": 1 }),
        json!({ "container": "wren", "lxc.hook.pre-start": "/bin/true" }),
        json!({ "container": "nobody", "hostname": "a" }),
    ] {
        home.refused("container_config_set", bad);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

/// Makes a container with data, and a snapshot of it, `snap0`; returns its root directory.
fn kept(home: &mut Home) -> PathBuf {
    let root = home.containers.make("wren");
    let data = root.join("root/data");
    fs::write(&data, "of then").unwrap();
    fs::set_permissions(&data, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("data", root.join("root/link")).unwrap();
    let kept = json!({ "container": "wren", "comment": "before the change" });
    let kept = home.call("container_snapshot_create", kept);
    assert_eq!(kept["snapshot"], "snap0");
    root
}

/// Returns the lines of a definition, regardless of order.
fn definition(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.directory("wren").join("config")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_snapshot_brings_back_files_and_settings() {
    let Some(mut home) = Home::new() else { return };
    let root = kept(&mut home);
    let before = definition(&home);
    fs::write(root.join("root/data"), "of later").unwrap();
    fs::remove_file(root.join("root/link")).unwrap();
    fs::write(root.join("root/new"), "").unwrap();
    home.call(
        "container_autostart",
        json!({ "container": "wren", "on": true }),
    );
    let snap0 = json!({ "container": "wren", "snapshot": "snap0" });
    let restored = home.call("container_snapshot_restore", snap0);
    assert_eq!(restored["state"], "stopped");
    assert_eq!(restored["autostart"], false);
    assert_eq!(fs::read(root.join("root/data")).unwrap(), b"of then");
    let facts = fs::metadata(root.join("root/data")).unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o640);
    let link = fs::read_link(root.join("root/link")).unwrap();
    assert_eq!(link, Path::new("data"));
    assert!(!root.join("root/new").exists());
    assert_eq!(definition(&home), before);
    // No temporary files are left, and it runs as before.
    let entries = fs::read_dir(home.directory("wren")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["config", "config.old", "rootfs", "snaps"]);
    home.call("container_start", json!({ "container": "wren" }));

    fs::write(root.join("root/data"), "of later").unwrap();
    let at_once = json!({ "container": "wren", "grace_s": 0 });
    // The other name of `container_rebuild`.
    let rebuilt = home.call("container_rollback", at_once);
    assert_eq!(rebuilt["snapshot"], "snap0");
    assert_eq!(rebuilt["state"], "running");
    assert_eq!(fs::read(root.join("root/data")).unwrap(), b"of then");
}

#[test]
fn snapshots_are_listed_and_deleted_and_made_of_what_runs_and_what_does_not() {
    let Some(mut home) = Home::new() else { return };
    kept(&mut home);
    let wren = || json!({ "container": "wren" });
    let list = home.call("container_snapshot_list", wren());
    let first = &list["snapshots"][0];
    assert_eq!(first["comment"], "before the change");
    assert_eq!(first["complete"], true);
    assert!(first["made"].as_str().unwrap().starts_with("20"), "{list}");
    home.call("container_start", wren());
    let snap0 = json!({ "container": "wren", "snapshot": "snap0" });
    let said = home.refused("container_snapshot_restore", snap0.clone());
    assert!(said.contains("container_stop"), "{said}");
    // Of a running container too, which goes on afterwards and can be brought back to it.
    let running = home.call("container_snapshot_create", wren());
    assert_eq!(running["snapshot"], "snap1");
    let list = home.call("container_snapshot_list", wren());
    assert_eq!(list["snapshots"][1]["complete"], true, "{list}");
    let info = home.call("container_info", wren());
    assert_eq!(info["state"], "running");
    let snap1 = json!({ "container": "wren", "snapshot": "snap1", "grace_s": 0 });
    let rebuilt = home.call("container_rebuild", snap1);
    assert_eq!(rebuilt["state"], "running");
    let snap1 = json!({ "container": "wren", "snapshot": "snap1" });
    home.call("container_snapshot_delete", snap1);
    let snap0 = json!({ "container": "wren", "snapshot": "snap0" });
    let left = home.call("container_snapshot_delete", snap0.clone());
    assert_eq!(left["snapshots"], json!([]));
    for tool in [
        "container_snapshot_delete",
        "container_snapshot_restore",
        "container_rebuild",
    ] {
        let said = home.refused(tool, snap0.clone());
        assert!(said.contains("container_snapshot_list"), "{tool}: {said}");
    }
}

#[test]
fn a_snapshot_that_was_never_finished_is_shown_as_such_and_only_deleted() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    let half = home.directory("wren").join("snaps/snap4");
    fs::create_dir_all(half.join("rootfs")).unwrap();
    fs::write(half.join("config"), "lxc.uts.name = wren\n").unwrap();
    let list = home.call("container_snapshot_list", json!({ "container": "wren" }));
    assert_eq!(
        list["snapshots"],
        json!([{ "name": "snap4", "complete": false }])
    );
    let snap4 = json!({ "container": "wren", "snapshot": "snap4" });
    home.refused("container_snapshot_restore", snap4.clone());
    assert!(root.join("init").exists());
    home.call("container_snapshot_delete", snap4);
    assert!(!half.exists() && root.join("init").exists());
}

#[test]
fn a_container_is_copied_and_taken_away() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    fs::write(root.join("root/data"), "kept").unwrap();
    let copy = json!({ "container": "wren", "new_container": "robin" });
    home.call("container_start", json!({ "container": "wren" }));
    let said = home.refused("container_clone", copy.clone());
    assert!(said.contains("container_stop"), "{said}");
    home.call(
        "container_stop",
        json!({ "container": "wren", "grace_s": 0 }),
    );
    let made = home.call("container_clone", copy.clone());
    assert_eq!(
        (&made["name"], &made["state"]),
        (&json!("robin"), &json!("stopped"))
    );
    let place = home.directory("robin/rootfs");
    let rootfs = made["config"]["rootfs"].as_str().unwrap();
    assert_eq!(rootfs, format!("dir:{}", place.display()));
    assert_eq!(fs::read(place.join("root/data")).unwrap(), b"kept");
    assert_eq!(home.names(), ["robin", "wren"]);
    // The older name of the argument is accepted too.
    let again = json!({ "container": "wren", "new_name": "robin" });
    let said = home.refused("container_clone", again);
    assert!(said.contains("already"), "{said}");
    let started = home.call("container_start", json!({ "container": "robin" }));
    assert_eq!(started["state"], "running");

    let robin = || json!({ "container": "robin" });
    let said = home.refused("container_destroy", robin());
    assert!(said.contains("container_stop"), "{said}");
    home.call(
        "container_autostart",
        json!({ "container": "robin", "on": true }),
    );
    let soft = home.call(
        "container_destroy",
        json!({ "container": "robin", "soft": true }),
    );
    assert_eq!(soft["destroyed"], false);
    let info = home.call("container_info", robin());
    assert_eq!(
        (&info["state"], &info["autostart"]),
        (&json!("stopped"), &json!(false))
    );
    home.call("container_start", robin());
    let gone = home.call(
        "container_destroy",
        json!({ "container": "robin", "force": true }),
    );
    assert_eq!(gone["destroyed"], true);
    assert_eq!(home.names(), ["wren"]);

    home.call("container_snapshot_create", json!({ "container": "wren" }));
    let said = home.refused("container_destroy", json!({ "container": "wren" }));
    assert!(said.contains("snapshot"), "{said}");
    home.call(
        "container_destroy",
        json!({ "container": "wren", "with_snapshots": true }),
    );
    assert_eq!(home.names(), [""; 0]);
}

#[test]
fn a_container_is_made_from_what_the_owner_allows_alone() {
    let Some(home) = Home::new() else { return };
    let said = home.refused(
        "container_create",
        json!({ "container": "wren", "template": "none" }),
    );
    assert!(said.contains("busybox"), "{said}");
    assert_eq!(home.names(), [""; 0]);
    if !Path::new("/usr/share/lxc/templates/lxc-busybox").exists() {
        return skip("there is no template to make a container from");
    }
    let made = json!({ "container": "wren", "template": "busybox" });
    let made = home.call("container_create", made);
    assert_eq!(
        (&made["name"], &made["state"]),
        (&json!("wren"), &json!("stopped"))
    );
    let place = home.directory("wren/rootfs");
    let rootfs = made["config"]["rootfs"].as_str().unwrap();
    assert_eq!(rootfs, format!("dir:{}", place.display()));
    assert!(place.join("bin/busybox").exists());
    assert_eq!(home.names(), ["wren"]);
    home.call("container_destroy", json!({ "container": "wren" }));
    assert_eq!(home.names(), [""; 0]);
}

#[test]
fn logs_are_shown_in_parts() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let said = home.refused(
        "container_logs",
        json!({ "container": "wren", "source": "console" }),
    );
    assert!(said.contains("lxc.console.logfile"), "{said}");
    let log = home.directory("wren").join("console.log");
    let config = home.directory("wren").join("config");
    let text = fs::read_to_string(&config).unwrap();
    let console = format!("{text}lxc.console.logfile = {}\n", log.display());
    fs::write(&config, console).unwrap();
    let lines: Vec<String> = (0..5000).map(|number| format!("line {number}\n")).collect();
    let lines = lines.concat();
    fs::write(&log, format!("{lines}\u{1b}[2Jend\n")).unwrap();
    let part = home.call("container_logs", json!({ "container": "wren", "lines": 2 }));
    assert_eq!(
        (&part["source"], &part["truncated"]),
        (&json!("console"), &json!(true))
    );
    assert_eq!(part["text"], "line 4999\n^[[2Jend\n");
    let next = part["next_offset"].clone();
    assert_eq!(next, fs::metadata(&log).unwrap().len());
    fs::write(&log, format!("{lines}\u{1b}[2Jend\nnew\n")).unwrap();
    let more = json!({ "container": "wren", "source": "console", "offset": next });
    assert_eq!(home.call("container_logs", more)["text"], "new\n");
    let first = json!({ "container": "wren", "source": "console", "offset": 0 });
    let first = home.call("container_logs", first);
    assert!(
        first["text"]
            .as_str()
            .unwrap()
            .starts_with("line 0\nline 1\n")
    );
    assert_eq!(first["next_offset"], 32 * 1024);

    let broken = json!({ "container": "wren", "source": "lxc" });
    fs::write(&config, format!("{text}lxc.init.cmd = /nothing\n")).unwrap();
    home.refused("container_start", json!({ "container": "wren" }));
    let part = home.call("container_logs", broken);
    assert!(part["text"].as_str().unwrap().contains("ERROR"), "{part}");
}

/// Makes a journal of four lines in the container with a real journald; returns whether it could.
fn with_journal(home: &Home, root: &Path) -> bool {
    let programs = ["/usr/bin/journalctl", "/usr/lib/systemd/systemd-journald"];
    if let Some(missing) = programs.iter().find(|path| !Path::new(path).exists()) {
        skip(&format!("{missing} is not installed"));
        return false;
    }
    let (place, id) = (root.join("var/log/journal"), root.join("etc/machine-id"));
    fs::create_dir_all(&place).unwrap();
    let line = "for i in 1 2 3 4; do echo \"hello $i\" | systemd-cat -t wren; journalctl --sync; done; \
                cp -r /run/log/journal/. \"$0\"; cat /etc/machine-id >\"$1\"";
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/with-journald");
    let mut journald = Command::new(lab);
    let output = journald
        .args(["sh", "-c", line])
        .args([&place, &id])
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    install_program(
        Path::new("/usr/bin/journalctl"),
        &root.join("bin/journalctl"),
    );
    // The container uses the host's libraries.
    let file = home.directory("wren").join("config");
    let mut config = fs::read_to_string(&file).unwrap();
    for library in ["lib", "lib64", "usr/lib"] {
        let entry = format!("/{library} {library} none ro,bind,optional,create=dir 0 0");
        config = format!("{config}lxc.mount.entry = {entry}\n");
    }
    fs::write(&file, config).unwrap();
    true
}

#[test]
fn the_journal_inside_is_shown_and_followed() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    if !with_journal(&home, &root) {
        return;
    }
    home.call("container_start", json!({ "container": "wren" }));
    let part = home.call("container_logs", json!({ "container": "wren", "lines": 2 }));
    assert_eq!(part["source"], "journal", "{part}");
    let text = part["text"].as_str().unwrap();
    assert!(
        text.contains("hello 3") && text.ends_with("hello 4\n"),
        "{text}"
    );
    assert!(
        !text.contains("hello 2") && !text.contains("cursor"),
        "{text}"
    );
    let mut newer = json!({ "container": "wren", "source": "journal" });
    newer["cursor"] = part["cursor"].clone();
    assert_eq!(home.call("container_logs", newer.clone())["text"], "");
    newer["cursor"] = json!("--root=/");
    home.refused("container_logs", newer);
    // And in the other direction, as clients of `StartOS` page.
    let mut older = json!({ "id": "wren", "before": true, "limit": 1 });
    older["cursor"] = part["start_cursor"].clone();
    let older = home.call("package.logs", older);
    let text = older["text"].as_str().unwrap();
    assert!(
        text.ends_with("hello 2\n") && !text.contains("hello 1"),
        "{text}"
    );
    let other_boot = json!({ "container": "wren", "boot": "-77" });
    let said = home.refused("container_logs", other_boot);
    assert!(said.contains("boot"), "{said}");
}

#[test]
fn files_are_read_and_written_whether_it_runs_or_not() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    fs::write(root.join("root/one"), "").unwrap();
    for running in [false, true] {
        if running {
            home.call("container_start", json!({ "container": "wren" }));
        }
        let about = |path: &str| json!({ "container": "wren", "path": path });
        let mut new = about("/root/new");
        new["base64"] = json!("AAEC/w==");
        new["mode"] = json!("0600");
        assert_eq!(home.call("container_file_write", new)["size_bytes"], 4);
        assert_eq!(fs::read(root.join("root/new")).unwrap(), [0, 1, 2, 255]);
        let read = home.call("container_file_read", about("/root/new"));
        assert_eq!(read["base64"], "AAEC/w==");
        let read = home.call("container_file_read", about("/etc/os-release"));
        assert_eq!(read["text"], "ID=wren\n");
        let mut part = about("/etc/os-release");
        part["offset"] = json!(1);
        part["bytes"] = json!(2);
        let part = home.call("container_file_read", part);
        assert_eq!(
            (&part["text"], &part["next_offset"]),
            (&json!("D="), &json!(3))
        );

        let mut page = about("/root");
        page["limit"] = json!(1);
        let first = home.call("container_file_list", page.clone());
        assert_eq!(first["truncated"], true);
        assert_eq!(first["entries"][0]["name"], "new");
        assert_eq!(first["entries"][0]["mode"], "0600");
        page["after"] = json!("new");
        let second = home.call("container_file_list", page);
        assert_eq!(second["truncated"], false);
        assert_eq!(second["entries"][0]["name"], "one");
    }
}

#[test]
fn no_link_leads_out_of_a_container() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    let secret = home.directory("secret");
    fs::write(&secret, "outside").unwrap();
    symlink(&secret, root.join("root/out")).unwrap();
    symlink("../../../secret", root.join("root/up")).unwrap();
    symlink(home.containers.lxcpath(), root.join("root/folder")).unwrap();
    symlink("/proc/1/root", root.join("root/magic")).unwrap();
    for running in [false, true] {
        if running {
            home.call("container_start", json!({ "container": "wren" }));
        }
        let about = |path: &str| json!({ "container": "wren", "path": path });
        for path in ["/root/out", "/root/up", "/root/folder/secret", "/etc"] {
            home.refused("container_file_read", about(path));
            let mut write = about(path);
            write["text"] = json!("x");
            home.refused("container_file_write", write);
        }
        for path in [
            "/root/magic/etc/passwd",
            "/../../../../../secret",
            "/dev/null",
            "/none",
        ] {
            home.refused("container_file_read", about(path));
        }
        for path in ["/root/folder", "/root/out", "/root/magic", "/proc", "/.."] {
            let listed = home.agent.call("container_file_list", about(path)).send();
            assert!(!listed.body.contains("\"secret"), "{path}: {}", listed.body);
        }
        assert_eq!(fs::read(&secret).unwrap(), b"outside");
    }
}

#[test]
#[ignore = "long: hundreds of tries to win a race"]
fn a_container_that_exchanges_its_directories_gains_nothing() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    let root = own.make("wren");
    for applet in ["mv", "ln", "mkdir"] {
        symlink("busybox", root.join("bin").join(applet)).unwrap();
    }
    let outside = own.lxcpath().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "outside").unwrap();
    fs::create_dir(root.join("desk")).unwrap();
    fs::write(root.join("desk/secret"), "inside").unwrap();
    symlink(&outside, root.join("trap")).unwrap();
    let helper = Helper::start(own.lxcpath());
    own.tool("lxc-start", "wren", &["-d"]);
    own.until_ready("wren");
    let swap = "echo on; while :; do mv desk kept; mv trap desk; mv desk trap; mv kept desk; done";
    let mut swapping = helper.ask(&container("wren", &format!("cd /; {swap}")), LONG_MS);
    assert_eq!(swapping.output(), b"on\n");
    let deed = |deed: Value| json!({ "do": "container_deed", "container": "wren", "deed": deed });
    for _ in 0..100 {
        let read = json!({ "what": "read_file", "path": "/desk/secret", "offset": 0, "bytes": 99 });
        let read = helper.run(&deed(read));
        assert!(!read.stdout().contains("outside"), "{read:?}");
        for path in ["/desk/secret", "/desk/new"] {
            helper.run(&deed(
                json!({ "what": "write_file", "path": path, "content": "eA==" }),
            ));
        }
    }
    drop(swapping);
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn what_is_copied_for_a_call_ends_with_the_call() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    if !Path::new("/usr/bin/rsync").exists() {
        return skip("rsync, with which LXC copies, is not installed");
    }
    let root = own.make("wren");
    for number in 0..3000 {
        fs::write(root.join(format!("root/{number}")), "x".repeat(4096)).unwrap();
    }
    let helper = Helper::start(own.lxcpath());
    let deed = |deed: Value| json!({ "do": "container_deed", "container": "wren", "deed": deed });
    let call = helper.ask(&deed(json!({ "what": "clone", "to": "robin" })), LONG_MS);
    let stage = own.lxcpath().join(".gatewren-robin/robin/rootfs");
    let whole = own.lxcpath().join("robin");
    wait_until("it is being copied", IN_TIME, || {
        stage.exists() || whole.exists()
    });
    call.cancel();
    let ending = call.finish().ending;
    // On a fast machine the clone may be complete by then.
    let was_whole = ending == json!({ "exited": { "code": 0 } });
    assert!(was_whole || ending.get("killed").is_some(), "{ending}");
    assert_eq!(whole.exists(), was_whole);
    let names = fs::read_dir(own.lxcpath()).unwrap().flatten();
    let left = names.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0);
    let path = own.lxcpath().display().to_string();
    let mut left = marked(&path);
    left.retain(|pid| *pid != helper.pid() && !is_fork_server(*pid));
    assert_eq!(left, [0; 0]);
    // And the next clone is complete.
    if !was_whole {
        let next = helper.run(&deed(json!({ "what": "clone", "to": "robin" })));
        assert_eq!(next.ending, json!({ "exited": { "code": 0 } }), "{next:?}");
    }
    assert!(whole.join("rootfs/root/2999").exists());
}
