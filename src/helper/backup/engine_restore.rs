//! Restores a backup into its own stopped container of Docker or Podman: the files that it changed, and its volumes.
//!
//! The old ones are replaced when the new ones are complete. A new container is never created.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gatewren_base::sys::{sanitize, swap};
use gatewren_wire::operations::{
    ArchiveFormat, BackupId, BackupPart, BackupPartKind, ContainerRef, OperationEnd,
    OperationRefusal, RefusalCode, RestoredContainer,
};

use super::archive;
use super::check::ARCHIVE;
use super::engine_data::{
    DataDirectory, DefinedContainer, EngineDirectory, ask_definition, descriptor_path,
    require_engine_of_root,
};
use super::restorable::{create_private_dir, open_archive};
use super::targets::HelperBackupTarget;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::{DefinedMountKind, EngineContainerId, EngineDefinition, ImageId};
use crate::lxc::paths::require_stopped;
use crate::processes::answers::{line, to_its_end};
use crate::processes::commands::require_root;
use crate::processes::staging_dir::StagingDir;
use crate::processes::step_error::{StepError, step_end};

/// The new directory in a stage.
const NEW: &str = "new";

/// The old directory in a stage, on a file system that cannot exchange two directories.
const OLD: &str = "old";

/// Restores a backup into its container, and prints what was left as it is.
pub async fn restore_engine_container(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
    to: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    step_end(Box::pin(restore(context, target, id, to)).await)
}

async fn restore(
    context: &mut OperationContext<'_>,
    target: &HelperBackupTarget,
    id: &BackupId,
    to: &ContainerRef,
) -> Result<OperationEnd, StepError> {
    require_root()?;
    require_engine_of_root(to)?;
    if let Some(own) = id.container().filter(|own| *own != to) {
        let message = format!(
            "containers of Docker and Podman cannot be created here; restore this backup to '{own}', or to a new \
             directory (path)"
        );
        return Err(OperationRefusal::bad_command(message).into());
    }
    let helper = context.helper;
    let _claim = helper.locks.take(to)?;
    let stopped = context.relay.wait(stopped_container(helper, to)).await??;
    let defined = ask_definition(context, to, &stopped).await?;
    let Some((directory, manifest)) = open_archive(context, target, id).await? else {
        let message = "nothing was changed: this backup is not an archive of a container";
        return Err(OperationRefusal::failed(message).into());
    };
    let plan = RestorePlan::of(&manifest.format.unwrap_or_default(), &defined.definition);
    let in_use = check_volumes(&defined, &plan);
    context.relay.wait(in_use).await??;
    let mut plan = plan;
    let open = move || plan.open(&defined.data).map(|opened| (opened, plan));
    let (opened, plan) = context.run_blocking(open).await?;
    if opened.is_empty() {
        let why = plan.not_restored.join("; ");
        let message = format!("nothing was changed: nothing of the backup can be restored: {why}");
        return Err(OperationRefusal::failed(message).into());
    }
    let mut stages = Vec::new();
    let archive = directory.join(ARCHIVE);
    let unpacked = unpack_all(context, &archive, &opened, &mut stages).await;
    let done = match unpacked {
        Ok(()) => replace_all(context, to, &opened, &stages).await,
        Err(error) => Err(error),
    };
    for stage in stages {
        stage.clear().await;
    }
    done?;
    let answer = line(&RestoredContainer {
        not_restored: plan.not_restored,
    });
    context.relay.write_stdout(answer).await;
    Ok(OperationEnd::SUCCESS)
}

/// Returns the id of a container that exists and is stopped.
async fn stopped_container(
    helper: &HelperContext,
    name: &ContainerRef,
) -> Result<EngineContainerId, OperationRefusal> {
    require_stopped(helper, name).await.map_err(|refusal| {
        if refusal.code != RefusalCode::NoSuchContainer {
            return refusal;
        }
        OperationRefusal::new(
            refusal.code,
            format!(
                "{}; containers of Docker and Podman cannot be created here: create it first, or restore the backup to \
                 a new directory (path)",
                refusal.message
            ),
        )
    })?;
    Ok(helper.containers.inspect(name).await?.id)
}

/// A part of a backup with the directory that it replaces.
struct Replacement {
    part: BackupPart,
    /// The directory, as the engine names it.
    place: PathBuf,
    /// The volume's name, if it is one.
    volume: Option<String>,
}

/// A part of a backup with the directory that it replaces, held open.
struct OpenReplacement {
    part: BackupPart,
    place: DataDirectory,
}

/// What of a backup is restored to a container.
struct RestorePlan {
    replacements: Vec<Replacement>,
    /// What is not, with the reasons.
    not_restored: Vec<String>,
}

