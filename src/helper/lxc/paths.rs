//! The paths of a container's definition and root file system.

use std::io;
use std::path::{Path, PathBuf};

use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::InsideRoot;
use gatewren_wire::operations::{ContainerRef, OperationRefusal, RefusalCode};

use super::config_files;
use crate::context::containers::RunningContainer;
use crate::context::helper_context::HelperContext;
use crate::processes::commands::require_root;

/// Returns the configuration file of a container that exists.
pub fn existing(
    helper: &HelperContext,
    container: &ContainerRef,
) -> Result<PathBuf, OperationRefusal> {
    require_root()?;
    require_lxc(container)?;
    helper.containers.check_exists(container)?;
    Ok(helper.containers.definitions().file(container))
}

/// Rejects a container of another runtime for what only LXC has.
pub fn require_lxc(container: &ContainerRef) -> Result<(), OperationRefusal> {
    let runtime = container.runtime();
    if runtime == RuntimeKind::Lxc {
        return Ok(());
    }
    let title = runtime.title();
    Err(OperationRefusal::bad_command(format!(
        "'{container}' is a container of {title}, and this works for containers of LXC only"
    )))
}

/// Like `existing`, but rejects a container that Proxmox defines.
pub fn require_plain_lxc(
    helper: &HelperContext,
    container: &ContainerRef,
) -> Result<PathBuf, OperationRefusal> {
    let file = existing(helper, container)?;
    if file == own_file(helper, container) {
        return Ok(file);
    }
    Err(OperationRefusal::bad_command(format!(
        "Proxmox VE manages container '{container}'; use pct or its web interface"
    )))
}

fn own_file(helper: &HelperContext, container: &ContainerRef) -> PathBuf {
    let directory = helper.containers.definitions().directory(container);
    directory.join(crate::context::definitions::CONFIG)
}

/// Opens the root directory of a container, running or, with LXC, not.
///
/// A running container's root is opened through its init process, whatever storage it is on.
///
/// # Errors
/// Also fails while the container starts, when its init process still has the host's root.
pub async fn inside(
    helper: &HelperContext,
    container: &ContainerRef,
) -> Result<InsideRoot, OperationRefusal> {
    require_root()?;
    match helper.containers.alive(container).await {
        Ok(running) => inside_running(container, &running),
        Err(refusal) if refusal.code == RefusalCode::NotRunning => {
            inside_stopped(container, &existing(helper, container)?)
        }
        Err(refusal) => Err(refusal),
    }
}

/// Opens the root directory of a container of LXC that does not run, as its definition names it.
pub fn inside_stopped(
    container: &ContainerRef,
    definition: &Path,
) -> Result<InsideRoot, OperationRefusal> {
    let path = config_files::root_of(definition)?;
    InsideRoot::open(&path).map_err(|cause| unopened(container, &cause))
}

/// Opens the root directory of a running container.
///
/// # Errors
/// Also fails while the container starts, when its init process still has the host's root.
pub fn inside_running(
    container: &ContainerRef,
    running: &RunningContainer,
) -> Result<InsideRoot, OperationRefusal> {
    running.check_files(container)?;
    let path = format!("/proc/{}/root", running.init);
    let failed = |cause: io::Error| unopened(container, &cause);
    let root = InsideRoot::open(Path::new(&path)).map_err(failed)?;
    let of_the_host = root.is_at(Path::new("/")).map_err(failed)?;
    // Another process may have got the process id before the root was opened.
    if of_the_host || !running.still_runs() {
        let message = format!("container '{container}' is starting or stopping; try again");
        return Err(OperationRefusal::new(RefusalCode::Busy, message));
    }
    Ok(root)
}

fn unopened(container: &ContainerRef, cause: &io::Error) -> OperationRefusal {
    OperationRefusal::failed(format!(
        "cannot open the root directory of container '{container}': {cause}"
    ))
}

/// Rejects an operation that needs a stopped container if the container is not stopped.
pub async fn require_stopped(
    helper: &HelperContext,
    container: &ContainerRef,
) -> Result<(), OperationRefusal> {
    let answer = helper.containers.ask(container).await?;
    let state = answer.state.unwrap_or_default();
    if state == "STOPPED" && answer.running.is_none() {
        return Ok(());
    }
    let state = state.to_lowercase();
    Err(OperationRefusal::bad_command(format!(
        "container '{container}' is {state}; stop it first (container_stop)"
    )))
}
