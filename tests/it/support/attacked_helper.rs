//! A helper under attack, with its helper.toml and its log, and a canary file that any command would create.

use std::fs::{self, File, Permissions};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use super::helper::{Helper, LONG_MS, host};
use super::machine::{IN_TIME, call_cgroups, is_alive, is_fork_server, wait_until};
use super::namespace::NetworkNamespace;
use super::server::Directory;

/// The most memory that the helper ever needs, in kB: the maximum number of connections, each with a frame of the
/// maximum length, and the helper itself.
const MOST_KB: u64 = 110_000;

/// The maximum length of a frame.
pub const FRAME_BYTES: u32 = 256 * 1024;

/// A policy that allows nothing.
pub const NOTHING: &str = "host_shell = \"off\"\ncontainer_shell = \"off\"\ncontainers = []\n\
                       host_reads = false\nlxc_reads = false\nlxc_writes = false\nlxc_manage = \"off\"\n\
                       container_files = \"off\"\n\
                       power = \"off\"\nupdates = \"off\"\nhost_logs = false\nunits = \"off\"\n\
                       host_settings = \"off\"\n\
                       host_file_reads = []\nhost_file_writes = []\nnetwork = \"off\"\nssh_keys = []\n\
                       backup = \"off\"\ncleanup = \"off\"\nstorage = \"off\"\nmail_to = []\n";

/// A policy that allows commands on the host.
pub const HOST_SHELL: &str = "host_shell = \"full\"\n";

/// The helper and its surroundings.
pub struct AttackedHelper {
    pub helper: Helper,
    log: PathBuf,
    pub canary: PathBuf,
    _home: Directory,
}

impl AttackedHelper {
    pub fn new(policy: &str) -> Self {
        Self::on(None, policy)
    }

    /// Starts on a separate machine, if given: operations then reach only the helper's own processes.
    pub fn on(machine: Option<&NetworkNamespace>, policy: &str) -> Self {
        let home = Directory::new();
        fs::set_permissions(&home.0, Permissions::from_mode(0o755)).unwrap();
        let (file, log, lxcpath) = (home.join("helper.toml"), home.join("log"), home.join("lxc"));
        fs::write(&file, policy).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        for container in ["lxc/web", "lxc/vault", "outside"] {
            fs::create_dir_all(home.join(container)).unwrap();
            fs::write(home.join(container).join("config"), "secret\n").unwrap();
        }
        symlink("../outside", lxcpath.join(".link")).unwrap();
        let helper = Helper::start_as(&lxcpath, |command| {
            if let Some(machine) = machine {
                *command = machine.inside(env!("CARGO_BIN_EXE_gatewren"));
                command.arg("helper").arg("--lxcpath").arg(&lxcpath);
                command.stdin(Stdio::null());
            }
            command.arg("--policy").arg(&file).args(["--log", "debug"]);
            command.stderr(File::create(&log).unwrap());
        });
        let canary = home.join("canary");
        let attacked = Self {
            helper,
            log,
            canary,
            _home: home,
        };
        assert!(attacked.serves());
        attacked
    }

    /// Returns a command that would create the canary file.
    pub fn trace(&self) -> Value {
        host(&format!("touch {}", self.canary.display()))
    }

    /// Returns whether a legitimate front gets its response.
    pub fn serves(&self) -> bool {
        let ping = self.helper.run(&json!({ "do": "ping" }));
        ping.ending == json!({ "exited": { "code": 0 } })
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Sends only these bytes, and returns all that comes back.
    pub fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.helper.connect();
        // The helper closes the connection at the first wrong byte. Sending the rest and the end may then fail.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Asserts that it still serves, has run only pings, and holds no resources.
    pub fn assert_unharmed(&self) {
        assert!(self.serves());
        assert!(!self.canary.exists(), "something was run");
        for line in self
            .log()
            .lines()
            .filter(|line| line.contains("operation="))
        {
            let refused = line.contains("ending=\"refused: ");
            assert!(refused || line.contains("operation=\"ping\""), "{line}");
        }
        let pid = self.helper.pid();
        wait_until("no process is left", IN_TIME, || children(pid).is_empty());
        assert_eq!(call_cgroups(pid), [""; 0].map(PathBuf::from));
        let most = status_kb(pid, "VmHWM:");
        assert!(most > 0 && most < MOST_KB, "{most} kB");
    }
}

/// Returns the living children of a helper, except its fork server, which lives as long as it does.
fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lines = threads.map(|thread| {
        let children = thread.path().join("children");
        fs::read_to_string(children).unwrap_or_default()
    });
    let text: String = lines.collect();
    let pids = text.split_whitespace().map(|pid| pid.parse().unwrap());
    pids.filter(|pid| is_alive(*pid) && !is_fork_server(*pid))
        .collect()
}

