//! How a command enters a container: by lxc-attach, by the OCI runtime below Docker and Podman, by both, for Docker inside
//! LXC, or by a user's Podman.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::sys::{Cgroup, InsideRoot};
use gatewren_wire::operations::{Command, ContainerRef, OperationRefusal};

use super::spawn_spec::{ClientUser, SpawnSpec};
use crate::context::containers::{CommandEntry, RunningContainer};
use crate::context::helper_context::reaper_argv;
use crate::context::programs::find;
use crate::engines::oci::OciContainer;
use crate::engines::user_container::UserContainer;

/// A running container, and the cgroup of the call in it.
#[derive(Debug)]
pub struct ContainerEntry<'a> {
    /// The container.
    pub container: &'a ContainerRef,
    /// Its first process and its cgroups.
    pub running: RunningContainer,
    /// The cgroup of the call, if the host has version 2.
    pub cgroup: Option<Cgroup>,
    /// The cgroup of the program that enters the container of a user.
    pub client_cgroup: Option<Cgroup>,
}

impl<'a> ContainerEntry<'a> {
    /// Returns what to start, and the command as the reaper gets it.
    ///
    /// # Errors
    /// Fails if the program that enters is missing, or if the container's user is unknown.
    pub fn spec(
        self,
        lxcpath: &Path,
        command: &Command,
        reaper: BorrowedFd<'a>,
    ) -> Result<(SpawnSpec<'a>, Command), OperationRefusal> {
        match self.running.entry.clone() {
            CommandEntry::LxcAttach => {
                let spec = self.by_lxc_attach(lxcpath, reaper)?;
                Ok((spec, command.clone()))
            }
            CommandEntry::OciRuntime(oci) => self.by_oci_runtime(&oci, command, reaper),
            CommandEntry::UserPodman(of_user) => self.by_user_podman(&of_user, command, reaper),
            CommandEntry::OciInLxc { outer, oci, .. } => {
                let attach = find("lxc-attach")?;
                let mut argv = attach_argv(lxcpath, &outer, false)?;
                let (mut spec, command) = self.by_oci_runtime(&oci, command, reaper)?;
                argv.append(&mut spec.argv);
                spec.program = text(attach.as_os_str().as_bytes())?;
                spec.argv = argv;
                Ok((spec, command))
            }
            CommandEntry::None(why) => Err(OperationRefusal::failed(why.to_string())),
        }
    }

    fn by_lxc_attach(
        self,
        lxcpath: &Path,
        reaper: BorrowedFd<'a>,
    ) -> Result<SpawnSpec<'a>, OperationRefusal> {
        let attach = find("lxc-attach")?;
        // With `-eCGROUP`, LXC enters none of the container's cgroups.
        let memberships = if self.cgroup.is_some() {
            memberships(&self.running.limiting)?
        } else {
            Vec::new()
        };
        let mut argv = attach_argv(lxcpath, self.container, self.cgroup.is_some())?;
        argv.extend(reaper_argv());
        Ok(SpawnSpec {
            program: text(attach.as_os_str().as_bytes())?,
            argv,
            reaper,
            cgroup: self.cgroup,
            enters_cgroup: false,
            runs_as: None,
            description: None,
            memberships,
            container: Some(self.running),
        })
    }

    /// The runtime's program stays outside the container's limits; it starts the reaper inside. Docker inside LXC has its
    /// runc started in the container of LXC in the same way: that program is not run on the host, because root in the
    /// container of LXC wrote the state it reads.
    fn by_oci_runtime(
        self,
        oci: &OciContainer,
        command: &Command,
        reaper: BorrowedFd<'a>,
    ) -> Result<(SpawnSpec<'a>, Command), OperationRefusal> {
        let root = InsideRoot::open(Path::new(&format!("/proc/{}/root", oci.init)));
        let root = root.map_err(|e| {
            OperationRefusal::failed(format!("the container's root cannot be opened: {e}"))
        })?;
        let name = self
            .cgroup
            .as_ref()
            .and_then(|cgroup| cgroup.path().file_name());
        let name = name.map(|name| name.to_string_lossy().into_owned());
        let process = oci.prepare(&root, command, name.as_deref())?;
        let spec = SpawnSpec {
            program: process.program,
            argv: process.argv,
            reaper,
            cgroup: self.cgroup,
            enters_cgroup: true,
            runs_as: None,
            description: Some(process.description),
            memberships: Vec::new(),
            container: Some(self.running),
        };
        Ok((spec, process.command))
    }

    /// The user's Podman and its monitor run as the user, outside the container's limits.
    fn by_user_podman(
        self,
        of_user: &UserContainer,
        command: &Command,
        reaper: BorrowedFd<'a>,
    ) -> Result<(SpawnSpec<'a>, Command), OperationRefusal> {
        let (program, argv) = of_user.exec(command)?;
        let spec = SpawnSpec {
            program,
            argv,
            reaper,
            cgroup: self.cgroup,
            enters_cgroup: true,
            runs_as: Some(ClientUser {
                credentials: of_user.user.credentials(),
                environment: of_user.environment()?,
                cgroup: self.client_cgroup,
            }),
            description: None,
            memberships: Vec::new(),
            container: Some(self.running),
        };
        // Podman has set the user.
        let user = None;
        Ok((
            spec,
            Command {
                user,
                ..command.clone()
            },
        ))
    }
}

/// The arguments of lxc-attach before the command. With `-eCGROUP` the process inside stays in the call's own cgroup;
/// without it LXC moves it into the container's.
fn attach_argv(
    lxcpath: &Path,
    container: &ContainerRef,
    own_cgroup: bool,
) -> Result<Vec<CString>, OperationRefusal> {
    let mut argv = vec![
        c"lxc-attach".to_owned(),
        c"-P".to_owned(),
        text(lxcpath.as_os_str().as_bytes())?,
        c"-l".to_owned(),
        c"ERROR".to_owned(),
        c"-o".to_owned(),
        c"none".to_owned(),
        c"-n".to_owned(),
        text(container.name().as_bytes())?,
        c"--clear-env".to_owned(),
    ];
    argv.extend(own_cgroup.then(|| c"-eCGROUP".to_owned()));
    argv.push(c"--".to_owned());
    Ok(argv)
}

/// Opens the version 1 cgroups with a container's device rules and limits. A command that cannot be put under them is
/// not run.
fn memberships(groups: &[PathBuf]) -> Result<Vec<File>, OperationRefusal> {
    let open = |group: &PathBuf| File::options().write(true).open(group.join("cgroup.procs"));
    let opened: io::Result<_> = groups.iter().map(open).collect();
    opened.map_err(|e| {
        OperationRefusal::failed(format!("the container's cgroups cannot be entered: {e}"))
    })
}

fn text(bytes: &[u8]) -> Result<CString, OperationRefusal> {
    CString::new(bytes)
        .map_err(|_| OperationRefusal::bad_command("a name contains a NUL character"))
}
