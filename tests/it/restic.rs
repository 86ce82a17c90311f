//! Backups in a restic repository, with the host's own restic: created, listed, verified, restored, cancelled.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::backups::{Home, LOOK, MAKE, names, python};
use crate::support::helper::{Helper, LONG_MS};
use crate::support::machine::{IN_TIME, call_cgroups, is_alive, marked, skip, wait_until};
use crate::support::server::Directory;

/// The repository's password; it must occur only in its file.
const PASSWORD: &str = "correct horse";

/// The owner's repository, with its password in a file.
struct Repository {
    files: Directory,
}

impl Repository {
    fn new() -> Option<Self> {
        if Command::new("restic").arg("version").output().is_err() {
            skip("there is no program restic");
            return None;
        }
        let files = Directory::new();
        fs::write(files.join("password"), PASSWORD).unwrap();
        fs::set_permissions(files.join("password"), Permissions::from_mode(0o600)).unwrap();
        let repository = Self { files };
        repository.run(&["init"]);
        Some(repository)
    }

    fn path(&self) -> PathBuf {
        self.files.join("repository")
    }

    /// Returns the target, in the form of helper.toml.
    fn target(&self) -> String {
        let (path, password) = (self.path(), self.files.join("password"));
        format!(
            "safe: restic {} password={}",
            path.display(),
            password.display()
        )
    }

    /// Returns the output of the owner's own restic.
    fn run(&self, args: &[&str]) -> String {
        let done = Command::new("restic")
            .args(["--no-cache", "-r"])
            .arg(self.path())
            .arg("--password-file")
            .arg(self.files.join("password"))
            .args(args)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn snapshots(&self) -> Vec<Value> {
        serde_json::from_str(&self.run(&["snapshots", "--json"])).unwrap()
    }
}

fn home(repository: &Repository) -> Option<Home> {
    Home::with_targets(&format!(", \"{}\"", repository.target()))
}

fn safe(more: Value) -> Value {
    let mut asked = more;
    asked["target"] = json!("safe");
    asked
}

#[test]
#[ignore = "long: repositories of restic"]
fn a_container_comes_back_from_restic_as_it_was() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let Some(mut home) = home(&repository) else {
        return;
    };
    let targets = home.call("backup_target_list", json!({}));
    let target = &targets["targets"][1];
    assert_eq!(
        (&target["kind"], &target["ready"]),
        (&json!("restic"), &json!(true)),
        "{target}"
    );
    assert!(target["free_bytes"].as_u64().unwrap() > 0);
    let root = home.containers.make("wren");
    print!("{}", python(MAKE, &root));
    let (before, config) = (python(LOOK, &root), home.config("wren"));
    assert!(before.contains("security.capability"), "{before}");
    let made = home.call("backup_create", safe(json!({ "container": "wren" })));
    let id = made["backup"].as_str().unwrap();
    let first = made["archive_bytes"].as_u64().unwrap();
    // The second backup adds only its own metadata.
    let second = home.call("backup_create", safe(json!({ "container": "wren" })));
    assert!(
        second["archive_bytes"].as_u64().unwrap() < first / 4,
        "{made} {second}"
    );
    let list = home.call("backup_list", json!({ "target": "safe" }));
    assert_eq!(list["total"], 2, "{list}");
    let told = &list["backups"][1];
    for part in [
        "backup",
        "target",
        "container",
        "made",
        "host",
        "was_running",
    ] {
        assert_eq!(told[part], made[part], "{part}: {told}");
    }
    let verified = home.call("backup_verify", safe(json!({ "backup": id })));
    assert_eq!(verified["whole"], true, "{verified}");
    assert!(verified["entries"].as_u64().unwrap() > before.lines().count() as u64);
    // To the owner it is one snapshot, with the files under their own paths.
    let list = repository.run(&["ls", "latest"]);
    assert!(list.contains("\n/rootfs/data/private\n"), "{list}");
    assert_eq!(names(&repository.path().join("locks")), [""; 0]);

    fs::remove_dir_all(root.join("data")).unwrap();
    fs::write(root.join("root/new"), "of later").unwrap();
    let back = |to: &str| safe(json!({ "backup": id, "container": to }));
    home.call("backup_restore", back("wren"));
    assert_eq!(python(LOOK, &root), before);
    assert_eq!(home.config("wren"), config);
    home.call("backup_restore", back("robin"));
    let place = home.directory("robin");
    assert_eq!(python(LOOK, &place.join("rootfs")), before);
    assert!(home.config("robin").contains("lxc.uts.name = robin\n"));
    assert_eq!(names(&place), ["config", "rootfs"]);
    assert_eq!(names(home.containers.lxcpath()), ["robin", "wren"]);
    home.call("container_start", json!({ "container": "wren" }));
}

