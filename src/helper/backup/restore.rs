//! Restores a backup: into its own stopped container, as a new container, or into a new directory of the host.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::random_bytes;
use gatewren_wire::operations::{
    Backup, BackupId, BackupSubject, ContainerRef, OperationEnd, OperationRefusal,
};

use super::check::{CONFIG, unpack_checked};
use super::engine_restore::restore_engine_container;
use super::restic_store::unpack;
use super::restorable::{RestorableBackup, create_private_dir, open_backup};
use super::targets::HelperBackupTarget;
use crate::context::definitions;
use crate::context::operation_context::OperationContext;
use crate::host::allowed_paths::AllowedDirectories;
use crate::lxc::copies::{check_new, move_into_place};
use crate::lxc::paths::{require_plain_lxc, require_stopped};
use crate::lxc::snapshots::{ROOTFS, exchange};
use crate::lxc::{config_files, definition};
use crate::processes::answers::to_its_end;
use crate::processes::staging_dir::StagingDir;
use crate::processes::step_error::{StepError, operation_end};

/// The mode of a container's directory as LXC creates it.
const MODE: u32 = 0o770;

/// The directory in a stage where restic restores files.
const UNPACKED: &str = ".gatewren-unpacked";

/// Restores a backup. Files reach their place only after the check that the whole backup is undamaged.
pub async fn restore(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
    subject: &BackupSubject,
) -> Result<OperationEnd, OperationRefusal> {
    match (id.container(), subject) {
        (Some(own), _) if own.runtime() != RuntimeKind::Lxc => match subject {
            BackupSubject::Container(to) => restore_engine_container(context, target, id, to).await,
            // Not its definition, which has secrets.
            BackupSubject::Path(path) => restore_directory(context, target, id, path).await,
        },
        (Some(_), BackupSubject::Container(to)) => restore_container(context, target, id, to).await,
        (None, BackupSubject::Path(path)) => restore_directory(context, target, id, path).await,
        (Some(_), BackupSubject::Path(_)) => Err(OperationRefusal::bad_command(
            "this backup is of a container; name the container to restore it to",
        )),
        (None, BackupSubject::Container(_)) => Err(OperationRefusal::bad_command(
            "this backup is of the host; name a new directory to restore it to",
        )),
    }
}

/// Restores as a container. An existing container is not touched before the restored one is complete.
async fn restore_container(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
    to: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let _claim = helper.locks.take(to)?;
    let definitions = helper.containers.definitions();
    let directory = definitions.directory(to);
    let is_there = definitions.file(to).exists();
    if is_there && id.container() == Some(to) {
        let config = require_plain_lxc(helper, to)?;
        require_stopped(helper, to).await?;
        if config_files::root_of(&config).ok() != Some(directory.join(ROOTFS)) {
            return Err(OperationRefusal::failed(format!(
                "the root file system of '{to}' is not in its own directory; restore the backup under a new name"
            )));
        }
    } else {
        check_new(helper, to)?;
    }
    let backup = match open_backup(context, target, id).await {
        Ok(backup) => backup,
        Err(error) => return operation_end(Err(error)),
    };
    if !is_there {
        let stage = StagingDir::create_in(helper.containers.lxcpath(), to.as_str()).await?;
        let filled = stage_container(context, stage.path(), &backup, id, to).await;
        return move_into_place(helper, stage, to, operation_end(filled)).await;
    }
    let stage = StagingDir::create_in(&directory, "restore").await?;
    let mut done = operation_end(stage_container(context, stage.path(), &backup, id, to).await);
    if done == Ok(OperationEnd::SUCCESS) {
        let (from, rest) = (stage.path().join(to.as_str()), stage.path().join("old"));
        let exchanged = to_its_end(move || exchange(&from, &directory, &rest)).await;
        done = exchanged.and(done);
    }
    stage.clear().await;
    done
}

