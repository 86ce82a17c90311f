//! Reading and writing tools start no program of a container: the host's programs read its files, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::helper::Helper;
use crate::support::machine::{IN_TIME, install_program, skip, wait_until};
use crate::support::server::{Directory, Server, server};
use crate::sweep::{CONTAINER, also, arguments, toolsets};

/// The path of the container's one real program; every program in the usual directories is a trap.
const KEPT: &str = "kept/busybox";

/// The trap: it records its name.
const TRAP: &str = "#!/kept/busybox sh\necho \"$0 $*\" >> /was-run\n";

/// The folders of a container that are searched for programs.
const FOLDERS: [&str; 6] = [
    "bin",
    "sbin",
    "usr/bin",
    "usr/sbin",
    "usr/local/bin",
    "usr/local/sbin",
];

/// The line in the container's journal.
const LINE: &str = "the inner wren sings";

/// A container in which every program is a trap, with a journal and packages.
struct Trapped {
    own: Containers,
    root: PathBuf,
}

impl Trapped {
    /// Skips the test and returns `None` where no container can run or no journal can be made.
    fn new() -> Option<Self> {
        let mut own = Containers::new()?;
        let root = own.make(CONTAINER);
        fs::create_dir(root.join("kept")).unwrap();
        install_program(Path::new("/bin/busybox"), &root.join(KEPT));
        let trap = root.join("trap");
        fs::write(&trap, TRAP).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
        let names = programs();
        for folder in FOLDERS {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).unwrap();
            for name in &names {
                let file = folder.join(name);
                let _ = fs::remove_file(&file);
                fs::hard_link(&trap, &file).unwrap();
            }
        }
        let config = own.lxcpath().join(CONTAINER).join("config");
        let text = fs::read_to_string(&config).unwrap();
        let text = text.replace("= /init\n", &format!("= /{KEPT} sleep 1000000\n"));
        fs::write(&config, text).unwrap();
        if !has_journal(&root) {
            skip("no journald runs here");
            return None;
        }
        packages(&root);
        Some(Self { own, root })
    }

    fn start(&self) {
        self.own.tool("lxc-start", CONTAINER, &["-d"]);
        wait_until("it runs", IN_TIME, || {
            self.own.state(CONTAINER) == "RUNNING"
        });
    }

    /// Returns the traps that ran since the last call.
    fn were_run(&self) -> String {
        let mark = self.root.join("was-run");
        let text = fs::read_to_string(&mark).unwrap_or_default();
        let _ = fs::remove_file(&mark);
        text
    }
}

/// Returns the names of all programs of this machine, and of those that gatewren's tools start.
fn programs() -> BTreeSet<String> {
    let named = [
        "apt",
        "apt-get",
        "apt-mark",
        "awk",
        "bash",
        "busctl",
        "cat",
        "dpkg",
        "dpkg-query",
        "env",
        "getent",
        "grep",
        "gzip",
        "journalctl",
        "ls",
        "mktemp",
        "sed",
        "sh",
        "stat",
        "systemctl",
        "systemd-run",
        "tail",
        "zcat",
    ];
    let here = ["/bin", "/sbin"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap())
    });
    named.into_iter().map(str::to_owned).chain(here).collect()
}

/// Gives a container a journal with one line, written by journald.
fn has_journal(root: &Path) -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/with-journald");
    let write = "echo \"$1\" | systemd-cat -t wren; journalctl --sync; mkdir -p \"$0/var/log\"; \
                 cp -a /run/log/journal \"$0/var/log/\"; cp /etc/machine-id \"$0/etc/machine-id\"; \
                 chgrp -R 999 \"$0/var/log/journal\"";
    let mut command = Command::new(script);
    let command = command.args(["sh", "-ec", write]).arg(root).arg(LINE);
    command.status().is_ok_and(|status| status.success())
}

