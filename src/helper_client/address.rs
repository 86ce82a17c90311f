//! Where the helper's socket is, however deep its directory lies.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The path of a socket that this process can connect to.
#[derive(Debug)]
pub struct Address {
    path: PathBuf,
    /// Kept open because `path` goes through it.
    _directory: Option<File>,
    /// The socket's true path, removed at the end, when it is ours.
    own: Option<PathBuf>,
}

impl Address {
    /// A socket that somebody else made.
    pub fn of(path: PathBuf) -> Self {
        Self {
            path,
            _directory: None,
            own: None,
        }
    }

    /// Makes a socket that listens in `directory`, which is made private to this user.
    ///
    /// A socket's path may have 107 bytes only; the way through `/proc/self/fd` has 30 whatever the
    /// directory is called.
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

impl Drop for Address {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            // Best effort: a socket left behind is removed by the next one of its name.
            let _ = fs::remove_file(own);
        }
    }
}
