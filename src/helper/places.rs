//! Where a container's definition, its copies and its root file system are.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::exec::{ContainerName, RefusalCode};
use crate::sys::InsideRoot;

use super::{commands::require_root, files, house::House, refusal::Refusal};

/// The configuration file of a container that exists.
pub fn existing(house: &House, container: &ContainerName) -> Result<PathBuf, Refusal> {
    require_root()?;
    house.containers.check_exists(container)?;
    Ok(house.containers.definitions().file(container))
}

/// The same of one that LXC alone defines.
pub fn plain(house: &House, container: &ContainerName) -> Result<PathBuf, Refusal> {
    let file = existing(house, container)?;
    if file == own_file(house, container) {
        return Ok(file);
    }
    Err(Refusal::bad_command(format!(
        "container '{container}' is Proxmox's; do this with pct or in its web interface"
    )))
}

fn own_file(house: &House, container: &ContainerName) -> PathBuf {
    let directory = house.containers.definitions().directory(container);
    directory.join(super::definitions::CONFIG)
}

/// Where a container's root file system is seen.
pub async fn root(house: &House, container: &ContainerName) -> Result<PathBuf, Refusal> {
    let config = existing(house, container)?;
    // A running one's root is seen from its init, whatever it is stored on.
    match house.containers.running(container).await {
        Ok(running) => Ok(format!("/proc/{}/root", running.init).into()),
        Err(_) => files::root_of(&config),
    }
}

/// The root file system of one, running or not, to be worked in.
///
/// # Errors
/// Also while it starts: its first process sees the host's root then.
pub async fn inside(house: &House, container: &ContainerName) -> Result<InsideRoot, Refusal> {
    let config = existing(house, container)?;
    let standing = house.containers.ask(container).await?;
    let unseen = |cause: &dyn std::fmt::Display| {
        Refusal::failed(format!(
            "the root file system of '{container}' cannot be seen: {cause}"
        ))
    };
    let Some(running) = standing.running else {
        let path = files::root_of(&config)?;
        return InsideRoot::open(&path).map_err(|e| unseen(&e));
    };
    let path = format!("/proc/{}/root", running.init);
    let root = InsideRoot::open(Path::new(&path)).map_err(|e| unseen(&e))?;
    // The number may have become another process's meanwhile.
    if !running.still_runs() || is_the_hosts(&path) {
        let message = format!("container '{container}' is just starting or ending; try again");
        return Err(Refusal::new(RefusalCode::Busy, message));
    }
    Ok(root)
}

fn is_the_hosts(path: &str) -> bool {
    let place = |path: &str| {
        fs::metadata(path)
            .map(|facts| (facts.dev(), facts.ino()))
            .ok()
    };
    place(path).is_none() || place(path) == place("/")
}

/// Refuses what only a stopped one can have done to it.
pub async fn stopped(house: &House, container: &ContainerName) -> Result<(), Refusal> {
    let standing = house.containers.ask(container).await?;
    let state = standing.state.unwrap_or_default();
    if state == "STOPPED" && standing.running.is_none() {
        return Ok(());
    }
    let state = state.to_lowercase();
    Err(Refusal::bad_command(format!(
        "container '{container}' is {state}; stop it first (container_stop)"
    )))
}
