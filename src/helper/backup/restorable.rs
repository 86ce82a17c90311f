//! Finds a backup that is to be restored, and checks that it is undamaged.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use gatewren_wire::operations::{Backup, BackupId, OperationRefusal};

use super::check::{CheckedBackup, check, check_outside_archive, unusable};
use super::restic::Restic;
use super::restic_store::{ResticSnapshot, find};
use super::targets::HelperBackupTarget;
use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// A backup that can be restored.
pub enum RestorableBackup {
    /// An archive, by the backup's directory.
    Archive(PathBuf, Box<Backup>),
    /// A snapshot of restic, which is verified as it is restored.
    Snapshot(Restic, ResticSnapshot),
}

/// Finds a backup. The contents of an archive are verified as they are unpacked, by `unpack_checked`.
pub async fn open_backup(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<RestorableBackup, StepError> {
    if let Some(restic) = Restic::of(context, target).await? {
        let snapshot = find(context, &restic, target, id).await?;
        return Ok(RestorableBackup::Snapshot(restic, snapshot));
    }
    let checked = check_outside_archive(context, target, id).await?;
    let (path, manifest) = undamaged(checked)?;
    Ok(RestorableBackup::Archive(path, manifest))
}

/// Finds a backup whose parts are unpacked one by one. Its archive is verified first; `None` if it is not an archive.
pub async fn open_archive(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<Option<(PathBuf, Box<Backup>)>, StepError> {
    if let Some(restic) = Restic::of(context, target).await? {
        find(context, &restic, target, id).await?;
        return Ok(None);
    }
    let checked = check(context, target, id).await?;
    Ok(Some(undamaged(checked)?))
}

/// Returns the directory and the manifest of a backup without a problem.
fn undamaged(mut checked: CheckedBackup) -> Result<(PathBuf, Box<Backup>), OperationRefusal> {
    match (&checked.problem, checked.manifest.take()) {
        (None, Some(manifest)) => Ok((checked.path, Box::new(manifest))),
        (problem, _) => Err(unusable(
            problem.as_deref().unwrap_or("its manifest is missing"),
        )),
    }
}

/// Creates a directory that only root can enter.
pub fn create_private_dir(path: &Path) -> Result<(), OperationRefusal> {
    let made = fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|e| {
        OperationRefusal::failed(format!(
            "the directory for the files cannot be created: {e}"
        ))
    })
}