#[test]
#[ignore = "long: repositories of restic"]
fn a_directory_of_the_host_comes_back_from_restic() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let Some(home) = home(&repository) else {
        return;
    };
    let data = home.files.join("data");
    python(MAKE, &data);
    let before = python(LOOK, &data.join("data"));
    let path = |name: &str| json!(home.files.join(name).display().to_string());
    let made = home.call("backup_create", safe(json!({ "path": path("data/data") })));
    let back = |to: &str, id: &Value| safe(json!({ "backup": id, "path": path(to) }));
    home.call("backup_restore", back("back/new", &made["backup"]));
    assert_eq!(python(LOOK, &home.files.join("back/new")), before);
    let list = home.call("backup_list", json!({ "target": "safe" }));
    assert_eq!(list["backups"][0]["path"], path("data/data"), "{list}");
    let one = home.call(
        "backup_create",
        safe(json!({ "path": path("data/data/private") })),
    );
    home.call("backup_restore", back("back/one", &one["backup"]));
    assert_eq!(names(&home.files.join("back/one")), ["private"]);
    assert_eq!(names(&home.files.join("back")), ["new", "one"]);
}

#[test]
#[ignore = "long: repositories of restic"]
fn a_damaged_repository_is_found_and_changes_nothing() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let Some(mut home) = home(&repository) else {
        return;
    };
    let root = home.containers.make("wren");
    python(MAKE, &root);
    let before = python(LOOK, &root);
    let made = home.call("backup_create", safe(json!({ "container": "wren" })));
    let id = &made["backup"];
    // The largest pack contains file data.
    let mut find = Command::new("find");
    find.arg(repository.path().join("data"))
        .args(["-type", "f"]);
    let packs = find.output().unwrap();
    let packs = String::from_utf8(packs.stdout).unwrap();
    let size = |path: &&str| fs::metadata(path).unwrap().len();
    let pack = Path::new(packs.lines().max_by_key(size).unwrap());
    let mut bytes = fs::read(pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::set_permissions(pack, Permissions::from_mode(0o600)).unwrap();
    fs::write(pack, &bytes).unwrap();
    let verified = home.call("backup_verify", safe(json!({ "backup": id })));
    assert_eq!(verified["whole"], false, "{verified}");
    for to in ["wren", "robin"] {
        let asked = safe(json!({ "backup": id, "container": to }));
        let said = home.refused("backup_restore", asked);
        assert!(said.contains("nothing was changed"), "{said}");
    }
    assert_eq!(python(LOOK, &root), before);
    assert_eq!(names(home.containers.lxcpath()), ["wren"]);
    assert_eq!(names(&home.directory("wren")), ["config", "rootfs"]);
    assert_eq!(names(&repository.path().join("locks")), [""; 0]);
}

