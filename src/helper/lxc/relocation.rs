//! The steps of moving a container's files to another place, each of which can be undone, and the records of them.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use gatewren_base::sys::files::{read_bounded, write_private};
use gatewren_wire::operations::OperationRefusal;

use super::definition;
use super::storage::ROOT_KEY;
use crate::processes::staging_dir::remove;

/// The record of a move that is under way, in the container's directory.
const UNDER_WAY: &str = ".gatewren-move";

/// The record of the copy that the last move left behind.
const LEFT_COPY: &str = ".gatewren-moved-from";

/// The longest record, in bytes.
const RECORD_BYTES: usize = 8192;

/// Others may pass through: the root of an unprivileged container is an unprivileged user on the host.
const DIRECTORY_MODE: u32 = 0o711;

/// A move that is under way. If the helper dies, the next one finishes or undoes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRecord {
    /// The old directory of the root file system.
    pub from: PathBuf,
    /// The new one.
    pub to: PathBuf,
    /// The place of the new one.
    pub store: PathBuf,
    /// Whether the container ran before, so that it is started again.
    pub was_running: bool,
}

/// Writes the record of a move, before its first step.
pub fn begin(directory: &Path, record: &MoveRecord) -> Result<(), OperationRefusal> {
    // Plain paths and flags always serialize.
    let bytes = serde_json::to_vec(record).unwrap_or_default();
    let written = write_private(&directory.join(UNDER_WAY), &bytes);
    written.map_err(|e| failed(&format!("the move cannot be recorded: {e}")))
}

/// Returns the move that is under way in a container's directory, or was when the helper died.
pub fn under_way(directory: &Path) -> Option<MoveRecord> {
    let bytes = read_bounded(&directory.join(UNDER_WAY), RECORD_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Removes the record of a move, after its last step.
pub fn end(directory: &Path) -> Result<(), OperationRefusal> {
    match fs::remove_file(directory.join(UNDER_WAY)) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(failed(&format!("the record of the move remains: {e}")))
        }
        _ => Ok(()),
    }
}

/// Puts the complete copy in its place.
pub fn place(copy: &Path, to: &Path) -> Result<(), OperationRefusal> {
    if let Some(directory) = to.parent() {
        let made = DirBuilder::new().mode(DIRECTORY_MODE).create(directory);
        if let Err(e) = made
            && e.kind() != ErrorKind::AlreadyExists
        {
            return Err(failed(&format!(
                "{} cannot be made: {e}",
                directory.display()
            )));
        }
    }
    fs::rename(copy, to).map_err(|e| failed(&format!("the copy cannot be put in place: {e}")))
}

/// Changes the root file system in a definition, and returns the previous text.
pub fn switch(config: &Path, record: &MoveRecord) -> Result<String, OperationRefusal> {
    let text = definition::read(config)?;
    let path = format!("dir:{}", record.to.display());
    definition::replace(
        config,
        &definition::edit_text(&text, &[(ROOT_KEY, Some(path))]),
    )?;
    Ok(text)
}

/// Rejects a definition that names the old directory in another line too: the container would use both.
pub fn check_definition(config: &Path, from: &Path) -> Result<(), OperationRefusal> {
    let (text, from) = (definition::read(config)?, from.display().to_string());
    let names_it = |line: &&str| {
        let (key, value) = line.split_once('=').unwrap_or_default();
        let key = key.trim();
        key != ROOT_KEY && !key.starts_with('#') && value.contains(&from)
    };
    text.lines().find(names_it).map_or(Ok(()), |line| {
        let key = line.split('=').next().unwrap_or_default().trim();
        Err(OperationRefusal::bad_command(format!(
            "its definition names {from} in {key} too; the owner has to change that line first"
        )))
    })
}

/// Removes what a move that did not end has copied.
pub fn remove_copy(record: &MoveRecord) -> Result<(), OperationRefusal> {
    remove(&record.to).map_err(|e| failed(&format!("the copy cannot be removed: {e}")))?;
    remove_if_empty(&record.to);
    Ok(())
}

