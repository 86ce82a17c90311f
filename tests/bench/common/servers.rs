//! The two servers as child processes: gatewren with a state of its own, and the anchor.

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

/// A server that does not answer after this long does not start at all.
const START_WITHIN: Duration = Duration::from_secs(20);

/// Where gatewren looks for a helper.
const SOCKET: &str = "helper.sock";

/// A child that ends with its owner.
pub struct Running(Child);

impl Running {
    /// Starts it; what it reads ends with its owner too.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        let named = command.get_program().to_owned();
        let child = command
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", named.display()))?;
        Ok(Self(child))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool, Error> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// What it says first on a standard output that is piped.
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
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory that goes with its owner.
pub struct Directory(PathBuf);

impl Directory {
    /// A new one, where temporary files are kept: `TMPDIR` decides on which disk.
    pub fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("gatewren-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // What a run that was killed has left under the same number.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// A file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A place on the disk from which gatewren is started, as often as wanted.
pub struct Home {
    directory: Directory,
    config: PathBuf,
    lxcpath: Option<PathBuf>,
    /// Where it is once it was started.
    pub address: Address,
    /// The agent's token.
    pub token: String,
}

/// gatewren with a fresh state.
pub struct Gatewren {
    process: Running,
    home: Home,
    /// Where it is.
    pub address: Address,
    /// The agent's token.
    pub token: String,
}

/// What `try --json` says.
#[derive(Deserialize)]
struct Said {
    url: String,
    token: String,
    ca: PathBuf,
}

/// The output of `agent add --json`, as far as it is used.
#[derive(Deserialize)]
struct Added {
    token: String,
}

impl Home {
    /// A fresh one, with every limit as high as the settings allow. `try` makes the certificate and the agent;
    /// since it takes no settings, `serve` goes on from there at the same place.
    pub fn new(args: &Common) -> Result<Self, Error> {
        Self::with(args, None)
    }

    /// The same with the containers in this folder, not where LXC has them.
    pub fn with(args: &Common, lxcpath: Option<&Path>) -> Result<Self, Error> {
        let directory = Directory::new()?;
        let said = try_once(args, &directory.0)?;
        let socket = socket(&said.url)?;
        let config = directory.0.join("gatewren.toml");
        let mut text = settings(&directory.0, socket, &args.log);
        if let Some(lxcpath) = lxcpath {
            // Text takes everything.
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

    /// Starts a helper where gatewren looks for one, so that it starts none itself.
    pub fn start_helper(&self, args: &Common) -> Result<Running, Error> {
        self.start_helper_with(Command::new(&args.binary), args)
    }

    /// Starts what the command starts, as a helper that allows everything.
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

    /// Starts it; a little later it listens.
    pub fn start(&self, args: &Common, pinning: Pinning) -> Result<Running, Error> {
        self.start_with(pinning.server(&args.binary))
    }

    /// Starts what the command starts, as gatewren with these arguments.
    pub fn start_with(&self, mut command: Command) -> Result<Running, Error> {
        command.arg("serve").arg("--config").arg(&self.config);
        Running::start(command)
    }
}

impl Gatewren {
    /// Starts one.
    pub fn start(args: &Common, pinning: Pinning) -> Result<Self, Error> {
        let home = Home::new(args)?;
        let process = home.start(args, pinning)?;
        Self::of(home, process)
    }

    /// The one that was started there, as soon as it listens.
    pub fn of(home: Home, process: Running) -> Result<Self, Error> {
        wait_for(home.address.socket())?;
        Ok(Self {
            process,
            address: home.address.clone(),
            token: home.token.clone(),
            home,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What is asked of it, as the agent that its state began with.
    pub fn asked<'a>(&'a self, question: &'a Question<'a>) -> Asked<'a> {
        Asked {
            address: &self.address,
            pid: self.pid(),
            question,
            kind: Kind::Mcp(&self.token),
        }
    }

    /// A new agent that may do everything: its token.
    pub fn add_agent(&self, name: &str, args: &Common) -> Result<String, Error> {
        let mut command = Command::new(&args.binary);
        command.args([
            "agent", "add", name, "--policy", "admin", "--json", "--config",
        ]);
        let said = command.arg(&self.home.config).output()?;
        let said: Added = serde_json::from_slice(&said.stdout)?;
        Ok(said.token)
    }

    /// The state database.
    pub fn state_file(&self) -> PathBuf {
        self.home.directory.join("state.db")
    }

    /// The certificate of the authority that it is known by.
    pub fn authority(&self) -> PathBuf {
        self.tls_file("ca.pem")
    }

    fn tls_file(&self, name: &str) -> PathBuf {
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

fn socket(url: &str) -> Result<SocketAddr, Error> {
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

fn wait_for(socket: SocketAddr) -> Result<(), Error> {
    let began = Instant::now();
    while let Err(cause) = TcpStream::connect(socket) {
        if began.elapsed() > START_WITHIN {
            return Err(format!("gatewren does not listen on {socket}: {cause}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The anchor.
pub struct Bare {
    process: Running,
    /// Where it is.
    pub address: Address,
}

impl Bare {
    /// hyper with replies of so many bytes; over TLS with gatewren's own certificate, else plain.
    pub fn start(size: usize, ours: Option<&Gatewren>, pinning: Pinning) -> Result<Self, Error> {
        let command = pinning.server(&std::env::current_exe()?);
        Self::start_with(command, size, ours)
    }

    /// What the command starts, as this program.
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

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Has it send an event of so many bytes to so many of its open streams.
    pub fn tell(&mut self, size: usize, streams: u32) -> Result<(), Error> {
        let input = self.process.0.stdin.as_mut().ok_or("no standard input")?;
        writeln!(input, "{size} {streams}")?;
        Ok(input.flush()?)
    }
}
