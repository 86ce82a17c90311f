//! Operations on backups: dispatches each one and lists the backups.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use gatewren_wire::operations::{
    Backup, BackupDeed, BackupId, BackupList, Ending, Frame, Stream, Subject, TargetName,
    UnseenTarget, Verified,
};

use super::check::{FORMAT, check, manifest};
use super::restic::Restic;
use super::restic_store::snapshots;
use super::targets::Target;
use super::{create, mounts, restic_create, restic_store, restore, targets};
use crate::context::helper_context::House;
use crate::context::output_relay::Pump;
use crate::context::refusal::Refusal;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::{Halt, Work, ending};

/// The most backups in a list.
const MOST: usize = 1000;

/// How long listing all targets may take. Targets not reached by then are listed as unseen. Together with the time of
/// one more target this stays below the front's timeout.
const LIST_TIME: Duration = Duration::from_secs(35);

/// Performs one operation on backups.
pub async fn perform(
    house: &House,
    pump: &mut Pump,
    deed: &BackupDeed,
    processes: u32,
) -> Result<Ending, Refusal> {
    match deed {
        BackupDeed::Targets {} => targets::list(house, pump).await,
        BackupDeed::AddTarget { target, root } => {
            targets::add(house, target, root.as_deref()).await
        }
        BackupDeed::RemoveTarget { target } => targets::forget(house, target).await,
        BackupDeed::Mount { target } => mounts::mount(house, pump, target).await,
        BackupDeed::Unmount { target } => mounts::unmount(house, pump, target).await,
        BackupDeed::List { target } => {
            let mut work = work(house, pump, processes);
            list(&mut work, target.as_ref()).await
        }
        BackupDeed::Create {
            target,
            subject,
            freeze,
        } => {
            let target = targets::named(house, target)?;
            let mut work = work(house, pump, processes);
            let made = create(&mut work, &target, (subject, *freeze)).await;
            told(&mut work, made).await
        }
        BackupDeed::Verify { target, backup } => {
            let target = targets::named(house, target)?;
            let mut work = work(house, pump, processes);
            let verified = verify(&mut work, &target, backup).await;
            told(&mut work, verified).await
        }
        BackupDeed::Restore {
            target,
            backup,
            subject,
        } => {
            let target = targets::named(house, target)?;
            let mut work = work(house, pump, processes);
            restore::restore(&mut work, &target, (backup, subject)).await
        }
    }
}

fn work<'a>(house: &'a House, pump: &'a mut Pump, processes: u32) -> Work<'a> {
    Work {
        house,
        pump,
        processes,
    }
}

/// Prints the result.
async fn told(work: &mut Work<'_>, told: Result<impl Serialize, Halt>) -> Result<Ending, Refusal> {
    let told = match told {
        Ok(told) => told,
        Err(halt) => return ending(Err(halt)),
    };
    // Plain numbers and strings always serialize.
    let bytes = serde_json::to_vec(&told).unwrap_or_default();
    let frame = Frame::Output(Stream::Stdout, bytes);
    work.pump.say(&frame).await;
    Ok(Ending::Exited { code: 0 })
}

async fn create(
    work: &mut Work<'_>,
    target: &Target,
    what: (&Subject, bool),
) -> Result<Backup, Halt> {
    match Restic::of(work, target).await? {
        Some(restic) => restic_create::create(work, (&restic, target), what).await,
        None => create::create(work, target, what).await,
    }
}

/// Prints the backups that the policy allows to be seen, newest first.
async fn list(work: &mut Work<'_>, target: Option<&TargetName>) -> Result<Ending, Refusal> {
    require_root()?;
    let targets = match target {
        Some(name) => vec![targets::named(work.house, name)?],
        None => targets::all(work.house),
    };
    let policy = work.house.policy.now();
    let mut list = BackupList::default();
    let until = Instant::now() + LIST_TIME;
    for target in targets {
        let looked = if Instant::now() < until {
            kept(work, &target).await
        } else {
            Err(
                Refusal::failed("other targets took too long to respond; ask for this target only")
                    .into(),
            )
        };
        match looked {
            Ok(backups) => list.backups.extend(backups.into_iter().filter(|backup| {
                let container = backup.container.as_ref();
                container.is_none_or(|name| policy.allows_container(name.as_str()))
            })),
            Err(Halt::Refused(obstacle)) => list.unseen.push(UnseenTarget {
                target: target.name.clone(),
                obstacle: obstacle.to_string(),
            }),
            Err(halt) => return ending(Err(halt)),
        }
    }
    print(work.pump, move || {
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
async fn kept(work: &mut Work<'_>, target: &Target) -> Result<Vec<Backup>, Halt> {
    if let Some(restic) = Restic::of(work, target).await? {
        let snapshots = snapshots(&restic, work, None).await?;
        let told = snapshots
            .iter()
            .filter_map(|snapshot| snapshot.told(target));
        return Ok(told.collect());
    }
    let (at, target) = (target.clone(), target.clone());
    let looked = targets::in_time(&target.name, move || at.directory());
    let path = work.pump.wait(looked).await.map_err(Halt::Killed)??;
    work.aside(move || Ok(seen(&target, found(&path)?))).await
}

/// Returns the ids of the backups in a target's directory.
fn found(path: &Path) -> Result<Vec<(BackupId, PathBuf)>, Refusal> {
    let entries = fs::read_dir(path)
        .map_err(|e| Refusal::failed(format!("{} cannot be read: {e}", path.display())))?;
    let ids = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.parse().ok()?, entry.path()))
    });
    Ok(ids.collect())
}

fn seen(target: &Target, found: Vec<(BackupId, PathBuf)>) -> Vec<Backup> {
    let manifests = found.into_iter();
    let manifests = manifests.filter_map(|(id, path)| manifest(&path, &id, FORMAT).ok());
    let told = manifests.map(|backup| Backup {
        target: Some(target.name.clone()),
        format: None,
        ..backup
    });
    told.collect()
}

async fn verify(work: &mut Work<'_>, target: &Target, id: &BackupId) -> Result<Verified, Halt> {
    if let Some(restic) = Restic::of(work, target).await? {
        return restic_store::verify(&restic, work, (target, id)).await;
    }
    let checked = check(work, target, id).await?;
    let bytes = checked.manifest.and_then(|backup| backup.archive_bytes);
    Ok(Verified {
        backup: id.clone(),
        target: target.name.clone(),
        whole: checked.problem.is_none(),
        problem: checked.problem,
        entries: checked.entries,
        archive_bytes: bytes.unwrap_or_default(),
    })
}