fn status_kb(pid: i32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// Returns the number of open descriptors of a process.
pub fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Returns a request for one operation with the widest limits.
pub fn request(operation: &Value) -> Value {
    let limits = json!({ "timeout_ms": LONG_MS, "output_bytes": 1_u64 << 40, "processes": 5000 });
    json!({ "operation": operation, "limits": limits, "reference": "hostile" })
}

/// Returns one of each operation, except those that only list; the commands would create the canary file.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn everything(trace: &Value) -> Vec<Value> {
    let mut all = vec![
        json!({ "do": "ping" }),
        trace.clone(),
        json!({ "do": "container_command", "container": "web", "command": trace["command"] }),
        json!({ "do": "container_stop", "container": "web", "grace_s": 0 }),
        json!({ "do": "container_vitals" }),
    ];
    all.extend([
        json!({ "do": "host_view" }),
        json!({ "do": "host_space", "places": ["/"] }),
        json!({ "do": "host_programs", "sockets": [1] }),
    ]);
    let absent = "/nonexistent/file";
    all.extend([
        json!({ "do": "host_file_list", "path": absent, "offset": 0, "limit": 1 }),
        json!({ "do": "host_file_search", "path": absent, "name": "*", "limit": 1 }),
        json!({ "do": "host_file_read", "path": absent, "offset": 0, "limit": 1 }),
        json!({ "do": "host_file_write", "path": absent, "base64": "", "new": true }),
    ]);
    let probe = json!({ "port": 1 });
    all.extend([
        json!({ "do": "host_probe", "address": "127.0.0.1", "probe": probe, "wait_ms": 1 }),
        json!({ "do": "host_firewall" }),
        json!({ "do": "host_smart", "disk": "nosuchdisk" }),
        json!({ "do": "host_pools" }),
        json!({ "do": "host_btrfs", "path": "/nonexistent" }),
        json!({ "do": "host_tunnels" }),
        json!({ "do": "host_repair", "mounted": "/nosuchplace" }),
        json!({ "do": "disk_cleanup", "agent": "a", "items": [{ "id": "core-dump:/var/crash/nosuch", "bytes": 0 }] }),
        json!({ "do": "host_tunnel_up", "tunnel": "nosuchtunnel" }),
        json!({ "do": "host_tunnel_down", "tunnel": "nosuchtunnel" }),
        json!({ "do": "host_disk_usage", "path": "/nonexistent", "depth": 1 }),
        json!({ "do": "wifi", "deed": { "what": "status" } }),
        json!({ "do": "wifi", "deed": { "what": "forget", "ssid": "nosuchnetwork" } }),
        // Back to what the network provides: there is no earlier setting to remove.
        json!({ "do": "set_name_servers", "servers": [] }),
    ]);
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj";
    let fingerprint = "SHA256:/hFyLEs2hVjV5i2Vr2fgDYLD1F724Cx2axHUn6ZN+WQ";
    // An account that does not exist: no user's keys may change.
    let about_keys = [
        json!({ "what": "list" }),
        json!({ "what": "add", "account": "nosuchuser", "key": key }),
        json!({ "what": "remove", "account": "nosuchuser", "fingerprint": fingerprint }),
    ];
    all.extend(about_keys.map(|deed| json!({ "do": "ssh_keys", "deed": deed })));
    let plan = json!({ "delay_s": 86_400 });
    all.extend(["restart", "shutdown"].map(|what| json!({ "do": what, "plan": plan })));
    all.extend(["cancel_shutdown", "update_check"].map(|what| json!({ "do": what })));
    // For a zone and a container that do not exist: these must have no effect on the machine that runs the tests.
    all.push(
        json!({ "do": "host_setting", "setting": { "what": "timezone", "zone": "No/Where" } }),
    );
    all.extend([
        json!({ "do": "update_refresh", "container": "web" }),
        json!({ "do": "update_history", "container": "web", "file": 0 }),
        json!({ "do": "update_apply", "container": "web", "scope": "all", "removals": false, "agent": "a" }),
    ]);
    all.extend(["list", "events"].map(|what| json!({ "do": format!("container_{what}") })));
    all.extend(of_systemd());
    let about = ["info", "config", "os_release", "vitals", "disk", "start"];
    all.extend(about.map(|what| json!({ "do": format!("container_{what}"), "container": "web" })));
    let deeds = deeds().into_iter();
    all.extend(
        deeds.map(|(_, deed)| json!({ "do": "container_deed", "container": "web", "deed": deed })),
    );
    all.extend(["devices", "updates", "refresh"].map(firmware));
    // For a device that does not exist.
    let none = "0".repeat(40);
    all.push(json!({ "do": "firmware", "deed": { "what": "apply", "device": none } }));
    all.push(json!({ "do": "mail", "subject": "x", "text": "x" }));
    all.extend(backups().map(|deed| json!({ "do": "backup", "deed": deed })));
    all.push(json!({ "do": "container_create", "name": "new", "template": "none" }));
    all.push(json!({
        "do": "job_start", "job": "job_0123456789abcdef0123456789abcdef", "owner": "a", "tool": "t",
        "operation": trace
    }));
    all
}

