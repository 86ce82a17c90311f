//! A running container: its processes, its cgroups, how a command enters it, and what a command in it could do.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewren_base::sys::{cgroup2_mount, freezer_state, limiting_groups, process};
use gatewren_wire::operations::{ContainerRef, OperationRefusal};

use crate::engines::oci::{OciContainer, find_container};
use crate::engines::podman_user::PodmanUser;
use crate::engines::user_container::UserContainer;

/// The name prefix of an empty cgroup that marks a container, in its own cgroup, as frozen by a helper.
pub const HELD: &str = "gatewren-held-";

/// LXC's words for the states of a container that does not change.
pub const RUNNING: &str = "RUNNING";
pub const FROZEN: &str = "FROZEN";
pub const STOPPED: &str = "STOPPED";

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningContainer {
    /// Its init process, by its id on the host.
    pub init: i32,
    /// The start time of init, in clock ticks from boot.
    pub started: u64,
    /// Its own version 2 cgroup; `None` on a host without version 2.
    pub payload: Option<PathBuf>,
    /// Its version 1 cgroups for devices and limits, on a host that still has version 1.
    pub limiting: Vec<PathBuf>,
    /// How a command enters it.
    pub entry: CommandEntry,
    /// What gives its processes the rights of the host's root, or of the user whose Podman runs it, a phrase each. Not known of containers of LXC, where
    /// the owner's definition decides.
    pub host_rights: Vec<String>,
    /// What gives its processes the rights of root in the container of LXC that its Docker runs in, a phrase each.
    pub lxc_rights: Vec<String>,
    /// The state file of version 1's freezer, on a host that still has it.
    pub(super) freezer: Option<PathBuf>,
}

/// How a command enters a running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEntry {
    /// By lxc-attach.
    LxcAttach,
    /// By the OCI runtime that started the container.
    OciRuntime(Arc<OciContainer>),
    /// By the Podman of a user, as that user.
    UserPodman(Arc<UserContainer>),
    /// By lxc-attach, and then by the runc of the Docker inside that container of LXC.
    OciInLxc {
        /// The container of LXC.
        outer: ContainerRef,
        /// The container's first process, by its id in the container of LXC.
        inner_pid: i32,
        /// The container, as runc inside describes it.
        oci: Arc<OciContainer>,
    },
    /// Not at all, for this reason.
    None(Arc<str>),
}

impl RunningContainer {
    /// Returns a container of LXC with this first process.
    pub fn of(init: i32) -> Option<Self> {
        let process = process(init)?;
        let groups = fs::read_to_string(format!("/proc/{init}/cgroup")).ok()?;
        let payload = cgroup2_mount().and_then(|mount| payload(&mount, &groups));
        Some(Self {
            init,
            started: process.started,
            payload,
            limiting: limiting_groups(init),
            entry: CommandEntry::LxcAttach,
            host_rights: Vec::new(),
            lxc_rights: Vec::new(),
            freezer: freezer_state(init),
        })
    }

    /// Returns the container with this full id and first process, as the OCI runtime and the kernel describe it.
    pub fn of_engine(id: &str, init: i32, host_rights: Vec<String>) -> Option<Self> {
        let process = process(init)?;
        let (payload, entry) = match find_container(id, init) {
            Ok(oci) => (oci.cgroup.clone(), CommandEntry::OciRuntime(Arc::new(oci))),
            Err(refusal) => (None, CommandEntry::None(refusal.message.into())),
        };
        Some(Self {
            init,
            started: process.started,
            payload,
            limiting: Vec::new(),
            entry,
            host_rights,
            lxc_rights: Vec::new(),
            freezer: None,
        })
    }

    /// Returns the container of a user with this full id and first process, if the kernel confirms that it is one.
    ///
    /// # Errors
    /// A phrase with the reason.
    pub fn of_user(
        user: &PodmanUser,
        id: &str,
        init: i32,
        host_rights: Vec<String>,
    ) -> Result<Self, String> {
        let found = process(init).ok_or("its first process has just ended")?;
        let container = UserContainer::confirm(user, id, init)?;
        let running = Self {
            init,
            started: found.started,
            payload: Some(container.cgroup.clone()),
            limiting: Vec::new(),
            entry: CommandEntry::UserPodman(Arc::new(container)),
            host_rights,
            lxc_rights: Vec::new(),
            freezer: None,
        };
        // The process id may have been reused during the reads.
        if running.still_runs() {
            Ok(running)
        } else {
            Err("its first process has just ended".to_owned())
        }
    }

