//! Opens a path below a directory; neither links nor `..` can lead out of it.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

/// Returns a handle to `path` below the directory `root`, without opening the file itself: a device is not started,
/// a pipe does not block.
///
/// The caller can examine it, and open it as `/proc/self/fd/N` once its type is known. Symbolic links are followed
/// as long as they stay below `root` (openat2(2), `RESOLVE_BENEATH`). With `no_links`, no link is followed and no
/// other file system is entered.
///
/// # Errors
/// `NotFound`; `CrossesDevices` when a link or `..` leads out.
pub fn place_beneath(root: &File, path: &Path, no_links: bool) -> io::Result<File> {
    let strict = if no_links {
        ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV
    } else {
        ResolveFlag::empty()
    };
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS | strict);
    let path = if path == Path::new("") {
        Path::new(".")
    } else {
        path
    };
    Ok(File::from(openat2(root, path, how)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use gatewren_portable::Scratch;

    #[test]
    fn links_stay_below() {
        let scratch = Scratch::new();
        let root = scratch.join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "x").unwrap();
        fs::write(scratch.join("outside"), "x").unwrap();
        symlink("a/b", root.join("short")).unwrap();
        symlink("../outside", root.join("up")).unwrap();
        symlink(scratch.join("root/a"), root.join("absolute")).unwrap();
        let opened = File::open(&root).unwrap();
        let found = |path: &str, no_links| place_beneath(&opened, Path::new(path), no_links);
        for good in ["", ".", "a", "a/b/file", "short/file", "a/../a/b"] {
            assert!(found(good, false).is_ok(), "{good}");
        }
        for out in ["..", "a/../..", "up", "absolute", "/etc"] {
            let kind = found(out, false).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::CrossesDevices, "{out}");
        }
        assert!(found("short/file", true).is_err());
        assert_eq!(
            found("a/none", false).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
