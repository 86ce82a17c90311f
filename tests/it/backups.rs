//! Backups of containers and of the host's directories: created, verified, restored, cancelled and damaged.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::agents::admit_to_everything;
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::helper::{Helper, LONG_MS};
use crate::support::machine::{
    IN_TIME, SetOnDrop, call_cgroups, cgroup2, is_alive, marked, skip, wait_until,
};
use crate::support::server::{Directory, Server, server};

/// Makes files of all kinds: owners, permissions, hard and symbolic links, holes, attributes, odd names.
pub const MAKE: &str = r"
import os, sys
root = sys.argv[1]
at = lambda *parts: os.path.join(root, *parts)
os.makedirs(at('data/empty'))
for name, content, owner, mode in [
    ('plain', b'of then\n', (0, 0), 0o644), ('private', bytes(range(256)) * 300, (1000, 1001), 0o600),
    ('tool', b'#!/bin/sh\n', (65534, 0), 0o4755), ('none', b'', (123456, 7), 0o000),
    (b'odd \xff\n name', b'x', (0, 0), 0o644), ('-rf', b'an option\n', (0, 0), 0o644)]:
    path = os.path.join(os.fsencode(at('data')), name if isinstance(name, bytes) else name.encode())
    with open(path, 'wb') as file: file.write(content)
    os.chown(path, *owner); os.chmod(path, mode)
with open(at('data/holes'), 'wb') as file:
    file.seek(8 << 20); file.write(b'end'); file.truncate(64 << 20)
os.link(at('data/plain'), at('data/twin'))
os.symlink('plain', at('data/link')); os.symlink('/etc/passwd', at('data/out')); os.symlink('../..', at('data/up'))
os.lchown(at('data/link'), 1000, 1000)
os.mkfifo(at('data/pipe'), 0o620); os.mknod(at('data/null'), 0o20600, os.makedev(1, 3))
os.chmod(at('data/empty'), 0o1777); os.chown(at('data/empty'), 33, 33)
for path, name, value in [('data/plain', 'trusted.gatewren', b'\0\xff'), ('data/plain', 'user.note', b'kept'),
        ('data/tool', 'security.capability', b'\x01\0\0\x02\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0')]:
    try: os.setxattr(at(path), name, value)
    except OSError as cause: print(name, cause)
for path in ['data/plain', 'data/private', 'data/empty']: os.utime(at(path), (1500000000, 1600000000))
";

/// Prints a line for each file below a directory, with all its metadata.
pub const LOOK: &str = r"
import os, sys, hashlib
root = os.fsencode(sys.argv[1]); first = {}
for folder, folders, files in os.walk(root):
    folders.sort()
    for name in [b'.'] + sorted(files + [f for f in folders if os.path.islink(os.path.join(folder, f))]):
        path = os.path.join(folder, name); s = os.lstat(path)
        short = os.path.relpath(path, root)
        kind = s.st_mode & 0o170000
        inside = hashlib.sha256(open(path, 'rb').read()).hexdigest() if kind == 0o100000 else ''
        link = os.readlink(path) if kind == 0o120000 else ''
        twin = first.setdefault(s.st_ino, short) if kind != 0o040000 else ''
        xattrs = [(x, os.getxattr(path, x, follow_symlinks=False)) for x in sorted(os.listxattr(path, follow_symlinks=False))]
        size = s.st_size if kind == 0o100000 else 0
        print(short, oct(s.st_mode), s.st_uid, s.st_gid, size, s.st_rdev, int(s.st_mtime), inside, link, twin, xattrs)
";