/// Records the old directory, which stays until it is removed by another call.
pub fn keep_old(directory: &Path, from: &Path) -> Result<(), OperationRefusal> {
    let bytes = serde_json::to_vec(from).unwrap_or_default();
    let written = write_private(&directory.join(LEFT_COPY), &bytes);
    written.map_err(|e| failed(&format!("the old directory cannot be recorded: {e}")))
}

/// Returns the old directory that the last move left, if it is still there.
pub fn old_copy(directory: &Path) -> Option<PathBuf> {
    let bytes = read_bounded(&directory.join(LEFT_COPY), RECORD_BYTES).ok()?;
    let path: PathBuf = serde_json::from_slice(&bytes).ok()?;
    path.is_dir().then_some(path)
}

/// Removes an old directory and its record.
pub fn remove_old(directory: &Path, old: &Path) -> Result<(), OperationRefusal> {
    remove(old).map_err(|e| failed(&format!("{} cannot be removed: {e}", old.display())))?;
    remove_if_empty(old);
    let _ = fs::remove_file(directory.join(LEFT_COPY));
    Ok(())
}

/// Removes the directory around a root file system that is gone, unless it has the container's definition.
fn remove_if_empty(root: &Path) {
    if let Some(directory) = root.parent() {
        // Fails if anything is in it.
        let _ = fs::remove_dir(directory);
    }
}

fn failed(message: &str) -> OperationRefusal {
    OperationRefusal::failed(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn a_move_is_recorded_until_it_ends() {
        let scratch = Scratch::new();
        assert_eq!(under_way(scratch.path()), None);
        let record = MoveRecord {
            from: "/a/web/rootfs".into(),
            to: "/b/web/rootfs".into(),
            store: "/b".into(),
            was_running: true,
        };
        begin(scratch.path(), &record).unwrap();
        assert_eq!(under_way(scratch.path()), Some(record));
        end(scratch.path()).unwrap();
        end(scratch.path()).unwrap();
        assert_eq!(under_way(scratch.path()), None);
        fs::write(scratch.join(UNDER_WAY), "{").unwrap();
        assert_eq!(under_way(scratch.path()), None);
    }

    #[test]
    fn a_definition_is_switched_and_one_with_another_mention_is_rejected() {
        let scratch = Scratch::new();
        let config = scratch.join("config");
        let text = "lxc.uts.name = web\nlxc.rootfs.path = dir:/a/web/rootfs\n";
        fs::write(&config, text).unwrap();
        let record = MoveRecord {
            from: "/a/web/rootfs".into(),
            to: "/b/web/rootfs".into(),
            store: "/b".into(),
            was_running: false,
        };
        check_definition(&config, &record.from).unwrap();
        assert_eq!(switch(&config, &record).unwrap(), text);
        let expected = "lxc.uts.name = web\nlxc.rootfs.path = dir:/b/web/rootfs\n";
        assert_eq!(fs::read_to_string(&config).unwrap(), expected);
        fs::write(&config, format!("{text}lxc.hook.start = /a/web/rootfs/x\n")).unwrap();
        let refused = check_definition(&config, &record.from).unwrap_err();
        assert!(refused.message.contains("lxc.hook.start"), "{refused}");
    }

    #[test]
    fn a_copy_is_put_in_place_and_removed_again() {
        let scratch = Scratch::new();
        let copy = scratch.join("stage/rootfs");
        fs::create_dir_all(copy.join("etc")).unwrap();
        fs::create_dir(scratch.join("store")).unwrap();
        let to = scratch.join("store/web/rootfs");
        place(&copy, &to).unwrap();
        assert!(to.join("etc").is_dir() && !copy.exists());
        keep_old(scratch.path(), &to).unwrap();
        assert_eq!(old_copy(scratch.path()), Some(to.clone()));
        remove_old(scratch.path(), &to).unwrap();
        assert!(!scratch.join("store/web").exists());
        assert_eq!(old_copy(scratch.path()), None);
    }
}
