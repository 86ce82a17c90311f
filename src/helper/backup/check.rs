//! The files of a backup on its target, an archive and a manifest: reads and verifies both, and unpacks the archive.

use std::fs;
use std::path::{Path, PathBuf};

use gatewren_base::sys::files::read_bounded;
use gatewren_wire::operations::{Backup, BackupId, OperationRefusal};

use super::archive;
use super::archive::ArchiveEntries;
use super::file_digest::{RunningDigest, digest};
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
    let mut checked = check_outside_archive(context, target, id).await?;
    let manifest = checked.manifest.as_ref();
    let Some(backup) = manifest.filter(|_| checked.problem.is_none()) else {
        return Ok(checked);
    };
    let archive = checked.path.join(ARCHIVE);
    let sha256 = RunningDigest::start(&archive);
    let listed = archive::list(context, &archive).await;
    checked.problem = find_damage(context, backup, sha256, &listed).await?;
    match listed {
        Ok(entries) => checked.entries = entries.count,
        Err(StepError::Refused(refusal)) => {
            checked.problem.get_or_insert(refusal.to_string());
        }
        Err(error) => return Err(error),
    }
    Ok(checked)
}

/// Reads all of a backup but its archive's contents, which `unpack_checked` reads.
///
/// # Errors
/// As for `check`.
pub async fn check_outside_archive(
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
    match compare_definition(context, &checked.path, &backup).await {
        Ok(()) => {}
        Err(StepError::Refused(problem)) => checked.problem = Some(problem.to_string()),
        Err(error) => return Err(error),
    }
    checked.manifest = Some(backup);
    Ok(checked)
}

/// Unpacks a backup's archive into a new directory, and meanwhile compares every byte of it with the manifest. After an
/// error the directory must not be used.
///
/// # Errors
/// Also fails if an entry belongs outside the directory.
pub async fn unpack_checked(
    context: &mut OperationContext<'_>,
    path: &Path,
    backup: &Backup,
    into: &Path,
) -> Result<(), StepError> {
    let archive = path.join(ARCHIVE);
    let sha256 = RunningDigest::start(&archive);
    let into = into.display().to_string();
    let unpacked = archive::unpack(context, &archive, &into).await;
    match find_damage(context, backup, sha256, &unpacked).await? {
        Some(problem) => Err(unusable(&problem).into()),
        None => unpacked.map(drop),
    }
}

/// The refusal to restore a damaged backup.
pub fn unusable(problem: &str) -> OperationRefusal {
    OperationRefusal::failed(format!(
        "nothing was changed: the backup cannot be used: {problem}"
    ))
}

/// Compares the archive's size, and the container's definition, with the manifest.
async fn compare_definition(
    context: &mut OperationContext<'_>,
    path: &Path,
    backup: &Backup,
) -> Result<(), StepError> {
    let damaged = |what: &str| StepError::Refused(OperationRefusal::failed(what));
    let format = backup.format.as_ref();
    let format = format.ok_or_else(|| damaged("its manifest is incomplete"))?;
    let bytes = fs::metadata(path.join(ARCHIVE)).map(|facts| facts.len());
    if bytes.ok() != backup.archive_bytes {
        return Err(damaged("its archive is missing or its size has changed"));
    }
    if let Some(sha256) = &format.config_sha256
        && digest(context, &path.join(CONFIG)).await? != *sha256
    {
        return Err(damaged(
            "its container definition is damaged: the checksum does not match",
        ));
    }
    Ok(())
}

/// Compares a digest and entries of the archive with the manifest. The checksum comes first: it explains why tar failed.
async fn find_damage(
    context: &mut OperationContext<'_>,
    backup: &Backup,
    sha256: RunningDigest,
    entries: &Result<ArchiveEntries, StepError>,
) -> Result<Option<String>, StepError> {
    if let Err(StepError::Killed(why)) = entries {
        return Err((*why).into());
    }
    let expected = backup.format.as_ref().map(|format| &format.sha256);
    if Some(&sha256.finish(context).await?) != expected {
        let problem = "its archive is damaged: the checksum does not match";
        return Ok(Some(problem.to_owned()));
    }
    let Ok(entries) = entries else {
        return Ok(None);
    };
    if let Some(name) = &entries.outside {
        let problem = format!("the archive has an entry outside its root: {name}");
        return Ok(Some(problem));
    }
    let is_complete = Some(entries.count) == backup.entries;
    let problem = "its archive does not have as many files as its manifest lists";
    Ok((!is_complete).then(|| problem.to_owned()))
}
