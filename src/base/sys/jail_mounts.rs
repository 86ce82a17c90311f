//! The mounts of a jail: programs of the host, and files that are cloned out of a container.

use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

/// Where the jail is assembled. The mount hides the host's own `/run`, only in the jail's mount namespace.
const PLACE: &str = "/run";

/// Directories with programs and libraries; some are links to others where `/usr` is merged.
const PROGRAMS: &[&str] = &["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Files of the host that programs require.
const FILES: &[&str] = &["dev/null", "etc/ld.so.cache"];

/// Empty directories that programs expect: apt's settings, so that none takes effect in a jail.
const EMPTY: &[&str] = &["etc/apt/apt.conf.d"];

/// `/tmp`, the only place where a program can write.
const SCRATCH: &str = "mode=1777,size=16m";

/// `open_tree(2)`: a copy of the mount, not the mount itself; the descriptor closes at `execve`; no automount in
/// the path is triggered.
const CLONE: u32 = 0x1 | 0x80000 | 0x800;

/// `move_mount(2)`: the source is the descriptor itself.
const SOURCE_IS_OPEN: u32 = 0x4;

/// The most directory entries whose groups are examined.
const MAX_ENTRIES: usize = 1024;

/// The most groups that a program gets.
const MAX_GROUPS: usize = 16;

/// The depth to which files are examined: `/var/log/journal/MACHINE/system.journal`.
const DEPTH: usize = 2;

/// A file or a directory of a container, cloned from its mount and not yet mounted anywhere.
#[derive(Debug)]
pub struct ClonedTree {
    path: PathBuf,
    tree: OwnedFd,
    is_directory: bool,
}

impl ClonedTree {
    /// Clones the file at `path`, as the calling process resolves it. Returns `None` if it does not exist, or is
    /// neither a directory, a regular file nor a socket. Opens nothing: `O_PATH` is implied.
    ///
    /// # Errors
    /// The kernel's, such as `ENOSYS` before Linux 5.2.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        #[expect(unsafe_code, reason = "open_tree has no safe wrapper")]
        // SAFETY: `name` lives through the call, which returns a descriptor or an error.
        let opened =
            unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, name.as_ptr(), CLONE) };
        let opened = match Errno::result(opened) {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(None),
            other => RawFd::try_from(other?).map_err(io::Error::other)?,
        };
        #[expect(unsafe_code, reason = "the kernel returns a bare number")]
        // SAFETY: a new descriptor, which nothing else owns.
        let tree = unsafe { OwnedFd::from_raw_fd(opened) };
        let tree = File::from(tree);
        let kind = tree.metadata()?.file_type();
        if !(kind.is_dir() || kind.is_file() || kind.is_socket()) {
            return Ok(None);
        }
        Ok(Some(Self {
            path: path.to_owned(),
            tree: tree.into(),
            is_directory: kind.is_dir(),
        }))
    }

    /// Mounts it in the jail under the path that it has in the container, read-only and without devices or
    /// programs.
    fn attach(&self) -> io::Result<()> {
        let target = path_before_entry(&self.path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        // A file of `/proc` exists already.
        match (target.exists(), self.is_directory) {
            (true, _) => {}
            (false, true) => fs::create_dir(&target)?,
            (false, false) => drop(File::create_new(&target)?),
        }
        let name = CString::new(target.as_os_str().as_bytes())?;
        let (tree, empty) = (self.tree.as_fd().as_raw_fd(), c"");
        #[expect(unsafe_code, reason = "move_mount has no safe wrapper")]
        // SAFETY: both names live through the call, and `tree` is open.
        let moved = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                tree,
                empty.as_ptr(),
                libc::AT_FDCWD,
                name.as_ptr(),
                SOURCE_IS_OPEN,
            )
        };
        Errno::result(moved)?;
        // Later mounts in the container do not propagate into the jail.
        set(&target, MsFlags::MS_PRIVATE)?;
        restrict(&target, MsFlags::MS_NODEV | MsFlags::MS_NOEXEC)
    }
}

