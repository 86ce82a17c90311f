//! A running container of a user's Podman: what of the user's word about it the kernel confirms.
//!
//! The user's Podman answers, and the user may change its answers, its state and its programs. So nothing of it is read
//! or started as root. Its first process is accepted only where it can have no right that the user does not have.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::sys::source::text;
use gatewren_base::sys::{cgroup2_mount, is_in_namespace_of};

use super::podman_user::PodmanUser;

/// The cgroup that crun makes in a scope of systemd. The container sees it as the root of the tree.
const INNER_CGROUP: &str = "container";

/// A running container of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserContainer {
    /// Its full id.
    pub id: String,
    /// The user.
    pub user: PodmanUser,
    /// Its own cgroup, whose name contains its id.
    pub cgroup: PathBuf,
    /// The cgroup below which the cgroup of a call is made: the container's limits apply in it.
    pub inner: PathBuf,
    /// The cgroup that the container's own is in. The program that enters the container starts below it: the user may
    /// move a process from there into the container.
    pub outer: PathBuf,
}

impl UserContainer {
    /// Returns the container with this full id, if the kernel confirms that this is a process of it: it is in a user
    /// namespace of this user, and in a cgroup that belongs to the user and has the container's id in its name.
    ///
    /// # Errors
    /// A phrase with the reason.
    pub fn confirm(user: &PodmanUser, id: &str, init: i32) -> Result<Self, String> {
        let is_of_user = is_in_namespace_of(init, user.uid());
        if !is_of_user.map_err(|cause| format!("its first process cannot be examined: {cause}"))? {
            return Err(format!(
                "its first process is not in a user namespace of '{}'",
                user.name()
            ));
        }
        let groups = text(format!("/proc/{init}/cgroup")).unwrap_or_default();
        let mount = cgroup2_mount().ok_or("this host has no cgroups of version 2")?;
        let cgroup = own_cgroup(&mount, &groups, id).ok_or(
            "it has no cgroup of its own; Podman makes one if systemd runs for the user (loginctl enable-linger) and \
             the container starts after that",
        )?;
        let owner = fs::metadata(&cgroup).map(|facts| facts.uid());
        if owner.ok() != Some(user.uid()) {
            return Err(format!("its cgroup does not belong to '{}'", user.name()));
        }
        let inner = cgroup.join(INNER_CGROUP);
        let inner = if inner.is_dir() {
            inner
        } else {
            cgroup.clone()
        };
        Ok(Self {
            id: id.to_owned(),
            user: user.clone(),
            outer: cgroup.parent().unwrap_or(&mount).to_owned(),
            inner,
            cgroup,
        })
    }
}

/// Returns the cgroup whose name contains the id, from the groups of a process.
fn own_cgroup(mount: &Path, groups: &str, id: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut found = mount.to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        // A process outside this process's cgroup namespace has a path with such parts.
        if part == ".." {
            return None;
        }
        found.push(part);
        if part.contains(id) {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::own_pid;

    #[test]
    fn the_cgroup_of_a_container_has_its_id_however_deep_its_processes_are() {
        let id = "ab".repeat(32);
        let at = |groups: &str| {
            let found = own_cgroup(Path::new("/c"), groups, &id);
            found.map(|path| path.display().to_string())
        };
        let scope = format!("/user.slice/user@1000.service/user.slice/libpod-{id}.scope");
        for below in ["", "/container", "/container/init.scope"] {
            let groups = format!("3:cpuset:/x\n0::{scope}{below}\n");
            assert_eq!(at(&groups), Some(format!("/c{scope}")));
        }
        let outside = format!("0::/../libpod-{id}\n");
        let other = format!("0::/user.slice/libpod-{}\n", "cd".repeat(32));
        for none in ["", "0::/\n", "0::/user.slice\n", &outside, &other] {
            assert_eq!(at(none), None, "{none}");
        }
    }

    #[test]
    fn a_process_of_the_host_is_no_container_of_a_user() {
        let user = PodmanUser::find("daemon").unwrap();
        let refused = UserContainer::confirm(&user, &"ab".repeat(32), own_pid()).unwrap_err();
        assert!(refused.contains("user namespace of 'daemon'"), "{refused}");
        assert!(UserContainer::confirm(&user, &"ab".repeat(32), i32::MAX).is_err());
    }
}
