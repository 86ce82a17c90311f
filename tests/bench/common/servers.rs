//! The two servers as child processes: gatewren with its own state, and the anchor.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Error;
use super::args::Common;
use super::connection::Address;
use super::load::{Asked, Kind};
use super::machine::Pinning;
use super::wire::Question;

/// The time limit of a server's start.
const START_WITHIN: Duration = Duration::from_secs(20);

/// The helper's socket in gatewren's directory.
const SOCKET: &str = "helper.sock";

/// A child process that is killed on drop.
pub struct Running(Child);

impl Running {
    /// Starts it; its standard input closes on drop too.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        let named = command.get_program().to_owned();
        let child = command
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", named.display()))?;
        Ok(Self(child))
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns whether it has exited by itself.
    pub fn has_ended(&mut self) -> Result<bool, Error> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Returns the first line of its standard output, which must be piped.
    pub fn first_line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        let out = self.0.stdout.take().ok_or("no standard output")?;
        if BufReader::new(out).read_line(&mut line)? == 0 {
            return Err("a server ended before it began".into());
        }
        Ok(line)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory that is deleted on drop.
pub struct Directory(PathBuf);

impl Directory {
    /// Makes a new one among the temporary files: `TMPDIR` decides on which disk.
    pub fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("gatewren-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A killed run may have left one with the same number.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Returns the path of a file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A directory on the disk with gatewren's state, for one or several starts.
pub struct Home {
    directory: Directory,
    config: PathBuf,
    lxcpath: Option<PathBuf>,
    /// The address after a start.
    pub address: Address,
    /// The agent's token.
    pub token: String,
}

/// gatewren with a fresh state.
pub struct Gatewren {
    process: Running,
    home: Home,
    /// Its address.
    pub address: Address,
    /// The agent's token.
    pub token: String,
}

/// The output of `try --json`.
#[derive(Deserialize)]
struct Said {
    url: String,
    token: String,
    ca: PathBuf,
}

/// The used part of the output of `agent add --json`.
#[derive(Deserialize)]
struct Added {
    token: String,
}

impl Home {
    /// Makes a fresh one, with every limit as high as the settings allow. `try` makes the certificate and the agent.
    /// It accepts no settings, so `serve` continues in the same directory.
    pub fn new(args: &Common) -> Result<Self, Error> {
        Self::with(args, None)
    }

    /// Does the same with the containers in this folder instead of LXC's.
    pub fn with(args: &Common, lxcpath: Option<&Path>) -> Result<Self, Error> {
        let directory = Directory::new()?;
        let said = try_once(args, &directory.0)?;
        let socket = socket(&said.url)?;
        let config = directory.0.join("gatewren.toml");
        let mut text = settings(&directory.0, socket, &args.log);
        if let Some(lxcpath) = lxcpath {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "\n[lxc]\nlxcpath = \"{}\"", lxcpath.display());
        }
        fs::write(&config, text)?;
        Ok(Self {
            address: Address::tls(socket, &said.ca)?,
            token: said.token,
            directory,
            config,
            lxcpath: lxcpath.map(Path::to_owned),
        })
    }

    /// Returns the path of the settings.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Starts a helper on gatewren's socket, so that gatewren does not start one.
    pub fn start_helper(&self, args: &Common) -> Result<Running, Error> {
        self.start_helper_with(Command::new(&args.binary), args)
    }

    /// Starts a helper that allows everything, with this command.
    pub fn start_helper_with(&self, mut command: Command, args: &Common) -> Result<Running, Error> {
        let listener = UnixListener::bind(self.directory.join(SOCKET))?;
        command
            .args(["helper", "--trial", "--socket-fd", "0", "--log", &args.log])
            .arg("--state-dir")
            .arg(self.directory.join("helper"))
            .stdin(OwnedFd::from(listener));
        if let Some(lxcpath) = &self.lxcpath {
            command.arg("--lxcpath").arg(lxcpath);
        }
        Ok(Running(command.spawn()?))
    }

    /// Starts gatewren; it listens a little later.
    pub fn start(&self, args: &Common, pinning: Pinning) -> Result<Running, Error> {
        self.start_with(pinning.server(&args.binary))
    }

    /// Starts gatewren with this command.
    pub fn start_with(&self, mut command: Command) -> Result<Running, Error> {
        command.arg("serve").arg("--config").arg(&self.config);
        Running::start(command)
    }
}

impl Gatewren {
    /// Starts a fresh gatewren.
    pub fn start(args: &Common, pinning: Pinning) -> Result<Self, Error> {
        let home = Home::new(args)?;
        let process = home.start(args, pinning)?;
        Self::of(home, process)
    }

