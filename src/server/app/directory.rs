//! The state directory: private, and used by one server at a time.

use std::net::SocketAddr;
use std::path::Path;
use std::{fs, io};

use super::build_error::BuildError;
use gatewren_base::sys::{DirectoryLock, files, lock_directory, own_uid};

/// The empty file that marks the directory of a demo.
const DEMO: &str = "demo";

/// The files of the stores.
const DATABASES: [&str; 3] = ["state.db", "vault.db", "usage.db"];

/// Files that root creates in the directory of a service's user would not be writable for that user any more.
fn must_be_ours(directory: &Path) -> Result<(), BuildError> {
    let owner = files::owner(directory).map_err(BuildError::new)?;
    if owner == own_uid() {
        return Ok(());
    }
    Err(BuildError::new(format!(
        "{} belongs to another user (uid {owner}); start gatewren as that user, as systemctl start gatewren does, or \
         use another directory",
        directory.display()
    )))
}

/// Locks the directory for this process, and notes its address there. Two servers with the same state would each
/// undo what the other has observed.
pub fn take(
    directory: &Path,
    address: Option<SocketAddr>,
    is_demo: bool,
) -> Result<DirectoryLock, BuildError> {
    files::private_dir(directory).map_err(BuildError::new)?;
    must_be_ours(directory)?;
    let cannot = |cause: io::Error| {
        let directory = directory.display();
        if cause.kind() != io::ErrorKind::WouldBlock {
            return BuildError::new(format!("cannot lock {directory}: {cause}"));
        }
        BuildError::in_use(format!(
            "another gatewren uses {directory}; stop it, or use another directory"
        ))
    };
    let lock = lock_directory(directory).map_err(cannot)?;
    if is_demo {
        begin_demo(directory)?;
    } else if directory.join(DEMO).exists() {
        return Err(BuildError::lasting(format!(
            "{} has the invented state of gatewren try --demo; use another directory",
            directory.display()
        )));
    }
    // A full disk is no reason not to start.
    if let Err(cause) = lock.note(address) {
        tracing::warn!(%cause, "cannot store the server's address; commands on this host will not find it");
    }
    Ok(lock)
}

/// Makes the directory that of a demo, without the state of its last run: its times would be old.
fn begin_demo(directory: &Path) -> Result<(), BuildError> {
    let mark = directory.join(DEMO);
    let has_state = DATABASES.iter().any(|name| directory.join(name).exists());
    if has_state && !mark.exists() {
        return Err(BuildError::lasting(format!(
            "{} has the state of a gatewren that is no demo; choose another directory with --dir",
            directory.display()
        )));
    }
    files::write_private(&mark, b"").map_err(BuildError::new)?;
    for name in DATABASES {
        for suffix in ["", "-wal", "-shm"] {
            match fs::remove_file(directory.join(format!("{name}{suffix}"))) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    return Err(BuildError::new(cause));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
