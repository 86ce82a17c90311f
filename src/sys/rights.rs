//! Giving up root's rights for those of whoever a directory belongs to.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

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
