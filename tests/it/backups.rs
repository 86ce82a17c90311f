//! Backups: of containers and of the host's directories, made, checked, brought back, broken off and damaged.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::server::{Directory, Server, server};

/// Files of all kinds: owners, permissions, links of both sorts, holes, attributes, odd names.
const MAKE: &str = r#"
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
"#;

/// A line for each file below a directory with all that is known of it.
const LOOK: &str = r#"
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
"#;

fn python(script: &str, path: &Path) -> String {
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

/// A box with containers of the test's own and a place for backups, and an agent that may do everything without asking.
struct Home {
    containers: Containers,
    files: Directory,
    server: Server,
    agent: Client,
}

impl Home {
    fn new() -> Option<Self> {
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
            "backup = \"on\"\nlxc_manage = \"on\"\nbackup_targets = [\"local: {}\"]\nbackup_roots = [\"{}\"]\n\
             backup_paths = [\"{}\"]\nhost_file_writes = [\"{}\"]\n",
            at("kept"),
            at("more"),
            at("data"),
            at("back"),
        );
        let lxcpath = containers.lxcpath().display();
        let settings = format!("[lxc]\nlxcpath = \"{lxcpath}\"\n");
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

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.agent.call(tool, arguments).send().data()
    }

    /// Why a call did nothing.
    fn refused(&self, tool: &str, arguments: Value) -> String {
        self.agent.call(tool, arguments).send().failure()
    }

    /// A backup of a container; its id, and where it is.
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

    fn directory(&self, name: &str) -> PathBuf {
        self.containers.lxcpath().join(name)
    }

    fn config(&self, name: &str) -> String {
        fs::read_to_string(self.directory(name).join("config")).unwrap()
    }
}

/// An agent that may do everything without asking, within what the options say.
fn keeper(server: &Server, options: &[&str]) -> Client {
    let name = format!("keeper{}", options.len());
    let args = ["agent", "add", &name, "--policy", "admin"];
    let modes = ["read", "write", "disrupt", "execute", "reveal", "persist"];
    let modes = modes.map(|class| format!("{class}=allow"));
    let modes = modes.iter().flat_map(|mode| ["--mode", mode.as_str()]);
    let args: Vec<&str> = args
        .into_iter()
        .chain(modes)
        .chain(options.iter().copied())
        .collect();
    let said = tell_by(&server.settings_file(), &args);
    let agent = server.client().with_token(said["token"].as_str().unwrap());
    let list = agent.modern("tools/list");
    wait_until("it comes in, and the helper is heard", IN_TIME, || {
        let answer = list.send();
        answer.status == 200 && answer.names("tools").contains(&"backup_list".to_owned())
    });
    agent
}

/// What stands in a directory, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
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
    let facts = fs::metadata(&place).unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o700);
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
    home.containers.until_ready("wren");
}

#[test]
fn a_container_that_runs_stands_still_meanwhile_and_goes_on() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    home.call("container_start", json!({ "container": "wren" }));
    home.containers.until_ready("wren");
    let has_freezer = crate::support::machine::cgroup2().is_some();
    for freeze in [true, false] {
        let asked = json!({ "target": "local", "container": "wren", "freeze": freeze });
        let made = home.call("backup_create", asked);
        assert_eq!(made["was_running"], true);
        assert_eq!(made["was_frozen"], freeze && has_freezer, "{made}");
        assert_eq!(home.containers.state("wren"), "RUNNING");
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
fn a_container_comes_back_under_another_name_and_after_it_has_gone() {
    let Some(mut home) = Home::new() else { return };
    let root = home.containers.make("wren");
    python(MAKE, &root);
    let (before, text) = (python(LOOK, &root), home.config("wren"));
    let (id, _) = home.kept("wren");
    // Without an id it is the newest of the container that is named: there is none of robin.
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
    damaged("not as they were written");
    fs::write(&archive, &whole[..whole.len() - 1]).unwrap();
    damaged("not as long as it was");
    fs::write(&archive, &whole).unwrap();
    fs::write(&config, "lxc.hook.pre-start = /bin/true\n").unwrap();
    damaged("definition");
    fs::write(&config, &settings).unwrap();
    assert_eq!(home.call("backup_verify", asked())["whole"], true);
    // What says of itself that it is another, or says nothing, is none.
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
