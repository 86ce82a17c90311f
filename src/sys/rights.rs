//! Giving up root's rights for those of whoever a directory belongs to.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{
    Gid, Uid, getgroups, getresgid, getresuid, setgid, setgroups, setresgid, setresuid, setuid,
};

/// From here on a process of root acts as the owner of a directory: what it makes there belongs to the owner, and what
/// the owner may not do to others through links and the like, it cannot be made to do either. One that is not root, or
/// a directory of root's, changes nothing.
pub fn act_as_owner_of(directory: &Path) -> io::Result<()> {
    let facts = fs::metadata(directory)?;
    let (owner, group) = (Uid::from_raw(facts.uid()), Gid::from_raw(facts.gid()));
    if !Uid::effective().is_root() || owner.is_root() {
        return Ok(());
    }
    // The user comes last: whoever is no longer root cannot change groups.
    setgroups(&[group])?;
    setgid(group)?;
    setuid(owner)?;
    Ok(())
}

/// The same for one deed, after which a process of root is root again. For a process with one thread, which a command is
/// before it begins anything.
pub fn as_owner_of<T>(directory: &Path, act: impl FnOnce() -> T) -> io::Result<T> {
    let facts = fs::metadata(directory)?;
    let (owner, group) = (Uid::from_raw(facts.uid()), Gid::from_raw(facts.gid()));
    if !Uid::effective().is_root() || owner.is_root() {
        return Ok(act());
    }
    let (groups, of_group, of_user) = (getgroups()?, getresgid()?, getresuid()?);
    setgroups(&[group])?;
    setresgid(group, group, of_group.saved)?;
    // The real user too: a signal may be sent by either. The saved one is the way back.
    setresuid(owner, owner, Uid::from_raw(0))?;
    let done = act();
    setresuid(of_user.real, of_user.effective, of_user.saved)?;
    setresgid(of_group.real, of_group.effective, of_group.saved)?;
    setgroups(&groups)?;
    Ok(done)
}
