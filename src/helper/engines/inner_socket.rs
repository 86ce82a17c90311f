//! Connects to the Docker inside a container of LXC. Nothing there is trusted: root in the container makes the
//! socket, the files beside it, and the answers.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::error::EngineError;
use super::socket::CONNECT_TIMEOUT;
use gatewren_base::sys::{InsideRoot, lock, pid_namespace, process};

/// The socket's path in the container, from its root.
const SOCKET: &str = "run/docker.sock";

/// How long a daemon that did not answer in time is not asked again. Otherwise one that never answers would delay each
/// look at the containers of the host.
const PAUSE_AFTER_SILENCE: Duration = Duration::from_secs(10);

/// The socket of the Docker inside a running container of LXC. Clones share what they know about it.
#[derive(Debug, Clone)]
pub struct InnerSocket {
    /// The container of LXC, for messages.
    outer: Arc<str>,
    /// Its first process, by its id on the host, and when that started, in clock ticks from boot.
    init: i32,
    started: u64,
    /// Held while a thread looks at the container's files. A file system that does not answer then holds one thread for
    /// each container, and no more.
    files: Arc<Semaphore>,
    silent_since: Arc<Mutex<Option<Instant>>>,
}

impl PartialEq for InnerSocket {
    fn eq(&self, other: &Self) -> bool {
        self.outer == other.outer && self.is_of(other.init, other.started)
    }
}

impl Eq for InnerSocket {}

impl InnerSocket {
    /// Returns the socket of a container by its name and first process. Opens nothing.
    pub fn new(outer: &str, init: i32, started: u64) -> Self {
        Self {
            outer: outer.into(),
            init,
            started,
            files: Arc::new(Semaphore::new(1)),
            silent_since: Arc::default(),
        }
    }

    /// Whether it belongs to this run of the container.
    pub fn is_of(&self, init: i32, started: u64) -> bool {
        (self.init, self.started) == (init, started)
    }

    /// Whether the container has the socket.
    ///
    /// # Errors
    /// Fails if that cannot be found out.
    pub async fn exists(&self) -> io::Result<bool> {
        match self.look(|root| root.find_socket(SOCKET)).await {
            Ok(_) => Ok(true),
            Err(cause) => match cause.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => {
                    Ok(false)
                }
                _ => Err(cause),
            },
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Fails if the socket is missing or does not answer, and if the process that listens on it is outside the container:
    /// the host's own socket may be mounted in it.
    pub(super) async fn connect(&self) -> Result<UnixStream, EngineError> {
        let silence = *lock(&self.silent_since);
        if silence.is_some_and(|since| since.elapsed() < PAUSE_AFTER_SILENCE) {
            return Err(self.unavailable("it did not answer a moment ago"));
        }
        let found = self.look(|root| root.find_socket(SOCKET)).await;
        let found = found.map_err(|cause| self.unavailable(&cause.to_string()))?;
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        let stream = match timeout(CONNECT_TIMEOUT, UnixStream::connect(path)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(cause)) => return Err(self.unavailable(&cause.to_string())),
            Err(_) => return Err(self.unavailable("connecting took longer than 2 s")),
        };
        let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let namespace = peer.and_then(pid_namespace);
        if self.still_runs() && namespace.is_some() && namespace == pid_namespace(self.init) {
            return Ok(stream);
        }
        Err(EngineError::Untrusted(format!(
            "the socket {self} is not used: the process that listens on it is not one of this container; nothing was \
             sent to it"
        )))
    }

    /// Records that the daemon did not answer in time.
    pub(super) fn note_silence(&self) {
        *lock(&self.silent_since) = Some(Instant::now());
    }

    /// Reads something in the container's files on a thread of its own.
    ///
    /// # Errors
    /// `TimedOut` if the files do not answer within 2 s, or an earlier look at them has not come back.
    pub async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&InsideRoot) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let socket = self.clone();
        let looked = timeout(CONNECT_TIMEOUT, async {
            let files = Arc::clone(&socket.files).acquire_owned().await;
            let files = files.map_err(io::Error::other)?;
            let looking = spawn_blocking(move || {
                let found = socket.open_root().and_then(|root| read(&root));
                drop(files);
                found
            });
            looking.await.map_err(io::Error::other)?
        });
        looked.await.unwrap_or_else(|_| {
            let words = "the container's files do not answer";
            Err(io::Error::new(ErrorKind::TimedOut, words))
        })
    }

    fn open_root(&self) -> io::Result<InsideRoot> {
        let root = InsideRoot::open(Path::new(&format!("/proc/{}/root", self.init)))?;
        // While a container starts, its first process still has the host's root. Another process may have got its id.
        if root.is_at(Path::new("/"))? || !self.still_runs() {
            return Err(io::Error::other("the container is starting or stopping"));
        }
        Ok(root)
    }

    fn still_runs(&self) -> bool {
        process(self.init).is_some_and(|now| now.started == self.started && !now.is_ending)
    }

    fn unavailable(&self, why: &str) -> EngineError {
        EngineError::Unavailable(format!(
            "Docker inside the container {} does not answer: {why}; check that its service runs there",
            self.outer
        ))
    }
}

impl fmt::Display for InnerSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{SOCKET} of the container {}", self.outer)
    }
}
