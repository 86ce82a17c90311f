//! Snapshots of containers, which LXC keeps in the container's directory, one folder each.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::sys::{
    files::{read_bounded, write_private},
    swap,
};
use gatewren_wire::operations::{
    ContainerRef, OperationEnd, OperationRefusal, SnapshotFacts, SnapshotName,
};

use super::copies::rewrite_paths;
use super::files::write_time;
use super::paths::{existing, require_plain_lxc, require_stopped};
use super::{config_files, definition};
use crate::context::containers::RunningContainer;
use crate::context::definitions::CONFIG;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools::{HostTool, output};
use crate::processes::answers::{line, to_its_end};
use crate::processes::freezing::freeze_for_copy;
use crate::processes::lxc_command::run;
use crate::processes::printing::print;
use crate::processes::staging_dir::{StagingDir, remove};
use crate::processes::step_error::StepError;

/// LXC's folder of snapshots in the container's directory.
const FOLDER: &str = "snaps";

/// The file with a snapshot's time. LXC writes it last, so a snapshot without it is incomplete.
const MADE: &str = "ts";

/// The file with a snapshot's comment.
const COMMENT: &str = "comment";

/// The longest comment that is accepted or shown, in bytes.
const COMMENT_BYTES: usize = 1024;

/// The highest number of a snapshot that is made here. After it there is no name for another.
const LAST_NUMBER: u32 = 99_999;

/// The most snapshots in a list.
const MOST: usize = 1000;

/// Prints the snapshots, one a line.
pub async fn list(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    let folder = folder(context.helper, container);
    print(context.relay, move || {
        let names = names(&folder)?.into_iter().take(MOST);
        let facts = names.map(|name| {
            let read = |file: &str| {
                let path = folder.join(name.to_string()).join(file);
                let bytes = read_bounded(&path, COMMENT_BYTES).ok()?;
                Some(String::from_utf8_lossy(&bytes).trim().to_owned())
            };
            // LXC writes the time into the file in the host's time zone. It writes the file last, in the same moment.
            let written = fs::symlink_metadata(folder.join(name.to_string()).join(MADE));
            let made = written.ok().map(|facts| write_time(facts.mtime()));
            let comment = read(COMMENT);
            line(&SnapshotFacts {
                name,
                made,
                comment: comment.filter(|comment| !comment.is_empty()),
            })
        });
        Ok(facts.flatten().collect())
    })
    .await
}

/// The result of making a snapshot.
pub struct TakenSnapshot {
    /// How LXC's tool ended.
    pub ending: OperationEnd,
    /// Its name, if it is complete.
    pub name: Option<SnapshotName>,
    /// Whether the container was frozen during the copy.
    pub frozen: bool,
}

/// Takes a snapshot of a container and prints its name.
pub async fn make(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    comment: Option<&str>,
) -> Result<OperationEnd, StepError> {
    let taken = take(context, container, comment).await?;
    if let Some(name) = taken.name {
        let name = name.to_string().into_bytes();
        context.relay.write_stdout(name).await;
    }
    Ok(taken.ending)
}

/// Takes a snapshot of a container. A running one is frozen during the copy, if it can be.
pub async fn take(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    comment: Option<&str>,
) -> Result<TakenSnapshot, StepError> {
    let helper = context.helper;
    require_plain_lxc(helper, container)?;
    if comment.is_some_and(|c| c.len() > COMMENT_BYTES || c.contains(char::is_control)) {
        let words = format!("a comment must be one line of at most {COMMENT_BYTES} bytes");
        return Err(OperationRefusal::bad_command(words).into());
    }
    let _claim = helper.locks.take(container)?;
    let asked = context
        .relay
        .wait(helper.containers.ask(container))
        .await??;
    let folder = folder(helper, container);
    let before = names(&folder)?;
    let (mut frozen, running) = (false, asked.running);
    let copied = copy(context, container, running.as_ref(), &mut frozen).await;
    let mut after = names(&folder)?;
    after.retain(|name| !before.contains(name));
    if !matches!(copied, Ok(OperationEnd::SUCCESS)) {
        remove_incomplete(&folder, after).await?;
        return copied.map(|ending| TakenSnapshot {
            ending,
            name: None,
            frozen,
        });
    }
    let name = after.into_iter().next();
    if let (Some(name), Some(comment)) = (&name, comment) {
        let place = folder.join(name.to_string()).join(COMMENT);
        write_private(&place, comment.as_bytes()).map_err(|e| {
            OperationRefusal::failed(format!("the comment of the snapshot cannot be saved: {e}"))
        })?;
    }
    Ok(TakenSnapshot {
        ending: OperationEnd::SUCCESS,
        name,
        frozen,
    })
}

