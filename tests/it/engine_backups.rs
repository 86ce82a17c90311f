//! Backups of containers of Docker and Podman: their volumes and the files that they changed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::backups::{LOOK, names, python};
use crate::support::agents::admit_to_everything;
use crate::support::client::Client;
use crate::support::command::{refused, words};
use crate::support::engines::{Engine, EngineContainer, EngineKind};
use crate::support::helper::{Helper, LONG_MS};
use crate::support::machine::{IN_TIME, cgroup2, holds_within, marker, skip, wait_until};
use crate::support::server::{Directory, Server, server};

/// What the container leaves in its volume and in its own files: links out of it, devices, hard links, odd names, and
/// a deleted file of its image.
const FILL: &str = "printf precious > /data/file; ln /data/file /data/twin; ln -s /etc/passwd /data/out; \
                    ln -s ../../../../.. /data/up; mknod /data/null c 1 3; mkfifo /data/pipe; mkdir /data/sub; \
                    printf x > '/data/sub/-rf'; chown -R 1000:1000 /data/sub; chown 1000:1000 /data; chmod 2750 /data; \
                    printf typed > /typed; ln -s /etc/shadow /link; mkdir -p /own/deep; printf y > /own/deep/file; \
                    rm /bin/processes; printf mine > /host/mine";

/// A server that serves one engine, with a backup target and an agent that may do everything.
struct Home<'a> {
    engine: &'a Engine,
    server: Server,
    admin: Client,
    files: Directory,
}

/// A volume that is deleted when the test ends.
struct Volume<'a> {
    engine: &'a Engine,
    name: String,
}

impl<'a> Home<'a> {
    fn new(engine: &'a Engine) -> Self {
        Self::with_targets(engine, "")
    }

    /// Does the same with more targets, in the form of helper.toml.
    fn with_targets(engine: &'a Engine, more: &str) -> Self {
        let (name, socket, files) = (engine.kind.name(), engine.socket(), Directory::new());
        for folder in ["kept", "data", "back", "other"] {
            fs::create_dir(files.join(folder)).unwrap();
            fs::set_permissions(files.join(folder), Permissions::from_mode(0o755)).unwrap();
        }
        let at = |name: &str| files.join(name).display().to_string();
        let bounds = format!(
            "runtimes = [\"{name}\"]\n{name}_socket = \"{}\"\nbackup = \"delete\"\n\
             backup_targets = [\"local: {}\"{more}]\nbackup_paths = [\"{}\"]\nhost_file_writes = [\"{}\"]\n",
            socket.display(),
            at("kept"),
            at("data"),
            at("back"),
        );
        // Containers that tests name `mine-…`.
        let space = format!("[spaces.mine]\ncontainers = [\"{name}:mine-*\"]\n");
        let server = server().policy("admin").settings(&space).bounds(&bounds);
        let server = server.run_inside(engine).start();
        let admin = admit_to_everything(&server, "guest", &["--space", "*"]);
        Self {
            engine,
            server,
            admin,
            files,
        }
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.admin.call(tool, arguments).send().data()
    }

    fn refused(&self, tool: &str, arguments: Value) -> String {
        self.admin.call(tool, arguments).send().failure()
    }

    fn volume(&self) -> Volume<'a> {
        self.volume_with(&[])
    }

    /// Creates a volume with these options.
    fn volume_with(&self, options: &[&str]) -> Volume<'a> {
        let name = format!("it-{}.v_1", marker());
        let create = ["volume", "create"];
        self.engine
            .cli(&[&create, options, &[name.as_str()]].concat());
        let engine = self.engine;
        Volume { engine, name }
    }

    /// Starts a container with this volume, a directory of the host that may be in a backup, and one that may not.
    fn container(&self, volume: &Volume<'_>) -> EngineContainer<'a> {
        let at = |name: &str, to: &str| format!("{}:{to}", self.files.join(name).display());
        let mounts = [
            format!("{}:/data", volume.name),
            at("data", "/host"),
            at("other", "/secret"),
        ];
        let [data, host, secret] = &mounts;
        let options = ["--volume", data, "--volume", host, "--volume", secret];
        let more = [
            "--tmpfs",
            "/tmp",
            "--env",
            "TOKEN=s3cret",
            "--cap-add",
            "MKNOD",
        ];
        self.engine.run(&[&options[..], &more].concat())
    }

    fn run(&self, container: &EngineContainer<'_>, line: &str) -> String {
        self.engine
            .cli(&["exec", &container.name, "sh", "-c", line])
    }

    /// Stops a container and waits until its engine says so.
    fn stop(&self, container: &EngineContainer<'_>) {
        self.engine.cli(&["stop", "--time", "5", &container.name]);
    }

    fn create(&self, container: &EngineContainer<'_>) -> Value {
        let asked = json!({ "target": "local", "container": container.reference() });
        self.call("backup_create", asked)
    }

    /// Returns the directory of a backup.
    fn place(&self, made: &Value) -> PathBuf {
        let id = made["backup"].as_str().unwrap();
        self.files.join("kept").join(id.replace(':', "+"))
    }
}

