//! Backup targets: those in the owner's policy file, and directories added below its `backup_roots`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;

use gatewren_base::config::{BackupStore, HELPER_POLICY_FILE};
use gatewren_base::sys::files::read_bounded;
use gatewren_base::sys::{DirectoryLock, disk_space, lock_directory, mount_places, own_uid};
use gatewren_wire::operations::{
    BackupId, BackupTarget, OperationEnd, OperationRefusal, RefusalCode, TargetKind, TargetName,
};

use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::processes::answers::to_its_end;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::staging_dir::{PREFIX, remove};
use crate::processes::step_error::StepError;

/// The file of added targets in the helper's state directory: each name with the directory that it is below.
pub(super) const ADDED: &str = "backup-targets.json";

/// The largest size of that file. More targets are rejected.
pub(super) const ADDED_BYTES: usize = 16 * 1024;

/// The directory in the helper's state directory where disks and shares are mounted.
const MOUNTS: &str = "mounts";

/// How long a target may take to respond, including the time a disk needs to spin up. A slower one is reported as not
/// responding.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// Mode bits: write permission for group and others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Mode bits: any permission for group and others.
const OF_OTHERS: u32 = 0o077;

/// A backup target.
#[derive(Debug, Clone)]
pub struct HelperBackupTarget {
    /// Its name.
    pub name: TargetName,
    /// Where it keeps its backups.
    pub store: BackupStore,
    pub(super) of_the_owner: bool,
    /// Its mount point, if it has one.
    mount: Option<PathBuf>,
}

/// Returns all targets, sorted by name. An added target counts only while the policy file lists the directory it is
/// below.
pub fn all(helper: &HelperContext) -> Vec<HelperBackupTarget> {
    let policy = helper.policy.now();
    let mut found = BTreeMap::new();
    for (name, root) in added(helper) {
        if policy.backup_roots.contains(&root) {
            let store = BackupStore::Directory(format!("{root}/{name}"));
            found.insert(name.clone(), target(helper, name, store, false));
        }
    }
    for place in &policy.backup_targets {
        // The policy file uses the same rule for names.
        if let Ok(name) = place.name.parse::<TargetName>() {
            let target = target(helper, name.clone(), place.store.clone(), true);
            found.insert(name, target);
        }
    }
    found.into_values().collect()
}

/// Returns the target with this name.
pub fn find_target(
    helper: &HelperContext,
    name: &TargetName,
) -> Result<HelperBackupTarget, OperationRefusal> {
    require_root()?;
    let all = all(helper);
    let known = !all.is_empty();
    let found = all.into_iter().find(|target| target.name == *name);
    found.ok_or_else(|| {
        OperationRefusal::bad_command(if known {
            format!("there is no backup target '{name}'; backup_target_list shows those that exist")
        } else {
            format!(
                "there is no backup target '{name}', and no other one: the owner of this server sets them in \
                 backup_targets of {HELPER_POLICY_FILE}"
            )
        })
    })
}

fn target(
    helper: &HelperContext,
    name: TargetName,
    store: BackupStore,
    of_the_owner: bool,
) -> HelperBackupTarget {
    let mount = match store {
        BackupStore::Disk(_) | BackupStore::Share { .. } => {
            let state = helper.state.as_ref();
            state.map(|state| state.join(MOUNTS).join(name.as_str()))
        }
        BackupStore::Directory(_) | BackupStore::Restic { .. } => None,
    };
    HelperBackupTarget {
        name,
        store,
        of_the_owner,
        mount,
    }
}