/// Gives a container an upgradable package, a record of apt, and apt settings that name programs.
fn packages(root: &Path) {
    let package = |name: &str, version: &str, more: &str| {
        format!(
            "Package: {name}\nVersion: {version}\nArchitecture: {}\nMaintainer: x <x@box.example>\nDescription: x\n\
             {more}\n",
            native()
        )
    };
    let installed = "Status: install ok installed\n";
    let status = package("dpkg", "1.0", installed) + &package("wren-one", "1.0", installed);
    let newer = package("wren-one", "1.1", "Filename: ./wren-one_1.1.deb\nSize: 1\n");
    let hooks = "Dir::Bin::dpkg \"/trap\";\nAPT::Update::Pre-Invoke {\"/trap\";};\n\
                 DPkg::Pre-Invoke {\"/trap\";};\nAPT::Planner \"/trap\";\nAPT::Solver \"/trap\";\n";
    let history = "\nStart-Date: 2026-07-28  09:30:00\nCommandline: apt install wren-one\n\
                   Install: wren-one:amd64 (1.0)\nEnd-Date: 2026-07-28  09:30:01\n";
    fs::create_dir_all(root.join("var/lib/apt/lists/partial")).unwrap();
    for (path, text) in [
        ("var/lib/dpkg/status", status.as_str()),
        ("var/lib/apt/lists/_srv_main_._Packages", &newer),
        (
            "var/lib/apt/lists/_srv_main_._Release",
            "Origin: Lab\nLabel: Lab\nSuite: stable\nVersion: 12\n",
        ),
        (
            "etc/apt/sources.list",
            "deb [trusted=yes] file:/srv/main ./\n",
        ),
        ("etc/apt/apt.conf.d/99hooks", hooks),
        ("etc/apt/apt.conf", hooks),
        ("var/log/apt/history.log", history),
    ] {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// Returns dpkg's name for this machine's architecture.
fn native() -> String {
    let output = Command::new("dpkg").arg("--print-architecture").output();
    let said = output.map(|output| String::from_utf8(output.stdout).unwrap());
    said.unwrap_or_default().trim().to_owned()
}

fn server_of(own: &Containers) -> Server {
    let path = own.lxcpath().display();
    let settings = format!("[lxc]\nlxcpath = \"{path}\"\n");
    let bounds =
        "updates = \"apply\"\nlxc_manage = \"on\"\ncontainer_files = \"on\"\nunits = \"on\"\n";
    let server = server().policy("admin").settings(&settings);
    server.bounds(bounds).start()
}

/// Adds an agent that may use only tools of the classes read and write; it sees only those.
fn reader(server: &Server) -> Client {
    let mut args = vec![
        "agent", "add", "reader", "--policy", "admin", "--space", "*",
    ];
    for mode in [
        "read=allow",
        "write=allow",
        "reveal=deny",
        "disrupt=deny",
        "execute=deny",
        "persist=deny",
    ] {
        args.extend(["--mode", mode]);
    }
    // With toolsets, the list has the limits of the arguments.
    let toolsets = toolsets();
    args.extend(
        toolsets
            .iter()
            .flat_map(|name| ["--toolset", name.as_str()]),
    );
    let said = tell_by(&server.settings_file(), &args);
    let client = server.client().with_token(said["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    client
}

#[test]
fn no_tool_that_reads_or_writes_starts_a_program_of_the_container_that_it_is_about() {
    let Some(place) = Trapped::new() else {
        return;
    };
    place.start();
    let mut enter = Command::new("lxc-attach");
    let enter = enter.arg("-P").arg(place.own.lxcpath());
    let enter = enter.args(["-n", CONTAINER, "--", "journalctl", "-n", "1"]);
    assert!(enter.status().unwrap().success());
    assert!(place.were_run().contains("journalctl -n 1"), "a trap works");
    let server = server_of(&place.own);
    let client = reader(&server);
    let tools = client.modern("tools/list").send().result()["tools"].clone();
    let mut called = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let schema = &tool["inputSchema"];
        if schema["properties"]["container"].is_null() {
            continue;
        }
        for full in [false, true] {
            let mut given = also(name, arguments(schema, full));
            given["container"] = json!(CONTAINER);
            let result = client.call(name, given.clone()).send().result();
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            assert!(!text.starts_with("invalid argument"), "{name}: {text}");
            assert_eq!(place.were_run(), "", "{name} {given} ran it");
            if result["isError"] == false {
                answered.insert(name.to_owned());
            }
        }
        called.insert(name.to_owned());
    }
    asks_no_systemctl(&place);
    for name in [
        "boot_list",
        "container_logs",
        "logs_query",
        "logs_wait",
        "update_check",
        "update_history",
    ] {
        assert!(answered.contains(name), "{name} is not among {answered:?}");
    }
    for name in ["container_shell", "unit_start", "update_apply"] {
        assert!(!called.contains(name), "{name} is of another class");
    }
}

/// Tests these classes' tools for units with the helper, because this machine may not run systemd.
fn asks_no_systemctl(place: &Trapped) {
    let helper = Helper::start(place.own.lxcpath());
    let unit = "wren.service";
    for operation in [
        json!({ "do": "container_unit_list", "container": CONTAINER }),
        json!({ "do": "container_unit", "container": CONTAINER, "unit": unit }),
        json!({ "do": "container_unit_change", "container": CONTAINER, "unit": unit, "change": "reload" }),
        json!({ "do": "container_unit_change", "container": CONTAINER, "unit": unit, "change": "reset_failed" }),
    ] {
        let call = helper.run(&operation);
        assert_eq!(
            call.ending,
            json!({ "exited": { "code": 1 } }),
            "{operation}"
        );
        let words = String::from_utf8_lossy(&call.stderr);
        assert!(words.starts_with("it does not run systemd"), "{words}");
        assert_eq!(place.were_run(), "", "{operation} ran it");
    }
}

#[test]
fn the_hosts_journalctl_reads_a_containers_journal() {
    let Some(place) = Trapped::new() else {
        return;
    };
    place.start();
    let server = server_of(&place.own);
    let client = reader(&server);
    let about = |more: Value| {
        let mut given = more;
        given["container"] = json!(CONTAINER);
        given
    };
    let page = client.call("logs_query", about(json!({ "grep": "wren" })));
    let page = page.send().data();
    assert_eq!(page["lines"][0]["message"], LINE, "{page}");
    assert_eq!(page["lines"][0]["identifier"], "wren", "{page}");
    let logs = client
        .call("container_logs", about(json!({})))
        .send()
        .data();
    assert_eq!(logs["source"], "journal", "{logs}");
    assert!(logs["text"].as_str().unwrap().contains(LINE), "{logs}");
    let boots = client.call("boot_list", about(json!({}))).send().data();
    assert_eq!(boots["boots"][0]["boot"], 0, "{boots}");
    let cursor = page["end_cursor"].clone();
    let wait = json!({ "cursor": cursor, "timeout_s": 1 });
    let waited = client.call("logs_wait", about(wait)).send().data();
    assert_eq!(waited["found"], false, "{waited}");
    assert_eq!(place.were_run(), "");
}

/// Replaces a part of a journal's directory with something that is not a journal.
type Bait = fn(root: &Path, outside: &Path) -> nix::Result<()>;

#[test]
fn a_containers_journal_leads_to_no_file_of_the_host_and_to_no_device() {
    let baits: [(&str, Bait); 5] = [
        ("a link in the place of the directory", |root, outside| {
            let folder = root.join("var/log/journal");
            fs::rename(&folder, root.join("var/log/moved")).unwrap();
            symlink(outside, folder).unwrap();
            Ok(())
        }),
        ("a link to the machine's directory", |root, outside| {
            let own = of_machine(&root.join("var/log/journal"));
            fs::rename(&own, root.join("var/log/moved")).unwrap();
            symlink(of_machine(outside), own).unwrap();
            Ok(())
        }),
        ("a link in the place of the file", |root, outside| {
            let file = file_of(root);
            fs::remove_file(&file).unwrap();
            symlink(of_machine(outside).join("system.journal"), file).unwrap();
            Ok(())
        }),
        ("a pipe", |root, _| {
            let file = file_of(root);
            fs::remove_file(&file).unwrap();
            mkfifo(&file, Mode::S_IRWXU)
        }),
        ("a device", |root, _| {
            let file = file_of(root);
            fs::remove_file(&file).unwrap();
            // /dev/zero, which never ends.
            mknod(&file, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 5))
        }),
    ];
    for (what, bait) in baits {
        let Some(place) = Trapped::new() else {
            return;
        };
        // A journal of the host, with the same line in it.
        let outside = Directory::new();
        fs::set_permissions(&outside.0, fs::Permissions::from_mode(0o755)).unwrap();
        let kept = outside.join("journal");
        let copied = Command::new("cp")
            .arg("-a")
            .arg(place.root.join("var/log/journal"))
            .arg(&kept)
            .status();
        assert!(copied.unwrap().success());
        match bait(&place.root, &kept) {
            Err(Errno::EPERM) => {
                skip("no device can be made in this container");
                continue;
            }
            made => made.unwrap(),
        }
        place.start();
        let server = server_of(&place.own);
        let given = json!({ "container": CONTAINER });
        let result = reader(&server).call("logs_query", given).send().result();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(!text.contains(LINE), "{what}: {text}");
        let none = ["No line matches", "there is no journal", "has no journal"];
        let is_plain = none.iter().any(|words| text.contains(words));
        assert!(is_plain, "{what}: {text}");
    }
}

/// Returns the only directory in a journal's directory.
fn of_machine(journal: &Path) -> PathBuf {
    let mut entries = fs::read_dir(journal).unwrap();
    entries.next().unwrap().unwrap().path()
}

fn file_of(root: &Path) -> PathBuf {
    of_machine(&root.join("var/log/journal")).join("system.journal")
}

#[test]
fn the_hosts_apt_reads_a_containers_packages_and_obeys_none_of_its_settings() {
    let Some(place) = Trapped::new() else {
        return;
    };
    place.start();
    let server = server_of(&place.own);
    let client = reader(&server);
    let given = json!({ "container": CONTAINER });
    let check = client.call("update_check", given.clone()).send().data();
    assert_eq!(check["total"], 1, "{check}");
    let upgrade = &check["packages"][0];
    assert_eq!(upgrade["name"], "wren-one", "{check}");
    assert_eq!(
        (&upgrade["installed"], &upgrade["candidate"]),
        (&json!("1.0"), &json!("1.1"))
    );
    assert!(check["lists_refreshed"].is_string(), "{check}");
    let history = client.call("update_history", given).send().data();
    assert_eq!(history["runs"][0]["began_at"], "2026-07-28T09:30:00.000Z");
    let refresh = json!({ "container": CONTAINER, "refresh": true });
    let refused = client.call("update_check", refresh).send().result();
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert_eq!(refused["isError"], true, "{text}");
    assert!(text.contains("cannot refresh the lists"), "{text}");
    assert!(
        !text.contains("update_apply"),
        "this agent does not have it: {text}"
    );
    assert_eq!(place.were_run(), "");
}

#[test]
fn a_program_in_a_jail_sees_nothing_else_of_the_host() {
    let Some(place) = Trapped::new() else {
        return;
    };
    place.start();
    let init = place.own.tool("lxc-info", CONTAINER, &["-pH"]);
    let init: i32 = init.trim().parse().unwrap();
    let stat = fs::read_to_string(format!("/proc/{init}/stat")).unwrap();
    let (_, behind_name) = stat.rsplit_once(") ").unwrap();
    let started: u64 = behind_name.split(' ').nth(19).unwrap().parse().unwrap();
    let look = "ls -A / /etc /run /var/log; cat /proc/[0-9]*/comm; id -u; id -G; echo pid $$; \
                touch /usr/x /var/log/journal/x /x 2>&1; cat /etc/shadow 2>&1; \
                ls /sys/class/net 2>&1; echo end";
    let order = json!({
        "init": init, "started": started, "program": "/bin/sh", "argv": ["sh", "-c", look],
        "needs": ["/var/log/journal"], "paths": ["/etc/machine-id", "/no/such/file"]
    });
    let run = |order: &Value| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command
            .arg("__jail")
            .arg(order.to_string())
            .output()
            .unwrap()
    };
    let done = run(&order);
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(
        said.contains("pid 1\n") && said.ends_with("end\n"),
        "{said}"
    );
    for seen in ["ld.so.cache", "machine-id", "journal"] {
        assert!(said.contains(seen), "{seen}: {said}");
    }
    for unseen in ["root:", "home", "passwd\n", "lo\n", "\nroot\n", "systemd\n"] {
        assert!(!said.contains(unseen), "{unseen}: {said}");
    }
    assert_eq!(said.matches("Read-only file system").count(), 3, "{said}");
    let user: u32 = said
        .lines()
        .find_map(|line| line.parse().ok())
        .unwrap_or_default();
    assert!(user > 1_879_048_192, "{said}");
    assert!(said.contains(" 999\n"), "the journal's group: {said}");
    // The process id now belongs to another process.
    let mut other = order.clone();
    other["started"] = json!(started + 1);
    let refused = run(&other);
    assert!(!refused.status.success() && refused.stdout.is_empty());
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("starting or stopping"), "{words}");
    // Its processes end with the process that started it.
    let mut sleeps = order;
    sleeps["argv"] = json!(["sh", "-c", "echo begun; exec sleep 1000"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let command = command.arg("__jail").arg(sleeps.to_string());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut begun = [0; 6];
    output.read_exact(&mut begun).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // End of file: no process holds the pipe open.
    assert_eq!(output.read(&mut begun).unwrap(), 0);
}