impl Volume<'_> {
    /// Returns its directory.
    fn path(&self) -> PathBuf {
        let format = "{{.Mountpoint}}";
        let shown = ["volume", "inspect", "--format", format, &self.name];
        self.engine.cli(&shown).into()
    }
}

impl Drop for Volume<'_> {
    fn drop(&mut self) {
        self.engine.cli(&["volume", "rm", "--force", &self.name]);
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_container_of_an_engine_is_backed_up_with_its_volumes_and_its_own_files() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let home = Home::new(&engine);
        let volume = home.volume();
        let container = home.container(&volume);
        home.run(&container, FILL);
        let before = python(LOOK, &volume.path());
        let made = home.create(&container);
        assert_eq!(made["container"], container.reference());
        assert_eq!(made["was_running"], true);
        assert_eq!(made["was_frozen"], cgroup2().is_some(), "{made}");
        let left = made["not_included"].as_array().unwrap();
        let only = left.len() == 1 && left[0].as_str().unwrap().contains("/secret");
        assert!(only && !made.to_string().contains("s3cret"), "{made}");
        assert_eq!(home.run(&container, "cat /typed"), "typed", "it goes on");
        let place = home.place(&made);
        assert_eq!(
            names(&place),
            ["archive.tar.zst", "config", "manifest.json"]
        );
        assert!(text(&place.join("config")).contains("s3cret"));
        assert_eq!(
            fs::metadata(place.join("config")).unwrap().mode() & 0o777,
            0o600
        );

        let reference = container.reference();
        let list = home.call("backup_list", json!({ "container": reference }));
        assert_eq!(list["backups"][0]["backup"], made["backup"]);
        assert!(!list.to_string().contains("/secret"), "{list}");
        let asked = json!({ "target": "local", "backup": made["backup"] });
        let verified = home.call("backup_verify", asked.clone());
        assert_eq!(
            (&verified["whole"], &verified["entries"]),
            (&json!(true), &made["entries"])
        );

        let back = home.files.join("back/new");
        let mut asked = asked;
        asked["path"] = json!(back.display().to_string());
        home.call("backup_restore", asked.clone());
        assert_eq!(fs::metadata(&back).unwrap().mode() & 0o777, 0o700);
        assert_eq!(names(&back), ["binds", "layer", "volumes"]);
        assert_eq!(
            python(LOOK, &back.join("volumes").join(&volume.name)),
            before
        );
        assert_eq!(text(&back.join("layer/typed")), "typed");
        let deleted = fs::symlink_metadata(back.join("layer/bin/processes")).unwrap();
        assert!(deleted.file_type().is_char_device() && deleted.rdev() == 0);
        let bind = names(&back.join("binds")).remove(0);
        assert_eq!(text(&back.join("binds").join(bind).join("mine")), "mine");
        let said = home.refused("backup_restore", asked.clone());
        assert!(said.contains("already exists"), "{said}");

        asked.as_object_mut().unwrap().remove("path");
        home.call("backup_delete", asked);
        assert!(!place.exists());
    }
}

