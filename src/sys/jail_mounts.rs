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

/// Where the jail is put together. The host's own `/run` is below it, in the jail's mount namespace alone.
const PLACE: &str = "/run";

/// Directories with programs and libraries; some are links to others where `/usr` is merged.
const PROGRAMS: &[&str] = &["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Files of the host that programs cannot do without.
const FILES: &[&str] = &["dev/null", "etc/ld.so.cache"];

/// Empty directories that programs want: the settings of apt, of which none is obeyed in a jail.
const EMPTY: &[&str] = &["etc/apt/apt.conf.d"];

/// `/tmp`, the one place where a program can write.
const SCRATCH: &str = "mode=1777,size=16m";

/// `open_tree(2)`: a copy of the mount, and not the mount itself; the descriptor closes at `execve`; nothing is mounted
/// automatically on the way.
const CLONE: u32 = 0x1 | 0x80000 | 0x800;

/// `move_mount(2)`: the source is the descriptor itself.
const SOURCE_IS_OPEN: u32 = 0x4;

/// The most directory entries that are looked at for their groups.
const MAX_ENTRIES: usize = 1024;

/// The most groups that a program gets.
const MAX_GROUPS: usize = 16;

/// How deep files are looked at: `/var/log/journal/MACHINE/system.journal`.
const DEPTH: usize = 2;

/// A file or a directory of a container, cloned from its mount and not yet mounted anywhere.
#[derive(Debug)]
pub struct ClonedTree {
    path: PathBuf,
    tree: OwnedFd,
    is_directory: bool,
}

impl ClonedTree {
    /// Clones what is at `path`, as the calling process resolves it; `None` where nothing is, or neither a directory, a
    /// regular file nor a socket. Nothing is opened: `O_PATH` is implied.
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
        // SAFETY: a fresh descriptor, which nobody else owns.
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

    /// Mounts it in the jail under the path that it has in the container, read-only and without devices or programs.
    fn attach(&self) -> io::Result<()> {
        let target = below(&self.path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        // A file of `/proc` is there.
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
        // What is mounted in the container from now on stays there.
        set(&target, MsFlags::MS_PRIVATE)?;
        restrict(&target, MsFlags::MS_NODEV | MsFlags::MS_NOEXEC)
    }
}

/// Makes the host's programs and these trees all that the calling process sees. It has a mount namespace and a pid
/// namespace of its own; `/proc` shows the latter's processes.
///
/// # Errors
/// The kernel's. The process must end then: it may see a part of the host.
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
            let target = below(&file);
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

/// A directory of programs, or the link in its place.
fn programs(directory: &Path) -> io::Result<()> {
    let target = below(directory);
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

/// Makes a mount read-only and without set-user-ID programs, and what `flags` say.
fn restrict(target: &Path, flags: MsFlags) -> io::Result<()> {
    let always = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID;
    set(target, always | flags)
}

fn set(target: &Path, flags: MsFlags) -> io::Result<()> {
    let none = None::<&str>;
    Ok(mount(none, target, none, flags, none)?)
}

/// A path of the jail, before it is entered.
fn below(path: &Path) -> PathBuf {
    Path::new(PLACE).join(path.strip_prefix("/").unwrap_or(path))
}

/// The groups that can read what others cannot, of the files at and below `paths`: a journal is for its group.
pub fn reading_groups(paths: &[PathBuf]) -> Vec<u32> {
    let mut groups = Vec::new();
    let mut left = MAX_ENTRIES;
    for path in paths {
        look(path, DEPTH, &mut left, &mut groups);
    }
    groups
}

fn look(path: &Path, depth: usize, left: &mut usize, groups: &mut Vec<u32>) {
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
        look(&entry.path(), depth - 1, left, groups);
    }
}

fn is_for_its_group(facts: &Metadata) -> bool {
    let bits = if facts.is_dir() { 0o5 } else { 0o4 };
    (facts.is_dir() || facts.is_file())
        && facts.mode() & bits != bits
        && facts.mode() & (bits << 3) == bits << 3
}
