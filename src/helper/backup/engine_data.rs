//! The directories in which Docker and Podman keep the data of containers. They are opened below the engine's own
//! directory, without following a link out of it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::{own_pid, place_beneath};
use gatewren_wire::operations::{ContainerRef, OperationRefusal};

use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::{DefinedMountKind, EngineApi, EngineContainerId, EngineDefinition};
use crate::processes::step_error::StepError;

/// The most mounts of a container that is backed up or restored; one with more is refused. The manifest lists each.
const MAX_MOUNTS: usize = 64;

/// The reason to leave out a directory on which another file system is mounted.
pub const MOUNTED: &str = "it is mounted from elsewhere";

/// What an engine says about a container.
pub struct DefinedContainer {
    /// The engine.
    pub api: EngineApi,
    /// The container's definition.
    pub definition: EngineDefinition,
    /// The engine's directory.
    pub data: PathBuf,
}

/// The directory of an engine.
pub struct EngineDirectory {
    root: File,
    path: PathBuf,
}

/// A directory of an engine that holds data of a container.
pub struct DataDirectory {
    /// The directory above it.
    pub parent: File,
    /// The directory, open as a path.
    pub file: File,
    /// Its name in `parent`.
    pub name: PathBuf,
}

/// Why a directory cannot be used.
pub enum DataObstacle {
    /// It is not below the engine's directory.
    Elsewhere,
    /// Another file system is mounted there, such as a share.
    Mounted,
    /// It cannot be opened.
    Failed(io::Error),
}

/// Rejects a container whose engine does not run as root on the host, because the paths of such an engine are not trusted.
pub fn require_engine_of_root(container: &ContainerRef) -> Result<(), OperationRefusal> {
    let message = match (container.runtime(), container.place()) {
        (RuntimeKind::DockerInLxc, Some(outer)) => format!(
            "'{container}' runs inside the container '{outer}' of LXC; back up or restore '{outer}' instead"
        ),
        (RuntimeKind::Podman, Some(user)) => format!(
            "backups of containers that the Podman of user '{user}' runs are not supported, because that user decides \
             which files they have; back up the directory of their volumes instead (path)"
        ),
        _ => return Ok(()),
    };
    Err(OperationRefusal::bad_command(message))
}

/// Asks the engine of a container for its definition.
pub async fn ask_definition(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    id: &EngineContainerId,
) -> Result<DefinedContainer, StepError> {
    let helper: &HelperContext = context.helper;
    let asked = async {
        let api = helper.containers.api(container).await?;
        let mut definition = api.definition(id).await.map_err(|e| refusal(&e))?;
        if definition.mounts.len() > MAX_MOUNTS {
            let message = format!("the container has more than {MAX_MOUNTS} mounts");
            return Err(OperationRefusal::failed(message));
        }
        for mount in &mut definition.mounts {
            // Without a container that uses it, such a volume would look like an empty one.
            if let DefinedMountKind::LocalVolume(name) = &mount.kind
                && api.is_mounted_volume(name).await.map_err(|e| refusal(&e))?
            {
                mount.kind = DefinedMountKind::MountedVolume;
            }
        }
        let info = api.info().await.map_err(|e| refusal(&e))?;
        Ok::<_, OperationRefusal>(DefinedContainer {
            api,
            definition,
            data: PathBuf::from(info.data_directory),
        })
    };
    Ok(context.relay.wait(asked).await??)
}

impl EngineDirectory {
    /// Opens it.
    pub fn open(path: &Path) -> Result<Self, OperationRefusal> {
        let opened = if path.is_absolute() {
            File::open(path)
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        };
        let root = opened.map_err(|cause| {
            OperationRefusal::failed(format!("the engine's directory cannot be opened: {cause}"))
        })?;
        Ok(Self {
            root,
            path: path.to_owned(),
        })
    }