/// Returns the added targets: each name with the directory that it is below.
pub(super) fn added(helper: &HelperContext) -> BTreeMap<TargetName, String> {
    let file = helper.state.as_ref().map(|state| state.join(ADDED));
    let bytes = file.and_then(|file| read_bounded(&file, ADDED_BYTES).ok());
    bytes
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

impl HelperBackupTarget {
    /// Returns a target of the owner's.
    #[cfg(test)]
    pub fn for_test(name: &str, store: BackupStore) -> Self {
        Self {
            name: name.parse().unwrap(),
            store,
            of_the_owner: true,
            mount: None,
        }
    }

    /// Returns the directory of its backups, if it is usable now. May wait for a disk.
    ///
    /// # Errors
    /// The error states the obstacle and how to remove it.
    pub fn directory(&self) -> Result<PathBuf, OperationRefusal> {
        let name = &self.name;
        let path = match (&self.store, &self.mount) {
            (BackupStore::Directory(path), _) => PathBuf::from(path),
            (BackupStore::Restic { .. }, _) => {
                let message = format!("backup target '{name}' is a restic repository");
                return Err(OperationRefusal::failed(message));
            }
            (_, Some(mount)) if is_mounted(mount) => mount.clone(),
            (_, Some(_)) => {
                let message = format!(
                    "backup target '{name}' is not mounted; mount it first (backup_target_mount)"
                );
                return Err(OperationRefusal::failed(message));
            }
            (_, None) => return Err(no_state()),
        };
        own(&path)?;
        Ok(path)
    }

    /// For a restic target, returns the directory of its repository, or `None` if that is on another machine.
    ///
    /// # Errors
    /// States why it cannot be used, as far as that is known without asking another machine.
    pub fn repository(&self) -> Option<Result<Option<PathBuf>, OperationRefusal>> {
        let BackupStore::Restic {
            repository,
            password,
            credentials,
        } = &self.store
        else {
            return None;
        };
        let check = || {
            find("restic")?;
            private(password)?;
            credentials.as_deref().map_or(Ok(()), private)?;
            if !repository.starts_with('/') {
                return Ok(None);
            }
            let path = PathBuf::from(repository);
            own(&path)?;
            if path.join("config").is_file() {
                return Ok(Some(path));
            }
            let message = format!(
                "there is no restic repository in {repository}; run on the server: restic init -r {repository} \
                 --password-file {password}"
            );
            Err(OperationRefusal::failed(message))
        };
        Some(check())
    }

    /// Like [`Self::directory`], with an exclusive lock for writing. Removes what an interrupted backup left.
    pub fn locked(&self) -> Result<(PathBuf, DirectoryLock), OperationRefusal> {
        let path = self.directory()?;
        let lock = self.lock(&path)?;
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let removed = remove(&entry.path());
                tracing::warn!(path = ?entry.path(), ?removed, "removed an incomplete backup");
            }
        }
        Ok((path, lock))
    }

    /// Locks a target for writing; the lock file is in the directory `path`.
    pub fn lock(&self, path: &Path) -> Result<DirectoryLock, OperationRefusal> {
        lock_directory(path).map_err(|cause| {
            let name = &self.name;
            if cause.kind() == io::ErrorKind::WouldBlock {
                let message =
                    format!("another backup is being written to '{name}'; try again later");
                return OperationRefusal::new(RefusalCode::Busy, message);
            }
            OperationRefusal::failed(format!("cannot write to '{name}': {cause}"))
        })
    }

    /// Its mount point, if it is a disk or share and the helper has a state directory.
    pub fn mount_place(&self) -> Option<&Path> {
        self.mount.as_deref()
    }

    /// The refusal for a backup that does not exist.
    pub fn lacks(&self, backup: &BackupId) -> OperationRefusal {
        let name = &self.name;
        OperationRefusal::bad_command(format!(
            "there is no backup '{backup}' on '{name}'; backup_list shows those that exist"
        ))
    }

    /// Describes the target, whether it responds or not.
    async fn describe(self) -> BackupTarget {
        let name = self.name.clone();
        let (kind, place) = match &self.store {
            BackupStore::Directory(path) => (TargetKind::Directory, path),
            BackupStore::Disk(source) => (TargetKind::Disk, source),
            BackupStore::Share { share, .. } => (TargetKind::Share, share),
            BackupStore::Restic { repository, .. } => (TargetKind::Restic, repository),
        };
        let (place, of_the_owner) = (Some(place.clone()), self.of_the_owner);
        let looked = run_in_time(&name, move || {
            let path = match self.repository() {
                Some(ready) => ready?,
                None => Some(self.directory()?),
            };
            Ok(path.and_then(|path| disk_space(&path).ok()))
        });
        let looked = looked.await;
        let space = looked.as_ref().ok().and_then(Option::as_ref);
        BackupTarget {
            target: name,
            kind,
            place,
            of_the_owner,
            ready: looked.is_ok(),
            obstacle: looked.as_ref().err().map(OperationRefusal::to_string),
            free_bytes: space.map(|space| space.available_bytes),
            total_bytes: space.map(|space| space.total_bytes),
        }
    }
}

