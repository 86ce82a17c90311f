//! The two servers as child processes: gatewren with a state of its own, and the anchor.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Error;
use crate::args::Args;
use crate::connection::Address;
use crate::machine::Pinning;

/// A server that does not answer after this long does not start at all.
const START_WITHIN: Duration = Duration::from_secs(20);

/// A child that ends with its owner.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Result<Self, Error> {
        let named = command.get_program().to_owned();
        let child = command
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", named.display()))?;
        Ok(Self(child))
    }

    fn first_line(&mut self) -> Result<String, Error> {
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
struct Directory(PathBuf);

impl Directory {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("gatewren-bench-{}", std::process::id()));
        // What a run that was killed has left under the same number.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// gatewren with a fresh state.
pub struct Gatewren {
    process: Running,
    directory: Directory,
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

impl Gatewren {
    /// Starts one with every limit as high as the settings allow. `try` makes the certificate and the
    /// agent; since it takes no settings, `serve` goes on from there at the same place.
    pub fn start(args: &Args, pinning: Pinning) -> Result<Self, Error> {
        let directory = Directory::new()?;
        let said = try_once(args, &directory.0)?;
        let socket = socket(&said.url)?;
        let config = directory.0.join("gatewren.toml");
        fs::write(&config, settings(&directory.0, socket, &args.log))?;
        let mut command = pinning.server(&args.binary);
        command.arg("serve").arg("--config").arg(&config);
        let process = Running::start(command)?;
        wait_for(socket)?;
        Ok(Self {
            process,
            address: Address::tls(socket, &said.ca)?,
            directory,
            token: said.token,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    fn tls_file(&self, name: &str) -> PathBuf {
        self.directory.0.join("tls").join(name)
    }
}

fn try_once(args: &Args, directory: &Path) -> Result<Said, Error> {
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
        .args(["--log", "warn"])
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
address_rate = 100000
address_burst = 100000
agent_rate = 1000000
agent_calls = 4096

[helper]
# Nobody listens here, so gatewren starts its own.
socket = "{directory}/none.sock"

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
    /// hyper over TLS, with gatewren's own certificate.
    pub fn over_tls(size: usize, ours: &Gatewren, pinning: Pinning) -> Result<Self, Error> {
        let files = [ours.tls_file("cert.pem"), ours.tls_file("key.pem")];
        let (process, socket) = Self::start(size, Some(&files), pinning)?;
        let address = Address::tls(socket, &ours.tls_file("ca.pem"))?;
        Ok(Self { process, address })
    }

    /// hyper without TLS.
    pub fn plain(size: usize, pinning: Pinning) -> Result<Self, Error> {
        let (process, socket) = Self::start(size, None, pinning)?;
        let address = Address::plain(socket);
        Ok(Self { process, address })
    }

    fn start(
        size: usize,
        files: Option<&[PathBuf; 2]>,
        pinning: Pinning,
    ) -> Result<(Running, SocketAddr), Error> {
        let mut command = pinning.server(&std::env::current_exe()?);
        command.args(["--bare", &size.to_string()]);
        if let Some([cert, key]) = files {
            command.arg("--cert").arg(cert).arg("--key").arg(key);
        }
        let mut process = Running::start({
            command.stdout(Stdio::piped());
            command
        })?;
        let port: u16 = process.first_line()?.trim().parse()?;
        Ok((process, (Ipv4Addr::LOCALHOST, port).into()))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}