    /// Opens a directory below it. It is not a link, and nothing is mounted on it.
    pub fn find(&self, path: &Path) -> Result<DataDirectory, DataObstacle> {
        let below = path.strip_prefix(&self.path).ok();
        let split = below.and_then(|below| Some((below.parent()?, below.file_name()?)));
        let (above, name) = split.ok_or(DataObstacle::Elsewhere)?;
        let parent = place_beneath(&self.root, above, false).map_err(DataObstacle::Failed)?;
        let name = PathBuf::from(name);
        let file = match place_beneath(&parent, &name, true) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
                return Err(DataObstacle::Mounted);
            }
            Err(e) => return Err(DataObstacle::Failed(e)),
        };
        let is_directory = file.metadata().map(|facts| facts.is_dir());
        if !is_directory.map_err(DataObstacle::Failed)? {
            return Err(DataObstacle::Failed(io::ErrorKind::NotADirectory.into()));
        }
        Ok(DataDirectory { parent, file, name })
    }
}

impl DataObstacle {
    /// The reason, for data that is left out. An error is none: without it the data would be there.
    pub fn reason(self) -> Result<&'static str, OperationRefusal> {
        match self {
            Self::Elsewhere => Ok("it is not in the directory of its engine"),
            Self::Mounted => Ok(MOUNTED),
            Self::Failed(cause) => Err(OperationRefusal::failed(format!(
                "a directory of the container's engine cannot be opened: {cause}"
            ))),
        }
    }
}

/// Returns a path that refers to an open file of this process, for other programs.
pub fn descriptor_path(file: &File) -> PathBuf {
    descriptors().join(file.as_raw_fd().to_string())
}

/// Returns the directory of such paths.
pub fn descriptors() -> PathBuf {
    format!("/proc/{}/fd", own_pid()).into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use gatewren_base::sys::Scratch;

    use super::*;

    #[test]
    fn only_a_directory_below_the_engines_own_is_found_and_no_link() {
        let scratch = Scratch::new();
        let root = scratch.join("docker");
        fs::create_dir_all(root.join("volumes/data/_data")).unwrap();
        fs::create_dir_all(scratch.join("outside/_data")).unwrap();
        symlink(scratch.join("outside"), root.join("volumes/out")).unwrap();
        symlink("data", root.join("volumes/near")).unwrap();
        symlink("_data", root.join("volumes/data/link")).unwrap();
        fs::write(root.join("volumes/data/file"), "").unwrap();
        let engine = EngineDirectory::open(&root).unwrap();
        let found = engine.find(&root.join("volumes/data/_data"));
        assert!(found.is_ok_and(|found| found.name == Path::new("_data")));
        assert!(engine.find(&root.join("volumes/near/_data")).is_ok());
        for path in [
            "volumes/out/_data",
            "volumes/data/link",
            "volumes/data/file",
            "none/_data",
        ] {
            let found = engine.find(&root.join(path));
            assert!(matches!(found, Err(DataObstacle::Failed(_))), "{path}");
        }
        for path in [root.clone(), scratch.join("outside/_data"), "/".into()] {
            let found = engine.find(&path);
            assert!(matches!(found, Err(DataObstacle::Elsewhere)), "{path:?}");
        }
        let up = engine.find(&root.join("volumes/../../outside/_data"));
        assert!(matches!(up, Err(DataObstacle::Failed(_))));
        assert!(EngineDirectory::open(Path::new("docker")).is_err());
    }

    #[test]
    fn containers_of_other_engines_are_refused_with_advice() {
        let refused = |name: &str| require_engine_of_root(&name.parse().unwrap());
        assert_eq!(refused("docker:web"), Ok(()));
        assert_eq!(refused("podman:web"), Ok(()));
        for (name, advice) in [
            ("docker:web@media", "restore 'media'"),
            ("podman:web@alice", "(path)"),
        ] {
            let message = refused(name).unwrap_err().to_string();
            assert!(message.contains(advice), "{message}");
        }
    }
}