#[test]
fn a_stopped_container_gets_its_volumes_and_its_own_files_back() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let home = Home::new(&engine);
        let volume = home.volume();
        let container = home.container(&volume);
        home.run(&container, FILL);
        home.stop(&container);
        let before = python(LOOK, &volume.path());
        let made = home.create(&container);
        assert_eq!(made["was_running"], false, "{made}");
        container.act("start");
        let change = "rm -r /data/* /typed /own; printf later > /data/file; printf later > /late; chmod 700 /data; \
                      printf later > /host/mine";
        home.run(&container, change);
        let reference = container.reference();
        let asked = json!({ "target": "local", "container": reference });
        let said = home.refused("backup_restore", asked.clone());
        assert!(said.contains("container_stop"), "{said}");
        home.stop(&container);
        let restored = home.call("backup_restore", asked.clone());
        assert_eq!(restored["backup"], made["backup"]);
        let left = restored["not_restored"].as_array().unwrap();
        assert!(
            left.len() == 1 && left[0].as_str().unwrap().contains("/host"),
            "{restored}"
        );
        assert_eq!(python(LOOK, &volume.path()), before);
        // Nothing is left beside the volume.
        let beside = names(volume.path().parent().unwrap());
        assert!(
            !beside.iter().any(|name| name.contains("gatewren")),
            "{beside:?}"
        );
        assert_eq!(text(&home.files.join("data/mine")), "later");
        container.act("start");
        let seen = home.run(
            &container,
            "cat /data/file /typed /own/deep/file; ls /late /bin/processes 2>/dev/null | wc -l",
        );
        assert_eq!(seen, "precioustypedy0");

        // Another container that runs would keep the old volume.
        home.stop(&container);
        let mount = format!("{}:/other", volume.name);
        let other = engine.run(&["--volume", &mount]);
        let said = home.refused("backup_restore", asked.clone());
        assert!(
            said.contains("nothing was changed") && !said.contains(&other.name),
            "{said}"
        );
        drop(other);
        // A damaged archive changes nothing.
        let archive = home.place(&made).join("archive.tar.zst");
        let whole = fs::read(&archive).unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        fs::write(&archive, damaged).unwrap();
        let said = home.refused("backup_restore", asked);
        assert!(said.contains("checksum does not match"), "{said}");
        assert_eq!(python(LOOK, &volume.path()), before);
    }
}

#[test]
fn what_a_container_has_become_meanwhile_decides_what_is_restored() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let home = Home::new(&engine);
        let (first, second) = (home.volume(), home.volume());
        let name = format!("it-{}", marker());
        let reference = engine.reference(&name);
        let mounts = |one: &str, two: &str| {
            [
                format!("{}:/one{one}", first.name),
                format!("{}:/two{two}", second.name),
            ]
        };
        let run = |mounts: [String; 2]| {
            let [one, two] = &mounts;
            engine.run_named_with(&name, &["--volume", one, "--volume", two])
        };
        let container = run(mounts("", ""));
        home.run(
            &container,
            "echo old > /one/file; echo old > /two/file; echo old > /file",
        );
        let made = home.create(&container);
        let asked =
            |to: &str| json!({ "target": "local", "backup": made["backup"], "container": to });
        drop(container);
        let said = home.refused("backup_restore", asked(&reference));
        assert!(
            said.contains("cannot be created") && said.contains("(path)"),
            "{said}"
        );
        let other = engine.reference("alpha");
        let said = home.refused("backup_restore", asked(&other));
        assert!(said.contains("cannot be created here"), "{said}");

        // The same name and image, but the second volume is read-only now.
        let container = run(mounts("", ":ro"));
        home.run(&container, "echo new > /one/file");
        home.stop(&container);
        let restored = home.call("backup_restore", asked(&reference));
        let left = restored["not_restored"].as_array().unwrap();
        assert!(
            left.len() == 1 && left[0].as_str().unwrap().contains("only read"),
            "{restored}"
        );
        assert_eq!(text(&first.path().join("file")), "old\n");
        container.act("start");
        assert_eq!(home.run(&container, "cat /file"), "old");
    }
}