/// Runs `check` with a time limit. A share whose server is gone blocks its thread for minutes.
pub async fn run_in_time<T: Send + 'static>(
    name: &TargetName,
    check: impl FnOnce() -> Result<T, OperationRefusal> + Send + 'static,
) -> Result<T, OperationRefusal> {
    let looked = timeout(ANSWER_TIME, to_its_end(check)).await;
    looked.unwrap_or_else(|_| Err(timeout_refusal(name)))
}

/// The refusal for a target that does not respond.
pub fn timeout_refusal(name: &TargetName) -> OperationRefusal {
    OperationRefusal::failed(format!(
        "backup target '{name}' does not answer; check its server or its disk"
    ))
}

/// Rejects a directory in which another user could place or take away a backup.
pub fn own(path: &Path) -> Result<(), OperationRefusal> {
    let shown = path.display();
    let facts =
        fs::metadata(path).map_err(|e| OperationRefusal::failed(format!("{shown}: {e}")))?;
    if !facts.is_dir() {
        return Err(OperationRefusal::failed(format!(
            "{shown} is not a directory"
        )));
    }
    if facts.uid() != own_uid() || facts.mode() & WRITABLE_BY_OTHERS != 0 {
        let message = format!(
            "{shown} must be writable by root only; run on the server: chown root {shown} && chmod go-w {shown}"
        );
        return Err(OperationRefusal::failed(message));
    }
    Ok(())
}

/// Rejects a password file that others can read.
pub fn private(path: &str) -> Result<(), OperationRefusal> {
    let facts = fs::metadata(path).map_err(|e| OperationRefusal::failed(format!("{path}: {e}")))?;
    if !facts.is_file() || facts.uid() != own_uid() || facts.mode() & OF_OTHERS != 0 {
        let message = format!(
            "{path} must be accessible to root only; run on the server: chown root {path} && chmod 600 {path}"
        );
        return Err(OperationRefusal::failed(message));
    }
    Ok(())
}

/// Returns whether something is mounted at `place`.
pub fn is_mounted(place: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mount_places(&table).any(|mounted| Path::new(&mounted) == place)
}

/// The refusal for an operation that needs a state directory when there is none.
pub fn no_state() -> OperationRefusal {
    OperationRefusal::failed("this helper has no state directory (StateDirectory=, --state-dir)")
}

/// Prints all targets.
pub async fn list(context: &mut OperationContext<'_>) -> Result<OperationEnd, StepError> {
    require_root()?;
    let tasks = all(context.helper)
        .into_iter()
        .map(|target| tokio::spawn(target.describe()));
    // Starts all of them before waiting for the first.
    let tasks: Vec<_> = tasks.collect();
    let mut targets: Vec<BackupTarget> = Vec::new();
    for check in tasks {
        targets.extend(context.relay.wait(check).await?);
    }
    // Plain numbers and strings always serialize.
    let printed = print(context.relay, move || {
        Ok(serde_json::to_vec(&targets).unwrap_or_default())
    });
    Ok(printed.await?)
}
