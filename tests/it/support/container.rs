//! A small real container for one test: busybox in a directory that is deleted when the test ends.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::machine::{IN_TIME, install_program, is_root, limited, marker, skip, wait_until};
use super::server::Directory;

/// The static program that such a container consists of.
const BUSYBOX: &str = "/bin/busybox";

/// The container's first process. A signal that arrives before its handler is installed is lost.
const INIT: &str = "#!/bin/sh
trap 'exit 0' PWR TERM
: > /tmp/ready
while :; do sleep 1; done
";

/// Containers below an lxcpath of one test.
pub struct Containers {
    path: PathBuf,
    names: Vec<String>,
}

impl Containers {
    /// Makes an lxcpath. Skips the test and returns `None` where containers cannot run.
    pub fn new() -> Option<Self> {
        let missing = ["/usr/bin/lxc-start", BUSYBOX]
            .into_iter()
            .find(|p| !Path::new(p).exists());
        if let Some(missing) = missing {
            skip(&format!("{missing} is not installed"));
            return None;
        }
        if !is_root() {
            skip("containers need root");
            return None;
        }
        let path = std::env::temp_dir().join(format!("gatewren-it-lxc-{}", marker()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self {
            path,
            names: Vec::new(),
        })
    }

    /// Returns the lxcpath.
    pub fn lxcpath(&self) -> &Path {
        &self.path
    }

    /// Makes a container without starting it, and returns its root directory.
    pub fn make(&mut self, name: &str) -> PathBuf {
        let root = self.path.join(name).join("rootfs");
        for folder in ["bin", "dev", "proc", "sys", "tmp", "etc", "root", "usr/lib"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        install_program(Path::new(BUSYBOX), &root.join("bin/busybox"));
        for applet in ["sh", "sleep", "setsid", "env", "cat", "id", "ls", "echo"] {
            symlink("busybox", root.join("bin").join(applet)).unwrap();
        }
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
        fs::write(root.join("usr/lib/os-release"), "ID=wren\n").unwrap();
        symlink("../usr/lib/os-release", root.join("etc/os-release")).unwrap();
        let init = root.join("etc/init");
        fs::write(&init, INIT).unwrap();
        install_program(&init, &root.join("init"));
        let config = format!(
            "lxc.uts.name = {name}\nlxc.rootfs.path = dir:{}\nlxc.init.cmd = /init\n\
             lxc.net.0.type = empty\nlxc.apparmor.profile = unconfined\nlxc.mount.auto = proc sys\n\
             lxc.autodev = 1\n",
            root.display()
        );
        fs::write(self.path.join(name).join("config"), config).unwrap();
        self.names.push(name.to_owned());
        root
    }

    /// Runs one of LXC's tools on a container, outside gatewren.
    pub fn tool(&self, tool: &str, name: &str, args: &[&str]) -> String {
        let mut command = limited(tool);
        command
            .arg("-P")
            .arg(&self.path)
            .args(["-n", name])
            .args(args);
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{tool}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until a started container can handle the signal to stop.
    pub fn until_ready(&self, name: &str) {
        let ready = self.path.join(name).join("rootfs/tmp/ready");
        wait_until("it is ready", IN_TIME, || fs::remove_file(&ready).is_ok());
    }

    /// Waits until a container has stopped; `lxc-stop -k` does not wait.
    pub fn until_stopped(&self, name: &str) {
        wait_until("it is stopped", IN_TIME, || self.state(name) == "STOPPED");
    }

    /// Returns the state that LXC reports, such as `RUNNING`.
    pub fn state(&self, name: &str) -> String {
        self.tool("lxc-info", name, &["-sH"]).trim().to_owned()
    }
}

/// Returns a directory for LXC that defines containers with these names. None of them can run.
pub fn defined(names: &[&str]) -> Directory {
    let home = Directory::new();
    define(&home.0, names);
    home
}

/// Defines such containers in an existing directory.
pub fn define(folder: &Path, names: &[&str]) {
    for name in names {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("config"), "lxc.uts.name = x\n").unwrap();
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for name in &self.names {
            let stop = Command::new("lxc-stop")
                .arg("-P")
                .arg(&self.path)
                .args(["-k", "-n", name])
                .output();
            drop(stop);
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}