fn firmware(what: &str) -> Value {
    json!({ "do": "firmware", "deed": { "what": what } })
}

/// Returns the backup operations, on a target that does not exist.
fn backups() -> [Value; 11] {
    let (web, path) = (
        json!({ "container": "web" }),
        json!({ "path": "/nonexistent" }),
    );
    let id = "_host@2026-07-28T09-30-00.000Z";
    [
        json!({ "what": "targets" }),
        json!({ "what": "add_target", "target": "none" }),
        json!({ "what": "remove_target", "target": "none" }),
        json!({ "what": "mount", "target": "none" }),
        json!({ "what": "unmount", "target": "none" }),
        json!({ "what": "list" }),
        json!({ "what": "create", "target": "none", "subject": web, "freeze": true }),
        json!({
            "what": "create", "target": "none", "subject": web, "freeze": true, "keep": { "last": 1 },
        }),
        json!({ "what": "delete", "target": "none", "backup": id }),
        json!({ "what": "verify", "target": "none", "backup": id }),
        json!({ "what": "restore", "target": "none", "backup": id, "subject": path }),
    ]
}

/// Returns one of each deed, with its class.
pub fn deeds() -> Vec<(&'static str, Value)> {
    let alone = |class, what: &str| (class, json!({ "what": what }));
    let manage = |deed: Value| ("lxc_manage", deed);
    let files = |deed: Value| ("container_files", deed);
    vec![
        alone("lxc_reads", "snapshots"),
        (
            "lxc_reads",
            json!({ "what": "log", "log": "lxc", "bytes": 100 }),
        ),
        alone("lxc_reads", "image"),
        alone("lxc_writes", "freeze"),
        alone("lxc_writes", "unfreeze"),
        ("lxc_writes", json!({ "what": "autostart", "on": true })),
        manage(json!({ "what": "configure", "changes": { "hostname": "web" } })),
        alone("lxc_manage", "snapshot"),
        manage(json!({ "what": "restore", "snapshot": "snap0" })),
        manage(json!({ "what": "forget", "snapshot": "snap0" })),
        manage(json!({ "what": "clone", "to": "other" })),
        files(json!({ "what": "list_files", "path": "/", "limit": 1 })),
        files(json!({ "what": "read_file", "path": "/config", "offset": 0, "bytes": 1 })),
        files(json!({ "what": "write_file", "path": "/config", "content": "" })),
        manage(json!({ "what": "destroy", "force": false, "snapshots": false })),
    ]
}

/// Returns operations on units, journals and processes, of the host and of a container.
fn of_systemd() -> [Value; 10] {
    let query = json!({ "order": "older" });
    // A unit that no machine has.
    let unit = "gatewren-tests-none.timer";
    [
        json!({ "do": "host_log", "query": query }),
        json!({ "do": "host_boots" }),
        json!({ "do": "host_uptime_history" }),
        json!({ "do": "host_processes", "order": "cpu", "most": 1 }),
        json!({ "do": "unit_change", "unit": unit, "change": "stop" }),
        json!({ "do": "container_log", "container": "web", "query": query }),
        json!({ "do": "container_boots", "container": "web" }),
        json!({ "do": "container_unit_list", "container": "web" }),
        json!({ "do": "container_unit", "container": "web", "unit": unit }),
        json!({ "do": "container_unit_change", "container": "web", "unit": unit, "change": "stop" }),
    ]
}