/// Replaces the root of the calling process with the host's programs and these trees. The process must have its own
/// mount and pid namespaces; `/proc` shows the processes of the pid namespace.
///
/// # Errors
/// The kernel's. The process must exit then: it may see a part of the host.
pub fn enter_root(trees: &[ClonedTree]) -> io::Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(none, PLACE, Some("tmpfs"), flags, Some("mode=755,size=1m"))?;
    for name in PROGRAMS {
        programs(Path::new("/").join(name).as_path())?;
    }
    for name in FILES {
        let file = Path::new("/").join(name);
        if file.exists() {
            let target = path_before_entry(&file);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            File::create_new(&target)?;
            bind(&file, &target, MsFlags::MS_NOEXEC)?;
        }
    }
    for name in EMPTY {
        fs::create_dir_all(Path::new(PLACE).join(name))?;
    }
    let [proc, scratch] = ["proc", "tmp"].map(|name| Path::new(PLACE).join(name));
    fs::create_dir(&proc)?;
    mount(none, &proc, Some("proc"), flags | MsFlags::MS_RDONLY, none)?;
    fs::create_dir(&scratch)?;
    mount(none, &scratch, Some("tmpfs"), flags, Some(SCRATCH))?;
    for tree in trees {
        tree.attach()?;
    }
    chdir(PLACE)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    restrict(Path::new("/"), MsFlags::MS_NODEV | MsFlags::MS_NOEXEC)
}

/// Mounts a directory of programs, or copies the link that is in its place.
fn programs(directory: &Path) -> io::Result<()> {
    let target = path_before_entry(directory);
    match fs::symlink_metadata(directory) {
        Ok(facts) if facts.is_symlink() => symlink(fs::read_link(directory)?, target),
        Ok(facts) if facts.is_dir() => {
            fs::create_dir(&target)?;
            bind(directory, &target, MsFlags::MS_NODEV)
        }
        _ => Ok(()),
    }
}

fn bind(source: &Path, target: &Path, flags: MsFlags) -> io::Result<()> {
    let none = None::<&str>;
    mount(Some(source), target, none, MsFlags::MS_BIND, none)?;
    restrict(target, flags)
}

/// Makes a mount read-only and without set-user-ID programs, and sets `flags`.
fn restrict(target: &Path, flags: MsFlags) -> io::Result<()> {
    let always = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID;
    set(target, always | flags)
}

fn set(target: &Path, flags: MsFlags) -> io::Result<()> {
    let none = None::<&str>;
    Ok(mount(none, target, none, flags, none)?)
}

/// Returns where a path of the jail is before the jail is entered.
fn path_before_entry(path: &Path) -> PathBuf {
    Path::new(PLACE).join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns the groups that can read files at and below `paths` that others cannot, such as the group of a journal.
pub fn reading_groups(paths: &[PathBuf]) -> Vec<u32> {
    let mut groups = Vec::new();
    let mut left = MAX_ENTRIES;
    for path in paths {
        collect_groups(path, DEPTH, &mut left, &mut groups);
    }
    groups
}

fn collect_groups(path: &Path, depth: usize, left: &mut usize, groups: &mut Vec<u32>) {
    let Ok(facts) = fs::symlink_metadata(path) else {
        return;
    };
    let gid = facts.gid();
    if is_for_its_group(&facts) && groups.len() < MAX_GROUPS && !groups.contains(&gid) {
        groups.push(gid);
    }
    if !facts.is_dir() || depth == 0 {
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        collect_groups(&entry.path(), depth - 1, left, groups);
    }
}

fn is_for_its_group(facts: &Metadata) -> bool {
    let bits = if facts.is_dir() { 0o5 } else { 0o4 };
    (facts.is_dir() || facts.is_file())
        && facts.mode() & bits != bits
        && facts.mode() & (bits << 3) == bits << 3
}
