//! Deletes backups: one that the caller names, or those that a rule does not keep after a new one was made.

use std::fs;
use std::path::Path;

use gatewren_base::sys::mount_places;
use gatewren_wire::operations::{
    Backup, BackupId, BackupKeep, CreatedBackup, DeletedBackup, OperationRefusal,
};

use super::check::{MANIFEST, check};
use super::listing::list_target;
use super::restic::{Restic, order};
use super::restic_store::{ResticSnapshot, find, snapshots};
use super::targets::HelperBackupTarget;
use crate::context::operation_context::OperationContext;
use crate::processes::staging_dir::{PREFIX, remove};
use crate::processes::step_error::StepError;

/// Deletes a backup.
pub async fn delete(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<DeletedBackup, StepError> {
    match Restic::of(context, target).await? {
        Some(restic) => {
            let snapshot = find(context, &restic, target, id).await?;
            forget(context, &restic, &[snapshot.id()]).await?;
        }
        None => remove_directories(context, target, vec![id.clone()]).await?,
    }
    tracing::info!(backup = %id, target = target.name.as_str(), "deleted a backup");
    Ok(DeletedBackup {
        backup: id.clone(),
        target: target.name.clone(),
    })
}

/// Deletes the older backups of the subject of a new one that a rule does not keep. The new one is read back first.
///
/// # Errors
/// Only if the call has to end. If a backup cannot be deleted, the answer has the reason: the new backup exists.
pub async fn prune(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    made: Backup,
    keep: &BackupKeep,
) -> Result<CreatedBackup, StepError> {
    let result = match find_outdated(context, target, &made, keep).await {
        Ok(outdated) => delete_all(context, target, outdated).await,
        Err(error) => Err(error),
    };
    let (deleted, not_deleted) = match result {
        Ok(deleted) => (deleted, None),
        Err(StepError::Refused(problem)) => (Vec::new(), Some(problem.to_string())),
        Err(error) => return Err(error),
    };
    for backup in &deleted {
        tracing::info!(%backup, target = target.name.as_str(), "deleted a backup that `keep` does not keep");
    }
    Ok(CreatedBackup {
        made,
        deleted,
        not_deleted,
    })
}

/// Verifies the new backup, and returns the older ones of its subject that the rule does not keep, newest first. Those
/// of another machine that writes to the same target have another subject.
async fn find_outdated(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    made: &Backup,
    keep: &BackupKeep,
) -> Result<Vec<BackupId>, StepError> {
    if let Some(problem) = problem_of(context, target, &made.backup).await? {
        let message = format!("nothing was deleted: the new backup cannot be verified: {problem}");
        return Err(OperationRefusal::failed(message).into());
    }
    let mut all = list_target(context, target).await?;
    all.retain(|backup| {
        let is_same_subject = backup.container == made.container && backup.path == made.path;
        is_same_subject && backup.host == made.host
    });
    if !all.iter().any(|backup| backup.backup == made.backup) {
        let message = "nothing was deleted: the new backup is not in the list of its target";
        return Err(OperationRefusal::failed(message).into());
    }
    let ids: Vec<BackupId> = all.into_iter().map(|backup| backup.backup).collect();
    let outdated = keep.outdated(ids.iter().map(|id| id.stamp().to_owned()).collect());
    let older = ids
        .into_iter()
        .filter(|id| id.stamp() < made.backup.stamp());
    let mut older: Vec<BackupId> = older
        .filter(|id| outdated.iter().any(|stamp| stamp == id.stamp()))
        .collect();
    older.sort_by(|a, b| b.stamp().cmp(a.stamp()));
    older.dedup();
    Ok(older)
}

/// Returns what is wrong with a backup. An archive is read completely; of a repository, restic checks that everything
/// that its snapshots refer to is there.
async fn problem_of(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<Option<String>, StepError> {
    let Some(restic) = Restic::of(context, target).await? else {
        return Ok(check(context, target, id).await?.problem);
    };
    find(context, &restic, target, id).await?;
    let command = order(&["check"]);
    let (code, reason) = restic.run(context, command, &mut |_, _| None).await?;
    Ok((code != 0).then_some(reason))
}

/// Deletes these backups and returns them.
async fn delete_all(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    outdated: Vec<BackupId>,
) -> Result<Vec<BackupId>, StepError> {
    if outdated.is_empty() {
        return Ok(outdated);
    }
    let Some(restic) = Restic::of(context, target).await? else {
        remove_directories(context, target, outdated.clone()).await?;
        return Ok(outdated);
    };
    let all = snapshots(context, &restic, None).await?;
    let is_outdated = |id: Option<BackupId>| id.is_some_and(|id| outdated.contains(&id));
    let chosen = all.iter().filter(|snapshot| is_outdated(snapshot.backup()));
    let chosen: Vec<&str> = chosen.map(ResticSnapshot::id).collect();
    forget(context, &restic, &chosen).await?;
    Ok(outdated)
}

/// Removes snapshots from a repository, and the data that no other snapshot refers to.
async fn forget(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    snapshots: &[&str],
) -> Result<(), StepError> {
    restic.unlock(context).await;
    let hex = |id: &&&str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit());
    let mut args = vec!["forget", "--prune"];
    args.extend(snapshots.iter().filter(hex).copied());
    let (code, reason) = restic.run(context, order(&args), &mut |_, _| None).await?;
    if code == 0 {
        return Ok(());
    }
    let message = format!("the backup cannot be deleted completely: {reason}");
    Err(OperationRefusal::failed(message).into())
}

/// Deletes the directories of backups, the oldest first.
async fn remove_directories(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    ids: Vec<BackupId>,
) -> Result<(), StepError> {
    let place = target.clone();
    let delete = move || {
        let (directory, _lock) = place.locked()?;
        ids.iter()
            .rev()
            .try_for_each(|id| remove_directory(&place, &directory, id))
    };
    context.run_blocking(delete).await
}

/// Deletes the directory of one backup. It first gets the name of an incomplete one, so that an interruption leaves no
/// part of a backup under its name, and the next backup removes the rest.
fn remove_directory(
    target: &HelperBackupTarget,
    directory: &Path,
    id: &BackupId,
) -> Result<(), OperationRefusal> {
    let path = directory.join(id.file_name());
    // A link is no directory here: it is neither followed nor removed.
    let is_directory = fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_dir());
    let manifest = fs::symlink_metadata(path.join(MANIFEST));
    if !is_directory || !manifest.is_ok_and(|facts| facts.is_file()) {
        return Err(target.lacks(id));
    }
    let failed = |cause: &dyn std::fmt::Display| {
        OperationRefusal::failed(format!("the backup '{id}' cannot be deleted: {cause}"))
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|e| failed(&e))?;
    let real = path.canonicalize().map_err(|e| failed(&e))?;
    if let Some(place) = mount_places(&mounts).find(|place| Path::new(place).starts_with(&real)) {
        return Err(failed(&format!("something is mounted at {place}")));
    }
    let doomed = directory.join(format!("{PREFIX}deleted-{}", id.file_name()));
    let removed = remove(&doomed).and_then(|()| fs::rename(&path, &doomed));
    removed
        .and_then(|()| remove(&doomed))
        .map_err(|e| failed(&e))
}

