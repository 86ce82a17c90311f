//! Lists, reads and writes files of another root file system without following a link out of it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

use super::process_table::own_pid;
use gatewren_portable::random_bytes;

/// The permissions of a new file if none are given.
const USUAL_MODE: u32 = 0o644;

/// The root of such a file system, held open: later renames do not matter.
#[derive(Debug)]
pub struct InsideRoot(File);

impl InsideRoot {
    /// Opens a root by its path, whose last component may be a link, as in `/proc/1/root`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_DIRECTORY.bits();
        let root = OpenOptions::new().read(true).custom_flags(flags).open(path);
        root.map(Self)
    }

    /// Returns its path for other processes, valid as long as this is open.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", own_pid(), self.0.as_raw_fd()).into()
    }

    /// Returns whether it is the directory at `path`. The open directory is compared, wherever its own path leads
    /// now.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        let (own, other) = (self.0.metadata()?, fs::metadata(path)?);
        Ok((own.dev(), own.ino()) == (other.dev(), other.ino()))
    }

    /// Reads at most `bytes` bytes of a regular file from `offset` on, with its metadata. Links in the path are
    /// followed as if the root were `/`.
    ///
    /// # Errors
    /// `InvalidInput` when it is not a regular file. Such a file is not opened: `O_PATH` opens no driver and no
    /// pipe (open(2)). Merely opening a device can rewind a tape or start a watchdog.
    pub fn read(&self, path: &str, offset: u64, bytes: u64) -> io::Result<(Vec<u8>, Metadata)> {
        read_part(&self.find(path, OFlag::empty())?, offset, bytes)
    }

    /// Reads at most `most` bytes up to the end of a regular file. Links in the path are followed as if the root were
    /// `/`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_end(&self, path: &str, most: u64) -> io::Result<FileEnd> {
        end_of(&self.find(path, OFlag::empty())?, most)
    }

    /// Like [`Self::read_end`], but follows no link; the file may be on another mount below the root.
    ///
    /// # Errors
    /// Also when a part of the path is a link.
    pub fn read_end_without_links(&self, path: &str, most: u64) -> io::Result<FileEnd> {
        let found = self.find_on(path, OFlag::empty(), ResolveFlag::RESOLVE_NO_SYMLINKS)?;
        end_of(&found, most)
    }

    /// Reads a regular file whole, also one on another mount below the root, such as `/run`. Links in the path are
    /// followed as if the root were `/`. It can wait forever: whoever mounts below the root can make a file system that
    /// does not answer.
    ///
    /// # Errors
    /// `InvalidInput` when it is not a regular file, or has more than `most` bytes.
    pub fn read_on_any_mount(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let found = self.find_on(path, OFlag::empty(), ResolveFlag::empty())?;
        let (bytes, _) = read_part(&found, 0, most.saturating_add(1))?;
        if bytes.len() as u64 > most {
            return Err(invalid("it is too large"));
        }
        Ok(bytes)
    }

    /// Opens a handle to a socket, also one on another mount below the root. Links in the path are followed as if the
    /// root were `/`, so none leads to a socket outside. A connection is made to `/proc/self/fd/N` of the handle. It can
    /// wait forever, as [`Self::read_on_any_mount`] can.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` when it is not a socket.
    pub fn find_socket(&self, path: &str) -> io::Result<File> {
        let found = self.find_on(path, OFlag::empty(), ResolveFlag::empty())?;
        if found.metadata()?.file_type().is_socket() {
            return Ok(found);
        }
        Err(invalid("it is not a socket"))
    }

    /// Returns whether nothing exists at this path. False also if that is not known: a part of the path is on another
    /// mount below the root, or cannot be read.
    pub fn lacks(&self, path: &str) -> bool {
        let found = self.find(path, OFlag::empty());
        found.is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound)
    }

    /// Lists a directory: among its first `most` names those that `select` chooses, each with its metadata; for a
    /// link, the metadata of the link itself.
    pub fn list(
        &self,
        path: &str,
        select: impl FnOnce(Vec<OsString>) -> Vec<OsString>,
        most: usize,
    ) -> io::Result<Vec<(OsString, Metadata)>> {
        let directory = self.find(path, OFlag::O_DIRECTORY)?;
        let place = by_descriptor(&directory);
        let names = fs::read_dir(&place)?.take(most);
        let names: io::Result<Vec<OsString>> = names.map(|e| Ok(e?.file_name())).collect();
        let facts = |name: OsString| {
            // An entry that was removed by now is left out.
            let facts = fs::symlink_metadata(place.join(&name)).ok()?;
            Some((name, facts))
        };
        Ok(select(names?).into_iter().filter_map(facts).collect())
    }

    /// Writes the file `name` in `directory` atomically, and returns whether it is new. An existing file keeps its
    /// owner, and its permissions if none are given. A new file gets the owner of the directory.
    ///
    /// # Errors
    /// `InvalidInput` when the name belongs to something other than a regular file, such as a link.
    pub fn write(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> io::Result<bool> {
        let directory = self.find(directory, OFlag::O_DIRECTORY)?;
        let place = by_descriptor(&directory);
        let target = place.join(single(name)?);
        let old = match fs::symlink_metadata(&target) {
            Ok(facts) if !facts.is_file() => {
                return Err(invalid(
                    "this name belongs to a link, a directory or a device",
                ));
            }
            Ok(facts) => Some(facts),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let new = old.is_none();
        let owner = old.as_ref().map_or(directory.metadata()?, Clone::clone);
        let kept = old.map(|facts| facts.mode() & 0o777);
        let passing = place.join(passing_name()?);
        // `create_new` follows no link and opens nothing that already exists under this name.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&passing)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| fchown(&file, Some(owner.uid()), Some(owner.gid())))
            .and_then(|()| {
                let mode = mode.or(kept).unwrap_or(USUAL_MODE);
                file.set_permissions(Permissions::from_mode(mode & 0o777))
            })
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&passing, &target));
        if written.is_err() {
            // Best effort: the earlier error is the one that matters.
            let _ = fs::remove_file(&passing);
        }
        written.map(|()| new)
    }

    /// Returns a handle to a path below the root, without opening the file itself. Mounts below the root are not
    /// entered: one of them may never respond.
    fn find(&self, path: &str, flags: OFlag) -> io::Result<File> {
        self.find_on(path, flags, ResolveFlag::RESOLVE_NO_XDEV)
    }

    fn find_on(&self, path: &str, flags: OFlag, mounts: ResolveFlag) -> io::Result<File> {
        let inside = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | flags)
            .resolve(inside | mounts);
        Ok(File::from(openat2(&self.0, path, how)?))
    }
}

