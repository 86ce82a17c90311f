//! The state directory: private, and used by one server at a time, or by several fronts with different names.

use std::net::SocketAddr;
use std::path::Path;
use std::{fs, io};

use super::build_error::BuildError;
use super::workers_lock::WorkersLock;
use gatewren_base::config::Settings;
use gatewren_base::sys::{DirectoryLock, files, lock_directory, lock_instance, own_uid};

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

/// The locks of a server on its directory.
pub struct ServerLocks {
    _own: DirectoryLock,
    /// Decides which of several fronts does the background work.
    pub workers: WorkersLock,
}

/// Locks the directory for the front with this name, and notes its address there. The name is empty for none: two
/// fronts without names are a mistake, and two with the same name would open sessions that a balancer mixes up.
pub fn take(
    settings: &Settings,
    address: Option<SocketAddr>,
    is_demo: bool,
) -> Result<ServerLocks, BuildError> {
    let (directory, instance) = (
        settings.state_dir.as_path(),
        settings.sessions.instance.as_str(),
    );
    files::private_dir(directory).map_err(BuildError::new)?;
    must_be_ours(directory)?;
    let cannot = |cause: io::Error| {
        let directory = directory.display();
        if cause.kind() != io::ErrorKind::WouldBlock {
            return BuildError::new(format!("cannot lock {directory}: {cause}"));
        }
        BuildError::in_use(if instance.is_empty() {
            format!("another gatewren uses {directory}; stop it, or use another directory")
        } else {
            format!("another gatewren with the name {instance} uses {directory}; use another name")
        })
    };
    let lock = match instance {
        "" => lock_directory(directory),
        name => lock_instance(directory, name),
    };
    let lock = lock.map_err(cannot)?;
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
    let workers = WorkersLock::try_take(directory)?;
    Ok(ServerLocks {
        _own: lock,
        workers,
    })
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
