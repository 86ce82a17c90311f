//! Backups of containers and of the host's directories; the helper makes and stores them.

use std::path::Path;
use std::time::Duration;

use crate::helper_client::{
    Backup, BackupAction, BackupId, BackupKeep, BackupList, BackupSubject, BackupTarget,
    CreatedBackup, DeletedBackup, HelperClient, Operation, RestoredContainer, TargetName,
    VerifiedBackup,
};
use gatewren_base::config::Reach;
use gatewren_base::sys::neutralise;

use super::access_filter::{AccessFilter, unmask_error};
use super::error::{BackendError, ErrorKind};
use super::long_work::{CallJob, LongOperation, ask_long};
use super::request::{ask, ask_json};

/// The timeout of short operations: a disk may have to spin up, a network share to respond.
const SHORT: Duration = Duration::from_mins(1);

/// The timeout for making, reading or restoring a backup.
const LONG: Duration = Duration::from_hours(12);

/// The programs that the helper makes archives with.
const PROGRAMS: [&str; 2] = ["tar", "zstd"];

/// The program for restic repositories.
const RESTIC: &str = "restic";

/// The directories of these programs.
const PLACES: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// The backups of this host.
#[derive(Debug, Clone)]
pub struct Backups {
    helper: HelperClient,
}

/// The backups that a caller may access; a container's backup is as accessible as the container.
#[derive(Debug, Clone)]
pub struct BackupsView {
    helper: HelperClient,
    access: AccessFilter,
    reference: String,
}

/// A backup to make.
#[derive(Debug, Clone)]
pub struct NewBackup {
    /// The target that stores it.
    pub target: TargetName,
    /// What to back up.
    pub subject: BackupSubject,
    /// Whether a running container is frozen during the backup.
    pub freeze: bool,
    /// Which older backups of the same subject to keep; all if absent.
    pub keep: Option<BackupKeep>,
}

impl Backups {
    /// Returns the backups that this helper manages.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Whether the programs for backups are installed.
    pub fn are_here() -> bool {
        let found = |name: &str| {
            PLACES
                .iter()
                .any(|place| Path::new(place).join(name).exists())
        };
        PROGRAMS.into_iter().all(found) || found(RESTIC)
    }

    /// Returns the backups that a caller may access; `reference` identifies its calls in the
    /// helper's log.
    pub fn view_for(&self, reach: &Reach, reference: &str) -> BackupsView {
        BackupsView {
            helper: self.helper.clone(),
            access: AccessFilter::of(reach),
            reference: reference.to_owned(),
        }
    }
}

impl BackupsView {
    /// Returns the backup targets. Callers without access to the host do not see where the targets
    /// are.
    ///
    /// # Errors
    /// As for the other methods, when the owner's file does not allow it.
    pub async fn targets(&self) -> Result<Vec<BackupTarget>, BackendError> {
        let operation = Operation::Backup {
            action: BackupAction::Targets {},
        };
        let mut targets: Vec<BackupTarget> =
            ask_json(&self.helper, operation, SHORT, &self.reference).await?;
        if self.access.host().is_err() {
            for target in &mut targets {
                (target.place, target.obstacle) = (None, None);
            }
        }
        Ok(targets)
    }

    /// Adds a target below a directory where the owner allows targets.
    pub async fn add(&self, target: TargetName, root: Option<String>) -> Result<(), BackendError> {
        self.change(BackupAction::AddTarget { target, root }).await
    }

    /// Removes a target that was added.
    pub async fn remove(&self, target: TargetName) -> Result<(), BackendError> {
        self.change(BackupAction::RemoveTarget { target }).await
    }

    /// Mounts or unmounts the disk or share of a target.
    pub async fn set_mounted(&self, target: TargetName, mounted: bool) -> Result<(), BackendError> {
        self.change(if mounted {
            BackupAction::Mount { target }
        } else {
            BackupAction::Unmount { target }
        })
        .await
    }

    /// Returns the backups, newest first.
    pub async fn list(&self, target: Option<TargetName>) -> Result<BackupList, BackendError> {
        let operation = Operation::Backup {
            action: BackupAction::List { target },
        };
        let mut list: BackupList =
            ask_json(&self.helper, operation, SHORT, &self.reference).await?;
        let of_host = self.access.host().is_ok();
        list.backups
            .retain(|backup| match backup.backup.container() {
                Some(container) => self.access.shows(container),
                None => of_host,
            });
        if !of_host {
            for unseen in &mut list.unseen {
                "it cannot be used now".clone_into(&mut unseen.obstacle);
            }
        }
        list.backups.iter_mut().for_each(sanitize_backup);
        Ok(list)
    }