#[test]
fn an_agent_has_the_backups_of_its_own_containers_alone() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let home = Home::new(&engine);
        let (mine, other) = (home.volume(), home.volume());
        let other = home.container(&other);
        let mount = format!("{}:/data", mine.name);
        let mine = engine.run_named_with(&format!("mine-{}", marker()), &["--volume", &mount]);
        let agent = admit_to_everything(&home.server, "inner", &["--space", "mine"]);
        let (made, hidden) = (home.create(&mine), home.create(&other));
        let list = agent.call("backup_list", json!({})).send().data();
        assert_eq!(
            (&list["total"], &list["backups"][0]["backup"]),
            (&json!(1), &made["backup"])
        );
        let missing = format!("{}@2026-07-28T09-30-00.000Z", engine.reference("none"));
        let words = |tool: &str, id: &Value, to: Option<String>| {
            let mut asked = json!({ "target": "local", "backup": id });
            if let Some(to) = to {
                asked["container"] = json!(to);
            }
            let said = agent.call(tool, asked).send().failure();
            said.replace(id.as_str().unwrap(), "ID")
        };
        let name = |id: &Value| id.as_str().unwrap().rsplit_once('@').unwrap().0.to_owned();
        for tool in ["backup_verify", "backup_delete"] {
            let (one, two) = (
                words(tool, &hidden["backup"], None),
                words(tool, &json!(missing), None),
            );
            let strip = |said: &str, id: &Value| said.replace(&name(id), "NAME");
            assert_eq!(
                strip(&one, &hidden["backup"]),
                strip(&two, &json!(missing)),
                "{tool}"
            );
        }
        let said = words("backup_restore", &hidden["backup"], Some(mine.reference()));
        let same = words("backup_restore", &json!(missing), Some(mine.reference()));
        let strip = |said: &str, id: &Value| said.replace(&name(id), "NAME");
        assert_eq!(
            strip(&said, &hidden["backup"]),
            strip(&same, &json!(missing))
        );
        let refused = |container: String| {
            let asked = json!({ "target": "local", "container": container });
            agent.call("backup_create", asked).send().failure()
        };
        let gone = engine.reference("none");
        assert_eq!(
            refused(other.reference()).replace(&other.reference(), "NAME"),
            refused(gone.clone()).replace(&gone, "NAME")
        );
        let path = home.files.join("back/x").display().to_string();
        let asked = json!({ "target": "local", "backup": made["backup"], "path": path });
        agent.call("backup_restore", asked).send().failure();
        assert!(!home.files.join("back/x").exists());
    }
}

/// A container with much data, and a helper's policy file.
struct Large<'a> {
    engine: &'a Engine,
    files: Directory,
    volume: Volume<'a>,
}

impl<'a> Large<'a> {
    fn new(engine: &'a Engine) -> Self {
        let files = Directory::new();
        fs::create_dir(files.join("kept")).unwrap();
        fs::set_permissions(files.join("kept"), Permissions::from_mode(0o755)).unwrap();
        let name = format!("it-{}", marker());
        engine.cli(&["volume", "create", &name]);
        let place = files.join("kept").display().to_string();
        let policy = format!(
            "runtimes = [\"{}\"]\nbackup = \"on\"\nbackup_targets = [\"local: {place}\"]\n",
            engine.kind.name()
        );
        fs::write(files.join("helper.toml"), policy).unwrap();
        let volume = Volume { engine, name };
        Self {
            engine,
            files,
            volume,
        }
    }

    fn helper(&self) -> Helper {
        Helper::start_by(&self.engine.inside(), |command| {
            let option = format!("--{}-socket", self.engine.kind.name());
            command.arg(option).arg(self.engine.socket());
            command.arg("--policy").arg(self.files.join("helper.toml"));
        })
    }
}

/// Returns whether the kernel has frozen the container of a process.
fn is_frozen(engine: &Engine, init: &str) -> bool {
    let line = format!("cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/{init}/cgroup)/cgroup.events");
    engine.run_inside(&line).contains("frozen 1")
}

#[test]
fn a_container_of_an_engine_goes_on_although_the_helper_was_killed() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let large = Large::new(&engine);
        let mount = format!("{}:/data", large.volume.name);
        let container = engine.run(&["--volume", &mount]);
        let init = container.inspect(".State.Pid");
        let subject = json!({ "container": container.reference() });
        let deed =
            json!({ "what": "create", "target": "local", "subject": subject, "freeze": true });
        let create = json!({ "do": "backup", "deed": deed });
        let mut was_frozen = false;
        for megabytes in [64, 256, 1024] {
            let fill =
                format!("dd if=/dev/urandom of=/data/much bs=1M count={megabytes} 2>/dev/null");
            engine.cli(&["exec", &container.name, "sh", "-c", &fill]);
            let mut helper = large.helper();
            let call = helper.ask(&create, LONG_MS);
            was_frozen = holds_within(IN_TIME, || is_frozen(&engine, &init));
            helper.process.kill().unwrap();
            helper.process.wait().unwrap();
            drop(call);
            if was_frozen && is_frozen(&engine, &init) {
                break;
            }
        }
        assert!(was_frozen);
        let next = large.helper();
        wait_until("it goes on", IN_TIME, || !is_frozen(&engine, &init));
        let made = next.run(&create);
        assert_eq!(
            made.ending,
            json!({ "exited": { "code": 0 } }),
            "{}",
            made.stdout()
        );
        let left = names(&large.files.join("kept"));
        assert!(left.len() == 2, "what was left is gone: {left:?}");
        assert!(!is_frozen(&engine, &init));
    }
}

