//! Reads and writes the `authorized_keys` files of the accounts that the owner's policy file names.
//!
//! It lists all keys and maintains gatewren's own block. Every line outside the block is kept byte for byte.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown,
};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gatewren_base::config::HELPER_POLICY_FILE;
use gatewren_base::sys::{lock, place_beneath, random_bytes, source::text};
use gatewren_wire::operations::OperationRefusal;

use crate::processes::accounts::account;

/// The user database of this host.
const PASSWD: &str = "/etc/passwd";

/// The largest file that is read or written. A larger one is not touched.
const FILE_BYTES: u64 = 256 * 1024;

/// Serializes changes: two at once would each overwrite the other's.
static TURN: Mutex<()> = Mutex::new(());

/// A user id and a group id.
type Owner = (u32, u32);

/// An account's checked key file. Its directory is held open, so that a rename in the meantime has no effect.
#[derive(Debug)]
pub struct KeyFile {
    directory: File,
    name: PathBuf,
    /// Its path, for messages.
    pub shown: String,
    /// The only user, besides root, who may own it.
    uid: u32,
    gid: u32,
    old: Option<Metadata>,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl KeyFile {
    /// Opens the file of an entry of the owner's list: a login name or an absolute path. A missing file counts as
    /// empty. `make` creates a missing `.ssh` directory in a home.
    ///
    /// # Errors
    /// Fails if another user could have written it: sshd(8) would ignore it too.
    pub fn open(entry: &str, make: bool) -> Result<Self, OperationRefusal> {
        let path_refusal =
            |shown: &str, cause: &io::Error| OperationRefusal::failed(format!("{shown}: {cause}"));
        let (folder, name, owner) = place(entry)?;
        let shown = folder.join(&name).display().to_string();
        if make && owner.is_some() {
            make_folder(&folder, owner).map_err(|e| path_refusal(&shown, &e))?;
        }
        let directory = open_folder(&folder).map_err(|e| path_refusal(&shown, &e))?;
        let facts = directory.metadata().map_err(|e| path_refusal(&shown, &e))?;
        let (uid, gid) = owner.unwrap_or((facts.uid(), facts.gid()));
        let whose = [0, uid];
        if !whose.contains(&facts.uid()) || facts.mode() & 0o022 != 0 {
            return Err(OperationRefusal::failed(format!(
                "users other than its account and root can write to the directory of {shown}, so its files are not \
                 trusted"
            )));
        }
        let mut file = Self {
            directory,
            name,
            shown,
            uid,
            gid,
            old: None,
            bytes: Vec::new(),
        };
        file.read(&whose)?;
        Ok(file)
    }

    fn read(&mut self, whose: &[u32]) -> Result<(), OperationRefusal> {
        let shown = &self.shown;
        let path_refusal =
            |cause: &io::Error| OperationRefusal::failed(format!("{shown}: {cause}"));
        let handle = match place_beneath(&self.directory, &self.name, true) {
            Ok(handle) => handle,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(cause) => return Err(path_refusal(&cause)),
        };
        let facts = handle.metadata().map_err(|e| path_refusal(&e))?;
        if !facts.is_file() || !whose.contains(&facts.uid()) || facts.mode() & 0o022 != 0 {
            return Err(OperationRefusal::failed(format!(
                "{shown} is not a regular file that only its account and root can write; it is not read or changed"
            )));
        }
        if facts.len() > FILE_BYTES {
            return Err(OperationRefusal::failed(format!(
                "{shown} is larger than {FILE_BYTES} bytes; it is not read or changed"
            )));
        }
        let file = File::open(fd_path(&handle)).map_err(|e| path_refusal(&e))?;
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES).read_to_end(&mut bytes);
        read.map_err(|e| path_refusal(&e))?;
        self.old = Some(facts);
        self.bytes = bytes;
        Ok(())
    }

