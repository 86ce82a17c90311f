//! The backups in a restic repository, each a snapshot: lists, verifies and restores them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use gatewren_wire::operations::{Backup, BackupId, OperationRefusal, Stream, VerifiedBackup};

use super::archive;
use super::check::manifest;
use super::restic::{Restic, ResticCommand, order};
use super::targets::HelperBackupTarget;
use crate::context::operation_context::OperationContext;
use crate::processes::staging_dir::PREFIX;
use crate::processes::step_error::StepError;

/// The tag of gatewren's snapshots; another tag is the backup's id.
pub const OURS: &str = "gatewren";

/// The tag of a container that was running during the backup.
pub const RUNNING: &str = "running";

/// The tag of a container that was frozen during the backup.
pub const FROZEN: &str = "frozen";

/// The version of this storage format.
pub const FORMAT: u32 = 2;

/// The longest list of snapshots that is read. A longer one is rejected.
const LIST_BYTES: usize = 4 * 1024 * 1024;

/// How long listing a repository may take.
const LIST_TIME: Duration = Duration::from_secs(20);

/// A snapshot that is a backup.
#[derive(Debug, Deserialize)]
pub struct ResticSnapshot {
    id: String,
    paths: Vec<PathBuf>,
    hostname: String,
    #[serde(default)]
    tags: Vec<String>,
}

/// The location of a restored backup.
pub struct UnpackedBackup {
    /// The restored files.
    pub files: PathBuf,
    /// The directory of the manifest and the container's definition, and the manifest itself; `None` if it is not of
    /// a container.
    pub definition: Option<(PathBuf, Backup)>,
}

impl ResticSnapshot {
    /// The snapshot's id in the repository, in hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the backup's id, if its tags contain one.
    pub fn backup(&self) -> Option<BackupId> {
        self.tags.iter().find_map(|tag| tag.parse().ok())
    }

    /// Returns what is known of the backup without reading it.
    pub fn describe(&self, target: &HelperBackupTarget) -> Option<Backup> {
        let has = |tag: &str| self.tags.iter().any(|own| own == tag);
        let backup = self.backup()?;
        let container = backup.container().cloned();
        let path = self.files().ok().filter(|_| container.is_none());
        let (day, time) = backup.stamp().split_once('T')?;
        Some(Backup {
            target: Some(target.name.clone()),
            path: path.map(|path| path.display().to_string()),
            made: format!("{day}T{}", time.replace('-', ":")),
            host: self.hostname.clone(),
            archive_bytes: None,
            entries: None,
            was_running: has(RUNNING),
            was_frozen: has(FROZEN),
            changed_meanwhile: has(RUNNING) && !has(FROZEN),
            not_included: Vec::new(),
            format: None,
            container,
            backup,
        })
    }

    /// Returns the path that was backed up.
    fn files(&self) -> Result<&Path, OperationRefusal> {
        let mut files = self.paths.iter().filter(|path| !is_definition(path));
        match (files.next(), files.next()) {
            (Some(path), None) => Ok(path),
            _ => Err(OperationRefusal::failed(
                "gatewren did not make this snapshot: it does not have exactly one path of files",
            )),
        }
    }
}

/// Returns whether a directory is that of a container's definition, not of its files.
fn is_definition(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(PREFIX)
}

/// Returns the snapshots that are backups, oldest first; with an id, only those of this backup.
pub async fn snapshots(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    id: Option<&BackupId>,
) -> Result<Vec<ResticSnapshot>, StepError> {
    let tags = match id {
        Some(id) => format!("--tag={OURS},{id}"),
        None => format!("--tag={OURS}"),
    };
    let time = LIST_TIME;
    let command = order(&["snapshots", "--json", "--no-lock", &tags]);
    let command = ResticCommand { time, ..command };
    let mut list = Vec::new();
    let mut on_output = |which: Stream, bytes: &[u8]| {
        if which == Stream::Stdout && list.len() <= LIST_BYTES {
            list.extend(bytes);
        }
        None
    };
    let (code, reason) = restic.run(context, command, &mut on_output).await?;
    let failed = |cause: &dyn std::fmt::Display| {
        OperationRefusal::failed(format!("the repository cannot be read: {cause}")).into()
    };
    if code != 0 {
        return Err(failed(&reason));
    }
    if list.len() > LIST_BYTES {
        return Err(failed(
            &"it has too many snapshots; remove some with restic forget",
        ));
    }
    serde_json::from_slice(&list).map_err(|e| failed(&e))
}

/// Finds the snapshot of a backup.
///
/// # Errors
/// Also fails if there is none.
pub async fn find(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<ResticSnapshot, StepError> {
    let found = snapshots(context, restic, Some(id)).await?;
    let found = found
        .into_iter()
        .find(|found| found.backup().as_ref() == Some(id));
    let hex = |id: &str| id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let found = found.filter(|found| hex(&found.id));
    found.ok_or_else(|| target.lacks(id).into())
}

/// Reads a backup from beginning to end: restic compares each piece with its SHA-256.
pub async fn verify(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<VerifiedBackup, StepError> {
    let ResticSnapshot { id: snapshot, .. } = find(context, restic, target, id).await?;
    let (mut lines, mut bytes) = (0, 0);
    let mut count = |which: Stream, piece: &[u8]| {
        if which == Stream::Stdout {
            lines += archive::lines(piece);
        }
        None
    };
    let command = order(&["ls", "--json", &snapshot]);
    let (mut code, mut reason) = restic.run(context, command, &mut count).await?;
    if code == 0 {
        let mut count = |which: Stream, piece: &[u8]| {
            if which == Stream::Stdout {
                bytes += piece.len() as u64;
            }
            None
        };
        let command = order(&["dump", &snapshot, "/"]);
        (code, reason) = restic.run(context, command, &mut count).await?;
    }
    Ok(VerifiedBackup {
        backup: id.clone(),
        target: target.name.clone(),
        whole: code == 0,
        problem: (code != 0).then_some(reason),
        // The first line is about the snapshot itself.
        entries: lines.saturating_sub(1),
        archive_bytes: bytes,
    })
}

/// Restores a backup below a new directory that belongs to root, and compares all files written with the repository.
pub async fn unpack(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    snapshot: &ResticSnapshot,
    id: &BackupId,
    into: &Path,
) -> Result<UnpackedBackup, StepError> {
    let command = ResticCommand {
        args: vec![
            "restore".to_owned(),
            "--verify".to_owned(),
            format!("--target={}", into.display()),
            snapshot.id.clone(),
        ],
        ..order(&[])
    };
    let (code, reason) = restic.run(context, command, &mut |_, _| None).await?;
    if code != 0 {
        let message = format!("nothing was changed: the backup cannot be restored: {reason}");
        return Err(OperationRefusal::failed(message).into());
    }
    let name = snapshot.files()?.file_name().unwrap_or_default();
    let unpacked = UnpackedBackup {
        files: into.join(name),
        definition: match snapshot.paths.iter().find(|path| is_definition(path)) {
            Some(path) => {
                let place = into.join(path.strip_prefix("/").unwrap_or(path));
                let found = manifest(&place, id, FORMAT).map_err(OperationRefusal::failed)?;
                Some((place, found))
            }
            None => None,
        },
    };
    if fs::symlink_metadata(&unpacked.files).is_err() {
        let message = "nothing was changed: the backup does not contain its files";
        return Err(OperationRefusal::failed(message).into());
    }
    Ok(unpacked)
}