pub fn python(script: &str, path: &Path) -> String {
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A host with the test's own containers, a backup target, and an agent that may do everything without confirmation.
pub struct Home {
    pub containers: Containers,
    pub files: Directory,
    server: Server,
    agent: Client,
}

impl Home {
    pub fn new() -> Option<Self> {
        Self::with_targets("")
    }

    /// Does the same with more targets, in the form of helper.toml.
    pub fn with_targets(more: &str) -> Option<Self> {
        let containers = Containers::new()?;
        for program in ["tar", "zstd", "python3"] {
            if Command::new(program).arg("--version").output().is_err() {
                skip(&format!("there is no program {program}"));
                return None;
            }
        }
        let files = Directory::new();
        for folder in ["kept", "more", "data", "back"] {
            fs::create_dir(files.join(folder)).unwrap();
            fs::set_permissions(files.join(folder), Permissions::from_mode(0o755)).unwrap();
        }
        let at = |name: &str| files.join(name).display().to_string();
        let bounds = format!(
            "backup = \"delete\"\nlxc_manage = \"on\"\nbackup_targets = [\"local: {}\"{more}]\nbackup_roots = [\"{}\"]\n\
             backup_paths = [\"{}\"]\nhost_file_writes = [\"{}\"]\n",
            at("kept"),
            at("more"),
            at("data"),
            at("back"),
        );
        let settings = Self::settings(&containers);
        let server = server()
            .policy("admin")
            .settings(&settings)
            .bounds(&bounds)
            .start();
        let agent = keeper(&server, &[]);
        Some(Self {
            containers,
            files,
            server,
            agent,
        })
    }

    /// Returns the state directory of its server.
    pub fn state_dir(&self) -> PathBuf {
        self.server.state_dir()
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.agent.call(tool, arguments).send().data()
    }

    /// Returns the settings of its server.
    fn settings(containers: &Containers) -> String {
        format!("[lxc]\nlxcpath = \"{}\"\n", containers.lxcpath().display())
    }

    /// Returns the error of a call that fails.
    pub fn refused(&self, tool: &str, arguments: Value) -> String {
        self.agent.call(tool, arguments).send().failure()
    }

    /// Makes a backup of a container; returns its id and its directory.
    fn kept(&self, container: &str) -> (String, PathBuf) {
        let made = self.call(
            "backup_create",
            json!({ "target": "local", "container": container }),
        );
        let id = made["backup"].as_str().unwrap().to_owned();
        let place = self.files.join("kept").join(&id);
        assert!(place.join("manifest.json").exists());
        (id, place)
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        self.containers.lxcpath().join(name)
    }

    pub fn config(&self, name: &str) -> String {
        fs::read_to_string(self.directory(name).join("config")).unwrap()
    }
}

/// Adds an agent that may do everything without confirmation, within these options.
fn keeper(server: &Server, options: &[&str]) -> Client {
    let name = format!("keeper{}", options.len());
    admit_to_everything(server, &name, options)
}

/// Returns the names in a directory, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_container_comes_back_as_it_was() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    print!("{}", python(MAKE, &root));
    let (before, config) = (python(LOOK, &root), home.config("wren"));
    assert!(before.contains("security.capability"), "{before}");
    let made = home.call(
        "backup_create",
        json!({ "target": "local", "container": "wren" }),
    );
    assert_eq!(
        (&made["container"], &made["was_running"]),
        (&json!("wren"), &json!(false))
    );
    assert_eq!(made["entries"], before.lines().count());
    assert!(made.get("format").is_none(), "{made}");
    let id = made["backup"].as_str().unwrap();
    let place = home.files.join("kept").join(id);
    assert_eq!(
        names(&place),
        ["archive.tar.zst", "config", "manifest.json"]
    );
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o700);
    let list = home.call("backup_list", json!({}));
    assert_eq!(
        (&list["backups"][0]["backup"], &list["total"]),
        (&json!(id), &json!(1))
    );
    let verified = home.call("backup_verify", json!({ "target": "local", "backup": id }));
    assert_eq!(
        (&verified["whole"], &verified["entries"]),
        (&json!(true), &made["entries"])
    );

    fs::remove_dir_all(root.join("data")).unwrap();
    fs::write(root.join("root/new"), "of later").unwrap();
    fs::set_permissions(root.join("etc"), Permissions::from_mode(0o700)).unwrap();
    home.call(
        "container_autostart",
        json!({ "container": "wren", "on": true }),
    );
    home.call("container_start", json!({ "container": "wren" }));
    home.containers.until_ready("wren");
    let back = || json!({ "target": "local", "backup": id, "container": "wren" });
    let said = home.refused("backup_restore", back());
    assert!(said.contains("container_stop"), "{said}");
    home.call(
        "container_stop",
        json!({ "container": "wren", "grace_s": 0 }),
    );
    let restored = home.call("backup_restore", back());
    assert_eq!(
        (&restored["backup"], &restored["container"]),
        (&json!(id), &json!("wren"))
    );
    assert_eq!(python(LOOK, &root), before);
    assert_eq!(home.config("wren"), config);
    assert_eq!(
        names(&home.directory("wren")),
        ["config", "config.old", "rootfs", "wren.log"]
    );
    home.call("container_start", json!({ "container": "wren" }));
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_container_that_runs_stands_still_meanwhile_and_goes_on() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    home.call("container_start", json!({ "container": "wren" }));
    home.containers.until_ready("wren");
    let has_freezer = cgroup2().is_some();
    for freeze in [true, false] {
        let asked = json!({ "target": "local", "container": "wren", "freeze": freeze });
        let made = home.call("backup_create", asked);
        assert_eq!(made["was_running"], true);
        assert_eq!(made["was_frozen"], freeze && has_freezer, "{made}");
        wait_until("it goes on", IN_TIME, || {
            home.containers.state("wren") == "RUNNING"
        });
    }
    home.call("container_freeze", json!({ "container": "wren" }));
    let made = home.call(
        "backup_create",
        json!({ "target": "local", "container": "wren" }),
    );
    assert_eq!(made["was_frozen"], true);
    assert_eq!(
        home.containers.state("wren"),
        "FROZEN",
        "it stays as somebody wanted it"
    );
    home.call("container_unfreeze", json!({ "container": "wren" }));
    let list = home.call("backup_list", json!({ "container": "wren", "limit": 2 }));
    assert_eq!(
        (&list["total"], &list["next_offset"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(
        list["backups"][0]["backup"], made["backup"],
        "the newest first"
    );
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_container_comes_back_under_another_name_and_after_it_has_gone() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    python(MAKE, &root);
    let (before, text) = (python(LOOK, &root), home.config("wren"));
    let (id, _) = home.kept("wren");
    // Without an id the newest backup of the named container is meant; robin has none.
    let robin = || json!({ "target": "local", "container": "robin" });
    let said = home.refused("backup_restore", robin());
    assert!(said.contains("no backup of 'robin'"), "{said}");
    let mut asked = robin();
    asked["backup"] = json!(id);
    home.call("container_start", json!({ "container": "wren" }));
    home.containers.until_ready("wren");
    home.call("backup_restore", asked.clone());
    let place = home.directory("robin");
    assert_eq!(python(LOOK, &place.join("rootfs")), before);
    let other = home.config("robin");
    assert!(other.contains("lxc.uts.name = robin\n"), "{other}");
    assert!(
        other.contains(&format!(
            "lxc.rootfs.path = dir:{}/rootfs\n",
            place.display()
        )),
        "{other}"
    );
    let said = home.refused("backup_restore", asked);
    assert!(said.contains("already"), "{said}");
    assert_eq!(names(home.containers.lxcpath()), ["robin", "wren"]);
    home.call("container_destroy", json!({ "container": "robin" }));

    home.call(
        "container_destroy",
        json!({ "container": "wren", "force": true }),
    );
    assert_eq!(names(home.containers.lxcpath()), [""; 0]);
    home.call(
        "backup_restore",
        json!({ "target": "local", "container": "wren" }),
    );
    assert_eq!(python(LOOK, &root), before);
    assert_eq!(home.config("wren"), text);
    home.call("container_start", json!({ "container": "wren" }));
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_damaged_backup_is_found_and_never_brought_back() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    let before = python(LOOK, &root);
    let (id, place) = home.kept("wren");
    let (archive, config) = (place.join("archive.tar.zst"), place.join("config"));
    let whole = fs::read(&archive).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let settings = fs::read(&config).unwrap();
    let asked = || json!({ "target": "local", "backup": id });
    let damaged = |what: &str| {
        let verified = home.call("backup_verify", asked());
        assert_eq!(verified["whole"], false, "{what}");
        assert!(
            verified["problem"].as_str().unwrap().contains(what),
            "{verified}"
        );
        let mut back = asked();
        back["container"] = json!("wren");
        let said = home.refused("backup_restore", back.clone());
        assert!(
            said.contains("nothing was changed") && said.contains(what),
            "{said}"
        );
        back["container"] = json!("robin");
        home.refused("backup_restore", back);
        assert_eq!(python(LOOK, &root), before);
        assert_eq!(names(home.containers.lxcpath()), ["wren"]);
        assert_eq!(names(&home.directory("wren")), ["config", "rootfs"]);
    };
    fs::write(&archive, &flipped).unwrap();
    damaged("checksum does not match");
    fs::write(&archive, &whole[..whole.len() - 1]).unwrap();
    damaged("its size has changed");
    fs::write(&archive, &whole).unwrap();
    fs::write(&config, "lxc.hook.pre-start = /bin/true\n").unwrap();
    damaged("definition");
    fs::write(&config, &settings).unwrap();
    let manifest = fs::read(place.join("manifest.json")).unwrap();
    let mut other: Value = serde_json::from_slice(&manifest).unwrap();
    other["entries"] = json!(other["entries"].as_u64().unwrap() + 1);
    fs::write(place.join("manifest.json"), other.to_string()).unwrap();
    damaged("as many files");
    fs::write(place.join("manifest.json"), &manifest).unwrap();
    assert_eq!(home.call("backup_verify", asked())["whole"], true);
    // A directory that does not match its manifest, or has none, is not a backup.
    let other = place.with_file_name("robin@2026-07-28T09-30-00.000Z");
    fs::rename(&place, &other).unwrap();
    assert_eq!(home.call("backup_list", json!({}))["total"], 0);
    let said = home.refused("backup_verify", asked());
    assert!(said.contains("backup_list"), "{said}");
    fs::rename(&other, &place).unwrap();
    fs::write(place.join("manifest.json"), "{").unwrap();
    assert_eq!(home.call("backup_list", json!({}))["total"], 0);
    damaged("manifest");
}

/// Makes an archive with one entry that would be written elsewhere: into the directory of the second argument.
const HOSTILE: &str = r"
import io, os, subprocess, sys, tarfile
archive, canary, kind = sys.argv[1].rsplit('|', 2)
plain = archive + '.tar'
with tarfile.open(plain, 'w', format=tarfile.PAX_FORMAT) as tar:
    def add(name, kind=tarfile.REGTYPE, link='', content=b'owned\n'):
        info = tarfile.TarInfo(name); info.type = kind; info.linkname = link
        info.size = len(content) if kind == tarfile.REGTYPE else 0
        tar.addfile(info, io.BytesIO(content) if info.size else None)
    add('.', tarfile.DIRTYPE)
    up = '../' * 12 + canary.lstrip('/')
    if kind == 'above': add('./a/' + up + '/file')
    if kind == 'absolute': add(canary + '/file')
    if kind == 'link': add('./out', tarfile.SYMTYPE, canary); add('./out/file')
    if kind == 'upward link': add('./out', tarfile.SYMTYPE, up); add('./out/file')
    if kind == 'hard link': add('./out', tarfile.LNKTYPE, up + '/there'); add('./out')
    if kind == 'absolute hard link': add('./out', tarfile.LNKTYPE, canary + '/there'); add('./out')
    entries = len(tar.getmembers())
subprocess.run(['zstd', '-q', '-f', '--rm', plain, '-o', archive], check=True)
print(entries)
";

#[test]
#[ignore = "long: backups of whole containers"]
fn no_entry_of_an_archive_is_written_elsewhere() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let (id, place) = home.kept("wren");
    let canary = home.files.join("canary");
    fs::create_dir(&canary).unwrap();
    fs::write(canary.join("there"), "mine").unwrap();
    let archive = place.join("archive.tar.zst");
    let manifest = fs::read(place.join("manifest.json")).unwrap();
    for kind in [
        "above",
        "absolute",
        "link",
        "upward link",
        "hard link",
        "absolute hard link",
    ] {
        let asked = format!("{}|{}|{kind}", archive.display(), canary.display());
        let entries = python(HOSTILE, Path::new(&asked));
        let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        // An attacker who can write the archive can also write a matching manifest.
        let mut forged: Value = serde_json::from_slice(&manifest).unwrap();
        forged["archive_bytes"] = json!(fs::metadata(&archive).unwrap().len());
        forged["entries"] = json!(entries.trim().parse::<u64>().unwrap());
        forged["format"]["sha256"] = json!(sum.split(' ').next().unwrap());
        fs::write(place.join("manifest.json"), forged.to_string()).unwrap();
        let back = json!({ "target": "local", "backup": id, "container": "robin" });
        let said = home.refused("backup_restore", back);
        assert!(said.contains("archive"), "{kind}: {said}");
        assert_eq!(names(&canary), ["there"], "{kind}");
        assert_eq!(fs::read(canary.join("there")).unwrap(), b"mine", "{kind}");
        assert_eq!(names(home.containers.lxcpath()), ["wren"], "{kind}");
    }
}

/// The time limit for finding a process of a call; then the call is repeated with more data.
const A_TRY: Duration = Duration::from_secs(30);

/// A helper with a backup target, and a running container.
struct Bare {
    containers: Containers,
    files: Directory,
}

impl Bare {
    fn new() -> Option<Self> {
        let Home {
            mut containers,
            files,
            ..
        } = Home::new()?;
        containers.make("wren");
        containers.tool("lxc-start", "wren", &["-d"]);
        containers.until_ready("wren");
        let kept = files.join("kept").display().to_string();
        let policy = files.join("helper.toml");
        fs::write(
            &policy,
            format!("backup = \"on\"\nbackup_targets = [\"local: {kept}\"]\n"),
        )
        .unwrap();
        fs::set_permissions(&policy, Permissions::from_mode(0o644)).unwrap();
        Some(Self { containers, files })
    }

    fn helper(&self) -> Helper {
        Helper::start_as(self.containers.lxcpath(), |command| {
            command.arg("--policy").arg(self.files.join("helper.toml"));
            command.arg("--state-dir").arg(self.files.join("state"));
        })
    }

    /// Starts a call, waits until the helper's tar runs, and stops tar with SIGSTOP. Retries with more data to pack
    /// if tar ended first; `None` if it always did.
    fn halted<T>(
        &self,
        helper: &Helper,
        word: &str,
        mut start: impl FnMut() -> T,
    ) -> Option<(T, i32)> {
        for megabytes in [32, 128, 512] {
            let root = self.containers.lxcpath().join("wren/rootfs/root/much");
            let mut much = File::create(&root).unwrap();
            let mut random = File::open("/dev/urandom").unwrap().take(megabytes << 20);
            io::copy(&mut random, &mut much).unwrap();
            let begun = start();
            let deadline = Instant::now() + A_TRY;
            let is_over = || {
                let kept = names(&self.files.join("kept"));
                word == "--create" && kept.iter().any(|name| name.starts_with("wren@"))
            };
            let mut found = None;
            while found.is_none() && !is_over() && Instant::now() < deadline {
                found = self.tar(helper, word);
            }
            let pid = Pid::from_raw(found.unwrap_or(0));
            if found.is_some() && kill(pid, Signal::SIGSTOP).is_ok() && is_alive(pid.as_raw()) {
                return Some((begun, pid.as_raw()));
            }
        }
        skip("this machine packs faster than its processes can be found");
        None
    }

    /// Finds the call's process that has `word` and the target's path in its command line. Looks only into the call's
    /// cgroup if there is one, because that is faster.
    fn tar(&self, helper: &Helper, word: &str) -> Option<i32> {
        let place = self.files.join("kept").display().to_string();
        let groups = call_cgroups(helper.pid()).into_iter();
        let lists = groups.map(|group| fs::read_to_string(group.join("cgroup.procs")));
        let mut pids: Vec<i32> = lists
            .flat_map(|list| {
                list.unwrap_or_default()
                    .lines()
                    .map(str::parse)
                    .collect::<Vec<_>>()
            })
            .flatten()
            .collect();
        if cgroup2().is_none() {
            pids = marked(&place);
        }
        pids.into_iter().find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            line.contains(word) && line.contains(&place)
        })
    }

    /// Returns whether the container is frozen, by its own cgroup: LXC may report another freezer.
    fn stands_still(&self) -> bool {
        let init = self.containers.tool("lxc-info", "wren", &["-pH"]);
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", init.trim())).unwrap();
        let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let group = group.unwrap().trim_start_matches('/');
        let events = cgroup2().unwrap().join(group).join("cgroup.events");
        fs::read_to_string(events).unwrap().contains("frozen 1")
    }

    fn create() -> Value {
        let subject = json!({ "container": "wren" });
        let deed =
            json!({ "what": "create", "target": "local", "subject": subject, "freeze": true });
        json!({ "do": "backup", "deed": deed })
    }

    /// Asserts that no process runs, no file is left, and the container is thawed.
    fn is_clean(&self, helper: &Helper, tar: i32) {
        wait_until("tar has ended", IN_TIME, || !is_alive(tar));
        wait_until("all of it has ended", IN_TIME, || {
            call_cgroups(helper.pid()).is_empty()
        });
        wait_until("nothing is left", IN_TIME, || {
            names(&self.files.join("kept")) == ["lock"]
        });
        wait_until("the container goes on", IN_TIME, || {
            cgroup2().is_none() || !self.stands_still()
        });
    }
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_backup_that_is_broken_off_leaves_nothing_behind() {
    let Some(bare) = Bare::new() else { return };
    let helper = bare.helper();
    let Some((call, tar)) =
        bare.halted(&helper, "--create", || helper.ask(&Bare::create(), LONG_MS))
    else {
        return;
    };
    if cgroup2().is_some() {
        assert!(bare.stands_still());
    }
    call.cancel();
    assert_eq!(
        call.finish().ending,
        json!({ "killed": { "why": "cancelled" } })
    );
    bare.is_clean(&helper, tar);
    // The same for a job, which a separate operation ends.
    fs::remove_file(bare.files.join("kept/lock")).unwrap();
    let id = "job_0123456789abcdef0123456789abcdef";
    let start = json!({ "do": "job_start", "job": id, "owner": "a", "tool": "backup_create", "detached": true,
        "operation": Bare::create() });
    let Some((_, tar)) = bare.halted(&helper, "--create", || helper.run(&start)) else {
        return;
    };
    helper.run(&json!({ "do": "job_cancel", "job": id, "owner": "a" }));
    bare.is_clean(&helper, tar);
    assert_eq!(
        helper.run(&Bare::create()).ending,
        json!({ "exited": { "code": 0 } })
    );
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_container_goes_on_although_the_helper_was_killed() {
    let Some(bare) = Bare::new() else { return };
    let mut helper = bare.helper();
    let Some((_call, tar)) =
        bare.halted(&helper, "--create", || helper.ask(&Bare::create(), LONG_MS))
    else {
        return;
    };
    helper.process.kill().unwrap();
    helper.process.wait().unwrap();
    wait_until("tar has ended with it", IN_TIME, || !is_alive(tar));
    let next = bare.helper();
    wait_until("the container goes on", IN_TIME, || {
        cgroup2().is_none() || !bare.stands_still()
    });
    let made = next.run(&Bare::create());
    assert_eq!(
        made.ending,
        json!({ "exited": { "code": 0 } }),
        "{}",
        made.stdout()
    );
    let left = names(&bare.files.join("kept"));
    assert!(
        left.len() == 2 && left[1].starts_with("wren@"),
        "what was left is gone: {left:?}"
    );
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_way_back_that_is_broken_off_changes_nothing() {
    let Some(bare) = Bare::new() else { return };
    let helper = bare.helper();
    let root = bare.containers.lxcpath().join("wren/rootfs");
    let mut before = String::new();
    let mut begin = || {
        for entry in fs::read_dir(bare.files.join("kept")).unwrap().flatten() {
            let _ = fs::remove_dir_all(entry.path());
        }
        bare.containers.tool("lxc-start", "wren", &["-d"]);
        bare.containers.until_ready("wren");
        let made = helper.run(&Bare::create());
        let id = serde_json::from_slice::<Value>(&made.stdout).unwrap()["backup"].clone();
        bare.containers.tool("lxc-stop", "wren", &["-k"]);
        bare.containers.until_stopped("wren");
        fs::write(root.join("root/later"), "x").unwrap();
        before = python(LOOK, &root);
        let deed = json!({ "what": "restore", "target": "local", "backup": id, "subject": { "container": "wren" } });
        helper.ask(&json!({ "do": "backup", "deed": deed }), LONG_MS)
    };
    bare.containers.tool("lxc-stop", "wren", &["-k"]);
    bare.containers.until_stopped("wren");
    let Some((call, tar)) = bare.halted(&helper, "--extract", &mut begin) else {
        return;
    };
    call.cancel();
    assert_eq!(
        call.finish().ending,
        json!({ "killed": { "why": "cancelled" } })
    );
    wait_until("tar has ended", IN_TIME, || !is_alive(tar));
    wait_until("all of it has ended", IN_TIME, || {
        call_cgroups(helper.pid()).is_empty()
    });
    assert_eq!(python(LOOK, &root), before);
    let left = names(&bare.containers.lxcpath().join("wren"));
    assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_directory_of_the_host_comes_back_to_a_new_one() {
    let Some(home) = Home::new() else { return };
    let data = home.files.join("data");
    python(MAKE, &data);
    let before = python(LOOK, &data.join("data"));
    let path = |name: &str| json!(home.files.join(name).display().to_string());
    let made = home.call(
        "backup_create",
        json!({ "target": "local", "path": path("data/data") }),
    );
    let id = &made["backup"];
    assert!(id.as_str().unwrap().starts_with("_host@"), "{made}");
    assert_eq!(made["entries"], before.lines().count());
    let back = |to: &str| json!({ "target": "local", "backup": id, "path": path(to) });
    home.call("backup_restore", back("back/new"));
    assert_eq!(python(LOOK, &home.files.join("back/new")), before);
    for (to, why) in [
        ("back/new", "already"),
        ("data/new", "host_file_writes"),
        ("back/../x", ".."),
    ] {
        let said = home.refused("backup_restore", back(to));
        assert!(said.contains(why), "{to}: {said}");
    }
    let said = home.refused(
        "backup_restore",
        json!({ "target": "local", "backup": id, "container": "wren" }),
    );
    assert!(said.contains("of the host"), "{said}");
    assert_eq!(names(&home.files.join("back")), ["new"]);
    let one = home.call(
        "backup_create",
        json!({ "target": "local", "path": path("data/data/private") }),
    );
    assert_eq!(one["entries"], 1);
    for (from, why) in [("kept", "backup_paths"), ("data/none", "does not exist")] {
        let said = home.refused(
            "backup_create",
            json!({ "target": "local", "path": path(from) }),
        );
        assert!(said.contains(why), "{from}: {said}");
    }
    let said = home.refused("backup_create", json!({ "target": "local" }));
    assert!(said.contains("either"), "{said}");
    // A target directory is rejected if another user may create links in it.
    fs::set_permissions(home.files.join("back"), Permissions::from_mode(0o777)).unwrap();
    let said = home.refused("backup_restore", back("back/other"));
    assert!(said.contains("must be writable by root only"), "{said}");
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_directory_comes_back_below_no_directory_of_another_user() {
    let Some(home) = Home::new() else { return };
    fs::write(home.files.join("data/file"), "kept").unwrap();
    let path = |name: &str| json!(home.files.join(name).display().to_string());
    let made = home.call(
        "backup_create",
        json!({ "target": "local", "path": path("data") }),
    );
    let back = |to: &str| json!({ "target": "local", "backup": made["backup"], "path": path(to) });
    let theirs = home.files.join("back/theirs");
    fs::create_dir_all(theirs.join("roots")).unwrap();
    chown(&theirs, Some(1000), Some(1000)).unwrap();
    let said = home.refused("backup_restore", back("back/theirs/roots/new"));
    let named = format!("{} must be writable by root only", theirs.display());
    assert!(said.contains(&named), "{said}");
    assert_eq!(names(&theirs.join("roots")), [""; 0]);
    chown(&theirs, Some(0), Some(0)).unwrap();
    home.call("backup_restore", back("back/theirs/roots/new"));
    assert_eq!(names(&theirs.join("roots")), ["new"]);
}

/// During each restore, another process repeatedly replaces the parent directory with a link to another directory.
#[test]
#[ignore = "long: backups of whole containers"]
fn a_directory_comes_back_nowhere_else_when_its_parent_is_swapped_for_a_link() {
    /// More than enough: code that resolves each step by path writes outside within the first few tries.
    const TRIES: usize = 20;
    let Some(home) = Home::new() else { return };
    for n in 0..200 {
        fs::write(home.files.join(&format!("data/{n}")), "kept").unwrap();
    }
    let at = |name: &str| home.files.join(name);
    for folder in ["back/in", "outside"] {
        fs::create_dir(at(folder)).unwrap();
    }
    let path = |name: &str| json!(at(name).display().to_string());
    let made = home.call(
        "backup_create",
        json!({ "target": "local", "path": path("data") }),
    );
    let (inside, away, outside) = (at("back/in"), at("back/away"), at("outside"));
    let is_over = AtomicBool::new(false);
    let mut landed = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(&inside, &away).unwrap();
                symlink(&outside, &inside).unwrap();
                std::thread::sleep(Duration::from_millis(3));
                fs::remove_file(&inside).unwrap();
                fs::rename(&away, &inside).unwrap();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let _over = SetOnDrop(&is_over);
        for n in 0..TRIES {
            let to = path(&format!("back/in/new{n}"));
            let back = json!({ "target": "local", "backup": made["backup"], "path": to });
            let answer = home.agent.call("backup_restore", back).send();
            landed += usize::from(answer.result()["isError"] != true);
        }
    });
    assert!(landed > 0, "none came back");
    assert_eq!(names(&outside), [""; 0]);
    assert_eq!(names(&inside).len(), landed, "{:?}", names(&inside));
}

#[test]
#[ignore = "long: backups of whole containers"]
fn what_is_nobodys_business_is_in_no_backup_nor_the_backups_themselves() {
    let Some(Home { files, .. }) = Home::new() else {
        return;
    };
    let data = files.join("data");
    for folder in ["lxc/vault", "kept", "seen", "deep/lxc"] {
        fs::create_dir_all(data.join(folder)).unwrap();
        fs::write(data.join(folder).join("file"), "x").unwrap();
        fs::set_permissions(data.join(folder), Permissions::from_mode(0o755)).unwrap();
    }
    let (policy, shown) = (files.join("helper.toml"), data.display());
    let text = format!(
        "backup = \"on\"\nbackup_targets = [\"local: {shown}/kept\"]\nbackup_paths = [\"{shown}\"]\n"
    );
    fs::write(&policy, text).unwrap();
    fs::set_permissions(&policy, Permissions::from_mode(0o644)).unwrap();
    let helper = Helper::start_as(&data.join("lxc"), |command| {
        command.arg("--policy").arg(&policy);
    });
    let create = |path: String| {
        let subject = json!({ "path": path });
        let deed =
            json!({ "what": "create", "target": "local", "subject": subject, "freeze": true });
        helper.run(&json!({ "do": "backup", "deed": deed }))
    };
    let made = create(shown.to_string());
    let id = serde_json::from_slice::<Value>(&made.stdout).unwrap()["backup"].clone();
    let archive = data
        .join("kept")
        .join(id.as_str().unwrap())
        .join("archive.tar.zst");
    let list = Command::new("tar")
        .args(["--zstd", "-tf"])
        .arg(archive)
        .output()
        .unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let mut entries: Vec<&str> = list.lines().collect();
    entries.sort_unstable();
    let expected = [
        "./",
        "./deep/",
        "./deep/lxc/",
        "./deep/lxc/file",
        "./seen/",
        "./seen/file",
    ];
    assert_eq!(entries, expected);
    for (path, why) in [
        ("lxc/vault", "no agent has access"),
        ("kept", "cannot contain a backup of itself"),
    ] {
        let (_, said) = create(format!("{shown}/{path}")).refusal();
        assert!(said.contains(why), "{path}: {said}");
    }
}

#[test]
#[ignore = "long: backups of whole containers"]
fn places_are_added_below_what_the_owner_names_and_the_owners_own_stay() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let list = home.call("backup_target_list", json!({}));
    let local = &list["targets"][0];
    assert_eq!(
        (&local["target"], &local["kind"]),
        (&json!("local"), &json!("directory"))
    );
    assert_eq!(
        (&local["of_the_owner"], &local["ready"]),
        (&json!(true), &json!(true))
    );
    assert!(local["free_bytes"].as_u64().unwrap() > 0);
    let own = || json!({ "target": "own" });
    let added = home.call("backup_target_add", own());
    assert_eq!(
        (&added["of_the_owner"], &added["ready"]),
        (&json!(false), &json!(true)),
        "{added}"
    );
    assert_eq!(
        added["place"],
        home.files.join("more/own").display().to_string()
    );
    let made = home.call(
        "backup_create",
        json!({ "target": "own", "container": "wren" }),
    );
    let id = made["backup"].clone();
    for (tool, target, why) in [
        ("backup_target_add", "own", "already"),
        ("backup_target_add", "local", "already"),
        ("backup_target_remove", "local", "owner of this server"),
        ("backup_target_remove", "none", "no backup target"),
        ("backup_target_mount", "local", "cannot be mounted"),
    ] {
        let said = home.refused(tool, json!({ "target": target }));
        assert!(said.contains(why), "{tool} {target}: {said}");
    }
    let said = home.refused(
        "backup_target_add",
        json!({ "target": "other", "root": "/etc" }),
    );
    assert!(said.contains("backup_roots"), "{said}");
    home.call("backup_target_remove", own());
    assert_eq!(home.call("backup_list", json!({}))["total"], 0);
    home.call("backup_target_add", own());
    assert_eq!(
        home.call("backup_list", json!({}))["backups"][0]["backup"],
        id
    );
    // A directory that others may write to is rejected: root would unpack there.
    fs::set_permissions(home.files.join("kept"), Permissions::from_mode(0o777)).unwrap();
    let said = home.refused(
        "backup_create",
        json!({ "target": "local", "container": "wren" }),
    );
    assert!(said.contains("chmod go-w"), "{said}");
    let list = home.call("backup_list", json!({}));
    assert_eq!(list["unseen"][0]["target"], "local", "{list}");
}

#[test]
#[ignore = "long: backups of whole containers"]
fn an_agent_within_a_space_has_the_backups_of_its_containers_alone() {
    let Some(mut home) = Home::new() else { return };
    for name in ["wren", "vault"] {
        home.containers.make(name);
    }
    let (wren, vault) = (home.kept("wren").0, home.kept("vault").0);
    let path = home.files.join("data").display().to_string();
    let of_host = home.call("backup_create", json!({ "target": "local", "path": path }));
    let space = "[spaces.birds]\ncontainers = [\"wren\", \"robin\"]\nhost = false\n";
    let settings = Home::settings(&home.containers);
    home.server.reload_with(&format!("{settings}{space}"));
    let agent = keeper(&home.server, &["--space", "birds"]);
    let call = |tool: &str, arguments: Value| agent.call(tool, arguments).send();
    let list = call("backup_list", json!({})).data();
    assert_eq!(
        (&list["total"], &list["backups"][0]["backup"]),
        (&json!(1), &json!(wren))
    );
    let targets = call("backup_target_list", json!({})).data();
    assert!(targets["targets"][0].get("place").is_none(), "{targets}");
    let none = vault.replace("vault", "never");
    for (tool, more) in [
        ("backup_verify", json!({})),
        ("backup_delete", json!({})),
        ("backup_restore", json!({ "container": "robin" })),
    ] {
        let asked = |id: &str| {
            let mut asked = more.clone();
            (asked["target"], asked["backup"]) = (json!("local"), json!(id));
            call(tool, asked).failure()
        };
        assert_eq!(
            asked(&vault).replace("vault", "never"),
            asked(&none),
            "{tool}"
        );
        let said = asked(of_host["backup"].as_str().unwrap());
        assert!(tool == "backup_restore" || said.contains("reach"), "{said}");
    }
    let outside = json!({ "target": "local", "backup": wren, "container": "vault" });
    call("backup_restore", outside).failure();
    let said = call("backup_create", json!({ "target": "local", "path": path })).failure();
    assert!(said.contains("reach"), "{said}");
    let create = |name: &str| {
        call(
            "backup_create",
            json!({ "target": "local", "container": name }),
        )
        .failure()
    };
    assert_eq!(create("vault").replace("vault", "never"), create("never"));
    call(
        "backup_restore",
        json!({ "target": "local", "backup": wren, "container": "robin" }),
    )
    .data();
}

#[test]
#[ignore = "long: backups of whole containers"]
fn a_disk_is_mounted_kept_on_and_unmounted() {
    let file = Directory::new();
    let Some(disk) = Disk::new(&file.join("disk.img")) else {
        return;
    };
    let secret = file.join("password");
    fs::write(&secret, "password=x\n").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o640)).unwrap();
    let share = format!("nas: smb //127.0.0.1/x credentials={}", secret.display());
    let more = format!(
        ", \"usb: disk {}\", \"gone: disk LABEL=no-such-disk\", \"{share}\"",
        disk.0
    );
    let Some(mut home) = Home::with_targets(&more) else {
        return;
    };
    home.containers.make("wren");
    let usb = || json!({ "target": "usb" });
    let asked = json!({ "target": "usb", "container": "wren" });
    let said = home.refused("backup_create", asked.clone());
    assert!(said.contains("backup_target_mount"), "{said}");
    let mounted = home.call("backup_target_mount", usb());
    assert_eq!(
        (&mounted["kind"], &mounted["ready"]),
        (&json!("disk"), &json!(true))
    );
    assert!(
        mounted["total_bytes"].as_u64().unwrap() < 64 << 20,
        "the disk's own size: {mounted}"
    );
    let id = home.call("backup_create", asked)["backup"].clone();
    home.call("backup_target_mount", usb());
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let lines = table.lines().filter(|line| line.contains(&disk.0));
    let lines: Vec<&str> = lines.collect();
    assert!(
        lines.len() == 1 && lines[0].contains("nosuid,nodev,noexec"),
        "{lines:?}"
    );
    assert_eq!(home.call("backup_target_umount", usb())["ready"], false);
    assert_eq!(home.call("backup_list", json!({}))["total"], 0);
    home.call("backup_target_mount", usb());
    let verified = home.call("backup_verify", json!({ "target": "usb", "backup": id }));
    assert_eq!(verified["whole"], true);
    home.call("backup_target_umount", usb());
    home.call("backup_target_umount", usb());
    home.refused("backup_target_mount", json!({ "target": "gone" }));
    let said = home.refused("backup_target_mount", json!({ "target": "nas" }));
    assert!(said.contains("chmod 600"), "{said}");
}

/// A loop device with a file system, detached at the end.
struct Disk(String);

impl Disk {
    fn new(file: &Path) -> Option<Self> {
        File::create(file).unwrap().set_len(48 << 20).unwrap();
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .arg(file)
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            skip("there is no mkfs.ext4");
            return None;
        }
        let device = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match device {
            Ok(device) if device.status.success() => Some(Self(
                String::from_utf8(device.stdout).unwrap().trim().to_owned(),
            )),
            _ => {
                skip("there is no loop device to be had");
                None
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A failed test may have left it mounted.
        let _ = Command::new("umount").arg(&self.0).output();
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}
