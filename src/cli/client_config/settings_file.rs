//! A settings file of a client: found, read and replaced without harm to it, whoever else may write around it.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use gatewren_base::sys::{files, is_root, own_uid};

/// The longest file that is edited, in bytes.
const MAX_FILE: usize = 4 << 20;

/// The ending of the copy of a file as it was before.
const COPY_ENDING: &str = ".before-gatewren";

/// The permission of every user to write, and the bit that keeps them from each other's files.
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// A file that may be edited.
pub struct SettingsFile {
    /// The file itself, where no part of the path is a link.
    place: PathBuf,
    /// Its text; `None` if there is no file.
    text: Option<String>,
}

impl SettingsFile {
    /// Finds and reads a file. Links are followed, as managers of dotfiles make them.
    pub fn open(path: &Path) -> Result<Self, String> {
        let place = resolve(path)?;
        check_owners(&place)?;
        let text = read(&place)?;
        Ok(Self { place, text })
    }

    /// Its text; empty if there is no file.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Whether there is a file.
    pub const fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// Replaces the file, and returns the path of the copy as it was; `None` if there was no file. A new file is
    /// private.
    pub fn replace(&self, text: &str) -> Result<Option<PathBuf>, String> {
        // The client may have written it since: then the edit is of an old text.
        if read(&self.place)? != self.text {
            return Err("another program has just changed it; run the command again".to_owned());
        }
        let (place, bytes) = (&self.place, text.as_bytes());
        let Some(before) = &self.text else {
            let folder = place.parent().unwrap_or(place);
            let written =
                files::private_dir(folder).and_then(|()| files::write_private(place, bytes));
            return written.map(|()| None).map_err(|error| error.to_string());
        };
        let mut copy = place.as_os_str().to_owned();
        copy.push(COPY_ENDING);
        let copy = PathBuf::from(copy);
        let written = files::write_like(&copy, before.as_bytes(), place)
            .and_then(|()| files::write_like(place, bytes, place));
        written
            .map(|()| Some(copy))
            .map_err(|error| error.to_string())
    }
}

/// Returns the path without links. What does not exist yet is in a folder that does, or in folders to be created.
fn resolve(path: &Path) -> Result<PathBuf, String> {
    let existing = path
        .ancestors()
        .find(|part| part.symlink_metadata().is_ok());
    let existing = existing.unwrap_or(path);
    let wrong = |cause| format!("cannot follow {}: {cause}", existing.display());
    let mut place = existing.canonicalize().map_err(wrong)?;
    // The rest is empty if all exists; to add it would turn the file into a folder.
    if let Ok(rest) = path.strip_prefix(existing) {
        place.extend(rest);
    }
    Ok(place)
}

/// Checks that other users can neither read nor replace what is written there: the file and its folder are this
/// user's. Root follows no path in which another user could exchange a folder in between.
fn check_owners(place: &Path) -> Result<(), String> {
    let mut folders = 0_u32;
    for part in place.ancestors() {
        let metadata = match part.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
            Err(cause) => return Err(format!("cannot look at {}: {cause}", part.display())),
        };
        check_owner(part, &metadata)?;
        folders += u32::from(metadata.is_dir());
        if folders > 0 && !is_root() {
            break;
        }
    }
    Ok(())
}

fn check_owner(part: &Path, metadata: &Metadata) -> Result<(), String> {
    let shown = part.display();
    if metadata.uid() != own_uid() {
        let owner = metadata.uid();
        return Err(format!(
            "{shown} belongs to the user with the id {owner}; run the command as that user"
        ));
    }
    let mode = metadata.permissions().mode();
    if metadata.is_dir() && mode & WRITABLE_BY_ALL != 0 && mode & STICKY == 0 {
        return Err(format!("every user may write to {shown}; change its mode"));
    }
    Ok(())
}

/// Reads a text file; `None` if there is none.
fn read(place: &Path) -> Result<Option<String>, String> {
    match place.symlink_metadata() {
        // Opening a pipe would wait for its writer.
        Ok(metadata) if !metadata.is_file() => return Err("it is not a regular file".to_owned()),
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let bytes = files::read_bounded(place, MAX_FILE).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    Ok(Some(text))
}
