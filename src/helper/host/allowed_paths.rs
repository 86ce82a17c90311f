//! Which files of the host may be accessed: those below the policy file's directories, except secrets.

use std::fs::{self, DirEntry, File, Metadata, read_dir};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::config::HELPER_POLICY_FILE;
use gatewren_base::sys::{own_uid, place_beneath};
use gatewren_wire::operations::{OperationRefusal, RefusalCode};

use crate::context::helper_context::HelperContext;

/// The longest path (`PATH_MAX` without its NUL).
const PATH_BYTES: usize = 4095;

/// The most entries of a directory that are counted and sorted. Entries beyond that are never listed.
const DIRECTORY_ENTRIES: usize = 100_000;

/// Paths that are out of reach whatever the owner's file says: gatewren's own secrets, state and socket, kernel file
/// systems, and the containers of Docker and Podman with their environments and volumes, where they usually are.
const KEPT_OUT: [&str; 15] = [
    "/etc/gatewren",
    "/var/lib/gatewren",
    "/run/gatewren",
    "/proc",
    "/sys",
    "/dev",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/run/docker",
    "/run/containerd",
    "/run/containers",
    "/run/libpod",
    "/run/crun",
    "/run/runc",
];

/// The mode bits that let the group or others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The sticky bit.
const STICKY: u32 = 0o1000;

/// The directories that an operation may access.
#[derive(Debug, Clone)]
pub struct AllowedDirectories {
    key: &'static str,
    roots: Vec<String>,
    kept_out: Vec<PathBuf>,
    /// The front's user, whose files are its state wherever they are; `None` if the helper runs as that user.
    front: Option<u32>,
}

/// A file or directory that may be accessed, not opened for reading yet.
#[derive(Debug)]
pub struct AllowedPath {
    file: File,
    /// Its path, with links resolved.
    pub path: PathBuf,
    /// Its metadata.
    pub facts: Metadata,
}

impl AllowedDirectories {
    /// The directories that a key of the policy file names.
    pub fn new(helper: &HelperContext, key: &'static str, roots: Vec<String>) -> Self {
        let definitions = helper.containers.definitions();
        let containers = [Some(definitions.lxcpath()), definitions.proxmox()];
        let kept_out = KEPT_OUT.iter().map(Path::new);
        let kept_out = kept_out.chain(containers.into_iter().flatten());
        // If one of these paths is a link, both the link and its target are out of reach.
        let both = |path: &Path| {
            let real = path.canonicalize().ok();
            real.into_iter().chain([path.to_owned()])
        };
        Self {
            key,
            roots,
            kept_out: kept_out.flat_map(both).collect(),
            front: (helper.front_uid != own_uid()).then_some(helper.front_uid),
        }
    }

    /// The directories.
    pub fn roots(&self) -> &[String] {
        &self.roots
    }

    /// Finds the file at an absolute path. Links are followed as long as they stay below its directory.
    ///
    /// # Errors
    /// `Forbidden` if the path may not be accessed.
    pub fn find(&self, path: &str) -> Result<AllowedPath, OperationRefusal> {
        let (root, rest) = self.split(path)?;
        // The owner named this directory, so it may be a link.
        let root = File::open(root).map_err(|e| path_refusal(root, &e))?;
        let file = place_beneath(&root, rest, false).map_err(|e| path_refusal(path, &e))?;
        let place = AllowedPath::of(file).map_err(|e| path_refusal(path, &e))?;
        if self.excludes(&place.path, &place.facts) {
            return Err(exclusion_refusal(path));
        }
        Ok(place)
    }

    /// Returns whether a path is out of reach for everybody.
    pub fn excludes(&self, path: &Path, facts: &Metadata) -> bool {
        self.kept_out.iter().any(|kept| path.starts_with(kept)) || self.front == Some(facts.uid())
    }

    /// Returns the paths below `path` that are out of reach, relative to it.
    pub fn excluded_below(&self, path: &Path) -> Vec<PathBuf> {
        let kept = self.kept_out.iter();
        let below = kept.filter_map(|kept| kept.strip_prefix(path).ok());
        below.map(Path::to_owned).collect()
    }

    /// Splits a path into a directory of the policy file and the rest.
    fn split<'a>(&'a self, path: &'a str) -> Result<(&'a str, &'a Path), OperationRefusal> {
        let straight = path.split('/').all(|part| part != "..");
        if !path.starts_with('/') || path.len() > PATH_BYTES || path.contains('\0') || !straight {
            return Err(OperationRefusal::bad_command(
                "the path must be absolute and without .., such as /srv/file",
            ));
        }
        // Checked first: not even the existence of these files is revealed.
        if self
            .kept_out
            .iter()
            .any(|kept| Path::new(path).starts_with(kept))
        {
            return Err(exclusion_refusal(path));
        }
        let roots = self.roots.iter().filter_map(|root| {
            let rest = Path::new(path).strip_prefix(root).ok()?;
            Some((root.as_str(), rest))
        });
        roots.max_by_key(|(root, _)| root.len()).ok_or_else(|| {
            let (key, shown) = (self.key, path.escape_debug());
            let message = format!(
                "{shown} is not in a directory that {key} in {HELPER_POLICY_FILE} allows; only the owner of this server \
                 can change that"
            );
            OperationRefusal::new(RefusalCode::Forbidden, message)
        })
    }
}

