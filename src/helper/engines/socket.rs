//! Connects to an engine's socket, after checking that only root controls it, or only the user whose engine it is.
//!
//! A program that could put its own socket there would get requests as if it were the engine, and the helper would
//! act as root on its answers.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::error::EngineError;
use super::kind::EngineKind;
use gatewren_base::sys::own_uid;

/// How long connecting may take; after that the engine counts as unavailable.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The bits of a mode that let others than the owner change a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In a directory with this bit, only the owner of an entry may remove or rename it.
const STICKY: u32 = 0o1000;

/// Whose engine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineOwner {
    /// Root's.
    Root,
    /// That of the user with this id.
    User(u32),
}

/// Connects to the socket of an engine.
///
/// The socket must be a socket file, and no link. Root must own it, its directory and all directories above. Only
/// root may write to its directory; a directory above may be writable if it is sticky. The process that accepts the
/// connection must run as root. Where this process does not run as root, its own user counts as root.
///
/// The socket of a user's engine, its directory, and the process that accepts must be that user's. The directories above
/// may be root's too.
pub async fn connect(
    kind: EngineKind,
    socket: &Path,
    owner: EngineOwner,
) -> Result<UnixStream, EngineError> {
    let socket = check_path(kind, socket, owner)?;
    let opened = timeout(CONNECT_TIMEOUT, UnixStream::connect(&socket)).await;
    let unavailable = |why: &str| {
        let socket = socket.display();
        EngineError::Unavailable(format!(
            "{kind} does not answer on {socket}: {why}; check that its service runs"
        ))
    };
    let stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(cause)) => return Err(unavailable(&cause.to_string())),
        Err(_) => return Err(unavailable("connecting took longer than 2 s")),
    };
    let peer = stream.peer_cred();
    let peer = peer.map_err(|cause| unavailable(&cause.to_string()))?;
    if owner.is(peer.uid()) {
        return Ok(stream);
    }
    let why = format!("user {} and not {owner} listens on it", peer.uid());
    Err(untrusted(kind, &socket, &why))
}

/// Checks the socket and the directories that lead to it; returns its path without links. The calls do not wait for a
/// disk: engines have their sockets in `/run`, which is in memory.
fn check_path(kind: EngineKind, socket: &Path, owner: EngineOwner) -> Result<PathBuf, EngineError> {
    let missing = |cause: io::Error| {
        let socket = socket.display();
        EngineError::Unavailable(format!(
            "the socket {socket} of {kind} cannot be used: {cause}; check that {kind} is installed and its service runs"
        ))
    };
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(untrusted(kind, socket, "it is not a path of a file"));
    };
    // The directories are checked where the links lead, and the connection is made there too, so a link that is
    // changed in between leads to no other place.
    let directory = fs::canonicalize(directory).map_err(missing)?;
    let socket = directory.join(name);
    let file = fs::symlink_metadata(&socket).map_err(missing)?;
    if !file.file_type().is_socket() {
        let found = if file.is_symlink() {
            "it is a symbolic link"
        } else {
            "it is not a socket"
        };
        return Err(untrusted(kind, &socket, found));
    }
    let not_its = |path: &Path, found: &Metadata| {
        let (uid, path) = (found.uid(), path.display());
        let why = format!("user {uid} and not {owner} owns {path}");
        Err(untrusted(kind, &socket, &why))
    };
    if !owner.is(file.uid()) {
        return not_its(&socket, &file);
    }
    for above in directory.ancestors() {
        let found = fs::symlink_metadata(above).map_err(missing)?;
        let may_be_roots = above != directory && EngineOwner::Root.is(found.uid());
        if !owner.is(found.uid()) && !may_be_roots {
            return not_its(above, &found);
        }
        let may_be_sticky = above != directory && found.mode() & STICKY != 0;
        if found.mode() & WRITABLE_BY_OTHERS != 0 && !may_be_sticky {
            let why = format!("others than {owner} may write to {}", above.display());
            return Err(untrusted(kind, &socket, &why));
        }
    }
    Ok(socket)
}

impl EngineOwner {
    /// Whether it is the user with this id.
    fn is(self, uid: u32) -> bool {
        match self {
            Self::Root => uid == 0 || uid == own_uid(),
            Self::User(user) => uid == user,
        }
    }
}

impl fmt::Display for EngineOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::User(uid) => write!(f, "user {uid}"),
        }
    }
}

