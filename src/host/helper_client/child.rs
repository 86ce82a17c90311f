//! A helper as a child process of the front, for development, trials and tests; restarted when it exits.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use gatewren_base::config::LogLevel;
use gatewren_base::sys::{Child, Spawn, pipe};

use super::{address::SocketPath, error::HelperError, helper::HelperClient};

/// The pause before the first restart; it doubles with every helper that exits early.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between restarts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A helper that ran this long counts as healthy, and the pause is reset.
const HEALTHY: Duration = Duration::from_secs(30);

/// How long [`HelperChild::stop`] waits for a clean exit. After that it kills the helper, and with
/// it all its calls.
const STOP_TIME: Duration = Duration::from_secs(10);

/// The options of a child helper.
#[derive(Debug, Clone, Copy)]
pub struct ChildHelperOptions<'a> {
    /// The directory of the containers; LXC's own setting if absent.
    pub lxcpath: Option<&'a Path>,
    /// The socket of Docker's daemon; the one in the policy if absent.
    pub docker_socket: Option<&'a Path>,
    /// The socket of Podman's service; the one in the policy if absent.
    pub podman_socket: Option<&'a Path>,
    /// The owner's policy file. If absent, the helper runs in trial mode, where only the standard
    /// file limits it.
    pub policy: Option<&'a Path>,
    /// The directory for its jobs; if absent, it has no jobs.
    pub state: Option<&'a Path>,
    /// The minimum level of its log.
    pub log: LogLevel,
}

/// A helper that is a child of this process. It exits, and kills all that it runs, when this is
/// dropped or when this process dies in any way.
#[derive(Debug)]
pub struct HelperChild {
    watcher: JoinHandle<()>,
    /// Dropping the sender makes the watcher stop the helper.
    stop: oneshot::Sender<()>,
}

impl HelperChild {
    /// Starts `exe helper` with a socket in `socket_dir`, which becomes private to this user.
    ///
    /// Must be called within a tokio runtime. The child inherits the listening socket as it would
    /// from systemd. Its standard input is the reading end of a pipe: the child exits when the
    /// writing end closes.
    ///
    /// # Errors
    /// [`HelperError::Unreachable`] when the socket cannot be made or the program cannot be
    /// started.
    pub fn spawn(
        exe: &Path,
        socket_dir: &Path,
        options: ChildHelperOptions<'_>,
    ) -> Result<(Self, HelperClient), HelperError> {
        let unreachable = |e: io::Error| HelperError::Unreachable(e.to_string());
        let (address, listener) = SocketPath::listen_in(socket_dir).map_err(unreachable)?;
        let launch = HelperLaunch::new(exe, options, listener).map_err(unreachable)?;
        let first = launch.start().map_err(unreachable)?;
        let (stop, stopped) = oneshot::channel();
        let watcher = tokio::spawn(watch(launch, first, stopped));
        Ok((Self { watcher, stop }, HelperClient::at(address)))
    }

    /// Stops the helper. Returns when the helper and everything that it ran have exited.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(cause) = self.watcher.await {
            tracing::error!(%cause, "the task that watches the helper failed");
        }
    }
}

/// A helper process and the pipe that stops it when it is closed.
struct HelperProcess {
    child: Child,
    lifeline: OwnedFd,
    since: Instant,
}

/// How to start a helper repeatedly on the same socket.
struct HelperLaunch {
    exe: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    listener: UnixListener,
    nothing: File,
    log: OwnedFd,
}

