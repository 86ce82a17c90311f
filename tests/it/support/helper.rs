//! The helper as a black box: the real program, byte by byte over its socket.

use std::ffi::OsString;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use serde_json::{Value, json};

use super::machine::{IN_TIME, exit_of};

/// The longest timeout that the helper accepts for a command; no test waits for it.
pub const LONG_MS: u64 = 300_000;

/// While a socket can be inherited by children, no other test may start a child.
static STARTING: Mutex<()> = Mutex::new(());

/// A running helper. It allows everything, as in a trial, unless a test sets a policy.
pub struct Helper {
    pub process: Child,
    /// The process that holds the lifeline, if there is one.
    front: Option<Child>,
    socket: PathBuf,
    _listener: UnixListener,
}

impl Helper {
    /// Starts a helper that ends on a signal.
    pub fn start(lxcpath: &Path) -> Self {
        Self::start_with(lxcpath, None, |_| {})
    }

    /// Starts a helper whose lifeline is held by another process, in the role of the front.
    pub fn start_with_front(lxcpath: &Path) -> Self {
        let mut front = Command::new("sleep");
        let front = front.arg("1000").stdout(Stdio::piped()).spawn().unwrap();
        Self::start_with(lxcpath, Some(front), |command| {
            command.arg("--lifeline");
        })
    }

    /// Starts a helper with a changed command.
    pub fn start_as(lxcpath: &Path, adjust: impl FnOnce(&mut Command)) -> Self {
        Self::start_with(lxcpath, None, adjust)
    }

    /// Starts a helper as the package's unit does, with the limits of a host that has no helper.toml.
    pub fn start_installed(lxcpath: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.args(["helper", "--lxcpath"]).arg(lxcpath);
        command.stdin(Stdio::null());
        Self::run_command(command, None, |command, fd| {
            command.args(["--socket-fd", &fd.to_string()]);
        })
    }

    /// Starts a copy of the program in another place.
    pub fn start_program(exe: &Path, lxcpath: &Path, adjust: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(exe);
        command
            .args(["helper", "--trial", "--lxcpath"])
            .arg(lxcpath)
            .stdin(Stdio::null());
        adjust(&mut command);
        Self::run_command(command, None, |command, fd| {
            command.args(["--socket-fd", &fd.to_string()]);
        })
    }

    /// Starts a helper without containers of LXC, by another program whose last arguments are the helper's command.
    pub fn start_by(runner: &[OsString], adjust: impl FnOnce(&mut Command)) -> Self {
        Self::start_by_with(runner, Path::new("/nonexistent"), adjust)
    }

    /// Starts a helper with these containers of LXC in the same way.
    pub fn start_by_with(
        runner: &[OsString],
        lxcpath: &Path,
        adjust: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = Command::new(&runner[0]);
        command
            .args(&runner[1..])
            .arg(env!("CARGO_BIN_EXE_gatewren"))
            .args(["helper", "--trial", "--lxcpath"])
            .arg(lxcpath)
            .stdin(Stdio::null());
        adjust(&mut command);
        Self::run_command(command, None, |command, fd| {
            command.args(["--socket-fd", &fd.to_string()]);
        })
    }

