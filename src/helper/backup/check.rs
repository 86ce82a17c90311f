//! The files of a backup on its target, an archive and a manifest: reads and verifies both.

use std::fs;
use std::path::{Path, PathBuf};

use gatewren_base::sys::files::read_bounded;
use gatewren_wire::operations::{Backup, BackupId, OperationRefusal};

use super::archive;
use super::file_digest::digest;
use super::targets::HelperBackupTarget;
use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// The archive of a backup, in its directory.
pub const ARCHIVE: &str = "archive.tar.zst";

/// The definition of the container, if the backup is of one.
pub const CONFIG: &str = "config";

/// The manifest. It is written last: a directory without it is no backup.
pub const MANIFEST: &str = "manifest.json";

/// The version of this storage format.
pub const FORMAT: u32 = 1;

/// The longest manifest.
const MANIFEST_BYTES: usize = 64 * 1024;

/// Reads the manifest of a backup that is stored in this format.
pub fn manifest(path: &Path, id: &BackupId, version: u32) -> Result<Backup, String> {
    let bytes = read_bounded(&path.join(MANIFEST), MANIFEST_BYTES).map_err(|e| e.to_string())?;
    let backup: Backup =
        serde_json::from_slice(&bytes).map_err(|e| format!("its manifest cannot be read: {e}"))?;
    if backup.backup != *id || backup.container.as_ref() != id.container() {
        return Err("its manifest belongs to another backup".to_owned());
    }
    match &backup.format {
        Some(format) if format.version == version => Ok(backup),
        _ => Err("another version of gatewren made it, and this version cannot read it".to_owned()),
    }
}

/// A backup that was read from beginning to end.
pub struct CheckedBackup {
    /// Its directory.
    pub path: PathBuf,
    /// Its manifest; absent if it cannot be read.
    pub manifest: Option<Backup>,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// The number of its entries.
    pub entries: u64,
}

/// Reads a backup from beginning to end.
///
/// # Errors
/// Fails if the backup does not exist or the call has to end, but not if the backup is damaged.
pub async fn check(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<CheckedBackup, StepError> {
    let (place, wanted) = (target.clone(), id.clone());
    let (path, manifest) = context
        .run_blocking(move || {
            let path = place.directory()?.join(wanted.file_name());
            if !path.is_dir() {
                return Err(place.lacks(&wanted));
            }
            let manifest = manifest(&path, &wanted, FORMAT);
            Ok((path, manifest))
        })
        .await?;
    let mut checked = CheckedBackup {
        path,
        manifest: None,
        problem: None,
        entries: 0,
    };
    let backup = match manifest {
        Ok(backup) => backup,
        Err(problem) => {
            checked.problem = Some(problem);
            return Ok(checked);
        }
    };
    match compare_contents(context, &checked.path, &backup).await {
        Ok(entries) => checked.entries = entries,
        Err(StepError::Refused(problem)) => checked.problem = Some(problem.to_string()),
        Err(error) => return Err(error),
    }
    checked.manifest = Some(backup);
    Ok(checked)
}

/// Compares every byte with the manifest and counts the entries.
async fn compare_contents(
    context: &mut OperationContext<'_>,
    path: &Path,
    backup: &Backup,
) -> Result<u64, StepError> {
    let damaged = |what: &str| StepError::Refused(OperationRefusal::failed(what));
    let format = backup.format.as_ref();
    let format = format.ok_or_else(|| damaged("its manifest is incomplete"))?;
    let file = path.join(ARCHIVE);
    let bytes = fs::metadata(&file).map(|facts| facts.len());
    if bytes.ok() != backup.archive_bytes {
        return Err(damaged("its archive is missing or its size has changed"));
    }
    if digest(context, &file).await? != format.sha256 {
        return Err(damaged(
            "its archive is damaged: the checksum does not match",
        ));
    }
    if let Some(sha256) = &format.config_sha256
        && digest(context, &path.join(CONFIG)).await? != *sha256
    {
        return Err(damaged(
            "its container definition is damaged: the checksum does not match",
        ));
    }
    let entries = archive::count(context, &file).await?;
    if Some(entries) != backup.entries {
        return Err(damaged(
            "its archive does not have as many files as its manifest lists",
        ));
    }
    Ok(entries)
}