/// Makes the next snapshot. `frozen` is set if a running container is frozen during the copy.
async fn copy(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    running: Option<&RunningContainer>,
    frozen: &mut bool,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let Some(running) = running else {
        require_stopped(helper, container).await?;
        let args = ["-n", container.as_str()];
        let lxcpath = helper.containers.lxcpath();
        return Ok(run(context, "lxc-snapshot", lxcpath, &args).await?);
    };
    if !config_files::is_directory(&require_plain_lxc(helper, container)?) {
        let message = format!(
            "the root file system of '{container}' is not a directory, so it must be stopped for a snapshot \
             (container_stop)"
        );
        return Err(OperationRefusal::failed(message).into());
    }
    copy_running(context, container, running, frozen).await
}

/// Copies a running container to the next snapshot, in the form that lxc-snapshot gives it: that program refuses a
/// running container. Its time is written last.
async fn copy_running(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    running: &RunningContainer,
    frozen: &mut bool,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let folder = folder(helper, container);
    let taken = names(&folder)?;
    let name = (0..=LAST_NUMBER)
        .flat_map(|n| SnapshotName::try_from(format!("snap{n}")))
        .find(|name| !taken.contains(name))
        .map(|name| name.to_string());
    let name =
        name.ok_or_else(|| OperationRefusal::failed("no name is left for another snapshot"))?;
    let place = folder.clone();
    context
        .run_blocking(move || {
            fs::create_dir_all(&place).map_err(|e| {
                OperationRefusal::failed(format!(
                    "the folder of the snapshots cannot be created: {e}"
                ))
            })
        })
        .await?;
    let guard = freeze_for_copy(context, running).await?;
    *frozen = running.is_frozen();
    let to = folder.to_string_lossy().into_owned();
    let args = [
        "-n",
        container.as_str(),
        "-N",
        &name,
        "-p",
        &to,
        "-a",
        "-K",
        "-M",
    ];
    let ending = run(context, "lxc-copy", helper.containers.lxcpath(), &args).await;
    drop(guard);
    let ending = ending?;
    if ending == OperationEnd::SUCCESS {
        let date = HostTool::new("date", ["+%Y:%m:%d %H:%M:%S"]);
        let made = output(&date, &helper.orphans).await?;
        let file = folder.join(name).join(MADE);
        write_private(&file, made.trim_end().as_bytes()).map_err(|e| {
            OperationRefusal::failed(format!("the time of the snapshot cannot be saved: {e}"))
        })?;
    }
    Ok(ending)
}

async fn remove_incomplete(
    folder: &Path,
    names: BTreeSet<SnapshotName>,
) -> Result<(), OperationRefusal> {
    let paths: Vec<PathBuf> = names
        .iter()
        .map(|name| folder.join(name.to_string()))
        .collect();
    to_its_end(move || {
        let all: Result<Vec<()>, _> = paths.iter().map(|path| remove(path)).collect();
        all.map(drop).map_err(|e| {
            OperationRefusal::failed(format!("the incomplete snapshot cannot be removed: {e}"))
        })
    })
    .await
}

/// Restores a stopped container from a snapshot: its files and its definition.
pub async fn restore(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    snapshot: &SnapshotName,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let config = require_plain_lxc(helper, container)?;
    let _claim = helper.locks.take(container)?;
    let folder = require_complete(helper, container, snapshot)?;
    require_stopped(helper, container).await?;
    let directory = helper.containers.definitions().directory(container);
    let name = snapshot.to_string();
    if config_files::root_of(&config).ok() != Some(directory.join(ROOTFS)) {
        // Its storage restores in one step.
        let lxcpath = helper.containers.lxcpath();
        let args = ["-n", container.as_str(), "-r", &name];
        return run(context, "lxc-snapshot", lxcpath, &args).await;
    }
    // lxc-snapshot would first remove the container and then copy. An interruption in between would lose it.
    let stage = StagingDir::create_in(&directory, "restore").await?;
    let place = stage.path().to_string_lossy().into_owned();
    let args = [
        "-n",
        &name,
        "-N",
        container.as_str(),
        "-p",
        &place,
        "-K",
        "-M",
    ];
    let mut ending = run(context, "lxc-copy", &folder, &args).await;
    if ending == Ok(OperationEnd::SUCCESS) {
        let (from, rest) = (
            stage.path().join(container.as_str()),
            stage.path().join("old"),
        );
        let exchanged = to_its_end(move || exchange(&from, &directory, &rest)).await;
        ending = exchanged.and(ending);
    }
    stage.clear().await;
    ending
}