impl AllowedPath {
    fn of(file: File) -> io::Result<Self> {
        let path = fs::read_link(descriptor_path(&file))?;
        let facts = file.metadata()?;
        Ok(Self { file, path, facts })
    }

    /// Opens the entry below this directory. Follows no link and crosses no mount.
    pub fn open_below(&self, name: &Path) -> io::Result<Self> {
        place_beneath(&self.file, name, true).and_then(Self::of)
    }

    /// A path that refers to this open file even if it is renamed.
    pub fn descriptor_path(&self) -> PathBuf {
        descriptor_path(&self.file)
    }

    /// Checks that only root can replace this directory or one above it, as sshd does for the files that it trusts
    /// (`StrictModes` in its manual).
    ///
    /// # Errors
    /// Names the first directory, from the root on, that another user owns or can write.
    pub fn check_ancestors(&self) -> Result<(), OperationRefusal> {
        let mut ancestors: Vec<&Path> = self.path.ancestors().collect();
        ancestors.reverse();
        // From the root downwards: only root can replace a directory whose parents have passed the check.
        for ancestor in ancestors {
            let facts = fs::symlink_metadata(ancestor);
            let facts = facts.map_err(|e| path_refusal(&ancestor.to_string_lossy(), &e))?;
            if !is_safe(&facts) {
                return Err(unsafe_ancestor(ancestor));
            }
        }
        let now = fs::symlink_metadata(&self.path);
        let now = now.map_err(|e| path_refusal(&self.path.to_string_lossy(), &e))?;
        if (now.dev(), now.ino()) != (self.facts.dev(), self.facts.ino()) {
            let path = self.path.display();
            let message =
                format!("{path} was replaced during the check; nothing was changed. Try again");
            return Err(OperationRefusal::failed(message));
        }
        Ok(())
    }

    /// Opens the regular file for reading.
    pub fn open(&self) -> Result<File, OperationRefusal> {
        if !self.facts.is_file() {
            return Err(self.is_no("regular file"));
        }
        File::open(self.descriptor_path())
            .map_err(|e| path_refusal(&self.path.to_string_lossy(), &e))
    }

    /// Returns the entries of the directory, in no order.
    pub fn entries(&self) -> Result<Vec<DirEntry>, OperationRefusal> {
        if !self.facts.is_dir() {
            return Err(self.is_no("directory"));
        }
        let entries = read_dir(self.descriptor_path());
        let entries = entries.map_err(|e| path_refusal(&self.path.to_string_lossy(), &e))?;
        Ok(entries.flatten().take(DIRECTORY_ENTRIES).collect())
    }

    /// The refusal for a file of another type.
    pub fn is_no(&self, kind: &str) -> OperationRefusal {
        OperationRefusal::failed(format!("{} is not a {kind}", self.path.display()))
    }
}

/// Returns whether root, or the helper's user, owns the directory and other users cannot rename root's entries in it.
/// In a sticky directory, such as `/tmp`, they cannot (unlink(2), `EPERM`).
fn is_safe(facts: &Metadata) -> bool {
    let is_ours = facts.uid() == 0 || facts.uid() == own_uid();
    let is_writable = facts.mode() & WRITABLE_BY_OTHERS != 0 && facts.mode() & STICKY == 0;
    facts.is_dir() && is_ours && !is_writable
}

fn unsafe_ancestor(path: &Path) -> OperationRefusal {
    let shown = path.display();
    OperationRefusal::failed(format!(
        "{shown} must be writable by root only; otherwise another user could redirect a restore below it. Nothing \
         was changed. Run on the server: chown root {shown} && chmod go-w {shown}"
    ))
}

fn exclusion_refusal(path: &str) -> OperationRefusal {
    let path = path.escape_debug();
    let message = format!(
        "no agent has access to {path}: gatewren's own files, containers, /proc, /sys and /dev are excluded"
    );
    OperationRefusal::new(RefusalCode::Forbidden, message)
}

/// Not `/proc/self`: programs that the helper starts reach its descriptors through this path too.
fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// Converts an I/O error on a path to a refusal.
pub fn path_refusal(path: &str, cause: &io::Error) -> OperationRefusal {
    let path = path.escape_debug();
    OperationRefusal::failed(match cause.kind() {
        io::ErrorKind::NotFound => format!("{path} does not exist"),
        io::ErrorKind::CrossesDevices => {
            format!(
                "a symbolic link on the way to {path} leads out of the directory that is allowed"
            )
        }
        _ => format!("{path}: {cause}"),
    })
}
