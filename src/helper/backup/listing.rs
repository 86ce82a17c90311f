//! Lists the backups on a target.

use std::fs;
use std::path::{Path, PathBuf};

use gatewren_wire::operations::{Backup, BackupId, OperationRefusal};

use super::check::{FORMAT, manifest};
use super::restic::Restic;
use super::restic_store::snapshots;
use super::targets::{HelperBackupTarget, run_in_time};
use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// Returns the backups on a target.
pub async fn list_target(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
) -> Result<Vec<Backup>, StepError> {
    if let Some(restic) = Restic::of(context, target).await? {
        let snapshots = snapshots(context, &restic, None).await?;
        let backups = snapshots.iter().filter_map(|s| s.describe(target));
        return Ok(backups.collect());
    }
    let (at, target) = (target.clone(), target.clone());
    let listed = run_in_time(&target.name, move || at.directory());
    let path = context.relay.wait(listed).await??;
    let read = move || Ok(read_manifests(&target, find_backups(&path)?));
    context.run_blocking(read).await
}

/// Returns the ids of the backups in a target's directory.
fn find_backups(path: &Path) -> Result<Vec<(BackupId, PathBuf)>, OperationRefusal> {
    let entries = fs::read_dir(path)
        .map_err(|e| OperationRefusal::failed(format!("{} cannot be read: {e}", path.display())))?;
    let ids = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((BackupId::of_file_name(&name)?, entry.path()))
    });
    Ok(ids.collect())
}

fn read_manifests(target: &HelperBackupTarget, found: Vec<(BackupId, PathBuf)>) -> Vec<Backup> {
    let manifests = found.into_iter();
    let manifests = manifests.filter_map(|(id, path)| manifest(&path, &id, FORMAT).ok());
    let backups = manifests.map(|backup| Backup {
        target: Some(target.name.clone()),
        not_included: Vec::new(),
        format: None,
        ..backup
    });
    backups.collect()
}
