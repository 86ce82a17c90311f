//! Creates a backup: first the archive, then the manifest.
//!
//! An interrupted backup leaves nothing behind. The restic backend uses the lookup of the source too.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::files::{FileError, create_private, sync_directory_of, write_private};
use gatewren_base::sys::{host_name, now_ms, own_pid, rfc3339};
use gatewren_wire::operations::{
    ArchiveFormat, Backup, BackupId, BackupSubject, ContainerRef, OperationRefusal,
};

use super::archive;
use super::archive::{ArchiveContents, ArchiveMember, write_refusal};
use super::check::{ARCHIVE, CONFIG, FORMAT, MANIFEST};
use super::early_sync::EarlySync;
use super::engine_source::engine_source;
use super::file_digest::{RunningDigest, digest};
use super::source::{BackupSource, ClaimedDefinition};
use super::targets::HelperBackupTarget;
use crate::context::containers::RunningContainer;
use crate::context::operation_context::OperationContext;
use crate::host::allowed_paths::AllowedDirectories;
use crate::lxc::paths::require_plain_lxc;
use crate::lxc::{config_files, definition};
use crate::processes::freeze_guard::FreezeGuard;
use crate::processes::freezing::freeze_for_copy;
use crate::processes::staging_dir::StagingDir;
use crate::processes::step_error::StepError;

/// Creates a backup and returns its manifest.
pub async fn create(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    subject: &BackupSubject,
    freeze: bool,
) -> Result<Backup, StepError> {
    let place = target.clone();
    let (path, _lock) = context.run_blocking(move || place.locked()).await?;
    let mut source = find_source(context, subject, freeze).await?;
    exclude_target(&mut source.contents, &path)?;
    let mut backup = new_manifest(subject);
    backup.not_included = match &source.container {
        Some(own) => own.not_included.clone(),
        None => Vec::new(),
    };
    let name = backup.backup.file_name();
    let stage = StagingDir::private(&path, &name).await?;
    let filled = fill(context, stage.path(), &source, &mut backup).await;
    let done = match filled {
        Ok(()) => {
            let (from, to) = (stage.path().to_owned(), path.join(name));
            context
                .run_blocking(move || put_in_place(&from, &to, backup))
                .await
        }
        Err(error) => Err(error),
    };
    stage.clear().await;
    done.map(|backup| Backup {
        target: Some(target.name.clone()),
        format: None,
        ..backup
    })
}

/// Resolves the source of a backup.
pub async fn find_source<'a>(
    context: &mut OperationContext<'a>,
    subject: &BackupSubject,
    freeze: bool,
) -> Result<BackupSource<'a>, StepError> {
    match subject {
        BackupSubject::Container(name) if name.runtime() != RuntimeKind::Lxc => {
            Box::pin(engine_source(context, name, freeze)).await
        }
        BackupSubject::Container(name) => container_source(context, name, freeze).await,
        BackupSubject::Path(path) => host_source(context, path).await,
    }
}

/// Excludes a target below the source: the backup would contain itself.
pub fn exclude_target(
    contents: &mut ArchiveContents,
    target: &Path,
) -> Result<(), OperationRefusal> {
    let Ok(target) = target.canonicalize() else {
        return Ok(());
    };
    for member in &contents.members {
        // The directory of a single file is not in the backup.
        let (below, name) = match &member.stored {
            Some(_) => (
                Path::new(&contents.directory).join(&member.name),
                member.name.as_str(),
            ),
            None => (PathBuf::from(&contents.directory), "."),
        };
        let Ok(whole) = below.canonicalize() else {
            continue;
        };
        if whole.starts_with(&target) {
            let message = "a backup target cannot contain a backup of itself; name another target, or a path outside it";
            return Err(OperationRefusal::bad_command(message));
        }
        let below = target.strip_prefix(whole).ok();
        let below = below.map(|path| format!("{name}/{}", path.display()));
        contents.without.extend(below);
    }
    Ok(())
}

/// Returns a manifest with what is known before anything is written.
pub fn new_manifest(subject: &BackupSubject) -> Backup {
    let (container, path) = match subject {
        BackupSubject::Container(name) => (Some(name.clone()), None),
        BackupSubject::Path(path) => (None, Some(path.clone())),
    };
    let made = rfc3339(now_ms());
    Backup {
        backup: BackupId::new(container.clone(), &made),
        target: None,
        container,
        path,
        made,
        host: host_name().unwrap_or_default(),
        archive_bytes: None,
        entries: None,
        was_running: false,
        was_frozen: false,
        changed_meanwhile: false,
        not_included: Vec::new(),
        format: None,
    }
}

/// Freezes the container if it runs and the caller asked for it, and records its state in the manifest.
pub async fn freeze_source(
    context: &mut OperationContext<'_>,
    source: &BackupSource<'_>,
    backup: &mut Backup,
) -> Result<Option<FreezeGuard>, StepError> {
    let own = source.container.as_ref();
    let running = own.and_then(|own| own.running.as_ref());
    let guard = match running.filter(|_| own.is_some_and(|own| own.freeze)) {
        Some(running) => freeze_for_copy(context, running).await?,
        None => None,
    };
    backup.was_running = running.is_some();
    // A process that is killed in a frozen cgroup makes the kernel say for a moment that it is not frozen.
    backup.was_frozen = guard.is_some() || running.is_some_and(RunningContainer::is_frozen);
    Ok(guard)
}

