//! A machine for one test, with its own network, mounts, host name, /etc and /run.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns};

use super::machine::{is_root, skip};
use super::server::Directory;

/// Sets up the machine, prints "made", and keeps it until the test ends, even by a crash.
const MAKE: &str = r#"set -e
mount -t sysfs sysfs /sys
ip link set lo up
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true
mkdir "$1/etc"
# A file can go while it is copied: another test has this machine trust an authority, and takes that back.
copy() { cp -a /etc/. "$1/etc"; }
copy "$1" || { sleep 2; copy "$1"; } || { sleep 5; copy "$1"; }
mount --bind "$1/etc" /etc
mount -t tmpfs tmpfs /run
echo made
exec cat > /dev/null"#;

/// The namespaces, and the process that keeps them alive.
pub struct NetworkNamespace {
    keeper: Child,
    /// A directory that is deleted with the machine.
    pub home: Directory,
}

impl NetworkNamespace {
    /// Makes a machine. Skips the test and returns `None` where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        if !is_root() {
            skip("namespaces need root");
            return None;
        }
        if Command::new("ip").arg("-V").output().is_err() {
            skip("there is no program ip");
            return None;
        }
        let home = Directory::new();
        let mut keeper = Command::new("unshare");
        keeper.args([
            "--net",
            "--mount",
            "--uts",
            "--propagation",
            "private",
            "sh",
            "-c",
        ]);
        keeper.args([MAKE, "machine"]).arg(&home.0);
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = keeper.spawn().unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(keeper.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        let machine = Self { keeper, home };
        if said != "made\n" {
            skip("no namespaces can be made here");
            return None;
        }
        Some(machine)
    }

    /// Returns its network namespace.
    pub fn network(&self) -> File {
        File::open(format!("/proc/{}/ns/net", self.keeper.id())).unwrap()
    }

    /// Runs a function in its network namespace.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let network = self.network();
        thread::scope(|scope| {
            let there = scope.spawn(move || {
                setns(network.as_fd(), CloneFlags::CLONE_NEWNET).unwrap();
                act()
            });
            there.join().unwrap()
        })
    }

    /// Returns a command that runs a program on this machine.
    pub fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.keeper.id().to_string(), "-n", "-m", "-u", "--"]);
        command.arg(program);
        command
    }

    /// Runs shell lines on this machine and returns their output. They must succeed.
    pub fn run(&self, lines: &str) -> String {
        let output = self.inside("sh").args(["-ec", lines]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{lines}\n{said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Connects from a given address of this machine.
pub fn connect_from(source: IpAddr, to: SocketAddr) -> TcpStream {
    // The standard library cannot bind a socket before it connects.
    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, socket,
    };
    let family = if source.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let made = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let storage = |address: SocketAddr| SockaddrStorage::from(address);
    bind(made.as_raw_fd(), &storage((source, 0).into())).unwrap();
    connect(made.as_raw_fd(), &storage(to)).unwrap();
    made.into()
}
