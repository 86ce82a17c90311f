//! Finds a backup that is to be restored, after checking that it is undamaged.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use gatewren_wire::operations::{Backup, BackupId, OperationRefusal};

use super::check::check;
use super::restic::Restic;
use super::restic_store::{ResticSnapshot, find};
use super::targets::HelperBackupTarget;
use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// A backup that can be restored.
pub enum RestorableBackup {
    /// A verified archive, by the backup's directory.
    Archive(PathBuf, Box<Backup>),
    /// A snapshot of restic, which is verified as it is restored.
    Snapshot(Restic, ResticSnapshot),
}

/// Finds a backup; verifies it if it is an archive.
pub async fn open_backup(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<RestorableBackup, StepError> {
    if let Some(restic) = Restic::of(context, target).await? {
        let snapshot = find(context, &restic, target, id).await?;
        return Ok(RestorableBackup::Snapshot(restic, snapshot));
    }
    let mut checked = check(context, target, id).await?;
    let manifest = checked.manifest.take();
    match (&checked.problem, manifest) {
        (None, Some(manifest)) => Ok(RestorableBackup::Archive(checked.path, Box::new(manifest))),
        (problem, _) => {
            let problem = problem.as_deref().unwrap_or("its manifest is missing");
            let message = format!("nothing was changed: the backup cannot be used: {problem}");
            Err(OperationRefusal::failed(message).into())
        }
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
