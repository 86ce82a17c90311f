//! Moving containers of LXC to another disk: file systems in the test's files, real containers, and each failing step.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::backups::{LOOK, MAKE, python};
use crate::support::agents::{UNASKED, admit, wait_for_tool};
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::server::{Directory, Server, server};

const NAME: &str = "heron-k4";

/// A file system on a loop device, mounted until the test ends.
struct Disk {
    place: PathBuf,
    _files: Directory,
}

impl Disk {
    /// Makes one of this kind. Skips the test and returns `None` where it cannot be made or mounted.
    fn new(kind: &str, mebibytes: u64) -> Option<Self> {
        let files = Directory::new();
        let (image, place) = (files.join("image"), files.join("mounted"));
        fs::create_dir(&place).unwrap();
        let file = fs::File::create(&image).unwrap();
        file.set_len(mebibytes << 20).unwrap();
        let made = Command::new(format!("mkfs.{kind}"))
            .arg("-q")
            .arg(&image)
            .output();
        let mounted = Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(&place)
            .status();
        let is_made = made.is_ok_and(|output| output.status.success());
        if !is_made || !mounted.is_ok_and(|status| status.success()) {
            skip(&format!(
                "NO CONTAINER WAS MOVED TO {kind}: it cannot be made or mounted here"
            ));
            return None;
        }
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self {
            place,
            _files: files,
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.place)
            .status();
    }
}

/// A host with a container with files of all kinds.
struct Home {
    containers: Containers,
    root: PathBuf,
    _server: Server,
    agent: Client,
}

impl Home {
    fn new(stores: &str) -> Option<Self> {
        let mut containers = Containers::new()?;
        let root = containers.make(NAME);
        python(MAKE, &root);
        let settings = format!("[lxc]\nlxcpath = \"{}\"\n", containers.lxcpath().display());
        let bounds = format!("lxc_manage = \"on\"\ncontainer_stores = [{stores}]\n");
        let server = server()
            .policy("admin")
            .settings(&settings)
            .bounds(&bounds)
            .start();
        let agent = admit(&server, "mover", &UNASKED);
        wait_for_tool(&agent, "container_move");
        Some(Self {
            containers,
            root,
            _server: server,
            agent,
        })
    }

    fn start(&self) {
        self.agent
            .call("container_start", json!({ "container": NAME }))
            .send()
            .data();
        self.containers.until_ready(NAME);
    }

    fn storage(&self) -> Value {
        self.agent
            .call("container_storage", json!({ "container": NAME }))
            .send()
            .data()
    }

    fn move_to(&self, to: &str) -> Value {
        let arguments = json!({ "container": NAME, "to": to, "grace_s": 2 });
        self.agent.call("container_move", arguments).send().data()
    }

    fn refused(&self, to: &str) -> String {
        let arguments = json!({ "container": NAME, "to": to, "grace_s": 2 });
        self.agent
            .call("container_move", arguments)
            .send()
            .failure()
    }

    fn config(&self) -> String {
        fs::read_to_string(self.containers.lxcpath().join(NAME).join("config")).unwrap()
    }

    /// Checks that a failed move has left nothing and changed nothing.
    fn is_unchanged(&self, config: &str, state: &str) {
        assert_eq!(self.config(), config);
        assert_eq!(self.containers.state(NAME), state);
        assert!(self.root.is_dir());
        assert!(
            !self
                .containers
                .lxcpath()
                .join(NAME)
                .join(".gatewren-move")
                .exists()
        );
    }
}

fn store(facts: &Value, name: &str) -> Value {
    let mut stores = facts["stores"].as_array().unwrap().iter();
    stores.find(|one| one["name"] == name).unwrap().clone()
}

/// What is in a directory, without what a running container changes.
fn look(root: &Path) -> String {
    let all = python(LOOK, &root.join("data"));
    assert!(all.lines().count() > 10, "{all}");
    all
}

