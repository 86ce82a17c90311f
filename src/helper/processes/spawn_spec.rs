//! The program that leads to the reaper of a call, with its arguments and descriptors.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::BorrowedFd;

use gatewren_base::sys::Cgroup;

use crate::context::containers::RunningContainer;

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
    /// A file for the program, passed as descriptor 6.
    pub description: Option<File>,
    /// Version 1 groups to enter in addition, as open `cgroup.procs` files.
    pub memberships: Vec<File>,
    /// The container that it runs in; `None` on the host.
    pub container: Option<RunningContainer>,
}