/// Returns unusable targets, each for another reason, in the form of helper.toml after other targets.
fn unusable(repository: &Repository, files: &Directory, silent: &TcpListener) -> String {
    const FAR: &str = "# a server\nRESTIC_REPOSITORY=rest:http://me:sesame@127.0.0.1:1/\nAWS_SECRET_ACCESS_KEY=sesame\n";
    let at = |name: &str| files.join(name).display().to_string();
    for (name, text, mode) in [
        ("open", PASSWORD, 0o640),
        ("wrong", "battery staple", 0o600),
        ("far", FAR, 0o600),
        ("program", "RESTIC_PASSWORD_COMMAND=touch /tmp/x\n", 0o600),
    ] {
        fs::write(files.join(name), text).unwrap();
        fs::set_permissions(files.join(name), Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(files.join("none")).unwrap();
    let (safe, password) = (repository.path(), repository.files.join("password"));
    let (safe, password) = (safe.display(), password.display());
    let (none, far, program) = (at("none"), at("far"), at("program"));
    let elsewhere = format!("rest:http://127.0.0.1:1/ password={password}");
    let silent = silent.local_addr().unwrap();
    let targets = [
        format!("open: restic {safe} password={}", at("open")),
        format!("wrong: restic {safe} password={}", at("wrong")),
        format!("none: restic {none} password={password}"),
        format!("far: restic {elsewhere} credentials={far}"),
        format!("program: restic {safe} password={password} credentials={program}"),
        format!("deaf: restic rest:http://{silent}/ password={password}"),
    ];
    format!(", \"{}\"", targets.join("\", \""))
}

#[test]
#[ignore = "long: repositories of restic"]
fn what_is_in_the_way_of_a_repository_is_told_and_its_password_is_not() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let (files, silent) = (Directory::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let Some(mut home) = Home::with_targets(&unusable(&repository, &files, &silent)) else {
        return;
    };
    home.containers.make("wren");
    for (target, why) in [
        ("open", "chmod 600"),
        ("wrong", "wrong password"),
        ("none", "restic init -r"),
        ("program", "must be NAME=VALUE"),
    ] {
        let asked = json!({ "target": target, "container": "wren" });
        let said = home.refused("backup_create", asked);
        assert!(said.contains(why), "{target}: {said}");
    }
    // A target that accepts the connection and never responds delays the others only briefly.
    let list = home.call("backup_list", json!({}));
    for (target, why) in [
        ("wrong", "password"),
        ("far", "refused"),
        ("deaf", "in time"),
    ] {
        let unseen = list["unseen"].as_array().unwrap();
        let unseen = unseen.iter().find(|unseen| unseen["target"] == target);
        let obstacle = unseen.unwrap()["obstacle"].as_str().unwrap();
        assert!(obstacle.contains(why), "{list}");
    }
    let targets = home.call("backup_target_list", json!({}));
    let told = format!("{list}{targets}");
    assert!(
        !told.contains(PASSWORD) && !told.contains("sesame"),
        "{told}"
    );
    let said = home.refused("backup_target_mount", json!({ "target": "wrong" }));
    assert!(said.contains("cannot be mounted"), "{said}");
    assert_eq!(repository.snapshots().len(), 0);
}

/// Runs `begin`, and stops restic with SIGSTOP as soon as it makes a backup and holds its lock.
fn halted<T>(place: &str, locks: &Path, begin: impl FnOnce() -> T) -> (T, i32) {
    let call = begin();
    let mut pid = 0;
    wait_until("restic works, and holds its lock", IN_TIME, || {
        let found = marked(place).into_iter().find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(6).any(|part| part == b"backup")
        });
        pid = found.unwrap_or(0);
        // A lock that is still being written ends in `-tmp-` and a number.
        pid != 0 && names(locks).iter().any(|name| name.len() == 64)
    });
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(!String::from_utf8_lossy(&line).contains(PASSWORD));
    (call, pid)
}

#[test]
#[ignore = "long: repositories of restic"]
fn what_is_broken_off_leaves_no_lock_and_no_snapshot() {
    let Some(repository) = Repository::new() else {
        return;
    };
    let Some(Home {
        mut containers,
        files,
        ..
    }) = home(&repository)
    else {
        return;
    };
    let root = containers.make("wren");
    containers.tool("lxc-start", "wren", &["-d"]);
    containers.until_ready("wren");
    let mut much = File::create(root.join("root/much")).unwrap();
    let mut chance = File::open("/dev/urandom").unwrap().take(96 << 20);
    io::copy(&mut chance, &mut much).unwrap();
    let policy = files.join("helper.toml");
    let target = repository.target();
    fs::write(
        &policy,
        format!("backup = \"on\"\nbackup_targets = [\"{target}\"]\n"),
    )
    .unwrap();
    fs::set_permissions(&policy, Permissions::from_mode(0o644)).unwrap();
    let helper = Helper::start_as(containers.lxcpath(), |command| {
        command.arg("--policy").arg(&policy);
        command.arg("--state-dir").arg(files.join("state"));
    });
    let subject = json!({ "container": "wren" });
    let deed = json!({ "what": "create", "target": "safe", "subject": subject, "freeze": true });
    let create = json!({ "do": "backup", "deed": deed });
    let place = files.join("state/restic/safe/.gatewren-wren");
    let locks = repository.path().join("locks");
    let (call, restic) = halted(&place.display().to_string(), &locks, || {
        helper.ask(&create, LONG_MS)
    });
    call.cancel();
    let ending = call.finish().ending;
    assert_eq!(ending, json!({ "killed": { "why": "cancelled" } }));
    wait_until("restic has ended", IN_TIME, || !is_alive(restic));
    let groups = || call_cgroups(helper.pid());
    wait_until("all of it has ended", IN_TIME, || groups().is_empty());
    assert_eq!(names(&locks), [""; 0]);
    assert_eq!(repository.snapshots().len(), 0);
    assert_eq!(names(&files.join("state/restic/safe")), ["lock"]);
    assert_eq!(containers.state("wren"), "RUNNING");
    let made = helper.run(&create);
    let told = String::from_utf8_lossy(&made.stderr);
    assert_eq!(made.ending, json!({ "exited": { "code": 0 } }), "{told}");
    assert!(told.lines().all(|line| line.contains(" % of ")), "{told}");
    let tags = repository.snapshots()[0]["tags"].clone();
    assert!(
        tags.as_array().unwrap().contains(&json!("running")),
        "{tags}"
    );
}