/// The end of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEnd {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where they begin in the file.
    pub offset: u64,
    /// The size of the whole file in bytes.
    pub size_bytes: u64,
}

fn end_of(found: &File, most: u64) -> io::Result<FileEnd> {
    let offset = found.metadata()?.len().saturating_sub(most);
    let (bytes, facts) = read_part(found, offset, most)?;
    Ok(FileEnd {
        bytes,
        offset,
        size_bytes: facts.len(),
    })
}

/// Reads a part of a regular file, with its metadata.
fn read_part(found: &File, offset: u64, bytes: u64) -> io::Result<(Vec<u8>, Metadata)> {
    if !found.metadata()?.is_file() {
        return Err(invalid("not a regular file"));
    }
    // Reopens the file that was checked, even if its name refers to another file by now.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(by_descriptor(found))?;
    let facts = file.metadata()?;
    file.seek(SeekFrom::Start(offset))?;
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    Ok((read, facts))
}

/// Returns a path that always refers to this open file.
fn by_descriptor(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Returns the name if it is a single path component.
fn single(name: &str) -> io::Result<&OsStr> {
    let leads_on = name.contains(['/', '\0']) || matches!(name, "" | "." | "..");
    if leads_on {
        return Err(invalid("it is not a valid file name"));
    }
    Ok(OsStr::new(name))
}

fn passing_name() -> io::Result<String> {
    let random = random_bytes::<8>().map_err(io::Error::other)?;
    let number = u64::from_ne_bytes(random);
    Ok(format!(".gatewren-{number:016x}"))
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use nix::errno::Errno;
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};
    use nix::unistd::mkfifo;

    use super::super::process_table::is_root;
    use super::super::skip::skip;
    use super::*;
    use gatewren_portable::Scratch;

    /// Creates a root with links that lead out of it, and a secret outside.
    fn lab() -> (Scratch, PathBuf, InsideRoot) {
        let scratch = Scratch::new();
        let root = scratch.join("root");
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::create_dir_all(scratch.join("outside")).unwrap();
        fs::write(scratch.join("outside/secret"), "outside").unwrap();
        fs::write(root.join("etc/hosts"), "0123456789").unwrap();
        symlink(scratch.join("outside"), root.join("out")).unwrap();
        symlink("../../outside/secret", root.join("etc/up")).unwrap();
        symlink("/etc/hosts", root.join("etc/absolute")).unwrap();
        let inside = InsideRoot::open(&root).unwrap();
        (scratch, root, inside)
    }

    #[test]
    fn what_is_read_and_listed_is_inside() {
        let (_scratch, _, inside) = lab();
        let read = |path: &str| inside.read(path, 0, 64).map(|(bytes, _)| bytes);
        assert_eq!(read("etc/absolute").unwrap(), b"0123456789");
        assert_eq!(inside.read("etc/hosts", 3, 4).unwrap().0, b"3456");
        for none in [
            "out/secret",
            "etc/up",
            "../outside/secret",
            "../../../outside/secret",
        ] {
            assert!(read(none).is_err(), "{none}");
        }
        let kind = read("etc").unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::InvalidInput);
        let names = |path: &str| inside.list(path, |names| names, 100);
        assert_eq!(names("etc").unwrap().len(), 3);
        assert!(names("out").is_err(), "a link to a directory outside");
        assert_eq!(
            names("../..").unwrap().len(),
            2,
            "above the root is the root"
        );
    }

    #[test]
    fn a_socket_is_found_inside_and_never_outside() {
        let (scratch, root, inside) = lab();
        let _outside = UnixListener::bind(scratch.join("outside/s")).unwrap();
        for (link, target) in [
            ("absolute", scratch.join("outside/s")),
            ("relative", "../outside/s".into()),
            ("magic", "/proc/self/cwd".into()),
        ] {
            symlink(target, root.join(link)).unwrap();
            assert!(inside.find_socket(link).is_err(), "{link}");
        }
        // As /var/run is one on Debian.
        fs::create_dir_all(root.join("run")).unwrap();
        let _listener = UnixListener::bind(root.join("run/s")).unwrap();
        symlink("/run", root.join("var-run")).unwrap();
        for path in ["run/s", "/run/s", "var-run/s"] {
            assert!(inside.find_socket(path).is_ok(), "{path}");
        }
        for other in ["etc/hosts", "run"] {
            let kind = inside.find_socket(other).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::InvalidInput, "{other}");
        }
        let long = inside.read_on_any_mount("etc/hosts", 9).unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
        let whole = inside.read_on_any_mount("etc/hosts", 10).unwrap();
        assert_eq!(whole, b"0123456789");
    }

    #[test]
    fn the_root_has_a_path_and_is_known_by_what_it_is() {
        let (scratch, root, inside) = lab();
        assert_eq!(
            fs::read(inside.path().join("etc/hosts")).unwrap(),
            b"0123456789"
        );
        assert!(inside.is_at(&root).unwrap());
        assert!(!inside.is_at(Path::new("/")).unwrap());
        // Its path may lead elsewhere by now.
        fs::rename(&root, scratch.join("moved")).unwrap();
        fs::create_dir(&root).unwrap();
        assert!(!inside.is_at(&root).unwrap());
        let of_the_host = InsideRoot::open(Path::new("/proc/self/root")).unwrap();
        assert!(of_the_host.is_at(Path::new("/")).unwrap());
    }

    /// The error for a file of the wrong type. Opening one that cannot be opened would return another error.
    const BY_ITS_KIND: &str = "not a regular file";

    fn refusal(inside: &InsideRoot, path: &str) -> String {
        inside.read(path, 0, 64).unwrap_err().to_string()
    }

    /// Opens a pipe for writing, which fails with `ENXIO` unless a reader has it open (fifo(7)).
    fn to_write(pipe: &Path) -> io::Result<File> {
        let flags = OFlag::O_NONBLOCK.bits();
        OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(pipe)
    }

    #[test]
    fn a_pipe_is_refused_without_being_opened() {
        const ROUNDS: usize = 2000;
        let (_scratch, root, inside) = lab();
        let pipe = root.join("etc/os-release");
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let refused = to_write(&pipe).map(drop).unwrap_err();
                    assert_eq!(refused.raw_os_error(), Some(Errno::ENXIO as i32));
                }
            });
            // The reads also return: a blocking open would wait for a writer.
            let mut refusals: Vec<_> = (0..ROUNDS)
                .map(|_| {
                    inside
                        .read("etc/os-release", 0, 64)
                        .map(drop)
                        .map_err(|e| e.to_string())
                })
                .collect();
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap();
            refusals.dedup();
            assert_eq!(refusals, [Err(BY_ITS_KIND.to_owned())]);
        });
        // The writer would have noticed a reader.
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(&pipe);
        assert!(to_write(&pipe).is_ok());
        drop(reader);
    }

    #[test]
    fn a_device_and_a_socket_are_refused_without_being_opened() {
        /// A device number for local use that no driver has (admin-guide/devices.txt).
        const NO_DRIVER: (u64, u64) = (60, 0);
        let (_scratch, root, inside) = lab();
        let opened = |name: &str| {
            let flags = OFlag::O_NONBLOCK.bits();
            let path = root.join(name);
            OpenOptions::new().read(true).custom_flags(flags).open(path)
        };
        // Opening either would fail with a different error.
        let _socket = UnixListener::bind(root.join("etc/socket")).unwrap();
        let code = opened("etc/socket").unwrap_err().raw_os_error();
        assert_eq!(code, Some(Errno::ENXIO as i32));
        assert_eq!(refusal(&inside, "etc/socket"), BY_ITS_KIND);
        if !is_root() {
            return skip("only root makes a device");
        }
        let (major, minor) = NO_DRIVER;
        let made = mknod(
            &root.join("etc/os-release"),
            SFlag::S_IFCHR,
            Mode::S_IRWXU,
            makedev(major, minor),
        );
        if made == Err(Errno::EPERM) {
            return skip("no device can be made in this container");
        }
        made.unwrap();
        let code = opened("etc/os-release").unwrap_err().raw_os_error();
        assert!(
            [Errno::ENXIO, Errno::EACCES, Errno::EPERM]
                .map(|e| Some(e as i32))
                .contains(&code),
            "{code:?}"
        );
        assert_eq!(refusal(&inside, "etc/os-release"), BY_ITS_KIND);
    }

    #[test]
    fn what_is_written_is_inside_and_no_link_is_written_through() {
        let (scratch, root, inside) = lab();
        assert!(inside.write("etc", "new", b"n", Some(0o600)).unwrap());
        assert!(!inside.write("etc", "hosts", b"h", None).unwrap());
        let facts = fs::metadata(root.join("etc/new")).unwrap();
        assert_eq!(facts.mode() & 0o7777, 0o600);
        assert_eq!(fs::read(root.join("etc/hosts")).unwrap(), b"h");
        for (directory, name) in [
            ("out", "x"),
            ("../outside", "x"),
            ("etc", "up"),
            ("etc", ".."),
            ("etc", "a/b"),
            (".", "etc"),
            (".", "out"),
        ] {
            assert!(
                inside.write(directory, name, b"x", None).is_err(),
                "{directory} {name}"
            );
        }
        let outside: Vec<_> = fs::read_dir(scratch.join("outside")).unwrap().collect();
        assert_eq!(outside.len(), 1);
        assert_eq!(
            fs::read(scratch.join("outside/secret")).unwrap(),
            b"outside"
        );
    }

    #[test]
    fn somebody_who_exchanges_directories_for_links_gains_nothing() {
        const ROUNDS: usize = 300;
        let (scratch, root, inside) = lab();
        let stop = AtomicBool::new(false);
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("work/secret"), "inside").unwrap();
        symlink(scratch.join("outside"), root.join("trap")).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let swap = |from: &str, to: &str| {
                    let _ = fs::rename(root.join(from), root.join(to));
                };
                while !stop.load(Ordering::Relaxed) {
                    swap("work", "work.kept");
                    swap("trap", "work");
                    swap("work", "trap");
                    swap("work.kept", "work");
                }
            });
            for _ in 0..ROUNDS {
                if let Ok((bytes, _)) = inside.read("work/secret", 0, 64) {
                    assert_eq!(bytes, b"inside");
                }
                let _ = inside.write("work", "secret", b"inside", None);
                let _ = inside.write("work", "new", b"inside", None);
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(
            fs::read(scratch.join("outside/secret")).unwrap(),
            b"outside"
        );
        let outside: Vec<_> = fs::read_dir(scratch.join("outside")).unwrap().collect();
        assert_eq!(outside.len(), 1, "nothing was written there");
    }

    #[test]
    fn a_path_is_lacking_only_if_nothing_can_be_there() {
        let path = std::env::temp_dir().join(format!("gatewren-lacks-{}", std::process::id()));
        fs::create_dir_all(path.join("var")).unwrap();
        fs::write(path.join("var/log"), "").unwrap();
        symlink("/nowhere", path.join("link")).unwrap();
        let root = InsideRoot::open(&path).unwrap();
        assert!(root.lacks("/var/lib") && root.lacks("/link"));
        // A file in the place of a directory is an error of another kind.
        assert!(!root.lacks("/var") && !root.lacks("/var/log/journal"));
        let whole = InsideRoot::open(Path::new("/")).unwrap();
        assert!(
            !whole.lacks("/proc/nothing"),
            "another mount is not looked into"
        );
        fs::remove_dir_all(&path).unwrap();
    }
}
