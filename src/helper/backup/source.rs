//! What a backup is made of: the files, and the container that they belong to.

use std::fs::File;

use gatewren_wire::operations::ArchiveFormat;

use super::archive::ArchiveContents;
use crate::context::container_locks::ContainerLock;
use crate::context::containers::RunningContainer;
use crate::host::allowed_paths::AllowedPath;

/// What a backup is made of.
pub struct BackupSource<'a> {
    /// Its files.
    pub contents: ArchiveContents,
    /// The container that the files belong to.
    pub container: Option<ClaimedDefinition<'a>>,
    /// Held open, so that the directories stay those that were checked.
    pub _places: Vec<AllowedPath>,
    /// Also held open.
    pub _files: Vec<File>,
}

/// The definition of a container that is claimed for this operation.
pub struct ClaimedDefinition<'a> {
    /// Held until the files were read.
    pub _claim: ContainerLock<'a>,
    /// The text of its configuration file, or what its engine says about it.
    pub text: String,
    /// What the format says about it.
    pub format: ArchiveFormat,
    /// What is not in the backup, with the reasons.
    pub not_included: Vec<String>,
    /// Its processes, if it runs.
    pub running: Option<RunningContainer>,
    /// Whether to freeze it during the backup.
    pub freeze: bool,
}
