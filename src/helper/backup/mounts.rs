//! Mounts and unmounts the disk or the share of a backup target.

use std::path::Path;

use gatewren_base::config::BackupStore;
use gatewren_base::sys::files::private_dir;
use gatewren_wire::operations::{KillReason, OperationEnd, OperationRefusal, TargetName};

use super::targets::{
    HelperBackupTarget, find_target, is_mounted, no_state, private, timeout_refusal,
};
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::context::tools::HostTool;
use crate::processes::answers::to_its_end;

/// Mount options for a disk or share that may hold untrusted files.
const HARMLESS: &str = "nosuid,nodev,noexec";

/// Mounts the disk or share of a target. Does nothing if it is already mounted.
pub async fn mount(
    context: &mut OperationContext<'_>,
    name: &TargetName,
) -> Result<OperationEnd, OperationRefusal> {
    let target = find_target(context.helper, name)?;
    let place = to_be_mounted(&target)?.to_owned();
    if is_mounted(&place) {
        return Ok(OperationEnd::SUCCESS);
    }
    let at = place.display().to_string();
    let (program, args) = match &target.store {
        BackupStore::Share { share, credentials } => {
            private(credentials)?;
            let options =
                format!("credentials={credentials},file_mode=0600,dir_mode=0700,{HARMLESS}");
            // Runs mount.cifs itself, not mount(8): a kill then hits the process that waits for the server.
            (
                "mount.cifs",
                vec![share.clone(), at, "-o".to_owned(), options],
            )
        }
        // `-i`: a helper program of a user-space file system would have to keep running.
        BackupStore::Disk(source) => {
            let args = ["-i", "-o", HARMLESS, "--source", source, "--target", &at];
            ("mount", args.map(str::to_owned).into())
        }
        BackupStore::Directory(_) | BackupStore::Restic { .. } => return Err(no_state()),
    };
    find(program)?;
    to_its_end(move || private_dir(&place).map_err(|e| OperationRefusal::failed(e.to_string())))
        .await?;
    let tool = HostTool {
        name: program,
        args,
    };
    run_mount_tool(context, name, &tool).await
}

/// Unmounts a target. Does nothing if it is not mounted.
pub async fn unmount(
    context: &mut OperationContext<'_>,
    name: &TargetName,
) -> Result<OperationEnd, OperationRefusal> {
    let target = find_target(context.helper, name)?;
    let place = to_be_mounted(&target)?;
    if !is_mounted(place) {
        return Ok(OperationEnd::SUCCESS);
    }
    let tool = HostTool::new("umount", ["--", &place.to_string_lossy()]);
    run_mount_tool(context, name, &tool).await
}

/// Runs the tool. A timeout is reported as a server or disk that does not respond, not as a fault of the program.
async fn run_mount_tool(
    context: &mut OperationContext<'_>,
    name: &TargetName,
    tool: &HostTool,
) -> Result<OperationEnd, OperationRefusal> {
    match context.run_tool(tool).await? {
        OperationEnd::Killed {
            why: KillReason::Timeout,
        } => Err(timeout_refusal(name)),
        ending => Ok(ending),
    }
}

fn to_be_mounted(target: &HelperBackupTarget) -> Result<&Path, OperationRefusal> {
    match (&target.store, target.mount_place()) {
        (BackupStore::Disk(_) | BackupStore::Share { .. }, None) => Err(no_state()),
        (_, Some(place)) => Ok(place),
        _ => {
            let name = &target.name;
            let message = format!(
                "backup target '{name}' is neither a disk nor a share, so it cannot be mounted"
            );
            Err(OperationRefusal::bad_command(message))
        }
    }
}