impl HelperLaunch {
    fn new(
        exe: &Path,
        options: ChildHelperOptions<'_>,
        listener: UnixListener,
    ) -> io::Result<Self> {
        let mut argv = vec![
            c"gatewren".to_owned(),
            c"helper".to_owned(),
            c"--lifeline".to_owned(),
            c"--socket-fd".to_owned(),
            c"3".to_owned(),
            c"--log".to_owned(),
            CString::new(options.log.to_string())?,
        ];
        if options.policy.is_none() {
            argv.push(c"--trial".to_owned());
        }
        for (name, path) in [
            (c"--lxcpath", options.lxcpath),
            (c"--docker-socket", options.docker_socket),
            (c"--podman-socket", options.podman_socket),
            (c"--policy", options.policy),
            (c"--state-dir", options.state),
        ] {
            if let Some(path) = path {
                argv.push(name.to_owned());
                argv.push(CString::new(path.as_os_str().as_bytes())?);
            }
        }
        let named = |name: &str| {
            std::env::var(name)
                .ok()
                .map(|value| format!("{name}={value}"))
        };
        // Its log goes to the same terminal or journal.
        let env = [
            "PATH",
            "INVOCATION_ID",
            "JOURNAL_STREAM",
            "NO_COLOR",
            "TERM",
        ]
        .into_iter()
        .filter_map(named);
        Ok(Self {
            exe: CString::new(exe.as_os_str().as_bytes())?,
            argv,
            env: env.map(CString::new).collect::<Result<_, _>>()?,
            listener,
            nothing: File::options().write(true).open("/dev/null")?,
            log: io::stderr().as_fd().try_clone_to_owned()?,
        })
    }

    fn start(&self) -> io::Result<HelperProcess> {
        let (reading, lifeline) = pipe()?;
        let spawn = Spawn {
            programs: vec![self.exe.clone()],
            argv: self.argv.clone(),
            env: self.env.clone(),
            fds: vec![
                reading.as_fd(),
                self.nothing.as_fd(),
                self.log.as_fd(),
                self.listener.as_fd(),
            ],
            // The working directory is inherited: a relative lxcpath has the same meaning as in the
            // front.
            ..Spawn::default()
        };
        let child = spawn.spawn().map_err(io::Error::other)?;
        Ok(HelperProcess {
            child,
            lifeline,
            since: Instant::now(),
        })
    }
}

impl HelperProcess {
    async fn end(self) {
        drop(self.lifeline);
        if timeout(STOP_TIME, self.child.wait()).await.is_err() {
            tracing::error!("the helper did not end in time; killing it");
            self.child.kill();
            let _ = self.child.wait().await;
        }
    }
}