/// Deletes a snapshot, complete or not.
pub async fn forget(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    snapshot: &SnapshotName,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    require_plain_lxc(helper, container)?;
    let _claim = helper.locks.take(container)?;
    let Err(obstacle) = require_complete(helper, container, snapshot) else {
        let (lxcpath, name) = (helper.containers.lxcpath(), snapshot.to_string());
        let args = ["-n", container.as_str(), "-d", &name];
        return run(context, "lxc-snapshot", lxcpath, &args).await;
    };
    let place = folder(helper, container).join(snapshot.to_string());
    if !place.is_dir() {
        return Err(obstacle);
    }
    to_its_end(move || {
        remove(&place)
            .map_err(|e| OperationRefusal::failed(format!("the snapshot cannot be removed: {e}")))
    })
    .await?;
    Ok(OperationEnd::SUCCESS)
}

/// The root file system in a container's directory.
pub const ROOTFS: &str = "rootfs";

/// Replaces the container in `directory` by the one in `from`. The old files move to `from`, or to `rest` on a file
/// system that cannot exchange two directories. Only there, if the helper dies between two steps, the container is
/// left without its files; they are then in `rest`.
pub fn exchange(from: &Path, directory: &Path, rest: &Path) -> Result<(), OperationRefusal> {
    let text = rewrite_paths(from, directory)?;
    let (new, old) = (from.join(ROOTFS), directory.join(ROOTFS));
    let failed =
        |e: std::io::Error| OperationRefusal::failed(format!("the container was not changed: {e}"));
    let define = || definition::replace(&directory.join(CONFIG), &text);
    match swap(&new, &old) {
        Ok(()) => {
            return define().inspect_err(|_| {
                let _ = swap(&new, &old);
            });
        }
        Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {}
        Err(e) => return Err(failed(e)),
    }
    fs::rename(&old, rest).map_err(failed)?;
    let exchanged = fs::rename(&new, &old).map_err(failed);
    let exchanged = exchanged.and_then(|()| define());
    if exchanged.is_err() {
        // Undoes the steps that succeeded.
        let _ = fs::rename(&old, &new);
        let _ = fs::rename(rest, &old);
    }
    exchanged
}

/// Returns the folder of the snapshots, if it has this one and that is complete.
fn require_complete(
    helper: &HelperContext,
    container: &ContainerRef,
    snapshot: &SnapshotName,
) -> Result<PathBuf, OperationRefusal> {
    existing(helper, container)?;
    let folder = folder(helper, container);
    let place = folder.join(snapshot.to_string());
    if place.join(MADE).is_file() && place.join(CONFIG).is_file() {
        return Ok(folder);
    }
    Err(OperationRefusal::bad_command(format!(
        "container '{container}' has no complete snapshot '{snapshot}'; container_snapshot_list shows those that \
         exist"
    )))
}

fn folder(helper: &HelperContext, container: &ContainerRef) -> PathBuf {
    let directory = helper.containers.definitions().directory(container);
    directory.join(FOLDER)
}

/// A snapshot and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPath {
    /// Its name.
    pub snapshot: SnapshotName,
    /// Its directory.
    pub path: PathBuf,
}

/// Returns the snapshots in a container's directory, complete or not; none if they cannot be read.
pub fn snapshot_paths(directory: &Path) -> Vec<SnapshotPath> {
    let folder = directory.join(FOLDER);
    let names = names(&folder).unwrap_or_default().into_iter().take(MOST);
    names
        .map(|snapshot| SnapshotPath {
            path: folder.join(snapshot.to_string()),
            snapshot,
        })
        .collect()
}

fn names(folder: &Path) -> Result<BTreeSet<SnapshotName>, OperationRefusal> {
    let found = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        found => found
            .map_err(|e| OperationRefusal::failed(format!("the snapshots cannot be read: {e}")))?,
    };
    let names = found.flatten().map(|entry| entry.file_name().into_string());
    Ok(names.flatten().flat_map(SnapshotName::try_from).collect())
}