/// Creates the container, with its definition, in a stage.
async fn stage_container(
    context: &mut OperationContext<'_>,
    stage: &Path,
    backup: &RestorableBackup,
    id: &BackupId,
    to: &ContainerRef,
) -> Result<(), StepError> {
    let from = stage.join(to.as_str());
    let (definition, manifest) = match backup {
        RestorableBackup::Archive(directory, manifest) => {
            create_container_dir(context, &from, manifest.as_ref(), true).await?;
            unpack_checked(context, directory, manifest, &from.join(ROOTFS)).await?;
            (directory.clone(), manifest.as_ref().clone())
        }
        RestorableBackup::Snapshot(restic, snapshot) => {
            let unpacked = stage.join(UNPACKED);
            create_private_dir(&unpacked)?;
            let unpacked = unpack(context, restic, snapshot, id, &unpacked).await?;
            let (definition, manifest) = unpacked.definition.ok_or_else(|| {
                OperationRefusal::failed(
                    "nothing was changed: the backup has no container definition",
                )
            })?;
            create_container_dir(context, &from, &manifest, false).await?;
            let rootfs = from.join(ROOTFS);
            context
                .run_blocking(move || fs::rename(unpacked.files, rootfs).map_err(|e| no_place(&e)))
                .await?;
            (definition, manifest)
        }
    };
    let text = definition::read(&definition.join(CONFIG))?;
    let directory = manifest.format.and_then(|format| format.directory);
    let is_new = manifest.container.as_ref() != Some(to);
    let text = move_definition(&text, directory.as_deref(), &from, is_new.then_some(to))?;
    definition::write(&from.join(definitions::CONFIG), &text)?;
    Ok(())
}

/// Creates the container's directory, with or without one for its files.
async fn create_container_dir(
    context: &mut OperationContext<'_>,
    place: &Path,
    manifest: &Backup,
    with_files: bool,
) -> Result<(), StepError> {
    let format = manifest.format.as_ref();
    let mode = format
        .and_then(|format| format.directory_mode)
        .unwrap_or(MODE);
    let place = place.to_owned();
    context
        .run_blocking(move || {
            let there = if with_files {
                fs::create_dir_all(place.join(ROOTFS))
            } else {
                fs::create_dir_all(&place)
            };
            there
                .and_then(|()| fs::set_permissions(&place, Permissions::from_mode(mode)))
                .map_err(|e| no_place(&e))
        })
        .await
}

fn no_place(cause: &std::io::Error) -> OperationRefusal {
    OperationRefusal::failed(format!(
        "the container's directory cannot be created: {cause}"
    ))
}

/// Adapts a definition to its new directory. Under a new name the container also gets its own host name and hardware
/// addresses.
fn move_definition(
    text: &str,
    from: Option<&str>,
    to: &Path,
    name: Option<&ContainerRef>,
) -> Result<String, OperationRefusal> {
    let to = to.display();
    let text = match from {
        Some(from) => text.replace(&format!("{from}/"), &format!("{to}/")),
        None => text.to_owned(),
    };
    let rootfs = ("lxc.rootfs.path", Some(format!("dir:{to}/{ROOTFS}")));
    let hostname = name.map(|name| ("lxc.uts.name", Some(name.to_string())));
    let settings: Vec<_> = [Some(rootfs), hostname].into_iter().flatten().collect();
    let text = definition::edit_text(&text, &settings);
    if name.is_none() {
        return Ok(text);
    }
    let mut lines = Vec::new();
    for line in text.lines() {
        let key = line.split('=').next().unwrap_or_default().trim();
        let is_address = key.starts_with("lxc.net.") && key.ends_with(".hwaddr");
        lines.push(if is_address {
            format!("{key} = {}\n", hardware_address()?)
        } else {
            format!("{line}\n")
        });
    }
    Ok(lines.concat())
}

/// Returns a random address with the prefix that LXC uses.
fn hardware_address() -> Result<String, OperationRefusal> {
    let [a, b, c] = random_bytes::<3>().map_err(|e| OperationRefusal::failed(e.to_string()))?;
    Ok(format!("00:16:3e:{a:02x}:{b:02x}:{c:02x}"))
}

