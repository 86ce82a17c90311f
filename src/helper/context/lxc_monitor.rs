//! Whether a container of LXC has a monitor: the process that LXC starts with a container, and that ends with it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use gatewren_wire::operations::ContainerRef;

/// The longest path of a monitor's socket, in bytes, that is taken as it is: LXC replaces one that does not fit into
/// `sockaddr_un` (108 bytes) with a hash.
const MAX_PATH: usize = 100;

/// Returns false only if no monitor listens, so that the container is stopped. Its socket is an abstract one with the
/// name `LXCPATH/NAME/command`, which `lxc-info` connects to as well (`lxc_cmd` in LXC's `commands.c`). No program is
/// started.
pub async fn may_have_monitor(lxcpath: &Path, container: &ContainerRef) -> bool {
    let path = lxcpath.join(container.as_str()).join("command");
    if path.as_os_str().len() > MAX_PATH {
        return true;
    }
    // A path that begins with a zero byte is the name of an abstract socket.
    let mut name = PathBuf::from("\0").into_os_string();
    name.push(path);
    match UnixStream::connect(&name).await {
        Ok(_) => true,
        // The monitor may be too busy to accept, or its socket be out of reach: `lxc-info` has to be asked.
        Err(cause) => cause.kind() != ErrorKind::ConnectionRefused,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lxc_monitor::*;
    use tokio::net::UnixListener;

    #[tokio::test]
    async fn a_container_without_a_listening_monitor_is_known_to_be_stopped() {
        let lxcpath = PathBuf::from(format!("/tmp/gatewren-monitor-{}", std::process::id()));
        let name: ContainerRef = "alpha".parse().unwrap();
        assert!(!may_have_monitor(&lxcpath, &name).await);
        let socket = format!("\0{}/alpha/command", lxcpath.display());
        let monitor = UnixListener::bind(&socket).unwrap();
        assert!(may_have_monitor(&lxcpath, &name).await);
        assert!(!may_have_monitor(&lxcpath, &"beta".parse().unwrap()).await);
        drop(monitor);
        assert!(!may_have_monitor(&lxcpath, &name).await);
    }

    #[tokio::test]
    async fn a_path_that_lxc_hashes_is_left_to_lxc() {
        let long = PathBuf::from("/srv").join("a".repeat(100));
        assert!(may_have_monitor(&long, &"alpha".parse().unwrap()).await);
    }
}
