//! Operations on backups: dispatches each one and lists the backups.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use gatewren_wire::operations::{
    Backup, BackupAction, BackupId, BackupList, BackupSubject, Frame, OperationEnd, Stream,
    TargetName, UnreadableTarget, VerifiedBackup,
};

use super::check::{FORMAT, check, manifest};
use super::restic::Restic;
use super::restic_store::snapshots;
use super::targets::HelperBackupTarget;
use super::{added_targets, create, mounts, restic_create, restic_store, restore, targets};
use crate::context::helper_context::HelperContext;
use crate::context::output_relay::OutputRelay;
use crate::context::refusal::OperationRefusal;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::{StepContext, StepError, ending};

/// The most backups in a list.
const MOST: usize = 1000;

/// How long listing all targets may take. Targets not reached by then are listed as unseen. Together with the time of
/// one more target this stays below the front's timeout.
const LIST_TIME: Duration = Duration::from_secs(35);

/// Performs one operation on backups.
pub async fn perform(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    deed: &BackupAction,
    processes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    match deed {
        BackupAction::Targets {} => targets::list(helper, relay).await,
        BackupAction::AddTarget { target, root } => {
            added_targets::add(helper, target, root.as_deref()).await
        }
        BackupAction::RemoveTarget { target } => added_targets::forget(helper, target).await,
        BackupAction::Mount { target } => mounts::mount(helper, relay, target).await,
        BackupAction::Unmount { target } => mounts::unmount(helper, relay, target).await,
        BackupAction::List { target } => {
            let mut work = work(helper, relay, processes);
            list(&mut work, target.as_ref()).await
        }
        BackupAction::Create {
            target,
            subject,
            freeze,
        } => {
            let target = targets::named(helper, target)?;
            let mut work = work(helper, relay, processes);
            let made = create(&mut work, &target, (subject, *freeze)).await;
            told(&mut work, made).await
        }
        BackupAction::Verify { target, backup } => {
            let target = targets::named(helper, target)?;
            let mut work = work(helper, relay, processes);
            let verified = verify(&mut work, &target, backup).await;
            told(&mut work, verified).await
        }
        BackupAction::Restore {
            target,
            backup,
            subject,
        } => {
            let target = targets::named(helper, target)?;
            let mut work = work(helper, relay, processes);
            restore::restore(&mut work, &target, (backup, subject)).await
        }
    }
}

fn work<'a>(
    helper: &'a HelperContext,
    relay: &'a mut OutputRelay,
    processes: u32,
) -> StepContext<'a> {
    StepContext {
        helper,
        relay,
        processes,
    }
}

/// Prints the result.
async fn told(
    work: &mut StepContext<'_>,
    told: Result<impl Serialize, StepError>,
) -> Result<OperationEnd, OperationRefusal> {
    let told = match told {
        Ok(told) => told,
        Err(halt) => return ending(Err(halt)),
    };
    // Plain numbers and strings always serialize.
    let bytes = serde_json::to_vec(&told).unwrap_or_default();
    let frame = Frame::Output(Stream::Stdout, bytes);
    work.relay.say(&frame).await;
    Ok(OperationEnd::Exited { code: 0 })
}

async fn create(
    work: &mut StepContext<'_>,
    target: &HelperBackupTarget,
    what: (&BackupSubject, bool),
) -> Result<Backup, StepError> {
    match Restic::of(work, target).await? {
        Some(restic) => restic_create::create(work, (&restic, target), what).await,
        None => create::create(work, target, what).await,
    }
}

/// Prints the backups that the policy allows to be seen, newest first.
async fn list(
    work: &mut StepContext<'_>,
    target: Option<&TargetName>,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let targets = match target {
        Some(name) => vec![targets::named(work.helper, name)?],
        None => targets::all(work.helper),
    };
    let policy = work.helper.policy.now();
    let mut list = BackupList::default();
    let until = Instant::now() + LIST_TIME;
    for target in targets {
        let looked = if Instant::now() < until {
            kept(work, &target).await
        } else {
            Err(OperationRefusal::failed(
                "other targets took too long to respond; ask for this target only",
            )
            .into())
        };
        match looked {
            Ok(backups) => list.backups.extend(backups.into_iter().filter(|backup| {
                let container = backup.container.as_ref();
                container.is_none_or(|name| policy.allows_container(name.as_str()))
            })),
            Err(StepError::Refused(obstacle)) => list.unseen.push(UnreadableTarget {
                target: target.name.clone(),
                obstacle: obstacle.to_string(),
            }),
            Err(halt) => return ending(Err(halt)),
        }
    }
    print(work.relay, move || {
        let newest = |backup: &Backup| (backup.backup.stamp().to_owned(), backup.backup.clone());
        list.backups
            .sort_by_cached_key(|backup| std::cmp::Reverse(newest(backup)));
        list.truncated = list.backups.len() > MOST;
        list.backups.truncate(MOST);
        // Plain numbers and strings always serialize.
        Ok(serde_json::to_vec(&list).unwrap_or_default())
    })
    .await
}

/// Returns the backups on a target.
async fn kept(
    work: &mut StepContext<'_>,
    target: &HelperBackupTarget,
) -> Result<Vec<Backup>, StepError> {
    if let Some(restic) = Restic::of(work, target).await? {
        let snapshots = snapshots(&restic, work, None).await?;
        let told = snapshots
            .iter()
            .filter_map(|snapshot| snapshot.told(target));
        return Ok(told.collect());
    }
    let (at, target) = (target.clone(), target.clone());
    let looked = targets::in_time(&target.name, move || at.directory());
    let path = work.relay.wait(looked).await.map_err(StepError::Killed)??;
    work.aside(move || Ok(seen(&target, found(&path)?))).await
}

/// Returns the ids of the backups in a target's directory.
fn found(path: &Path) -> Result<Vec<(BackupId, PathBuf)>, OperationRefusal> {
    let entries = fs::read_dir(path)
        .map_err(|e| OperationRefusal::failed(format!("{} cannot be read: {e}", path.display())))?;
    let ids = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.parse().ok()?, entry.path()))
    });
    Ok(ids.collect())
}

fn seen(target: &HelperBackupTarget, found: Vec<(BackupId, PathBuf)>) -> Vec<Backup> {
    let manifests = found.into_iter();
    let manifests = manifests.filter_map(|(id, path)| manifest(&path, &id, FORMAT).ok());
    let told = manifests.map(|backup| Backup {
        target: Some(target.name.clone()),
        format: None,
        ..backup
    });
    told.collect()
}

async fn verify(
    work: &mut StepContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<VerifiedBackup, StepError> {
    if let Some(restic) = Restic::of(work, target).await? {
        return restic_store::verify(&restic, work, (target, id)).await;
    }
    let checked = check(work, target, id).await?;
    let bytes = checked.manifest.and_then(|backup| backup.archive_bytes);
    Ok(VerifiedBackup {
        backup: id.clone(),
        target: target.name.clone(),
        whole: checked.problem.is_none(),
        problem: checked.problem,
        entries: checked.entries,
        archive_bytes: bytes.unwrap_or_default(),
    })
}
