//! Real containers and a real helper for the tests of this house.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::config::LogLevel;
use crate::helper_client::{Helper, HelperChild};
use crate::sys::{Scratch, skip};

/// A place with containers, and a helper for it.
pub struct Lab {
    /// Where the containers are.
    pub lxcpath: PathBuf,
    /// A directory of the test's own.
    pub scratch: Scratch,
    program: PathBuf,
}

impl Lab {
    /// The lab that `GATEWREN_LXCPATH` names; without one the test is left out.
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

    /// A helper; it ends with what is returned beside it.
    pub fn helper(&self) -> (HelperChild, Helper) {
        HelperChild::spawn(
            &self.program,
            &self.scratch.join("run"),
            Some(&self.lxcpath),
            LogLevel::Info,
        )
        .unwrap()
    }

    /// A helper on a box where LXC is not installed: in a mount namespace of its own, where a device covers
    /// the tool.
    pub fn helper_without_lxc(&self) -> (HelperChild, Helper) {
        let bare = self.scratch.join("bare");
        let script = format!(
            "#!/bin/sh\nexec unshare -m sh -c 'mount --bind /dev/null \"$(command -v lxc-start)\" && \
             exec {} \"$@\"' sh \"$@\"\n",
            self.program.display()
        );
        // With another process's hands: a descriptor with which this one writes would be in every child that
        // another test is just starting, and what somebody may still write cannot be executed.
        let text = self.scratch.join("bare.text");
        std::fs::write(&text, script).unwrap();
        let mut install = Command::new("install");
        let installed = install.args(["-m", "755"]).args([&text, &bare]).status();
        assert!(installed.unwrap().success());
        HelperChild::spawn(
            &bare,
            &self.scratch.join("run"),
            Some(&self.lxcpath),
            LogLevel::Info,
        )
        .unwrap()
    }

    /// A stopped container that goes with what is returned; `more` are lines of its configuration.
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
    /// Runs one of LXC's tools on it, as somebody else on the box would.
    pub fn lxc(&self, tool: &str, args: &[&str]) {
        let ran = command(tool, &self.lxcpath, &self.name)
            .args(args)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{tool} {args:?}: {ran:?}");
    }

    /// Takes it away, running or not.
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
