//! Which files of the host are within reach: below the directories that the owner's file names, and nobody's secrets.

use std::fs::{self, DirEntry, File, Metadata, read_dir};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::HELPER_POLICY_FILE;
use crate::exec::RefusalCode;
use crate::sys::{own_uid, place_beneath};

use super::{house::House, refusal::Refusal};

/// The longest path (`PATH_MAX` without its NUL).
const PATH_BYTES: usize = 4095;

/// The most entries of a directory that are counted and sorted; in a larger one some are never told.
const DIRECTORY_ENTRIES: usize = 100_000;

/// What is nobody's business whatever the owner's file says: gatewren's own secrets, state and socket, and what is
/// no file but the kernel's.
const KEPT_OUT: [&str; 6] = [
    "/etc/gatewren",
    "/var/lib/gatewren",
    "/run/gatewren",
    "/proc",
    "/sys",
    "/dev",
];

/// The bits that let the group or others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The sticky bit.
const STICKY: u32 = 0o1000;

/// Where somebody may go.
#[derive(Debug, Clone)]
pub struct Ground {
    key: &'static str,
    roots: Vec<String>,
    kept_out: Vec<PathBuf>,
    /// The front's own user, whose files are its state wherever they are; nobody where it is our own.
    front: Option<u32>,
}

/// Something within reach, not opened yet.
#[derive(Debug)]
pub struct Place {
    file: File,
    /// Where it is, links resolved.
    pub path: PathBuf,
    /// What it is.
    pub facts: Metadata,
}

impl Ground {
    /// The directories that a key of the owner's file names.
    pub fn new(house: &House, key: &'static str, roots: Vec<String>) -> Self {
        let definitions = house.containers.definitions();
        let containers = [Some(definitions.lxcpath()), definitions.proxmox()];
        let kept_out = KEPT_OUT.iter().map(Path::new);
        let kept_out = kept_out.chain(containers.into_iter().flatten());
        // A link in the place of one is what it leads to, and a path of it all the same.
        let both = |path: &Path| {
            let real = path.canonicalize().ok();
            real.into_iter().chain([path.to_owned()])
        };
        Self {
            key,
            roots,
            kept_out: kept_out.flat_map(both).collect(),
            front: (house.front_uid != own_uid()).then_some(house.front_uid),
        }
    }

    /// The directories.
    pub fn roots(&self) -> &[String] {
        &self.roots
    }

    /// What stands at an absolute path; links are followed as long as they stay below its directory.
    ///
    /// # Errors
    /// `Forbidden` for what is not within reach.
    pub fn find(&self, path: &str) -> Result<Place, Refusal> {
        let (root, rest) = self.split(path)?;
        // It is the owner's word: a link may lead to it.
        let root = File::open(root).map_err(|e| wrong(root, &e))?;
        let file = place_beneath(&root, rest, false).map_err(|e| wrong(path, &e))?;
        let place = Place::of(file).map_err(|e| wrong(path, &e))?;
        if self.keeps_out(&place.path, &place.facts) {
            return Err(kept(path));
        }
        Ok(place)
    }

    /// Whether something is nobody's business.
    pub fn keeps_out(&self, path: &Path, facts: &Metadata) -> bool {
        self.kept_out.iter().any(|kept| path.starts_with(kept)) || self.front == Some(facts.uid())
    }

    /// What is nobody's business below a directory, seen from there.
    pub fn kept_below(&self, path: &Path) -> Vec<PathBuf> {
        let kept = self.kept_out.iter();
        let below = kept.filter_map(|kept| kept.strip_prefix(path).ok());
        below.map(Path::to_owned).collect()
    }

    /// The directory of the owner's file that a path is below, and the rest of it.
    fn split<'a>(&'a self, path: &'a str) -> Result<(&'a str, &'a Path), Refusal> {
        let straight = path.split('/').all(|part| part != "..");
        if !path.starts_with('/') || path.len() > PATH_BYTES || path.contains('\0') || !straight {
            return Err(Refusal::bad_command(
                "the path must be absolute and without .., such as /srv/file",
            ));
        }
        // Whether it is there at all, nobody is told either.
        if self
            .kept_out
            .iter()
            .any(|kept| Path::new(path).starts_with(kept))
        {
            return Err(kept(path));
        }
        let roots = self.roots.iter().filter_map(|root| {
            let rest = Path::new(path).strip_prefix(root).ok()?;
            Some((root.as_str(), rest))
        });
        roots.max_by_key(|(root, _)| root.len()).ok_or_else(|| {
            let (key, shown) = (self.key, path.escape_debug());
            let message = format!(
                "{shown} is in no directory that {key} names in {HELPER_POLICY_FILE}; only the owner of this box can \
                 change that"
            );
            Refusal::new(RefusalCode::Forbidden, message)
        })
    }
}