impl RestorePlan {
    /// Compares a backup with the container as it is defined now.
    fn of(format: &ArchiveFormat, now: &EngineDefinition) -> Self {
        let mut plan = Self {
            replacements: Vec::new(),
            not_restored: Vec::new(),
        };
        for part in &format.parts {
            let found = match part.kind {
                BackupPartKind::Layer => layer(format, now),
                BackupPartKind::Volume => volume(part, now),
                BackupPartKind::Bind => {
                    Err("directories of the host are restored to a new directory only (path)")
                }
            };
            match found {
                Ok((place, volume)) => plan.replacements.push(Replacement {
                    part: part.clone(),
                    place,
                    volume,
                }),
                Err(why) => plan.leave(part, why),
            }
        }
        plan
    }

    fn leave(&mut self, part: &BackupPart, why: &str) {
        let at = sanitize(&part.destination);
        let what = match part.kind {
            BackupPartKind::Layer => "the files that the container changed".to_owned(),
            BackupPartKind::Volume => format!("the volume at {at}"),
            BackupPartKind::Bind => format!("the directory or file of the host at {at}"),
        };
        self.not_restored.push(format!("{what}: {why}"));
    }

    /// Opens the directories that are replaced.
    fn open(&mut self, data: &Path) -> Result<Vec<OpenReplacement>, OperationRefusal> {
        let directory = EngineDirectory::open(data)?;
        let mut opened = Vec::new();
        for Replacement { part, place, .. } in std::mem::take(&mut self.replacements) {
            match directory.find(&place) {
                Ok(place) => opened.push(OpenReplacement { part, place }),
                Err(obstacle) => self.leave(&part, obstacle.reason()?),
            }
        }
        Ok(opened)
    }
}

/// Returns the directory of the container's own files, which belong to the files of its image.
fn layer(
    format: &ArchiveFormat,
    now: &EngineDefinition,
) -> Result<(PathBuf, Option<String>), &'static str> {
    let image = now.image.as_ref().map(ImageId::as_str);
    if image.is_none() || format.image.as_deref() != image {
        return Err("the container has another image now");
    }
    let layer = now.layer.clone();
    layer
        .map(|layer| (layer, None))
        .ok_or("its storage driver keeps them in no directory")
}

/// Returns the directory of the volume that is mounted now where this one was.
fn volume(
    part: &BackupPart,
    now: &EngineDefinition,
) -> Result<(PathBuf, Option<String>), &'static str> {
    let mut mounts = now.mounts.iter();
    let mount = mounts.find(|mount| mount.destination == part.destination);
    let mount = mount.ok_or("the container has no volume there now")?;
    match &mount.kind {
        DefinedMountKind::LocalVolume(_) if !mount.is_writable => {
            Err("the container may only read it")
        }
        DefinedMountKind::LocalVolume(name) => Ok((mount.source.clone(), Some(name.clone()))),
        _ => Err("the container has no volume there now"),
    }
}

/// Rejects to replace a volume that a running container has mounted: it would go on with the old one.
async fn check_volumes(
    defined: &DefinedContainer,
    plan: &RestorePlan,
) -> Result<(), OperationRefusal> {
    for replacement in &plan.replacements {
        let Some(volume) = &replacement.volume else {
            continue;
        };
        let users = defined.api.volume_users(volume).await;
        if !users.map_err(|e| refusal(&e))?.is_empty() {
            let at = sanitize(&replacement.part.destination);
            return Err(OperationRefusal::failed(format!(
                "nothing was changed: another container that runs uses the volume at {at}; stop it first"
            )));
        }
    }
    Ok(())
}

/// Unpacks each part next to the directory that it replaces, on the same file system.
async fn unpack_all(
    context: &mut OperationContext<'_>,
    archive: &Path,
    opened: &[OpenReplacement],
    stages: &mut Vec<StagingDir>,
) -> Result<(), StepError> {
    for OpenReplacement { part, place } in opened {
        let stage = StagingDir::private(&descriptor_path(&place.parent), "restore").await?;
        let new = stage.path().join(NEW);
        stages.push(stage);
        create_private_dir(&new)?;
        archive::unpack_part(context, archive, &part.path, &new.display().to_string()).await?;
    }
    Ok(())
}