    /// Makes a backup, and deletes the older ones of the same subject that `keep` does not keep.
    pub async fn create(
        &self,
        backup: NewBackup,
        job: Option<CallJob>,
    ) -> Result<CreatedBackup, BackendError> {
        let NewBackup {
            target,
            subject,
            freeze,
            keep,
        } = backup;
        let asked = match &subject {
            BackupSubject::Container(name) => BackupSubject::Container(self.access.name(name)),
            BackupSubject::Path(path) => {
                self.access.host()?;
                BackupSubject::Path(path.clone())
            }
        };
        let action = BackupAction::Create {
            target,
            subject: asked.clone(),
            freeze,
            keep,
        };
        let answer = self.run(action, job).await;
        let answer = match (&subject, &asked) {
            (BackupSubject::Container(name), BackupSubject::Container(asked)) => {
                unmask_error(name, asked, answer)
            }
            _ => answer,
        }?;
        let mut created: CreatedBackup = read(&answer)?;
        sanitize_backup(&mut created.made);
        created.not_deleted = created.not_deleted.as_deref().map(clean);
        Ok(created)
    }

    /// Deletes a backup.
    pub async fn delete(
        &self,
        target: TargetName,
        backup: BackupId,
        job: Option<CallJob>,
    ) -> Result<DeletedBackup, BackendError> {
        let action = |backup| BackupAction::Delete { target, backup };
        let answer = self.run_on(backup, action, job).await?;
        read(&answer)
    }

    /// Reads a backup from beginning to end and verifies it.
    pub async fn verify(
        &self,
        target: TargetName,
        backup: BackupId,
        job: Option<CallJob>,
    ) -> Result<VerifiedBackup, BackendError> {
        let action = |backup| BackupAction::Verify { target, backup };
        let answer = self.run_on(backup, action, job).await?;
        let mut verified: VerifiedBackup = read(&answer)?;
        verified.problem = verified.problem.as_deref().map(clean);
        Ok(verified)
    }

    /// Restores a backup. Only for a container of Docker or Podman something of it may be left as it is.
    pub async fn restore(
        &self,
        target: TargetName,
        backup: BackupId,
        subject: BackupSubject,
        job: Option<CallJob>,
    ) -> Result<RestoredContainer, BackendError> {
        match &subject {
            BackupSubject::Container(to) if !self.access.shows(to) => {
                let words = format!("a container '{to}' would not be within this agent's reach");
                return Err(BackendError::new(ErrorKind::Refused, words));
            }
            BackupSubject::Path(_) => self.access.host()?,
            BackupSubject::Container(_) => {}
        }
        let action = |backup| BackupAction::Restore {
            target,
            backup,
            subject,
        };
        let answer = self.run_on(backup, action, job).await?;
        if answer.trim().is_empty() {
            return Ok(RestoredContainer::default());
        }
        let mut restored: RestoredContainer = read(&answer)?;
        restored.not_restored.iter_mut().for_each(clean_in_place);
        Ok(restored)
    }

    /// Runs an operation on one backup. An inaccessible backup gives the same error as a missing
    /// one.
    async fn run_on(
        &self,
        backup: BackupId,
        action: impl FnOnce(BackupId) -> BackupAction,
        job: Option<CallJob>,
    ) -> Result<String, BackendError> {
        let Some(name) = backup.container().cloned() else {
            self.access.host()?;
            return self.run(action(backup), job).await;
        };
        let asked = self.access.name(&name);
        let answer = self.run(action(backup.of(asked.clone())), job).await;
        unmask_error(&name, &asked, answer)
    }

    async fn run(
        &self,
        action: BackupAction,
        job: Option<CallJob>,
    ) -> Result<String, BackendError> {
        let long = LongOperation::new(Operation::Backup { action }, LONG);
        let answer = ask_long(&self.helper, long, job, &self.reference).await;
        answer.map_err(sanitize_error)
    }

    async fn change(&self, action: BackupAction) -> Result<(), BackendError> {
        let operation = Operation::Backup { action };
        let done = ask(&self.helper, operation, SHORT, &self.reference).await;
        done.map(drop).map_err(sanitize_error)
    }
}

/// Sanitizes a message that may contain a file's or a disk's name.
fn sanitize_error(error: BackendError) -> BackendError {
    BackendError {
        message: clean(&error.message),
        ..error
    }
}

fn clean(text: &str) -> String {
    neutralise(text).into_owned()
}

fn clean_in_place(text: &mut String) {
    *text = clean(text);
}

fn sanitize_backup(backup: &mut Backup) {
    backup.path = backup.path.as_deref().map(clean);
    backup.host = clean(&backup.host);
    backup.made = clean(&backup.made);
    backup.not_included.iter_mut().for_each(clean_in_place);
}

fn read<T: serde::de::DeserializeOwned>(answer: &str) -> Result<T, BackendError> {
    serde_json::from_str(answer).map_err(|cause| {
        let message = format!("the helper's answer is invalid: {cause}");
        BackendError::new(ErrorKind::Failed, message)
    })
}
