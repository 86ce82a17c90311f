//! The host's disks: their content, health and repair, with file systems in the test's files.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::add_agent;
use crate::support::machine::{IN_TIME, is_root, skip, wait_until};
use crate::support::server::{Directory, Server, server};

/// The block size of the file systems.
const BLOCK: usize = 4096;

/// The first bytes of each block in the test's file.
const MARK: &[u8] = b"a wren sings in this very block";

/// A host whose owner allows disk repair, and an agent that needs no confirmation.
struct Home {
    client: Client,
    files: Directory,
    _server: Server,
}

impl Home {
    /// Skips the test and returns `None` where these file systems are not available.
    fn new(programs: &[&str]) -> Option<Self> {
        if !is_root() {
            skip("disks need root");
            return None;
        }
        let missing = |name: &&&str| {
            let places = ["/usr/sbin", "/usr/bin", "/sbin"];
            !places
                .iter()
                .any(|place| Path::new(place).join(name).exists())
        };
        if let Some(name) = programs.iter().find(missing) {
            skip(&format!("NO DISK WAS REPAIRED: {name} is not installed"));
            return None;
        }
        let server = server()
            .policy("admin")
            .settings("")
            .bounds("storage = \"on\"\n")
            .start();
        let options = ["--policy", "admin", "--mode", "disrupt=allow"];
        let agent = add_agent(&server.state_dir(), "wren", &options);
        let client = server.client().with_token(agent["token"].as_str().unwrap());
        let list = client.modern("tools/list");
        wait_until("it comes in, and the helper is heard", IN_TIME, || {
            let answer = list.send();
            answer.status == 200 && answer.names("tools").contains(&"disk_repair".to_owned())
        });
        Some(Self {
            client,
            files: Directory::new(),
            _server: server,
        })
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.client.call(tool, arguments).send().data()
    }

    fn repair(&self, what: Value) -> Value {
        self.call("disk_repair", what)
    }

    fn refused(&self, what: Value) -> String {
        self.client.call("disk_repair", what).send().failure()
    }
}

/// A loop device on a file, with a directory to mount it.
struct Disk {
    image: PathBuf,
    device: String,
    place: PathBuf,
}

impl Disk {
    /// Skips the test and returns `None` where loop devices are not available.
    fn new(home: &Home, name: &str, bytes: u64) -> Option<Self> {
        let (image, place) = (
            home.files.join(name),
            home.files.join(&format!("{name}-place")),
        );
        File::create(&image).unwrap().set_len(bytes).unwrap();
        fs::create_dir(&place).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image)
            .output();
        let made = made.unwrap();
        if !made.status.success() {
            skip("NO DISK WAS REPAIRED: a file cannot be a disk here (losetup)");
            return None;
        }
        let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        Some(Self {
            image,
            device,
            place,
        })
    }

    /// Returns the device's name.
    fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    fn place(&self) -> &str {
        self.place.to_str().unwrap()
    }

    /// Mounts it; returns whether this kernel supports the file system.
    fn mount(&self) -> bool {
        let mount = Command::new("mount")
            .arg(&self.device)
            .arg(&self.place)
            .output();
        mount.unwrap().status.success()
    }

    fn unmount(&self) {
        run("umount", &[self.place()]);
        // A mount namespace made in between, as by the start of a container, keeps it mounted for a while longer.
        wait_until("nobody has it mounted", IN_TIME, || {
            let mut alone = fs::OpenOptions::new();
            alone.read(true).custom_flags(nix::libc::O_EXCL);
            alone.open(&self.device).is_ok()
        });
    }

    /// Returns the offsets of the blocks with the mark, in bytes.
    fn marked(&self) -> Vec<u64> {
        let mut disk = File::open(&self.device).unwrap();
        let mut block = [0; BLOCK];
        let mut found = Vec::new();
        let mut at = 0;
        while disk.read_exact(&mut block).is_ok() {
            if block.starts_with(MARK) {
                found.push(at);
            }
            at += BLOCK as u64;
        }
        found
    }

    /// Overwrites a block.
    fn damage(&self, at: u64) {
        let mut disk = File::options().write(true).open(&self.device).unwrap();
        disk.seek(SeekFrom::Start(at)).unwrap();
        disk.write_all(&[0xaa; BLOCK]).unwrap();
        disk.sync_all().unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .args(["--lazy", self.place()])
            .output();
        let _ = Command::new("losetup")
            .args(["--detach", &self.device])
            .output();
    }
}

/// Runs a program and returns its output. It must succeed.
fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Asserts that `disk_list` shows the file system and the disk.
fn is_listed(home: &Home, disk: &Disk) {
    let list = home.call("disk_list", json!({}));
    let listed = list["filesystems"].as_array().unwrap();
    let listed = listed
        .iter()
        .find(|one| one["path"] == disk.place())
        .unwrap();
    assert_eq!(
        (&listed["filesystem"], &listed["source"]),
        (&json!("btrfs"), &json!(disk.device))
    );
    let disks = list["disks"].as_array().unwrap();
    let listed = disks.iter().find(|one| one["name"] == disk.name()).unwrap();
    assert_eq!(listed["volume"], disk.image.to_str().unwrap());
}