/// Restarts the helper until `stopped` fires.
async fn watch(launch: HelperLaunch, first: HelperProcess, mut stopped: oneshot::Receiver<()>) {
    let mut alive = Some(first);
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(helper) = alive.take() {
            let exit = tokio::select! {
                _ = &mut stopped => return helper.end().await,
                exit = helper.child.wait() => exit,
            };
            if helper.since.elapsed() > HEALTHY {
                pause = FIRST_PAUSE;
            }
            tracing::error!(?exit, "the helper ended; restarting it");
        }
        tokio::select! {
            _ = &mut stopped => return,
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        match launch.start() {
            Ok(started) => alive = Some(started),
            Err(cause) => tracing::error!(%cause, "the helper could not be started"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::{process, terminate};
    use gatewren_wire::operations::{Command, Operation, OperationEnd, OperationLimits, Program};
    use std::path::PathBuf;

    const TRIAL: ChildHelperOptions<'static> = ChildHelperOptions {
        lxcpath: None,
        docker_socket: None,
        podman_socket: None,
        policy: None,
        state: None,
        log: LogLevel::Info,
    };

    /// Returns the path of `gatewren` next to the test binary. Prints a notice and returns `None`
    /// if only the tests were built.
    fn exe() -> Option<PathBuf> {
        let tests = std::env::current_exe().unwrap();
        let exe = tests.parent().unwrap().parent().unwrap().join("gatewren");
        if !exe.is_file() {
            eprintln!("SKIPPED: helper_client::child: gatewren itself is not built");
            return None;
        }
        Some(exe)
    }

    fn scratch(name: &str) -> PathBuf {
        // Longer than the path of a socket may be.
        let deep = "d".repeat(120);
        std::env::temp_dir()
            .join(format!("gatewren-{name}-{}", own_pid()))
            .join(deep)
    }

    fn own_pid() -> i32 {
        gatewren_base::sys::own_pid()
    }

    async fn echo(helper: &HelperClient, line: &str) -> Result<String, HelperError> {
        let command = Command {
            program: Program::Shell(line.to_owned()),
            user: None,
            cwd: None,
            env: [].into(),
        };
        let limits = OperationLimits {
            timeout_ms: 300_000,
            output_bytes: 1 << 40,
            processes: 100,
        };
        let capture = crate::helper_client::Capture {
            head: 100,
            tail: 100,
        };
        let operation = Operation::HostCommand { command };
        let finished = helper.run(operation, limits, "test", capture).await?;
        assert_eq!(finished.ending, OperationEnd::Exited { code: 0 });
        Ok(finished.stdout.text_lossy())
    }

    /// Returns the helper's pid: the parent of the command is the reaper, whose parent is the
    /// helper.
    async fn pid_of(helper: &HelperClient) -> i32 {
        let line = "read -r a b c parent rest < /proc/$PPID/stat; echo $parent";
        echo(helper, line).await.unwrap().trim().parse().unwrap()
    }

    #[tokio::test]
    async fn a_helper_that_dies_takes_its_calls_and_the_next_call_works() {
        let Some(exe) = exe() else { return };
        let folder = scratch("child");
        let (child, helper) = HelperChild::spawn(&exe, &folder, TRIAL).unwrap();
        assert_eq!(echo(&helper, "echo one").await.unwrap(), "one\n");
        let pid = pid_of(&helper).await;
        let runs = folder.with_file_name("runs");
        let line = format!("touch {}; sleep 200", runs.display());
        let in_flight = tokio::spawn({
            let helper = helper.clone();
            async move { echo(&helper, &line).await }
        });
        while !runs.exists() {
            sleep(Duration::from_millis(5)).await;
        }
        terminate(pid, true);
        let lost = in_flight.await.unwrap().unwrap_err();
        assert!(
            matches!(lost, HelperError::Lost(_)) && lost.retry_helps(),
            "{lost:?}"
        );
        assert!(lost.to_string().contains("try again"));
        assert_eq!(echo(&helper, "echo two").await.unwrap(), "two\n");
        let next = pid_of(&helper).await;
        assert_ne!(pid, next);
        child.stop().await;
        assert_eq!(process(next), None);
        let gone = echo(&helper, "echo three").await.unwrap_err();
        assert!(matches!(gone, HelperError::Unreachable(_)), "{gone:?}");
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    fn resident_kb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap()
    }

    /// Set in the process that runs a single test.
    const ALONE: &str = "GATEWREN_TEST_ALONE";

    /// Runs a test of this file again in a process where no other test allocates memory. Returns
    /// true in that process.
    fn is_alone(test: &str) -> bool {
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let (_, module) = module_path!().split_once("::").unwrap();
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", &format!("{module}::{test}"), "--nocapture"]);
        let output = again.env(ALONE, "1").output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && stdout.contains("1 passed"),
            "{output:?}"
        );
        false
    }

    #[tokio::test]
    async fn the_front_stays_small_while_a_command_prints_a_gigabyte() {
        if !is_alone("the_front_stays_small_while_a_command_prints_a_gigabyte") {
            return;
        }
        let Some(exe) = exe() else { return };
        let folder = scratch("gigabyte");
        let (child, helper) = HelperChild::spawn(&exe, &folder, TRIAL).unwrap();
        echo(&helper, "true").await.unwrap();
        let before = resident_kb();
        let printing = tokio::spawn({
            let helper = helper.clone();
            async move { echo(&helper, "head -c 1073741824 /dev/zero").await }
        });
        let mut most = before;
        while !printing.is_finished() {
            most = most.max(resident_kb());
            sleep(Duration::from_millis(5)).await;
        }
        let text = printing.await.unwrap().unwrap();
        assert!(
            text.contains("[... 1073741624 bytes left out ...]"),
            "{}",
            text.len()
        );
        eprintln!("resident: {before} kB before, at most {most} kB");
        assert!(most - before < 16_000, "{before} kB, then {most} kB");
        child.stop().await;
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
}