    /// The cgroup below which the cgroup of a call is made.
    pub fn call_parent(&self) -> Option<&Path> {
        match &self.entry {
            CommandEntry::UserPodman(container) => Some(&container.inner),
            _ => self.payload.as_deref(),
        }
    }

    /// The cgroup below which the program that enters the container is started, if it needs one of its own.
    pub fn client_parent(&self) -> Option<&Path> {
        match &self.entry {
            CommandEntry::UserPodman(container) => Some(&container.outer),
            _ => None,
        }
    }

    /// Rejects reading files of a container whose mounts a user of the host decides: root would read through them what
    /// that user may not read.
    ///
    /// # Errors
    /// Fails for a container of a user's Podman.
    pub fn check_files(&self, container: &ContainerRef) -> Result<(), OperationRefusal> {
        let CommandEntry::UserPodman(of_user) = &self.entry else {
            return Ok(());
        };
        Err(OperationRefusal::bad_command(format!(
            "files of container '{container}' are not read or written as root, because user '{}' decides what is \
             mounted in it; run a command in the container instead (container_shell)",
            of_user.user.name()
        )))
    }

    /// Whether it is the running container with this id and first process.
    pub fn is_of(&self, id: &str, init: i32) -> bool {
        matches!(&self.entry, CommandEntry::OciRuntime(oci) if oci.id == id && oci.init == init)
    }

    /// Whether init is still the same process and not exiting.
    pub fn still_runs(&self) -> bool {
        process(self.init).is_some_and(|p| p.started == self.started && !p.is_ending)
    }

    /// Whether a helper has marked it as frozen by itself.
    pub fn is_held(&self) -> bool {
        let groups = self
            .payload
            .as_ref()
            .and_then(|path| fs::read_dir(path).ok());
        let is_mark =
            |entry: fs::DirEntry| entry.file_name().as_bytes().starts_with(HELD.as_bytes());
        groups.into_iter().flatten().flatten().any(is_mark)
    }

    /// LXC's word for its state, by its cgroup: frozen unless a helper froze it for a moment.
    pub fn lxc_state(&self) -> &'static str {
        // A helper unfreezes it before it removes its mark, so what is frozen without a mark must still be frozen then.
        if self.is_frozen() && !self.is_held() && self.is_frozen() {
            FROZEN
        } else {
            RUNNING
        }
    }

    /// Whether its processes are frozen.
    pub fn is_frozen(&self) -> bool {
        let says = |file: &Path, word: &str| {
            fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| line == word))
        };
        let events = self.payload.as_ref().map(|path| path.join("cgroup.events"));
        events.is_some_and(|file| says(&file, "frozen 1"))
            || self
                .freezer
                .as_ref()
                .is_some_and(|file| says(file, "FROZEN"))
    }
}

/// Returns the container's own cgroup: the path of its init up to the component that LXC created. With systemd
/// inside, init is deeper than that, and LXC appends a number after a clash of names. So the path is read, never
/// constructed.
fn payload(mount: &Path, groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut found = mount.to_owned();
    for component in path.split('/').filter(|component| !component.is_empty()) {
        found.push(component);
        if component.starts_with("lxc.payload") {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::running_container::*;

    #[test]
    fn the_payload_is_found_however_deep_init_is() {
        let mount = Path::new("/sys/fs/cgroup");
        let at = |groups: &str| payload(mount, groups).map(|p| p.display().to_string());
        let deep = "3:cpuset:/lxc.payload.x\n0::/lxc.payload.alpha-1/init.scope\n";
        assert_eq!(at(deep).unwrap(), "/sys/fs/cgroup/lxc.payload.alpha-1");
        let nested = "0::/lxc/lxc.payload.alpha\n";
        assert_eq!(at(nested).unwrap(), "/sys/fs/cgroup/lxc/lxc.payload.alpha");
        for none in [
            "",
            "0::/\n",
            "0::/system.slice\n",
            "9:freezer:/lxc.payload.alpha\n",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
    }
}
