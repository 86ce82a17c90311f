//! Operations on backups: dispatches each one and lists the backups.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use gatewren_wire::operations::{
    Backup, BackupAction, BackupId, BackupKeep, BackupList, BackupSubject, CreatedBackup,
    OperationEnd, OperationRefusal, TargetName, UnreadableTarget, VerifiedBackup,
};

use super::check::check;
use super::listing::list_target;
use super::restic::Restic;
use super::targets::HelperBackupTarget;
use super::{added_targets, create, delete, mounts, restic_create, restic_store, restore, targets};
use crate::context::operation_context::OperationContext;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::{StepError, operation_end, step_end};

/// The most backups in a list.
const MOST: usize = 1000;

/// How long listing all targets may take. Targets not reached by then are listed as unseen. Together with the time of
/// one more target this stays below the front's timeout.
const LIST_TIME: Duration = Duration::from_secs(35);

/// Performs one operation on backups.
pub async fn perform(
    context: &mut OperationContext<'_>,
    action: &BackupAction,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    match action {
        BackupAction::Targets {} => step_end(targets::list(context).await),
        BackupAction::AddTarget { target, root } => {
            added_targets::add(helper, target, root.as_deref()).await
        }
        BackupAction::RemoveTarget { target } => added_targets::forget(helper, target).await,
        BackupAction::Mount { target } => mounts::mount(context, target).await,
        BackupAction::Unmount { target } => mounts::unmount(context, target).await,
        BackupAction::List { target } => list(context, target.as_ref()).await,
        BackupAction::Create {
            target,
            subject,
            freeze,
            keep,
        } => {
            let target = targets::find_target(helper, target)?;
            let made = create(context, &target, subject, *freeze).await;
            let done = match made {
                Ok(made) => finish(context, &target, made, keep.as_ref()).await,
                Err(error) => Err(error),
            };
            print_result(context, done).await
        }
        BackupAction::Delete { target, backup } => {
            let target = targets::find_target(helper, target)?;
            let deleted = delete::delete(context, &target, backup).await;
            print_result(context, deleted).await
        }
        BackupAction::Verify { target, backup } => {
            let target = targets::find_target(helper, target)?;
            let verified = verify(context, &target, backup).await;
            print_result(context, verified).await
        }
        BackupAction::Restore {
            target,
            backup,
            subject,
        } => {
            let target = targets::find_target(helper, target)?;
            restore::restore(context, &target, backup, subject).await
        }
    }
}

/// Prints the result.
async fn print_result(
    context: &mut OperationContext<'_>,
    result: Result<impl Serialize, StepError>,
) -> Result<OperationEnd, OperationRefusal> {
    let result = match result {
        Ok(result) => result,
        Err(error) => return operation_end(Err(error)),
    };
    // Plain numbers and strings always serialize.
    let bytes = serde_json::to_vec(&result).unwrap_or_default();
    context.relay.write_stdout(bytes).await;
    Ok(OperationEnd::SUCCESS)
}

/// Creates a backup and returns its manifest.
pub async fn create(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    subject: &BackupSubject,
    freeze: bool,
) -> Result<Backup, StepError> {
    match Restic::of(context, target).await? {
        Some(restic) => restic_create::create(context, &restic, target, subject, freeze).await,
        None => create::create(context, target, subject, freeze).await,
    }
}

/// Deletes the older backups that the caller does not keep, and returns the answer.
async fn finish(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    made: Backup,
    keep: Option<&BackupKeep>,
) -> Result<CreatedBackup, StepError> {
    match keep {
        Some(keep) => delete::prune(context, target, made, keep).await,
        None => Ok(CreatedBackup {
            made,
            deleted: Vec::new(),
            not_deleted: None,
        }),
    }
}

/// Prints the backups that the policy allows to be seen, newest first.
async fn list(
    context: &mut OperationContext<'_>,
    target: Option<&TargetName>,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let targets = match target {
        Some(name) => vec![targets::find_target(context.helper, name)?],
        None => targets::all(context.helper),
    };
    let policy = context.helper.policy.now();
    let mut list = BackupList::default();
    let until = Instant::now() + LIST_TIME;
    for target in targets {
        let listed = if Instant::now() < until {
            list_target(context, &target).await
        } else {
            Err(OperationRefusal::failed(
                "other targets took too long to respond; ask for this target only",
            )
            .into())
        };
        match listed {
            Ok(backups) => list.backups.extend(backups.into_iter().filter(|backup| {
                let container = backup.container.as_ref();
                container.is_none_or(|name| policy.allows_container(name.as_str()))
            })),
            Err(StepError::Refused(obstacle)) => list.unseen.push(UnreadableTarget {
                target: target.name.clone(),
                obstacle: obstacle.to_string(),
            }),
            Err(error) => return operation_end(Err(error)),
        }
    }
    print(context.relay, move || {
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

async fn verify(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
) -> Result<VerifiedBackup, StepError> {
    if let Some(restic) = Restic::of(context, target).await? {
        return restic_store::verify(context, &restic, target, id).await;
    }
    let checked = check(context, target, id).await?;
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
