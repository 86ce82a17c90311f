//! Drops root privileges in favour of a directory's owner.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::{
    Gid, Uid, getgroups, getresgid, getresuid, setgid, setgroups, setresgid, setresuid, setuid,
};

/// Whether this process was root before it dropped the privileges for good.
static WAS_ROOT: AtomicBool = AtomicBool::new(false);

/// Returns whether root started this process, even if it acts as another user now.
pub fn was_started_by_root() -> bool {
    WAS_ROOT.load(Ordering::Relaxed) || Uid::effective().is_root()
}

/// Makes a root process act as the owner of a directory from now on. Files that it creates there belong to the
/// owner, and links cannot trick it into actions that the owner may not perform. Does nothing if the process is not
/// root, or root owns the directory.
pub fn act_as_owner_of(directory: &Path) -> io::Result<()> {
    let facts = fs::metadata(directory)?;
    let (owner, group) = (Uid::from_raw(facts.uid()), Gid::from_raw(facts.gid()));
    if !Uid::effective().is_root() || owner.is_root() {
        return Ok(());
    }
    // The user comes last: a process that is no longer root cannot change groups.
    setgroups(&[group])?;
    setgid(group)?;
    setuid(owner)?;
    WAS_ROOT.store(true, Ordering::Relaxed);
    Ok(())
}

/// Like `act_as_owner_of`, for one action, after which a root process is root again. Only for a process with one
/// thread, as a command is before it starts others.
pub fn as_owner_of<T>(directory: &Path, act: impl FnOnce() -> T) -> io::Result<T> {
    let facts = fs::metadata(directory)?;
    let (owner, group) = (Uid::from_raw(facts.uid()), Gid::from_raw(facts.gid()));
    if !Uid::effective().is_root() || owner.is_root() {
        return Ok(act());
    }
    let (groups, of_group, of_user) = (getgroups()?, getresgid()?, getresuid()?);
    setgroups(&[group])?;
    setresgid(group, group, of_group.saved)?;
    // The real user too: a process may be signalled by either. The saved one is the way back.
    setresuid(owner, owner, Uid::from_raw(0))?;
    let done = act();
    setresuid(of_user.real, of_user.effective, of_user.saved)?;
    setresgid(of_group.real, of_group.effective, of_group.saved)?;
    setgroups(&groups)?;
    Ok(done)
}