#[cfg(test)]
mod tests {
    use super::super::delete::*;
    use gatewren_base::config::BackupStore;
    use gatewren_base::sys::Scratch;

    /// Returns a target with a backup of each kind: whole, a link to one, a file, and one without a manifest.
    fn target(scratch: &Scratch) -> HelperBackupTarget {
        let store = scratch.join("store");
        for name in ["web@20260728T00", "bare@20260728T00"] {
            fs::create_dir_all(store.join(name)).unwrap();
        }
        fs::write(store.join("web@20260728T00/manifest.json"), "damaged").unwrap();
        std::os::unix::fs::symlink("/etc", store.join("web@20260728T00/link")).unwrap();
        std::os::unix::fs::symlink("web@20260728T00", store.join("link@20260728T00")).unwrap();
        fs::write(store.join("file@20260728T00"), "x").unwrap();
        let store = BackupStore::Directory(store.display().to_string());
        HelperBackupTarget::for_test("local", store)
    }

    #[test]
    fn only_a_directory_with_a_manifest_is_deleted_and_no_link_is_followed() {
        let scratch = Scratch::new();
        let target = target(&scratch);
        let store = scratch.join("store");
        for bad in [
            "link@20260728T00",
            "file@20260728T00",
            "bare@20260728T00",
            "none@20260728T00",
        ] {
            let refused = remove_directory(&target, &store, &bad.parse().unwrap());
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("there is no backup"), "{message}");
        }
        assert_eq!(fs::read_dir(&store).unwrap().count(), 4);
        let whole = "web@20260728T00".parse().unwrap();
        assert_eq!(remove_directory(&target, &store, &whole), Ok(()));
        assert!(!store.join("web@20260728T00").exists() && Path::new("/etc/passwd").exists());
        assert_eq!(fs::read_dir(&store).unwrap().count(), 3);
        assert!(remove_directory(&target, &store, &whole).is_err());
    }
}
