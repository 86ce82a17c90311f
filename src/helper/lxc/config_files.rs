//! Two files that the helper reads for the front: a container's configuration and its `os-release`.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use gatewren_base::sys::InsideRoot;
use gatewren_wire::operations::OperationRefusal;

/// The most bytes of a configuration file that are read; the rest is cut off.
const CONFIG_BYTES: u64 = 256 * 1024;

/// The most bytes of an `os-release` that are read; the rest is cut off.
const OS_RELEASE_BYTES: u64 = 64 * 1024;

/// The paths of os-release(5), in its order.
const OS_RELEASE: [&str; 2] = ["etc/os-release", "usr/lib/os-release"];

/// Reads a container's configuration file.
pub fn config(path: &Path) -> Result<Vec<u8>, OperationRefusal> {
    let read = File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(CONFIG_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    read.map_err(|e| {
        OperationRefusal::failed(format!("the container's configuration cannot be read: {e}"))
    })
}

/// Reads the container's `os-release`. The second path is read only if the first does not exist.
pub fn os_release(root: &InsideRoot) -> Result<Vec<u8>, OperationRefusal> {
    for path in OS_RELEASE {
        match root.read(path, 0, OS_RELEASE_BYTES) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => {
                let message = format!("cannot read /{path} of the container: {e}");
                return Err(OperationRefusal::failed(message));
            }
            Ok((bytes, _)) => return Ok(bytes),
        }
    }
    let paths = OS_RELEASE.map(|path| format!("/{path}")).join(" or ");
    Err(OperationRefusal::failed(format!(
        "cannot read the operating system of the container: it has no {paths}"
    )))
}

/// Returns the root file system of a container that is not running, if it is a plain directory.
pub fn root_of(config: &Path) -> Result<PathBuf, OperationRefusal> {
    let text = fs::read_to_string(config).unwrap_or_default();
    let path = rootfs(&text).ok_or_else(|| {
        OperationRefusal::failed(
            "the container's root file system is not a directory; start the container first",
        )
    })?;
    Ok(PathBuf::from(path))
}

/// Returns whether a container's root file system is a plain directory.
pub fn is_directory(config: &Path) -> bool {
    root_of(config).is_ok_and(|path| path.is_dir())
}

/// Returns the last value of a key in a configuration, if it has one.
pub fn value(config: &Path, key: &str) -> Option<String> {
    let text = fs::read_to_string(config).ok()?;
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let values = lines.filter(|(name, _)| name.trim() == key);
    let value = values
        .map(|(_, value)| value.trim().to_owned())
        .next_back()?;
    (!value.is_empty()).then_some(value)
}

/// Returns the last `lxc.rootfs.path` of a configuration, if it names a directory.
fn rootfs(config: &str) -> Option<&str> {
    let lines = config.lines().filter_map(|line| line.split_once('='));
    let paths = lines.filter(|(key, _)| key.trim() == "lxc.rootfs.path");
    let path = paths.map(|(_, value)| value.trim()).next_back()?;
    let path = path.strip_prefix("dir:").unwrap_or(path);
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::super::config_files::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn only_a_missing_os_release_has_a_substitute() {
        let scratch = Scratch::new();
        for directory in ["etc", "usr/lib"] {
            fs::create_dir_all(scratch.join(directory)).unwrap();
        }
        let root = InsideRoot::open(scratch.path()).unwrap();
        let words = || os_release(&root).unwrap_err().to_string();
        assert!(words().ends_with("it has no /etc/os-release or /usr/lib/os-release"));
        fs::write(scratch.join("usr/lib/os-release"), "ID=inside\n").unwrap();
        assert_eq!(os_release(&root).unwrap(), b"ID=inside\n");
        let first = scratch.join("etc/os-release");
        symlink("/usr/lib/os-release", &first).unwrap();
        assert_eq!(os_release(&root).unwrap(), b"ID=inside\n");
        fs::remove_file(&first).unwrap();
        let _socket = UnixListener::bind(&first).unwrap();
        assert_eq!(
            words(),
            "cannot read /etc/os-release of the container: not a regular file"
        );
    }

    #[test]
    fn the_root_is_read_from_the_configuration() {
        assert_eq!(
            rootfs("a = b\nlxc.rootfs.path = dir:/x/rootfs\n"),
            Some("/x/rootfs")
        );
        assert_eq!(rootfs("lxc.rootfs.path=/x"), Some("/x"));
        assert_eq!(rootfs("lxc.rootfs.path = overlay:/a:/b"), None);
        assert_eq!(rootfs("# lxc.rootfs.path = /x"), None);
        assert_eq!(rootfs(""), None);
    }
}