/// Restores into a new directory of the host.
async fn restore_directory(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
    path: &str,
) -> Result<OperationEnd, OperationRefusal> {
    let roots = context.helper.policy.now().host_file_writes.clone();
    let allowed = AllowedDirectories::new(context.helper, "host_file_writes", roots);
    let place = path.to_owned();
    let found = context.run_blocking(move || {
        let path = Path::new(&place);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(OperationRefusal::bad_command(
                "the path does not name a directory",
            ));
        };
        let parent = allowed.find(&parent.to_string_lossy())?;
        parent.check_ancestors()?;
        let to = parent.path.join(name);
        if allowed.excludes(&to, &parent.facts) {
            return Err(OperationRefusal::bad_command(
                "a restore into this directory is not allowed",
            ));
        }
        // From here on all paths go through the open descriptor: a rename cannot redirect the restored files.
        let to = parent.descriptor_path().join(name);
        if fs::symlink_metadata(&to).is_ok() {
            let message = format!("{place} already exists; name a directory that does not exist");
            return Err(OperationRefusal::bad_command(message));
        }
        Ok((parent, to))
    });
    let (parent, to) = match found.await {
        Ok(found) => found,
        Err(error) => return operation_end(Err(error)),
    };
    let backup = match open_backup(context, target, id).await {
        Ok(backup) => backup,
        Err(error) => return operation_end(Err(error)),
    };
    let stage = StagingDir::private(&parent.descriptor_path(), "restore").await?;
    let from = stage.path().join("new");
    let (from, unpacked) = match restore_files(context, &backup, id, &from).await {
        Ok(from) => (from, Ok(())),
        Err(error) => (from, Err(error)),
    };
    let mut done = operation_end(unpacked);
    if done == Ok(OperationEnd::SUCCESS) {
        let moved = to_its_end(move || {
            fs::rename(&from, &to).map_err(|e| {
                OperationRefusal::failed(format!(
                    "the restored files cannot be moved into place: {e}"
                ))
            })
        });
        done = moved.await.and(done);
    }
    stage.clear().await;
    done
}

/// Restores the files into a new directory and returns the directory that holds them.
async fn restore_files(
    context: &mut OperationContext<'_>,
    backup: &RestorableBackup,
    id: &BackupId,
    to: &Path,
) -> Result<PathBuf, StepError> {
    create_private_dir(to)?;
    match backup {
        RestorableBackup::Archive(directory, manifest) => {
            unpack_checked(context, directory, manifest, to).await?;
            Ok(to.to_owned())
        }
        RestorableBackup::Snapshot(restic, snapshot) => {
            let unpacked = unpack(context, restic, snapshot, id, to).await?.files;
            // A backup of a single file also becomes a directory.
            let is_directory = fs::symlink_metadata(&unpacked).is_ok_and(|facts| facts.is_dir());
            Ok(if is_directory {
                unpacked
            } else {
                to.to_owned()
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::restore::*;

    #[test]
    fn under_another_name_it_is_somebody_else() {
        let text = "lxc.uts.name = web\nlxc.rootfs.path = dir:/old/web/rootfs\nlxc.net.0.hwaddr = 00:16:3e:00:00:01\n\
                    lxc.mount.entry = /old/web/data srv none bind\n";
        let same = move_definition(text, Some("/old/web"), Path::new("/new/web"), None).unwrap();
        let expected = text.replace("/old/", "/new/");
        assert_eq!(same, expected);
        let robin = "robin".parse().unwrap();
        let other = move_definition(
            text,
            Some("/old/web"),
            Path::new("/new/robin"),
            Some(&robin),
        )
        .unwrap();
        assert!(other.contains("lxc.uts.name = robin\n"), "{other}");
        assert!(
            other.contains("lxc.rootfs.path = dir:/new/robin/rootfs\n"),
            "{other}"
        );
        assert!(other.contains("lxc.net.0.hwaddr = 00:16:3e:"), "{other}");
        assert!(!other.contains("00:16:3e:00:00:01") && other.contains("/new/robin/data"));
        let elsewhere = "lxc.rootfs.path = overlay:/a:/b\n";
        let text = move_definition(elsewhere, None, Path::new("/n"), None).unwrap();
        assert_eq!(text, "lxc.rootfs.path = dir:/n/rootfs\n");
    }
}
