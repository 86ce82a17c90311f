//! What a backup of a container of Docker or Podman consists of: its definition, the files that it changed, its volumes,
//! and the directories of the host that `backup_paths` allows.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use gatewren_base::sys::{sanitize, shorten};
use gatewren_wire::operations::{
    ArchiveFormat, BackupPart, BackupPartKind, ContainerRef, OperationRefusal, RefusalCode,
};

use super::archive::{ArchiveContents, ArchiveMember};
use super::engine_data::{
    EngineDirectory, MOUNTED, ask_definition, descriptors, require_engine_of_root,
};
use super::source::{BackupSource, ClaimedDefinition};
use crate::context::operation_context::OperationContext;
use crate::engines::{DefinedMount, DefinedMountKind, EngineDefinition};
use crate::host::allowed_paths::{AllowedDirectories, AllowedPath};
use crate::processes::commands::require_root;
use crate::processes::step_error::StepError;

/// The longest path of a mount in a container that is backed up, in bytes; a mount with a longer one is left out.
const DESTINATION_BYTES: usize = 255;

/// The most characters of a destination in the name of a directory of the archive.
const LABEL_CHARS: usize = 40;

/// Finds what a backup of a container consists of.
pub async fn engine_source<'a>(
    context: &mut OperationContext<'a>,
    name: &ContainerRef,
    freeze: bool,
) -> Result<BackupSource<'a>, StepError> {
    require_root()?;
    require_engine_of_root(name)?;
    let helper = context.helper;
    let claim = helper.locks.take(name)?;
    let state = context.relay.wait(helper.containers.ask(name)).await??;
    let engine = state
        .engine
        .ok_or_else(|| helper.containers.absence_refusal(name))?;
    if engine.state.is_running && state.running.is_none() {
        let message = format!(
            "container '{name}' runs by the word of its engine, but its first process was not found; stop it first"
        );
        return Err(OperationRefusal::failed(message).into());
    }
    let defined = ask_definition(context, name, &engine.id).await?;
    let policy = helper.policy.now();
    let allowed = AllowedDirectories::new(helper, "backup_paths", policy.backup_paths.clone());
    let found = context.run_blocking(move || {
        let directory = EngineDirectory::open(&defined.data)?;
        let parts = EngineParts::find(&defined.definition, &directory, &allowed)?;
        Ok((defined.definition, parts))
    });
    let (definition, parts) = found.await?;
    Ok(BackupSource {
        contents: ArchiveContents {
            directory: descriptors().display().to_string(),
            members: parts.members,
            without: parts.without,
        },
        container: Some(ClaimedDefinition {
            _claim: claim,
            text: definition.json,
            format: ArchiveFormat {
                parts: parts.parts,
                image: definition.image.map(|image| image.as_str().to_owned()),
                ..ArchiveFormat::default()
            },
            not_included: parts.not_included,
            running: state.running,
            freeze,
        }),
        _places: parts.places,
        _files: parts.files,
    })
}

/// The parts of a container, each held open.
#[derive(Default)]
struct EngineParts {
    members: Vec<ArchiveMember>,
    without: Vec<String>,
    parts: Vec<BackupPart>,
    not_included: Vec<String>,
    places: Vec<AllowedPath>,
    files: Vec<File>,
}

impl EngineParts {
    fn find(
        definition: &EngineDefinition,
        directory: &EngineDirectory,
        allowed: &AllowedDirectories,
    ) -> Result<Self, OperationRefusal> {
        let mut found = Self::default();
        found.add_layer(definition.layer.as_deref(), directory)?;
        for mount in &definition.mounts {
            found.add_mount(mount, directory, allowed)?;
        }
        if found.members.is_empty() {
            let why = found.not_included.join("; ");
            let message = format!("nothing of the container can be backed up: {why}");
            return Err(OperationRefusal::failed(message));
        }
        Ok(found)
    }

    fn add_layer(
        &mut self,
        layer: Option<&Path>,
        directory: &EngineDirectory,
    ) -> Result<(), OperationRefusal> {
        let what = "the files that the container changed";
        let Some(layer) = layer else {
            self.leave_out(what, "its storage driver keeps them in no directory");
            return Ok(());
        };
        match directory.find(layer) {
            Ok(data) => self.add_directory(
                data.file,
                BackupPart {
                    kind: BackupPartKind::Layer,
                    path: "layer".to_owned(),
                    destination: "/".to_owned(),
                },
            ),
            Err(obstacle) => self.leave_out(what, obstacle.reason()?),
        }
        Ok(())
    }

