//! `gatewren helper`: the helper that runs as root, started by systemd or by the front.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use tokio::runtime::Runtime;

use gatewren_base::config::{ConfigError, HELPER_POLICY_FILE, HelperPolicy, LogLevel};
use gatewren_base::sys::{adopt_socket, own_pid, own_uid, usual_descriptor_limit};
use gatewren_base::telemetry;
use gatewren_helper::{HelperOptions, Lifeline, ReadPolicy, serve, sweep, uid_of};

/// The first file descriptor that systemd passes, `sd_listen_fds(3)`.
const FIRST_HANDED_OVER: RawFd = 3;

/// The default directory of LXC's containers.
const LXCPATH: &str = "/var/lib/lxc";

/// Where Proxmox VE shows the definitions of this node's containers (pmxcfs(8)).
const PROXMOX: &str = "/etc/pve/lxc";

/// Exit code for errors that a restart does not fix, the same as the front's; systemd does not restart the unit
/// after it.
const MUST_BE_FIXED: u8 = 2;

/// The maximum number of connections to close then: at most `net.core.somaxconn` can be waiting.
const MAX_REJECTED: usize = 8192;

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct HelperArgs {
    /// The directory of the containers; the one of `lxc-config lxc.lxcpath` if absent
    #[arg(long, value_name = "DIR")]
    lxcpath: Option<PathBuf>,

    /// The directory where Proxmox VE defines its containers; unused without Proxmox VE
    #[arg(long, value_name = "DIR", default_value = PROXMOX)]
    proxmox: PathBuf,

    /// The user whose connections are accepted; the helper's own if absent
    #[arg(long, value_name = "UID")]
    allow_uid: Option<u32>,

    /// The same by name, as in /etc/passwd
    #[arg(long, value_name = "NAME", conflicts_with = "allow_uid")]
    allow_user: Option<String>,

    /// The limits that the owner sets for this host; the defaults of `gatewren describe helper` if the standard
    /// file does not exist
    #[arg(long, value_name = "FILE", default_value = HELPER_POLICY_FILE)]
    policy: PathBuf,

    /// Allow everything if the standard file does not exist: for a host without an installation
    #[arg(long)]
    trial: bool,

    /// The directory for jobs and their output; systemd's `StateDirectory=` if absent; without either there are
    /// no jobs
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// The socket of Docker's daemon, instead of the one in the policy
    #[arg(long, value_name = "PATH")]
    docker_socket: Option<PathBuf>,

    /// The socket of Podman's service, instead of the one in the policy
    #[arg(long, value_name = "PATH")]
    podman_socket: Option<PathBuf>,

    /// Kill everything and exit when standard input closes
    #[arg(long)]
    lifeline: bool,

    /// The minimum level of log lines: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LogLevel,

    /// The listening socket, for programs that cannot set `LISTEN_PID`
    #[arg(long, value_name = "N")]
    socket_fd: Option<RawFd>,

    /// Kill and remove what killed helpers left behind, then exit
    #[arg(long)]
    sweep: bool,
}

/// Serves until a signal stops it.
pub fn run(args: HelperArgs) -> ExitCode {
    telemetry::init(args.log);
    let done = if args.sweep {
        runtime().map(|runtime| runtime.block_on(sweep()))
    } else {
        match reader(&args)(&args.policy) {
            Ok(policy) => listener(args.socket_fd).and_then(|own| live(args, own, policy)),
            // Without a readable policy there are no limits, so nothing is run.
            Err(cause) => return without_policy(&args, &cause),
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            say(&cause);
            ExitCode::FAILURE
        }
    }
}

/// The function that reads the policy, now and on each reload.
fn reader(args: &HelperArgs) -> ReadPolicy {
    let load = if args.trial {
        HelperPolicy::load_for_trial
    } else {
        HelperPolicy::load
    };
    let (docker, podman) = (args.docker_socket.clone(), args.podman_socket.clone());
    let is_trial = args.trial;
    Box::new(move |path| {
        let mut policy = load(path)?;
        policy.docker_socket = docker.clone().unwrap_or(policy.docker_socket);
        policy.podman_socket = podman.clone().unwrap_or(policy.podman_socket);
        if is_trial {
            policy.leave_out_missing_engines();
        }
        Ok(policy)
    })
}

fn say(cause: &dyn std::fmt::Display) {
    // If even this write fails, there is no other way to report it.
    let _ = writeln!(io::stderr(), "gatewren helper: {cause}");
}

/// Exits until the policy is fixed. Closes the waiting connections: otherwise systemd would restart the helper
/// for them.
fn without_policy(args: &HelperArgs, cause: &ConfigError) -> ExitCode {
    say(cause);
    if let Ok(listener) = listener(args.socket_fd)
        && listener.set_nonblocking(true).is_ok()
    {
        let waiting = listener.incoming().take_while(Result::is_ok);
        waiting.take(MAX_REJECTED).for_each(drop);
    }
    ExitCode::from(MUST_BE_FIXED)
}

fn live(args: HelperArgs, listener: UnixListener, policy: HelperPolicy) -> io::Result<()> {
    let lifeline = if args.lifeline {
        Some(Lifeline(io::stdin().as_fd().try_clone_to_owned()?))
    } else {
        None
    };
    let allow_uid = match &args.allow_user {
        Some(name) => uid_of(name)?,
        None => args.allow_uid.unwrap_or_else(own_uid),
    };
    let settings = HelperOptions {
        policy,
        read_policy: reader(&args),
        policy_file: std::path::absolute(&args.policy)?,
        listener,
        lxcpath: std::path::absolute(args.lxcpath.unwrap_or_else(usual_lxcpath))?,
        proxmox: std::path::absolute(args.proxmox)?,
        allow_uid,
        state: state_directory(args.state_dir)?,
        lifeline,
    };
    usual_descriptor_limit();
    runtime()?.block_on(serve(settings))
}

/// The directory of the jobs.
fn state_directory(named: Option<PathBuf>) -> io::Result<Option<PathBuf>> {
    let given = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    named.or(given).map(std::path::absolute).transpose()
}

/// A runtime on the main thread only. The kernel kills child processes when the thread that started them ends,
/// and the main thread ends only with the process.
fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn listener(named: Option<RawFd>) -> io::Result<UnixListener> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    let handed_over = number("LISTEN_PID") == Some(own_pid()) && number("LISTEN_FDS") >= Some(1);
    let fd = named
        .or(handed_over.then_some(FIRST_HANDED_OVER))
        .ok_or_else(|| {
            io::Error::other(
                "no listening socket was passed; systemd passes one through gatewren-helper.socket, other programs \
                 use --socket-fd N",
            )
        })?;
    adopt_socket(fd).map_err(|e| io::Error::other(format!("descriptor {fd}: {e}")))
}

fn usual_lxcpath() -> PathBuf {
    let output = Command::new("lxc-config").arg("lxc.lxcpath").output();
    let output = output
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let path = output
        .as_deref()
        .map(str::trim)
        .filter(|path| path.starts_with('/'));
    PathBuf::from(path.unwrap_or(LXCPATH))
}