/// Replaces all directories, or none if one cannot be replaced. The container is still stopped.
async fn replace_all(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    opened: &[OpenReplacement],
    stages: &[StagingDir],
) -> Result<(), StepError> {
    let helper = context.helper;
    let stopped = require_stopped(helper, container);
    context.relay.wait(stopped).await??;
    let exchanges = opened.iter().zip(stages).map(|(one, stage)| Exchange {
        new: stage.path().join(NEW),
        place: descriptor_path(&one.place.parent).join(&one.place.name),
        old: stage.path().join(OLD),
    });
    let exchanges: Vec<Exchange> = exchanges.collect();
    to_its_end(move || {
        for (number, exchange) in exchanges.iter().enumerate() {
            if let Err(cause) = exchange.perform() {
                for done in exchanges.iter().take(number) {
                    done.undo();
                }
                let message = format!("the container was not changed: {cause}");
                return Err(OperationRefusal::failed(message));
            }
        }
        Ok(())
    })
    .await?;
    Ok(())
}

/// A directory that replaces another one.
struct Exchange {
    new: PathBuf,
    place: PathBuf,
    old: PathBuf,
}

impl Exchange {
    /// Exchanges the two. Only where the file system cannot, the place is empty for a moment.
    fn perform(&self) -> io::Result<()> {
        match swap(&self.new, &self.place) {
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                ) => {}
            done => return done,
        }
        fs::rename(&self.place, &self.old)?;
        fs::rename(&self.new, &self.place).inspect_err(|_| {
            let _ = fs::rename(&self.old, &self.place);
        })
    }

    /// Puts the old directory back.
    fn undo(&self) {
        let undone = if self.old.exists() {
            fs::rename(&self.place, &self.new).and_then(|()| fs::rename(&self.old, &self.place))
        } else {
            swap(&self.new, &self.place)
        };
        if let Err(cause) = undone {
            tracing::error!(%cause, place = ?self.place, "an old directory could not be put back");
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::*;
    use crate::engines::DefinedMount;

    fn part(kind: BackupPartKind, destination: &str) -> BackupPart {
        BackupPart {
            kind,
            path: "x".to_owned(),
            destination: destination.to_owned(),
        }
    }

    fn mount(kind: DefinedMountKind, destination: &str, is_writable: bool) -> DefinedMount {
        DefinedMount {
            kind,
            source: Path::new("/data").join(destination.trim_start_matches('/')),
            destination: destination.to_owned(),
            is_writable,
        }
    }

    #[test]
    fn only_what_the_container_may_write_and_still_has_is_replaced() {
        let volume = |name: &str| DefinedMountKind::LocalVolume(name.to_owned());
        let image = |digit: &str| ImageId::parse(&digit.repeat(64));
        let mut now = EngineDefinition {
            json: String::new(),
            image: image("a"),
            layer: Some("/data/layer".into()),
            mounts: vec![
                mount(volume("new-name"), "/a", true),
                mount(volume("b"), "/b", false),
                mount(DefinedMountKind::Bind, "/c", true),
                mount(DefinedMountKind::Bind, "/e", true),
            ],
        };
        let parts = [
            part(BackupPartKind::Layer, "/"),
            part(BackupPartKind::Volume, "/a"),
            part(BackupPartKind::Volume, "/b"),
            part(BackupPartKind::Volume, "/c"),
            part(BackupPartKind::Volume, "/d"),
            part(BackupPartKind::Bind, "/e"),
        ];
        let format = ArchiveFormat {
            parts: parts.into(),
            image: image("a").map(|image| image.as_str().to_owned()),
            ..ArchiveFormat::default()
        };
        let plan = RestorePlan::of(&format, &now);
        let replaced = plan
            .replacements
            .iter()
            .map(|one| one.place.to_str().unwrap());
        assert_eq!(replaced.collect::<Vec<_>>(), ["/data/layer", "/data/a"]);
        assert_eq!(plan.replacements[1].volume.as_deref(), Some("new-name"));
        assert_eq!(plan.not_restored.len(), 4, "{:?}", plan.not_restored);
        now.image = image("b");
        let plan = RestorePlan::of(&format, &now);
        assert_eq!(plan.replacements.len(), 1);
        assert!(plan.not_restored[0].contains("another image"));
    }

    #[test]
    fn an_exchange_is_undone_also_where_the_old_directory_was_moved() {
        let scratch = Scratch::new();
        let at = |name: &str| scratch.join(name);
        for name in ["new", "place"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), name).unwrap();
        }
        let exchange = Exchange {
            new: at("new"),
            place: at("place"),
            old: at("old"),
        };
        let content = || fs::read_to_string(at("place").join("file")).unwrap();
        exchange.perform().unwrap();
        assert_eq!(content(), "new");
        exchange.undo();
        assert_eq!(content(), "place");
        fs::rename(at("place"), at("old")).unwrap();
        fs::rename(at("new"), at("place")).unwrap();
        exchange.undo();
        assert_eq!(content(), "place");
    }
}