    /// Replaces the contents in one step: a login or a power failure sees the old or the new file, never a mix. Keeps
    /// owner and permissions.
    ///
    /// # Errors
    /// Fails if the file changed since it was read.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), OperationRefusal> {
        let shown = &self.shown;
        let path_refusal = |cause: io::Error| {
            OperationRefusal::failed(format!("{shown}: {cause}; nothing was changed"))
        };
        if bytes.len() as u64 > FILE_BYTES {
            let words =
                format!("{shown} would be larger than {FILE_BYTES} bytes; nothing was changed");
            return Err(OperationRefusal::failed(words));
        }
        let random = random_bytes::<8>().map_err(|e| path_refusal(io::Error::other(e)))?;
        let passing = format!(".authorized_keys-{:016x}", u64::from_ne_bytes(random));
        let passing = fd_path(&self.directory).join(passing);
        let done = self.write(&passing, bytes);
        if done.is_err() {
            // Best effort: the first error is the one that matters.
            let _ = fs::remove_file(&passing);
        }
        done.map_err(path_refusal)
    }

    fn write(&self, passing: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(passing)?;
        file.write_all(bytes)?;
        let (uid, gid) = match &self.old {
            Some(old) => (old.uid(), old.gid()),
            None => (self.uid, self.gid),
        };
        fchown(&file, Some(uid), Some(gid))?;
        let mode = self.old.as_ref().map_or(0o600, |old| old.mode() & 0o777);
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        let folder = fd_path(&self.directory);
        if self.was_changed(&folder) {
            return Err(io::Error::other("another program changed it; try again"));
        }
        fs::rename(passing, folder.join(&self.name))?;
        File::open(&folder)?.sync_all()
    }

    fn was_changed(&self, folder: &Path) -> bool {
        let now = fs::symlink_metadata(folder.join(&self.name)).ok();
        let marks = |facts: &Metadata| {
            let changed = (facts.ctime(), facts.ctime_nsec());
            (facts.ino(), facts.len(), changed)
        };
        now.as_ref().map(marks) != self.old.as_ref().map(marks)
    }
}

/// Runs `work` while no other task changes these files.
pub fn run_exclusively<T>(work: impl FnOnce() -> T) -> T {
    let _turn = lock(&TURN);
    work()
}

/// Returns the directory, the file name, and the owner that the file must have. For a login name the owner is that
/// account; for a path it is the directory's owner.
fn place(entry: &str) -> Result<(PathBuf, PathBuf, Option<Owner>), OperationRefusal> {
    if entry.starts_with('/') {
        let path = Path::new(entry);
        let parts = path.parent().zip(path.file_name());
        let parts = parts.map(|(folder, name)| (folder.to_owned(), PathBuf::from(name), None));
        return parts.ok_or_else(|| unknown(entry));
    }
    let passwd = text(PASSWD).unwrap_or_default();
    let found = account(&passwd, entry).filter(|found| found.name == entry);
    let found = found.ok_or_else(|| unknown(entry))?;
    let folder = Path::new(&found.home).join(".ssh");
    let whose = Some((found.uid, found.gid));
    Ok((folder, "authorized_keys".into(), whose))
}

fn unknown(entry: &str) -> OperationRefusal {
    let words =
        format!("{entry} in ssh_keys of {HELPER_POLICY_FILE} is neither a user nor a file path");
    OperationRefusal::failed(words)
}

/// Opens the directory, but no symbolic link in its place. The system chooses an account's home; the account controls
/// what is inside it.
fn open_folder(folder: &Path) -> io::Result<File> {
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
        return File::open(folder);
    };
    place_beneath(&File::open(above)?, Path::new(name), true)
}

fn make_folder(folder: &Path, owner: Option<Owner>) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            let (uid, gid) = owner.unzip();
            // Through the open descriptor: the name is in a home, where the user may replace it with a link.
            chown(fd_path(&open_folder(folder)?), uid, gid)
        }
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// A path that refers to this open file even if it is renamed.
fn fd_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
