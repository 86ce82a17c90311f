//! Reading a file of another root file system without ever following it out of there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

/// Reads at most `limit` bytes of the regular file `path` as it is seen from `root`.
///
/// Symbolic links are followed as if `root` were `/`, so an absolute one, or one with many `..`, still
/// ends inside. Mounts below `root` are not entered: one of them may never answer.
///
/// # Errors
/// `NotFound`, and `InvalidInput` when it is not a regular file.
pub fn read_in_root(root: &Path, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let root = File::open(root)?;
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)
        .resolve(
            ResolveFlag::RESOLVE_IN_ROOT
                | ResolveFlag::RESOLVE_NO_MAGICLINKS
                | ResolveFlag::RESOLVE_NO_XDEV,
        );
    let file = File::from(openat2(&root, path, how)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_leads_out_of_the_root() {
        let scratch = Scratch::new();
        let root = scratch.join("root");
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        fs::write(root.join("usr/lib/os-release"), "ID=inside\n").unwrap();
        fs::write(root.join("etc/hostname"), "inside\n").unwrap();
        symlink("../usr/lib/os-release", root.join("etc/os-release")).unwrap();
        symlink("/etc/hostname", root.join("etc/absolute")).unwrap();
        symlink("../../../../../../etc/hostname", root.join("etc/upwards")).unwrap();
        symlink("/etc/passwd", root.join("etc/outside")).unwrap();

        let read = |path: &str| read_in_root(&root, Path::new(path), 64);
        assert_eq!(read("etc/os-release").unwrap(), b"ID=inside\n");
        assert_eq!(read("etc/absolute").unwrap(), b"inside\n");
        assert_eq!(read("etc/upwards").unwrap(), b"inside\n");
        assert_eq!(
            read("etc/outside").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(read("etc").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            read_in_root(&root, Path::new("etc/hostname"), 3).unwrap(),
            b"ins"
        );
    }
}