    /// Returns the started gatewren as soon as it listens.
    pub fn of(home: Home, process: Running) -> Result<Self, Error> {
        wait_for(home.address.socket())?;
        Ok(Self {
            process,
            address: home.address.clone(),
            token: home.token.clone(),
            home,
        })
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the question with this server, as the first agent of its state.
    pub fn asked<'a>(&'a self, question: &'a Question<'a>) -> Asked<'a> {
        Asked {
            address: &self.address,
            pid: self.pid(),
            question,
            kind: Kind::Mcp(&self.token),
        }
    }

    /// Returns the path of its settings.
    pub fn config(&self) -> &Path {
        &self.home.config
    }

    /// Adds an agent that may do everything, and returns its token.
    pub fn add_agent(&self, name: &str, args: &Common) -> Result<String, Error> {
        let mut command = Command::new(&args.binary);
        command.args([
            "agent", "add", name, "--policy", "admin", "--json", "--config",
        ]);
        let said = command.arg(&self.home.config).output()?;
        let said: Added = serde_json::from_slice(&said.stdout)?;
        Ok(said.token)
    }

    /// Returns the path of the state database.
    pub fn state_file(&self) -> PathBuf {
        self.home.directory.join("state.db")
    }

    /// Returns the path of its certificate authority.
    pub fn authority(&self) -> PathBuf {
        self.tls_file("ca.pem")
    }

    /// Returns the path of a file of its TLS: `ca.pem`, `cert.pem` or `key.pem`.
    pub fn tls_file(&self, name: &str) -> PathBuf {
        self.home.directory.join("tls").join(name)
    }
}

fn try_once(args: &Common, directory: &Path) -> Result<Said, Error> {
    let mut command = Command::new(&args.binary);
    command
        .args([
            "try",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--policy",
            "admin",
            "--dir",
        ])
        .arg(directory)
        .args(["--log", &args.log])
        .stdout(Stdio::piped());
    let line = Running::start(command)?.first_line()?;
    Ok(serde_json::from_str(&line)?)
}

/// Returns the address in the URL of a server.
pub fn socket(url: &str) -> Result<SocketAddr, Error> {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let authority = rest.split('/').next().unwrap_or_default();
    Ok(authority.parse()?)
}

fn settings(directory: &Path, socket: SocketAddr, log: &str) -> String {
    let directory = directory.display();
    format!(
        r#"listen = ["{socket}"]
state_dir = "{directory}"

[limits]
max_connections = 65536
max_streams = 65536
max_streams_per_agent = 4096
max_sessions = 65536
max_sessions_per_agent = 65536
address_rate = 100000
address_burst = 100000
agent_rate = 1000000
agent_calls = 4096

[helper]
# While nobody listens here gatewren starts its own.
socket = "{directory}/{SOCKET}"

[log]
level = "{log}"
"#
    )
}

/// Waits until a server listens there.
pub fn wait_for(socket: SocketAddr) -> Result<(), Error> {
    let began = Instant::now();
    while let Err(cause) = TcpStream::connect(socket) {
        if began.elapsed() > START_WITHIN {
            return Err(format!("no server listens on {socket}: {cause}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The anchor.
pub struct Bare {
    process: Running,
    /// Its address.
    pub address: Address,
}

impl Bare {
    /// Starts hyper with replies of this size; over TLS with gatewren's certificate if given, otherwise plain.
    pub fn start(size: usize, ours: Option<&Gatewren>, pinning: Pinning) -> Result<Self, Error> {
        let command = pinning.server(&std::env::current_exe()?);
        Self::start_with(command, size, ours)
    }

    /// Starts this program as the anchor, with this command.
    pub fn start_with(
        mut command: Command,
        size: usize,
        ours: Option<&Gatewren>,
    ) -> Result<Self, Error> {
        command.args(["--bare", &size.to_string()]);
        if let Some(ours) = ours {
            command.arg("--cert").arg(ours.tls_file("cert.pem"));
            command.arg("--key").arg(ours.tls_file("key.pem"));
        }
        let mut process = Running::start({
            command.stdout(Stdio::piped());
            command
        })?;
        let port: u16 = process.first_line()?.trim().parse()?;
        let socket = (Ipv4Addr::LOCALHOST, port).into();
        let address = match ours {
            Some(ours) => Address::tls(socket, &ours.tls_file("ca.pem"))?,
            None => Address::plain(socket),
        };
        Ok(Self { process, address })
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Makes it send an event of this size to this number of its open streams.
    pub fn tell(&mut self, size: usize, streams: u32) -> Result<(), Error> {
        let input = self.process.0.stdin.as_mut().ok_or("no standard input")?;
        writeln!(input, "{size} {streams}")?;
        Ok(input.flush()?)
    }
}