    fn start_with(
        lxcpath: &Path,
        mut front: Option<Child>,
        adjust: impl FnOnce(&mut Command),
    ) -> Self {
        let stdin = front.as_mut().map_or_else(Stdio::null, |front| {
            Stdio::from(front.stdout.take().unwrap())
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command
            .args(["helper", "--trial", "--lxcpath"])
            .arg(lxcpath)
            .stdin(stdin);
        adjust(&mut command);
        Self::run_command(command, front, |command, fd| {
            command.args(["--socket-fd", &fd.to_string()]);
        })
    }

    /// Starts a helper as systemd does: descriptor 3, `LISTEN_FDS` and `LISTEN_PID`.
    pub fn start_activated(lxcpath: &Path) -> Self {
        // Not every `sh` supports a descriptor of two digits, which is common when many tests run.
        let mut command = Command::new("bash");
        command.stdin(Stdio::null());
        Self::run_command(command, None, |command, fd| {
            let line = "eval \"exec 3<&$1\"; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" helper --trial --lxcpath \"$2\"";
            command
                .args(["-c", line, env!("CARGO_BIN_EXE_gatewren"), &fd.to_string()])
                .arg(lxcpath);
        })
    }

    fn run_command(
        mut command: Command,
        front: Option<Child>,
        hand_over: impl FnOnce(&mut Command, i32),
    ) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gatewren-it-{}-{count}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&socket).unwrap();
        hand_over(&mut command, listener.as_raw_fd());
        let guard = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        fcntl(&listener, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        let process = spawn(command.process_group(0));
        fcntl(&listener, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        drop(guard);
        Self {
            process,
            front,
            socket,
            _listener: listener,
        }
    }

    /// Returns its process id.
    pub fn pid(&self) -> i32 {
        self.process.id().try_into().unwrap()
    }

    /// Sends SIGKILL to the process in the role of the front.
    pub fn kill_front(&mut self) {
        let front = self.front.as_mut().unwrap();
        front.kill().unwrap();
        front.wait().unwrap();
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Requests one operation.
    pub fn ask(&self, operation: &Value, timeout_ms: u64) -> Call {
        self.ask_with(
            operation,
            &json!({
                "timeout_ms": timeout_ms, "output_bytes": 1_u64 << 40, "processes": 5000
            }),
        )
    }

    /// Requests one operation with given limits.
    pub fn ask_with(&self, operation: &Value, limits: &Value) -> Call {
        self.send(&json!({ "operation": operation, "limits": limits, "reference": "it" }))
    }

    /// Requests one operation on behalf of a requester, in the front's form.
    pub fn ask_for(&self, requester: &Value, operation: &Value) -> Call {
        self.send(&json!({
            "operation": operation, "reference": "it", "requester": requester,
            "limits": { "timeout_ms": LONG_MS, "output_bytes": 1_u64 << 40, "processes": 5000 },
        }))
    }

    fn send(&self, request: &Value) -> Call {
        let mut stream = self.connect();
        stream.write_all(&frame(request.to_string())).unwrap();
        Call { stream }
    }

    /// Requests an operation and waits for its end.
    pub fn run(&self, operation: &Value) -> Finished {
        self.ask(operation, LONG_MS).finish()
    }

    /// Opens a connection without sending anything.
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(IN_TIME)).unwrap();
        stream
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.pid());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
        exit_of("the helper", &mut self.process);
        if let Some(front) = &mut self.front {
            let _ = front.kill();
            let _ = front.wait();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// An operation in flight; dropping it closes the connection.
pub struct Call {
    stream: UnixStream,
}

/// The outcome of an operation.
#[derive(Debug)]
pub struct Finished {
    pub ending: Value,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Finished {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the code and the message of a refusal.
    pub fn refusal(&self) -> (String, String) {
        let part = |name: &str| {
            self.ending["refused"][name]
                .as_str()
                .unwrap_or("")
                .to_owned()
        };
        (part("code"), part("message"))
    }
}

impl Call {
    /// Shuts down our half of the connection.
    pub fn cancel(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Reads to the end frame; `None` if the connection closed before it.
    pub fn try_finish(mut self) -> Option<Finished> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            let (kind, payload) = self.frame()?;
            match kind {
                2 | 6 => {}
                3 => stdout.extend(payload),
                4 => stderr.extend(payload),
                5 => {
                    let ending = serde_json::from_slice(&payload).unwrap();
                    return Some(Finished {
                        ending,
                        stdout,
                        stderr,
                    });
                }
                other => panic!("frame kind {other}"),
            }
        }
    }

    /// Reads to the end frame.
    pub fn finish(self) -> Finished {
        self.try_finish()
            .expect("the helper closed the connection before the end")
    }

    /// Waits for the frame that reports a job's start; false for any other response.
    pub fn started(&mut self) -> bool {
        loop {
            match self.frame().expect("a frame").0 {
                2 => {}
                kind => return kind == 6,
            }
        }
    }

    /// Returns the next output.
    pub fn output(&mut self) -> Vec<u8> {
        let output = self.output_or_end();
        output.unwrap_or_else(|ending| panic!("ended: {ending}"))
    }

    /// Returns the next output, or how the operation ended.
    pub fn output_or_end(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let (kind, payload) = self.frame().expect("a frame");
            match kind {
                2 | 6 => {}
                3 | 4 => return Ok(payload),
                _ => return Err(String::from_utf8_lossy(&payload).into_owned()),
            }
        }
    }

    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        match self.stream.read_exact(&mut head) {
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return None;
            }
            other => other.unwrap(),
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some((head[0], payload))
    }
}

/// Returns a request as it is sent over the socket.
pub fn frame(payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[1], &length[..], payload].concat()
}

/// Returns a shell command on the host.
pub fn host(line: &str) -> Value {
    json!({ "do": "host_command", "command": { "program": { "shell": line } } })
}

/// Returns a shell command in a container.
pub fn container(name: &str, line: &str) -> Value {
    json!({
        "do": "container_command", "container": name,
        "command": { "program": { "shell": line } }
    })
}

/// Returns the same for a container that may have the rights of the host's root, on behalf of an agent that may run
/// commands on the host.
pub fn powerful_container(name: &str, line: &str) -> Value {
    let mut operation = container(name, line);
    operation["on_host"] = json!(true);
    operation
}

/// Starts a program. A process that another test forks may hold a copy of it open for writing for a moment.
fn spawn(command: &mut Command) -> Child {
    let mut tries = 0;
    loop {
        match command.spawn() {
            Err(busy) if busy.kind() == ErrorKind::ExecutableFileBusy && tries < 100 => tries += 1,
            spawned => return spawned.unwrap(),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