impl Place {
    fn of(file: File) -> io::Result<Self> {
        let path = fs::read_link(handle(&file))?;
        let facts = file.metadata()?;
        Ok(Self { file, path, facts })
    }

    /// The directory below this one; no link is followed, and no other file system entered.
    pub fn below(&self, name: &Path) -> io::Result<Self> {
        place_beneath(&self.file, name, true).and_then(Self::of)
    }

    /// A path that means it and nothing else, whatever is renamed meanwhile.
    pub fn handle(&self) -> PathBuf {
        handle(&self.file)
    }

    /// Checks that only root can replace this directory or one above it, as sshd does for the files that it trusts
    /// (`StrictModes` in its manual).
    ///
    /// # Errors
    /// Names the first directory, from the root on, that somebody else owns or can write.
    pub fn check_ancestors(&self) -> Result<(), Refusal> {
        let mut ancestors: Vec<&Path> = self.path.ancestors().collect();
        ancestors.reverse();
        // From the root downwards: only root can replace a directory whose parents have passed.
        for ancestor in ancestors {
            let facts = fs::symlink_metadata(ancestor);
            let facts = facts.map_err(|e| wrong(&ancestor.to_string_lossy(), &e))?;
            if !is_safe(&facts) {
                return Err(unsafe_ancestor(ancestor));
            }
        }
        let now = fs::symlink_metadata(&self.path);
        let now = now.map_err(|e| wrong(&self.path.to_string_lossy(), &e))?;
        if (now.dev(), now.ino()) != (self.facts.dev(), self.facts.ino()) {
            let path = self.path.display();
            let message =
                format!("{path} was replaced during the check; nothing was changed. Try again");
            return Err(Refusal::failed(message));
        }
        Ok(())
    }

    /// The regular file, opened to be read.
    pub fn open(&self) -> Result<File, Refusal> {
        if !self.facts.is_file() {
            return Err(self.is_no("regular file"));
        }
        File::open(self.handle()).map_err(|e| wrong(&self.path.to_string_lossy(), &e))
    }

    /// What stands in the directory, in no order.
    pub fn entries(&self) -> Result<Vec<DirEntry>, Refusal> {
        if !self.facts.is_dir() {
            return Err(self.is_no("directory"));
        }
        let entries = read_dir(self.handle());
        let entries = entries.map_err(|e| wrong(&self.path.to_string_lossy(), &e))?;
        Ok(entries.flatten().take(DIRECTORY_ENTRIES).collect())
    }

    /// Says that it is something else.
    pub fn is_no(&self, kind: &str) -> Refusal {
        Refusal::failed(format!("{} is no {kind}", self.path.display()))
    }
}

/// Whether a directory is root's, or our own, and other users cannot rename entries of root in it: a sticky directory,
/// such as `/tmp`, protects them (unlink(2), `EPERM`).
fn is_safe(facts: &Metadata) -> bool {
    let is_ours = facts.uid() == 0 || facts.uid() == own_uid();
    let is_writable = facts.mode() & WRITABLE_BY_OTHERS != 0 && facts.mode() & STICKY == 0;
    facts.is_dir() && is_ours && !is_writable
}

fn unsafe_ancestor(path: &Path) -> Refusal {
    let shown = path.display();
    Refusal::failed(format!(
        "{shown} is not root's alone: another user could redirect what is restored below it. Nothing was changed. \
         Run on the box: chown root {shown} && chmod go-w {shown}"
    ))
}

fn kept(path: &str) -> Refusal {
    let path = path.escape_debug();
    let message = format!(
        "{path} is out of reach for everybody, as are gatewren's own files, containers, /proc, /sys and /dev"
    );
    Refusal::new(RefusalCode::Forbidden, message)
}

/// Not `/proc/self`: the programs that we start find our descriptors by it too.
fn handle(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// What the system says of a path.
pub fn wrong(path: &str, cause: &io::Error) -> Refusal {
    let path = path.escape_debug();
    Refusal::failed(match cause.kind() {
        io::ErrorKind::NotFound => format!("{path} does not exist"),
        io::ErrorKind::CrossesDevices => {
            format!("a link on the way to {path} leads out of the directory that may be seen")
        }
        _ => format!("{path}: {cause}"),
    })
}
