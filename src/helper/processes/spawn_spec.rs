//! The program that leads to the reaper of a call, with its arguments and descriptors.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::BorrowedFd;

use gatewren_base::sys::{AuditSession, Cgroup, ProcessCredentials};

use crate::context::containers::RunningContainer;
use crate::context::programs::path_variable;

/// A user of the host who runs the program that leads to a reaper.
///
/// The program does not know the cgroup of the call. The helper moves the reaper into it before the reaper gets its
/// command.
#[derive(Debug)]
pub struct ClientUser {
    /// The user's ids.
    pub credentials: ProcessCredentials,
    /// The program's environment.
    pub environment: Vec<CString>,
    /// The cgroup that the program is started in, beside the container's: it counts for no limit of the container.
    pub cgroup: Option<Cgroup>,
}

/// What to start, up to the reaper.
#[derive(Debug)]
pub struct SpawnSpec<'a> {
    /// The file to execute.
    pub program: CString,
    /// All arguments; the last ones start the reaper.
    pub argv: Vec<CString>,
    /// The reaper's own program, passed as descriptor 5.
    pub reaper: BorrowedFd<'a>,
    /// The cgroup of the call.
    pub cgroup: Option<Cgroup>,
    /// Whether the program itself starts the reaper in that cgroup. Otherwise the program is started in it.
    pub enters_cgroup: bool,
    /// Who runs the program; the helper's own user if absent.
    pub runs_as: Option<ClientUser>,
    /// A file for the program, passed as descriptor 6.
    pub description: Option<File>,
    /// Version 1 groups to enter in addition, as open `cgroup.procs` files.
    pub memberships: Vec<File>,
    /// The container that it runs in; `None` on the host.
    pub container: Option<RunningContainer>,
}

impl SpawnSpec<'_> {
    /// The environment of the program.
    pub fn environment(&self) -> Vec<CString> {
        match &self.runs_as {
            Some(user) => user.environment.clone(),
            None => vec![c"LANG=C.UTF-8".to_owned(), path_variable()],
        }
    }

    /// The audit session. Root on the host keeps the right to control the kernel's audit, as auditctl(8) does.
    pub fn audit_session(&self) -> AuditSession {
        match self.container {
            Some(_) => AuditSession::OwnForGood,
            None => AuditSession::Own,
        }
    }

    /// The cgroup that the program is started in.
    pub fn first_cgroup(&self) -> Option<&Cgroup> {
        match &self.runs_as {
            Some(user) => user.cgroup.as_ref(),
            None => self.cgroup.as_ref().filter(|_| !self.enters_cgroup),
        }
    }
}
