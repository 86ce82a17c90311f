//! Two fronts of one gatewren, and nginx or `HAProxy` before them with the examples of the package.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use super::Error;
use super::args::Common;
use super::connection::Address;
use super::machine::Pinning;
use super::servers::{Directory, Gatewren, Home, Running, wait_for};

const NGINX: &str = include_str!("../../../packaging/examples/nginx-fronts.conf");
const HAPROXY: &str = include_str!("../../../packaging/examples/haproxy-fronts.cfg");

/// The settings of the first front.
const INSTANCE: &str = "\n[sessions]\ninstance = \"a\"\n";

/// The two fronts `a` and `b` of one gatewren.
pub struct TwoFronts {
    /// The front `a`.
    pub a: Gatewren,
    /// The address of the front `b`.
    pub b: SocketAddr,
    _second: Running,
}

impl TwoFronts {
    /// Starts both on a fresh state.
    pub fn start(args: &Common, pinning: Pinning) -> Result<Self, Error> {
        let home = Home::new(args)?;
        let settings = fs::read_to_string(home.config())?;
        fs::write(home.config(), settings.clone() + INSTANCE)?;
        let process = home.start(args, pinning)?;
        let a = Gatewren::of(home, process)?;
        let b = free_address()?;
        let settings = settings.replace(&a.address.socket().to_string(), &b.to_string());
        let config = a.config().with_extension("second");
        fs::write(&config, settings)?;
        let mut command = pinning.server(&args.binary);
        command.args(["serve", "--instance", "b", "--config"]);
        let second = Running::start({
            command.arg(config);
            command
        })?;
        wait_for(b)?;
        Ok(Self {
            a,
            b,
            _second: second,
        })
    }
}

/// The kind of balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BalancerKind {
    /// nginx.
    Nginx,
    /// `HAProxy`.
    Haproxy,
}

impl BalancerKind {
    /// Returns the name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Nginx => NGINX,
            Self::Haproxy => HAPROXY,
        }
    }
}

/// A running balancer.
pub struct Balancer {
    process: Running,
    _directory: Directory,
    /// Its address.
    pub address: Address,
}

impl Balancer {
    /// Starts it before these two fronts, with the certificate of this gatewren, which both of them have.
    pub fn start(
        kind: BalancerKind,
        fronts: [SocketAddr; 2],
        certified: &Gatewren,
        pinning: Pinning,
    ) -> Result<Self, Error> {
        let directory = Directory::new()?;
        let listen = free_address()?;
        let own = directory.join("own.pem");
        let [cert, key] =
            ["cert.pem", "key.pem"].map(|name| fs::read_to_string(certified.tls_file(name)));
        fs::write(&own, cert? + &key?)?;
        let text = kind.example();
        let text = text.replace("listen 443", &format!("listen {listen}"));
        let text = text.replace("bind :443", &format!("bind {listen}"));
        let text = text.replace("127.0.0.1:8443", &fronts[0].to_string());
        let text = text.replace("127.0.0.1:8444", &fronts[1].to_string());
        let authority = certified.authority();
        let text = text.replace("/var/lib/gatewren/tls/ca.pem", &shown(&authority));
        let text = text.replace("/etc/ssl/box.example.org.pem", &shown(&own));
        let text = text.replace("/etc/ssl/private/box.example.org.key", &shown(&own));
        let text = text.replace("/etc/haproxy/box.example.org.pem", &shown(&own));
        let file = directory.join("balancer.conf");
        let mut command = pinning.server(Path::new(kind.program()));
        match kind {
            BalancerKind::Nginx => {
                fs::write(&file, in_one_process(&text, &directory))?;
                command.arg("-e").arg(directory.join("nginx.log"));
                command.arg("-c").arg(&file);
            }
            BalancerKind::Haproxy => {
                fs::write(&file, text)?;
                command.arg("-db").arg("-f").arg(&file);
            }
        }
        let process = Running::start(command)?;
        wait_for(listen)?;
        Ok(Self {
            process,
            _directory: directory,
            address: Address::tls(listen, &authority)?,
        })
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Returns nginx's whole file around its example. One process ends with this program; several would outlive it. A sample
/// has more requests on a connection than nginx allows by default.
fn in_one_process(http: &str, directory: &Directory) -> String {
    let place = shown(directory.path());
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {place}/{name};\n"))
        .concat();
    format!(
        "daemon off; master_process off; pid {place}/nginx.pid; error_log {place}/nginx.log;\n\
         events {{}}\nhttp {{\naccess_log off;\nkeepalive_requests 10000000;\n{temporary}{http}\n}}\n"
    )
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns an address of loopback on which nothing listens.
fn free_address() -> Result<SocketAddr, Error> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
