//! What a new process is: a program in its cgroup, bound to its parent's lifetime, with no descriptors other than those
//! it is given.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use super::audit_session::AuditSession;

/// What to start, and in which environment.
#[derive(Debug, Default)]
pub struct Spawn<'a> {
    /// Absolute paths, tried in this order until one exists.
    pub programs: Vec<CString>,
    /// All arguments, including the program's name.
    pub argv: Vec<CString>,
    /// The whole environment, `NAME=value`.
    pub env: Vec<CString>,
    /// The descriptors that become 0, 1, 2 and so on, at most eight; no other is open in the program.
    pub fds: Vec<BorrowedFd<'a>>,
    /// The user to run as; the parent's user when absent.
    pub identity: Option<ProcessCredentials>,
    /// The working directory: the first that can be entered, as the new user.
    pub directories: Vec<CString>,
    /// An open cgroup v2 directory to start in.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// Open `cgroup.procs` files of version 1 groups to enter in addition.
    pub memberships: Vec<BorrowedFd<'a>>,
    /// What happens to it when the *thread* that spawns it ends.
    pub with_parent: OnParentExit,
    /// The audit session of it and its descendants.
    pub audit_session: AuditSession,
    /// Whether it gets huge pages.
    pub huge_pages: HugePages,
}

/// Whether a program gets transparent huge pages, where the host has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HugePages {
    /// Yes.
    #[default]
    Allowed,
    /// As its parent. One that allows them itself starts faster from a parent that has none.
    Inherited,
}

/// What happens to a child when its parent's thread ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnParentExit {
    /// It continues.
    #[default]
    Lives,
    /// It gets SIGKILL.
    Dies,
}

/// A user and all its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessCredentials {
    /// User.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// All groups.
    pub groups: Vec<u32>,
}

/// The step at which starting a program failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnStage {
    /// No new process could be created.
    Fork,
    /// The new process could not enter its cgroup.
    Cgroup,
    /// Its descriptors could not be put in place.
    Descriptors,
    /// It could not become the user.
    Identity,
    /// It could not enter the directory.
    Directory,
    /// No program of the list could be executed.
    Program,
}

/// Why a program was not started.
#[derive(Debug)]
pub struct SpawnError {
    /// The step that failed.
    pub stage: SpawnStage,
    /// The kernel's error.
    pub cause: io::Error,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match self.stage {
            SpawnStage::Fork => "new process",
            SpawnStage::Cgroup => "enter the cgroup",
            SpawnStage::Descriptors => "place the descriptors",
            SpawnStage::Identity => "become the user",
            SpawnStage::Directory => "enter the directory",
            SpawnStage::Program => "execute the program",
        };
        write!(f, "{step}: {}", self.cause)
    }
}

impl std::error::Error for SpawnError {}
