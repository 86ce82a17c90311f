//! Real containers and a real helper for tests.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::helper_client::{ChildHelperOptions, HelperChild, HelperClient};
use gatewren_base::config::LogLevel;
use gatewren_base::sys::{Scratch, skip, terminate};

/// A directory with containers, and helpers for it.
pub struct ContainerLab {
    /// The directory of the containers.
    pub lxcpath: PathBuf,
    /// A private directory of the test.
    pub scratch: Scratch,
    program: PathBuf,
}

impl ContainerLab {
    /// Returns the lab that `GATEWREN_LXCPATH` names; without one the test is skipped.
    pub fn find() -> Option<Self> {
        let Some(lxcpath) = std::env::var_os("GATEWREN_LXCPATH") else {
            skip("GATEWREN_LXCPATH names no containers");
            return None;
        };
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("gatewren");
        if !program.exists() {
            skip("the program is not built: cargo build");
            return None;
        }
        Some(Self {
            lxcpath: lxcpath.into(),
            scratch: Scratch::new(),
            program,
        })
    }

    /// Returns a helper; it ends when the child handle is dropped.
    pub fn helper(&self) -> (HelperChild, HelperClient) {
        self.spawn(&self.program)
    }

    /// Returns a helper on a host without LXC: in a separate mount namespace, where a device covers
    /// the tool.
    pub fn helper_without_lxc(&self) -> (HelperChild, HelperClient) {
        let program = self.program.display();
        self.helper_with_script(&format!(
            "exec unshare -m sh -c 'mount --bind /dev/null \"$(command -v lxc-start)\" && \
             exec {program} \"$@\"' sh \"$@\"\n"
        ))
    }

    fn helper_with_script(&self, script: &str) -> (HelperChild, HelperClient) {
        let wrapper = self.scratch.join("wrapper");
        // Installed by another process. A child that another test is starting could inherit this
        // process's write descriptor, and a file that is open for writing cannot be executed.
        let text = self.scratch.join("wrapper.text");
        std::fs::write(&text, format!("#!/bin/sh\n{script}")).unwrap();
        let mut install = Command::new("install");
        let installed = install.args(["-m", "755"]).args([&text, &wrapper]).status();
        assert!(installed.unwrap().success());
        self.spawn(&wrapper)
    }

    fn spawn(&self, program: &Path) -> (HelperChild, HelperClient) {
        let options = ChildHelperOptions {
            state: None,
            lxcpath: Some(&self.lxcpath),
            docker_socket: None,
            podman_socket: None,
            policy: None,
            log: LogLevel::Info,
        };
        HelperChild::spawn(program, &self.scratch.join("run"), options).unwrap()
    }

    /// Returns a helper on a host with Proxmox, whose definitions are in `proxmox`.
    pub fn helper_with_proxmox(&self, proxmox: &Path) -> (HelperChild, HelperClient) {
        let (program, proxmox) = (self.program.display(), proxmox.display());
        self.helper_with_script(&format!("exec {program} \"$@\" --proxmox {proxmox}\n"))
    }

    /// Returns a lab with a private container directory, which is empty.
    pub fn apart(mut self) -> Self {
        self.lxcpath = self.scratch.join("lxc");
        let mode = PermissionsExt::from_mode(0o755);
        std::fs::create_dir(&self.lxcpath).unwrap();
        std::fs::set_permissions(self.scratch.path(), mode).unwrap();
        self
    }

    /// Kills the daemon that notifies all monitors of changes. Returns whether there was one.
    pub fn kill_monitor_daemon(&self) -> bool {
        let path = self.lxcpath.to_str().unwrap();
        let ours = |pid: &i32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
            let line = line.unwrap_or_default();
            let mut words = line.split('\0');
            words
                .next()
                .is_some_and(|name| name.ends_with("lxc-monitord"))
                && words.next() == Some(path)
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let Some(pid) = pids.into_iter().find(ours) else {
            return false;
        };
        terminate(pid, true);
        true
    }

    /// Creates a stopped container, which is destroyed on drop; `more` has further lines of its
    /// configuration.
    pub fn create(&self, name: &str, more: &str) -> Container {
        let config = self.scratch.join("config");
        let lines = "lxc.net.0.type = empty\nlxc.apparmor.profile = unconfined\n";
        std::fs::write(&config, format!("{lines}{more}")).unwrap();
        let container = Container {
            lxcpath: self.lxcpath.clone(),
            name: name.to_owned(),
        };
        container.destroy();
        container.lxc(
            "lxc-create",
            &["-t", "busybox", "-f", config.to_str().unwrap()],
        );
        container
    }
}

/// A container of one test.
pub struct Container {
    lxcpath: PathBuf,
    /// Its name.
    pub name: String,
}

impl Container {
    /// Runs one of LXC's tools on it, as another process on the host would.
    pub fn lxc(&self, tool: &str, args: &[&str]) {
        let ran = command(tool, &self.lxcpath, &self.name)
            .args(args)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{tool} {args:?}: {ran:?}");
    }

    /// Destroys it, running or not.
    pub fn destroy(&self) {
        let _ = command("lxc-destroy", &self.lxcpath, &self.name)
            .arg("-f")
            .output();
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.destroy();
    }
}

fn command(tool: &str, lxcpath: &Path, name: &str) -> Command {
    let mut command = Command::new(tool);
    command.arg("-P").arg(lxcpath).args(["-n", name]);
    command
}