fn moves_there_and_back(kind: &str) {
    let Some(disk) = Disk::new(kind, 512) else {
        return;
    };
    let Some(home) = Home::new(&format!("\"big: {}\"", disk.place.display())) else {
        return;
    };
    home.start();
    let before = look(&home.root);
    let facts = home.storage();
    assert_eq!(facts["kind"], "directory", "{facts}");
    assert_eq!(store(&facts, "big")["fits"], true, "{facts}");
    assert_eq!(store(&facts, "big")["filesystem"], kind, "{facts}");
    assert_eq!(
        store(&facts, "default")["fits"],
        false,
        "it is there: {facts}"
    );
    let moved = home.move_to("big");
    let new = disk.place.join(NAME).join("rootfs");
    assert_eq!(moved["moved"]["path"], new.to_str().unwrap(), "{moved}");
    assert_eq!(moved["moved"]["runs"], true, "{moved}");
    assert_eq!(home.containers.state(NAME), "RUNNING");
    assert_eq!(look(&new), before, "the copy is exact");
    assert!(home.root.is_dir(), "the old copy is kept");
    assert!(home.config().contains(new.to_str().unwrap()));
    let shell = json!({ "container": NAME, "command": "echo there > /root/proof" });
    home.agent.call("container_shell", shell).send().data();
    assert!(new.join("root/proof").exists(), "it runs on the new disk");
    // The old copy is in the way until it is deleted.
    assert!(home.refused("default").contains("exists already"));
    let removed = home.agent.call(
        "container_move",
        json!({ "container": NAME, "remove_old": true }),
    );
    assert_eq!(removed.send().data()["old_copy_deleted"], true);
    assert!(!home.root.exists());
    assert_eq!(home.containers.state(NAME), "RUNNING");
    home.move_to("default");
    assert_eq!(look(&home.root), before);
    assert!(home.root.join("root/proof").exists());
    assert_eq!(home.containers.state(NAME), "RUNNING");
    let removed = home.agent.call(
        "container_move",
        json!({ "container": NAME, "remove_old": true }),
    );
    removed.send().data();
    assert!(!disk.place.join(NAME).exists());
    home.containers.tool("lxc-stop", NAME, &["-k"]);
}

#[test]
fn a_running_container_moves_to_another_disk_and_back() {
    moves_there_and_back("ext4");
}

#[test]
fn a_running_container_moves_to_btrfs_and_back() {
    moves_there_and_back("btrfs");
}

#[test]
fn a_disk_that_is_too_small_changes_nothing() {
    let Some(disk) = Disk::new("ext4", 32) else {
        return;
    };
    let Some(home) = Home::new(&format!("\"small: {}\"", disk.place.display())) else {
        return;
    };
    home.start();
    let config = home.config();
    let facts = home.storage();
    assert_eq!(store(&facts, "small")["fits"], false, "{facts}");
    let refused = home.refused("small");
    assert!(refused.contains("are free"), "{refused}");
    home.is_unchanged(&config, "RUNNING");
    assert!(home.refused("elsewhere").contains("container_stores"));
    home.containers.tool("lxc-stop", NAME, &["-k"]);
}

#[test]
fn a_container_that_does_not_run_in_its_new_place_runs_in_the_old_one_again() {
    let Some(disk) = Disk::new("ext4", 512) else {
        return;
    };
    let Some(home) = Home::new(&format!("\"big: {}\"", disk.place.display())) else {
        return;
    };
    // Its first process ends where the file system is another one.
    let device = Command::new("stat")
        .args(["-c", "%D"])
        .arg(&home.root)
        .output()
        .unwrap();
    let device = String::from_utf8(device.stdout).unwrap();
    let init = home.root.join("init");
    let text = fs::read_to_string(&init).unwrap();
    let check = format!(
        "#!/bin/sh\n[ \"$(busybox stat -c %D /)\" = {} ] || exit 7\n",
        device.trim()
    );
    fs::write(&init, text.replacen("#!/bin/sh\n", &check, 1)).unwrap();
    home.start();
    let config = home.config();
    let refused = home.refused("big");
    assert!(refused.contains("the move was undone"), "{refused}");
    home.is_unchanged(&config, "RUNNING");
    assert!(!disk.place.join(NAME).exists());
    home.containers.tool("lxc-stop", NAME, &["-k"]);
}

#[test]
fn a_move_that_was_interrupted_is_undone_by_the_next_helper() {
    let Some(disk) = Disk::new("ext4", 512) else {
        return;
    };
    let Some(mut containers) = Containers::new() else {
        return;
    };
    let root = containers.make(NAME);
    let directory = containers.lxcpath().join(NAME);
    let config = fs::read_to_string(directory.join("config")).unwrap();
    // As a helper leaves it that was killed during the copy.
    let stage = disk.place.join(format!(".gatewren-{NAME}"));
    fs::create_dir_all(stage.join("rootfs/half")).unwrap();
    let to = disk.place.join(NAME).join("rootfs");
    let record = json!({ "from": root, "to": to, "store": disk.place, "was_running": true });
    fs::write(directory.join(".gatewren-move"), record.to_string()).unwrap();
    let settings = format!("[lxc]\nlxcpath = \"{}\"\n", containers.lxcpath().display());
    let bounds = format!("container_stores = [\"big: {}\"]\n", disk.place.display());
    let _server = server().settings(&settings).bounds(&bounds).start();
    wait_until("the container runs again", IN_TIME, || {
        containers.state(NAME) == "RUNNING"
    });
    wait_until("the record is gone", IN_TIME, || {
        !directory.join(".gatewren-move").exists()
    });
    assert!(!stage.exists() && !to.exists() && root.is_dir());
    assert_eq!(
        fs::read_to_string(directory.join("config")).unwrap(),
        config
    );
    containers.tool("lxc-stop", NAME, &["-k"]);
}