#[test]
fn a_scrub_finds_damage_and_repairs_what_has_a_second_copy() {
    let Some(home) = Home::new(&["btrfs", "mkfs.btrfs", "losetup"]) else {
        return;
    };
    let Some(disk) = Disk::new(&home, "wren", 256 << 20) else {
        return;
    };
    let twice = ["--quiet", "--data=dup", "--metadata=dup", &disk.device];
    run("mkfs.btrfs", &twice);
    if !disk.mount() {
        return skip("NO DISK WAS SCRUBBED: this kernel has no btrfs");
    }
    let here = json!({ "path": disk.place() });
    let mut block = MARK.to_vec();
    block.resize(BLOCK, b'.');
    fs::write(disk.place.join("song"), &block).unwrap();
    run("sync", &["--file-system", disk.place()]);
    assert_eq!(home.repair(here.clone())["outcome"], "sound");
    is_listed(&home, &disk);
    disk.unmount();
    let copies = disk.marked();
    let &[first, second] = copies.as_slice() else {
        panic!("not two copies: {copies:?}");
    };
    disk.damage(first);
    assert!(disk.mount());
    let repaired = home.repair(here.clone());
    assert_eq!(repaired["outcome"], "repaired", "{repaired}");
    let report = repaired["report"].as_str().unwrap();
    assert!(report.contains("csum_errors: 1"), "{repaired}");
    assert_eq!(home.repair(here.clone())["outcome"], "sound");
    disk.unmount();
    assert_eq!(disk.marked(), copies, "it is as it was");

    disk.damage(first);
    disk.damage(second);
    assert!(disk.mount());
    let damaged = home.repair(here);
    assert_eq!(damaged["outcome"], "damaged", "{damaged}");
    let health = home.call("disk_health", json!({}));
    let problems = health["problems"].as_array().unwrap();
    let said = format!("btrfs at {}: {} has", disk.place(), disk.device);
    assert!(
        problems
            .iter()
            .any(|one| one.as_str().unwrap().starts_with(&said)),
        "{health}"
    );
}

#[test]
fn a_disk_that_nobody_uses_is_checked_and_one_that_is_mounted_at_the_next_boot() {
    let programs = [
        "e2fsck",
        "mkfs.ext4",
        "debugfs",
        "dumpe2fs",
        "tune2fs",
        "losetup",
    ];
    let Some(home) = Home::new(&programs) else {
        return;
    };
    let Some(disk) = Disk::new(&home, "wren", 32 << 20) else {
        return;
    };
    let this = json!({ "disk": disk.name() });
    let said = home.refused(this.clone());
    assert!(said.contains("no known file system"), "{said}");
    run("mkfs.ext4", &["-q", &disk.device]);
    assert_eq!(home.repair(this.clone())["outcome"], "sound");
    run(
        "debugfs",
        &[
            "-w",
            "-R",
            "set_inode_field <2> links_count 9",
            &disk.device,
        ],
    );
    let repaired = home.repair(this.clone());
    assert_eq!(repaired["outcome"], "repaired", "{repaired}");
    assert!(
        repaired["report"].as_str().unwrap().contains("FIXED"),
        "{repaired}"
    );

    if !disk.mount() {
        return skip("NO CHECK WAS PLANNED: this kernel has no ext4");
    }
    let said = home.refused(this.clone());
    assert!(said.contains("must not be mounted or in use"), "{said}");
    let planned = home.repair(json!({ "path": disk.place() }));
    assert_eq!(planned["outcome"], "planned", "{planned}");
    assert!(
        planned["report"].as_str().unwrap().contains("/etc/fstab"),
        "{planned}"
    );
    disk.unmount();
    // As the host does when it boots.
    assert!(run("e2fsck", &["-p", &disk.device]).contains("check forced"));
    assert!(!run("e2fsck", &["-p", &disk.device]).contains("check forced"));

    run("debugfs", &["-w", "-R", "clri <2>", &disk.device]);
    let damaged = home.repair(this);
    assert_eq!(damaged["outcome"], "damaged", "{damaged}");
}

#[test]
fn a_disk_of_xfs_is_checked_while_it_is_not_mounted() {
    let Some(home) = Home::new(&["xfs_repair", "xfs_db", "mkfs.xfs", "losetup"]) else {
        return;
    };
    let Some(disk) = Disk::new(&home, "wren", 400 << 20) else {
        return;
    };
    run("mkfs.xfs", &["-q", &disk.device]);
    let this = json!({ "disk": disk.name() });
    assert_eq!(home.repair(this.clone())["outcome"], "sound");
    // The counter of free blocks is wrong.
    run(
        "xfs_db",
        &[
            "-x",
            "-c",
            "sb 0",
            "-c",
            "write -d fdblocks 7",
            &disk.device,
        ],
    );
    let repaired = home.repair(this.clone());
    assert_eq!(repaired["outcome"], "repaired", "{repaired}");
    assert_eq!(home.repair(this.clone())["outcome"], "sound");
    if !disk.mount() {
        return skip("NO MOUNTED XFS WAS REFUSED: this kernel has no xfs");
    }
    assert!(home.refused(this).contains("must not be mounted or in use"));
    let said = home.refused(json!({ "path": disk.place() }));
    assert!(said.contains("unmount it"), "{said}");
    disk.unmount();
}

#[test]
fn what_is_no_disk_is_refused() {
    let Some(home) = Home::new(&[]) else { return };
    for (what, words) in [
        (json!({}), "exactly one of"),
        (
            json!({ "path": home.files.join("").to_str().unwrap() }),
            "nothing is mounted there",
        ),
        (json!({ "path": "/proc" }), "proc cannot be checked here"),
        (json!({ "disk": "no-such-disk" }), "must exist"),
        (json!({ "disk": "null" }), "must exist"),
        (json!({ "disk": "../sda" }), "not a valid name"),
        (json!({ "array": "nosuch" }), "no such array"),
        (json!({ "array": "loop0" }), "no such array"),
    ] {
        let said = home.refused(what.clone());
        assert!(said.contains(words), "{what}: {said}");
    }
}
