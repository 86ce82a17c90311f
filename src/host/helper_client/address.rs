//! The path of the helper's socket, also when its directory's path is too long for a socket.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The path of a socket that this process can connect to.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// Kept open because `path` leads through its descriptor.
    _directory: Option<File>,
    /// The true path of a socket that this process made; removed on drop.
    own: Option<PathBuf>,
}

impl SocketPath {
    /// The address of a socket that another process made.
    pub fn of(path: PathBuf) -> Self {
        Self {
            path,
            _directory: None,
            own: None,
        }
    }

    /// Makes `directory` private to this user and creates a listening socket in it.
    ///
    /// The path of a Unix socket is limited to 107 bytes. The path through `/proc/self/fd` has
    /// about 30, however long the directory's path is.
    pub fn listen_in(directory: &Path) -> io::Result<(Self, UnixListener)> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        let opened = File::open(directory)?;
        let name = format!("helper-{}.sock", std::process::id());
        let own = directory.join(&name);
        match fs::remove_file(&own) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()));
        let listener = UnixListener::bind(&path)?;
        let address = Self {
            path,
            _directory: Some(opened),
            own: Some(own),
        };
        Ok((address, listener))
    }

    /// The path to connect to.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            // Best effort: the next process with this socket name removes a leftover socket.
            let _ = fs::remove_file(own);
        }
    }
}
