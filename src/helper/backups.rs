//! From an operation on backups to what does it, and the backups that there are.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::HelperPolicy;
use crate::exec::{
    Backup, BackupDeed, BackupId, BackupList, Ending, Frame, Stream, TargetName, UnseenTarget,
    Verified,
};

use super::{
    backup_check::{check, manifest},
    backup_make, backup_places,
    backup_places::Target,
    backup_restore,
    commands::require_root,
    halt::{Halt, Work, ending},
    house::House,
    printing::print,
    pump::Pump,
    refusal::Refusal,
};

/// The most backups that are told of.
const MOST: usize = 1000;

/// Does one of the operations on backups.
pub async fn perform(
    house: &House,
    pump: &mut Pump,
    deed: &BackupDeed,
    processes: u32,
) -> Result<Ending, Refusal> {
    match deed {
        BackupDeed::Targets {} => backup_places::list(house, pump).await,
        BackupDeed::AddTarget { target, root } => {
            backup_places::add(house, target, root.as_deref()).await
        }
        BackupDeed::RemoveTarget { target } => backup_places::forget(house, target).await,
        BackupDeed::Mount { target } => backup_places::mount(house, pump, target).await,
        BackupDeed::Unmount { target } => backup_places::unmount(house, pump, target).await,
        BackupDeed::List { target } => list(house, pump, target.as_ref()).await,
        BackupDeed::Create {
            target,
            subject,
            freeze,
        } => {
            let target = backup_places::named(house, target)?;
            let mut work = work(house, pump, processes);
            let made = backup_make::create(&mut work, &target, (subject, *freeze)).await;
            told(&mut work, made).await
        }
        BackupDeed::Verify { target, backup } => {
            let target = backup_places::named(house, target)?;
            let mut work = work(house, pump, processes);
            let verified = verify(&mut work, &target, backup).await;
            told(&mut work, verified).await
        }
        BackupDeed::Restore {
            target,
            backup,
            subject,
        } => {
            let target = backup_places::named(house, target)?;
            let mut work = work(house, pump, processes);
            backup_restore::restore(&mut work, &target, (backup, subject)).await
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

/// Prints what came of it.
async fn told(work: &mut Work<'_>, told: Result<impl Serialize, Halt>) -> Result<Ending, Refusal> {
    let told = match told {
        Ok(told) => told,
        Err(halt) => return ending(Err(halt)),
    };
    // Plain numbers and words: there is nothing that JSON cannot hold.
    let bytes = serde_json::to_vec(&told).unwrap_or_default();
    let frame = Frame::Output(Stream::Stdout, bytes);
    work.pump.say(&frame).await;
    Ok(Ending::Exited { code: 0 })
}

/// Prints those that may be seen, the newest first.
async fn list(
    house: &House,
    pump: &mut Pump,
    target: Option<&TargetName>,
) -> Result<Ending, Refusal> {
    require_root()?;
    let targets = match target {
        Some(name) => vec![backup_places::named(house, name)?],
        None => backup_places::all(house),
    };
    let policy = house.policy.now();
    print(pump, move || {
        let mut list = BackupList::default();
        for target in &targets {
            match target.directory().and_then(|path| found(&path)) {
                Ok(found) => list.backups.extend(seen(target, found, &policy)),
                Err(obstacle) => list.unseen.push(UnseenTarget {
                    target: target.name.clone(),
                    obstacle: obstacle.to_string(),
                }),
            }
        }
        let newest = |backup: &Backup| (backup.backup.stamp().to_owned(), backup.backup.clone());
        list.backups
            .sort_by_cached_key(|backup| std::cmp::Reverse(newest(backup)));
        list.truncated = list.backups.len() > MOST;
        list.backups.truncate(MOST);
        // Plain numbers and words: there is nothing that JSON cannot hold.
        Ok(serde_json::to_vec(&list).unwrap_or_default())
    })
    .await
}

/// The ids that stand in a target's directory.
fn found(path: &Path) -> Result<Vec<(BackupId, PathBuf)>, Refusal> {
    let entries = fs::read_dir(path)
        .map_err(|e| Refusal::failed(format!("{} cannot be read: {e}", path.display())))?;
    let ids = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.parse().ok()?, entry.path()))
    });
    Ok(ids.collect())
}

fn seen(target: &Target, found: Vec<(BackupId, PathBuf)>, policy: &HelperPolicy) -> Vec<Backup> {
    let found = found.into_iter().filter(|(id, _)| {
        let container = id.container();
        container.is_none_or(|name| policy.allows_container(name.as_str()))
    });
    let manifests = found.filter_map(|(id, path)| manifest(&path, &id).ok());
    let told = manifests.map(|backup| Backup {
        target: Some(target.name.clone()),
        format: None,
        ..backup
    });
    told.collect()
}

async fn verify(work: &mut Work<'_>, target: &Target, id: &BackupId) -> Result<Verified, Halt> {
    let checked = check(work, target, id).await?;
    Ok(Verified {
        backup: id.clone(),
        target: target.name.clone(),
        whole: checked.problem.is_none(),
        problem: checked.problem,
        entries: checked.entries,
        archive_bytes: checked.manifest.map_or(0, |backup| backup.archive_bytes),
    })
}