#[test]
fn a_volume_that_is_mounted_from_elsewhere_is_left_out_and_never_replaced() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let home = Home::new(&engine);
        fs::write(home.files.join("other/file"), "of the host").unwrap();
        let device = format!("device={}", home.files.join("other").display());
        let options = ["--opt", "type=none", "--opt", "o=bind", "--opt", &device];
        let volume = home.volume_with(&options);
        let mount = format!("{}:/data", volume.name);
        let container = engine.run(&["--volume", &mount]);
        for is_running in [true, false] {
            if !is_running {
                home.stop(&container);
            }
            let made = home.create(&container);
            let left = made["not_included"].as_array().unwrap();
            let words = left[0].as_str().unwrap();
            assert!(
                left.len() == 1 && words.contains("mounted from elsewhere"),
                "{made}"
            );
            let definition = text(&home.place(&made).join("manifest.json"));
            assert!(!definition.contains("volumes/"), "{definition}");
        }
        let asked = json!({ "target": "local", "container": container.reference() });
        home.call("backup_restore", asked);
        assert_eq!(text(&home.files.join("other/file")), "of the host");
        container.act("start");
        assert_eq!(home.run(&container, "cat /data/file"), "of the host");
    }
}

#[test]
fn the_owner_backs_up_a_container_of_an_engine_on_the_command_line() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let home = Home::new(&engine);
        let volume = home.volume();
        let container = home.container(&volume);
        let (owner, reference) = (home.server.state_dir(), container.reference());
        let create = ["backup", "create", "local", &reference, "--keep", "last=1"];
        let made = words(&owner, &create);
        let id = |said: &str| said.lines().next().unwrap().replace("created ", "");
        let first = id(&made);
        assert!(first.starts_with(&format!("{reference}@")), "{made}");
        let left = "not included: the directory or file of the host at /secret";
        assert!(made.contains(left), "{made}");
        let second = words(&owner, &create);
        assert!(second.contains(&format!("deleted {first}")), "{second}");
        let second = id(&second);
        let list = words(&owner, &["backup", "list", "--container", &reference]);
        assert!(list.contains(&second) && !list.contains(&first), "{list}");
        let whole = words(&owner, &["backup", "verify", "local", &second]);
        assert!(whole.contains("is whole"), "{whole}");
        let restore = ["backup", "restore", "local", &second, &reference];
        let said = refused(&owner, &restore);
        assert!(said.contains("stop it first"), "{said}");
        home.stop(&container);
        let restored = words(&owner, &restore);
        assert!(
            restored.contains("not restored: the directory"),
            "{restored}"
        );
        words(&owner, &["backup", "delete", "local", &second]);
        assert_eq!(names(&home.files.join("kept")), ["lock"]);
    }
}

#[test]
fn a_container_of_an_engine_is_not_stored_in_a_repository_of_restic() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let files = Directory::new();
        let (path, password) = (files.join("repository"), files.join("password"));
        fs::write(&password, "correct horse").unwrap();
        fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
        let mut init = Command::new("restic");
        init.args(["--no-cache", "init", "-r"]).arg(&path);
        let Ok(done) = init.arg("--password-file").arg(&password).output() else {
            skip("there is no program restic");
            return;
        };
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let more = format!(
            ", \"safe: restic {} password={}\"",
            path.display(),
            password.display()
        );
        let home = Home::with_targets(&engine, &more);
        let container = engine.run(&[]);
        let asked = json!({ "target": "safe", "container": container.reference() });
        let said = home.refused("backup_create", asked);
        assert!(
            said.contains("restic") && said.contains("a directory, a disk or a share"),
            "{said}"
        );
    }
}