    fn add_mount(
        &mut self,
        mount: &DefinedMount,
        directory: &EngineDirectory,
        allowed: &AllowedDirectories,
    ) -> Result<(), OperationRefusal> {
        let destination = mount.destination.as_str();
        let shown = sanitize(&shorten(destination, DESTINATION_BYTES));
        let is_usual = destination.len() <= DESTINATION_BYTES
            && !destination.contains(char::is_control)
            && destination.starts_with('/');
        match &mount.kind {
            DefinedMountKind::Memory => {}
            _ if !is_usual => {
                self.leave_out(&format!("the mount at {shown}"), "its path is unusual");
            }
            DefinedMountKind::LocalVolume(name) if is_volume_name(name) => {
                let what = format!("the volume at {shown}");
                match directory.find(&mount.source) {
                    Ok(data) => self.add_directory(
                        data.file,
                        BackupPart {
                            kind: BackupPartKind::Volume,
                            path: format!("volumes/{name}"),
                            destination: destination.to_owned(),
                        },
                    ),
                    Err(obstacle) => self.leave_out(&what, obstacle.reason()?),
                }
            }
            DefinedMountKind::LocalVolume(_) | DefinedMountKind::ForeignVolume(_) => {
                let what = format!("the volume at {shown}");
                self.leave_out(&what, "a driver other than the engine's own keeps it");
            }
            DefinedMountKind::MountedVolume => {
                let what = format!("the volume at {shown}");
                self.leave_out(&what, MOUNTED);
            }
            DefinedMountKind::Bind => {
                let what = format!("the directory or file of the host at {shown}");
                if let Err(why) = self.add_bind(mount, allowed) {
                    self.leave_out(&what, why);
                }
            }
            DefinedMountKind::Other(_) => {
                let what = format!("the mount at {shown}");
                self.leave_out(&what, "it is no volume and no directory of the host");
            }
        }
        Ok(())
    }

    /// Adds a directory or file of the host.
    ///
    /// # Errors
    /// A phrase with the reason. It names no path of the host, which the agent may not know.
    fn add_bind(
        &mut self,
        mount: &DefinedMount,
        allowed: &AllowedDirectories,
    ) -> Result<(), &'static str> {
        let find = |path: &Path| {
            allowed.find(&path.to_string_lossy()).map_err(|refusal| {
                if refusal.code == RefusalCode::Forbidden {
                    "it is not in a directory of backup_paths in helper.toml"
                } else {
                    "it cannot be opened"
                }
            })
        };
        let place = find(&mount.source)?;
        let number = self.parts.len();
        let part = BackupPart {
            kind: BackupPartKind::Bind,
            path: format!("binds/{number}-{}", label(&mount.destination)),
            destination: mount.destination.clone(),
        };
        let (place, name) = if place.facts.is_dir() {
            (place, ".".to_owned())
        } else if place.facts.is_file() {
            let (above, name) = (mount.source.parent(), mount.source.file_name());
            let (Some(above), Some(name)) = (above, name.and_then(|name| name.to_str())) else {
                return Err("its name is unusual");
            };
            (find(above)?, name.to_owned())
        } else {
            return Err("it is neither a directory nor a regular file");
        };
        let descriptor = place.descriptor_path();
        let number = descriptor.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{number}/{name}");
        let excluded = allowed.excluded_below(&place.path).into_iter();
        self.without
            .extend(excluded.map(|path| format!("{number}/./{}", path.display())));
        self.add(name, part);
        self.places.push(place);
        Ok(())
    }

    /// Adds a directory of the engine. A volume that is mounted twice is in the backup once.
    fn add_directory(&mut self, file: File, part: BackupPart) {
        if self.parts.iter().all(|known| known.path != part.path) {
            self.add(format!("{}/.", file.as_raw_fd()), part);
            self.files.push(file);
        }
    }

    fn add(&mut self, name: String, part: BackupPart) {
        let stored = Some(part.path.clone());
        self.members.push(ArchiveMember { name, stored });
        self.parts.push(part);
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.not_included.push(format!("{what}: {why}"));
    }
}

/// Whether a text is a volume's name by the engines' own rule. It becomes a path in the archive.
fn is_volume_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let begins_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    let rest_is_good = bytes.all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    begins_well && rest_is_good && name.len() <= DESTINATION_BYTES
}

/// Returns a word for a path in a container that is safe as a name in the archive.
fn label(destination: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let label = destination.trim_matches('/').chars();
    label.take(LABEL_CHARS).map(plain).collect()
}