/// Returns the storage format of a backup, and the place of its container.
pub fn format(version: u32, own: Option<&ClaimedDefinition<'_>>) -> ArchiveFormat {
    ArchiveFormat {
        version,
        ..own.map(|own| own.format.clone()).unwrap_or_default()
    }
}

/// Writes everything but the manifest into a directory, and completes the manifest's fields.
async fn fill(
    context: &mut OperationContext<'_>,
    stage: &Path,
    source: &BackupSource<'_>,
    backup: &mut Backup,
) -> Result<(), StepError> {
    let own = source.container.as_ref();
    let guard = freeze_source(context, source, backup).await?;
    let archive = stage.join(ARCHIVE);
    let syncing = EarlySync::start(&archive);
    let packed = archive::pack(context, &source.contents, &archive).await;
    drop(guard);
    let packed = packed?;
    let sha256 = RunningDigest::start(&archive);
    (backup.entries, backup.changed_meanwhile) = (Some(packed.entries), packed.changed);
    let mut config_sha256 = None;
    if let Some(own) = own {
        let config = stage.join(CONFIG);
        write(&config, own.text.as_bytes()).map_err(|e| write_refusal(&e))?;
        config_sha256 = Some(digest(context, &config).await?);
    }
    syncing.finish(context).await?;
    let facts = fs::metadata(&archive).map_err(|e| write_refusal(&e))?;
    backup.archive_bytes = Some(facts.len());
    backup.format = Some(ArchiveFormat {
        sha256: sha256.finish(context).await?,
        config_sha256,
        ..format(FORMAT, own)
    });
    Ok(())
}

/// Writes the manifest, then renames the finished backup to its final name in one step.
fn put_in_place(from: &Path, to: &Path, backup: Backup) -> Result<Backup, OperationRefusal> {
    let kept = || {
        write_manifest(from, &backup)?;
        fs::rename(from, to).map_err(|cause| FileError::new("keep", to, cause))?;
        sync_directory_of(to)
    };
    kept().map_err(|e| write_refusal(&e))?;
    Ok(backup)
}

/// Writes the manifest into the backup's directory.
pub fn write_manifest(directory: &Path, backup: &Backup) -> Result<(), FileError> {
    let mut manifest = serde_json::to_vec_pretty(backup).unwrap_or_default();
    manifest.push(b'\n');
    write_private(&directory.join(MANIFEST), &manifest)
}

/// Writes a new file and syncs it to disk.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = create_private(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|cause| FileError::new("write", path, cause))
}

async fn container_source<'a>(
    context: &mut OperationContext<'a>,
    name: &ContainerRef,
    freeze: bool,
) -> Result<BackupSource<'a>, StepError> {
    let helper = context.helper;
    let config = require_plain_lxc(helper, name)?;
    let claim = helper.locks.take(name)?;
    if !config_files::is_directory(&config) {
        let message = format!(
            "the root file system of '{name}' is not a directory; use the tools of its storage instead"
        );
        return Err(OperationRefusal::failed(message).into());
    }
    let state = context.relay.wait(helper.containers.ask(name)).await??;
    let running = state.running;
    let directory = helper.containers.definitions().directory(name);
    let mode = fs::metadata(&directory).map(|facts| facts.mode() & 0o7777);
    Ok(BackupSource {
        contents: ArchiveContents {
            directory: config_files::root_of(&config)?.display().to_string(),
            members: vec![ArchiveMember::plain(".".to_owned())],
            without: Vec::new(),
        },
        container: Some(ClaimedDefinition {
            _claim: claim,
            text: definition::read(&config)?,
            format: ArchiveFormat {
                directory: Some(directory.display().to_string()),
                directory_mode: mode.ok(),
                ..ArchiveFormat::default()
            },
            not_included: Vec::new(),
            running,
            freeze,
        }),
        _places: Vec::new(),
        _files: Vec::new(),
    })
}

async fn host_source<'a>(
    context: &mut OperationContext<'a>,
    path: &str,
) -> Result<BackupSource<'a>, StepError> {
    let policy = context.helper.policy.now();
    let allowed =
        AllowedDirectories::new(context.helper, "backup_paths", policy.backup_paths.clone());
    let path = path.to_owned();
    let (place, contents) = context
        .run_blocking(move || {
            let place = allowed.find(&path)?;
            if place.facts.is_dir() {
                let without = allowed.excluded_below(&place.path);
                return Ok((place, (".".to_owned(), without)));
            }
            let split = Path::new(&path);
            let (Some(parent), Some(name)) = (split.parent(), split.file_name()) else {
                return Err(place.is_no("directory"));
            };
            let name = format!("./{}", name.to_string_lossy());
            Ok((allowed.find(&parent.to_string_lossy())?, (name, Vec::new())))
        })
        .await?;
    let (name, without) = contents;
    // `tar` reaches the directory through this process's descriptor: it is the one that was checked.
    let handle = place.descriptor_path();
    let number = handle.file_name().unwrap_or_default().to_string_lossy();
    Ok(BackupSource {
        contents: ArchiveContents {
            directory: format!("/proc/{}/fd/{number}", own_pid()),
            members: vec![ArchiveMember::plain(name)],
            without: without
                .iter()
                .map(|path| format!("./{}", path.display()))
                .collect(),
        },
        container: None,
        _places: vec![place],
        _files: Vec::new(),
    })
}