fn untrusted(kind: EngineKind, socket: &Path, why: &str) -> EngineError {
    let socket = socket.display();
    EngineError::Untrusted(format!(
        "the socket {socket} of {kind} is not trusted: {why}; nothing was sent to it"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use tokio::net::UnixListener;

    use super::*;
    use gatewren_base::sys::{Scratch, is_root, skip};

    /// A user that is neither root nor the one of the tests.
    const OTHER_UID: u32 = 12_345;

    /// Listens on the socket of its argument, and prints a byte when it does.
    const LISTEN: &str = "socket(S, PF_UNIX, SOCK_STREAM, 0) or die; bind(S, sockaddr_un($ARGV[0])) or die; \
                          listen(S, 5) or die; syswrite(STDOUT, '.'); sleep 60";

    async fn refusal(socket: &Path) -> EngineError {
        connect(EngineKind::Docker, socket, EngineOwner::Root)
            .await
            .unwrap_err()
    }

    #[tokio::test]
    async fn a_socket_of_root_in_a_directory_of_root_is_used() {
        let scratch = Scratch::new();
        let socket = scratch.join("s");
        let _listener = UnixListener::bind(&socket).unwrap();
        connect(EngineKind::Docker, &socket, EngineOwner::Root)
            .await
            .unwrap();
        // A link above, as /var/run is one, is followed.
        symlink(scratch.path(), scratch.join("link")).unwrap();
        connect(
            EngineKind::Docker,
            &scratch.join("link/s"),
            EngineOwner::Root,
        )
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn a_socket_or_directory_of_another_user_is_not_used() {
        if !is_root() {
            return skip("only root can give a file to another user");
        }
        let scratch = Scratch::new();
        let directory = scratch.join("d");
        fs::create_dir(&directory).unwrap();
        let socket = directory.join("s");
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [&socket, &directory] {
            chown(path, Some(OTHER_UID), None).unwrap();
            let error = refusal(&socket).await;
            assert!(matches!(&error, EngineError::Untrusted(_)), "{error}");
            let owner = format!("user 12345 and not root owns {}", path.display());
            assert!(error.message().contains(&owner), "{error}");
            chown(path, Some(0), None).unwrap();
        }
        connect(EngineKind::Docker, &socket, EngineOwner::Root)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn the_socket_of_a_user_is_used_only_where_all_of_it_is_the_users() {
        if !is_root() {
            return skip("only root can give a file to another user");
        }
        let scratch = Scratch::new();
        let directory = scratch.join("d");
        fs::create_dir(&directory).unwrap();
        let socket = directory.join("s");
        let _listener = UnixListener::bind(&socket).unwrap();
        let user = EngineOwner::User(OTHER_UID);
        // The socket, then its directory, then the process that listens are root's.
        for (path, words) in [
            (&socket, "user 0 and not user 12345 owns"),
            (&directory, "user 0 and not user 12345 owns"),
            (&directory, "user 0 and not user 12345 listens"),
        ] {
            let refused = connect(EngineKind::Podman, &socket, user).await;
            let error = refused.unwrap_err();
            assert!(matches!(&error, EngineError::Untrusted(_)), "{error}");
            assert!(error.message().contains(words), "{error}");
            chown(path, Some(OTHER_UID), None).unwrap();
        }
        // What root owns is not a user's, whoever the user is.
        let other = EngineOwner::User(OTHER_UID + 1);
        let refused = connect(EngineKind::Podman, &socket, other).await;
        let error = refused.unwrap_err();
        assert!(
            error.message().contains("12345 and not user 12346"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_listener_of_another_user_gets_no_request_though_root_owns_the_socket() {
        if !is_root() {
            return skip("only root can start a program of another user");
        }
        let scratch = Scratch::new();
        let directory = scratch.join("d");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
        chown(&directory, Some(OTHER_UID), None).unwrap();
        let socket = directory.join("s");
        let mut listener = Command::new("perl")
            .args(["-MSocket", "-e", LISTEN])
            .arg(&socket)
            .uid(OTHER_UID)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        let output = listener.stdout.as_mut().unwrap();
        output.read_exact(&mut ready).unwrap();
        for path in [&directory, &socket] {
            chown(path, Some(0), None).unwrap();
        }
        let error = refusal(&socket).await;
        listener.kill().unwrap();
        listener.wait().unwrap();
        assert!(matches!(&error, EngineError::Untrusted(_)), "{error}");
        let words = "user 12345 and not root listens on it";
        assert!(error.message().contains(words), "{error}");
    }

    #[tokio::test]
    async fn a_directory_that_others_may_write_to_is_not_used() {
        let scratch = Scratch::new();
        let directory = scratch.join("above/d");
        fs::create_dir_all(&directory).unwrap();
        let socket = directory.join("s");
        let _listener = UnixListener::bind(&socket).unwrap();
        let above = scratch.join("above");
        for (path, mode, is_good) in [
            (&directory, 0o775, false),
            (&directory, 0o757, false),
            (&directory, 0o1777, false),
            (&directory, 0o755, true),
            (&above, 0o777, false),
            (&above, 0o1777, true),
        ] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            let connected = connect(EngineKind::Docker, &socket, EngineOwner::Root).await;
            assert_eq!(connected.is_ok(), is_good, "{mode:o}");
            if let Err(error) = connected {
                assert!(error.message().contains("may write to"), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_socket_or_has_no_listener_is_an_error() {
        let scratch = Scratch::new();
        fs::write(scratch.join("file"), "").unwrap();
        let error = refusal(&scratch.join("file")).await;
        assert!(error.message().contains("not a socket"), "{error}");
        drop(UnixListener::bind(scratch.join("dead")).unwrap());
        for missing in ["dead", "none", "none/none"] {
            let error = refusal(&scratch.join(missing)).await;
            assert!(matches!(&error, EngineError::Unavailable(_)), "{error}");
        }
        let error = refusal(Path::new("/")).await;
        assert!(matches!(&error, EngineError::Untrusted(_)), "{error}");
    }
}
