//! `nginx` and `HAProxy` in front of two fronts, with the examples of the package: a session stays at its front, and the other
//! one serves it when its front is killed.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::client::Client;
use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::port::free_port;
use crate::support::server::{Directory, Server, has_sqlite3, server};

const NGINX: &str = include_str!("../../packaging/examples/nginx-fronts.conf");
const HAPROXY: &str = include_str!("../../packaging/examples/haproxy-fronts.cfg");

/// A running balancer, which ends with the test.
struct Balancer {
    process: Child,
    address: SocketAddr,
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Both end their workers on this signal.
        let pid = i32::try_from(self.process.id()).unwrap();
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

impl Balancer {
    /// Starts a balancer with an example, in which this replaces the addresses and the files.
    fn start(program: &str, example: &str, home: &Directory, fronts: [&Server; 2]) -> Self {
        let port = free_port();
        let tls = home.join("state").join("tls");
        // The balancer shows the certificate of the fronts, for which it has chain and key in one file.
        let pem = ["cert.pem", "key.pem"].map(|name| fs::read_to_string(tls.join(name)).unwrap());
        fs::write(home.join("own.pem"), pem.concat()).unwrap();
        let [ca, own] =
            [tls.join("ca.pem"), home.join("own.pem")].map(|file| file.display().to_string());
        let listen = format!("127.0.0.1:{port}");
        let [a, b] = fronts.map(|front| front.address().to_string());
        let replaced = [
            ("listen 443", format!("listen {listen}")),
            ("bind :443", format!("bind {listen}")),
            ("127.0.0.1:8443", a),
            ("127.0.0.1:8444", b),
            ("/var/lib/gatewren/tls/ca.pem", ca),
            ("/etc/ssl/box.example.org.pem", own.clone()),
            ("/etc/ssl/private/box.example.org.key", own.clone()),
            ("/etc/haproxy/box.example.org.pem", own),
        ];
        let mut text = example.to_owned();
        for (word, by) in replaced {
            text = text.replace(word, &by);
        }
        let process = match program {
            "nginx" => nginx(&text, home),
            _ => haproxy(&text, home),
        };
        let address = listen.parse().unwrap();
        let started = Self { process, address };
        wait_until("the balancer listens", IN_TIME, || {
            TcpStream::connect(address).is_ok()
        });
        started
    }
}

fn spawn(program: &str, file: &Path, text: &str, args: &[&str]) -> Child {
    fs::write(file, text).unwrap();
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn nginx(http: &str, home: &Directory) -> Child {
    let file = home.join("nginx.conf");
    let place = home.0.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {place}/{name};\n"))
        .concat();
    let text = format!(
        "daemon off; user root; worker_processes 1; pid {place}/nginx.pid; error_log {place}/nginx.log;\n\
         events {{}}\nhttp {{\naccess_log off;\n\
         ssl_protocols TLSv1.2 TLSv1.3;\n{temporary}{http}\n}}\n"
    );
    let log = home.join("nginx.log");
    let args = ["-e", log.to_str().unwrap(), "-c", file.to_str().unwrap()];
    spawn("nginx", &file, &text, &args)
}

fn haproxy(text: &str, home: &Directory) -> Child {
    let file = home.join("haproxy.cfg");
    spawn(
        "haproxy",
        &file,
        text,
        &["-db", "-f", file.to_str().unwrap()],
    )
}

/// Two fronts in one directory.
fn fronts(home: &Directory) -> [Server; 2] {
    let builder = server().policy("operate").directory(&home.join("state"));
    let a = builder.settings("[sessions]\ninstance = \"a\"\n").start();
    let b = a.front("b");
    [a, b]
}

fn sessions_stay_at_their_front(program: &str, example: &str) {
    let found = Command::new(program).arg("-v").output().is_ok();
    if !found || !has_sqlite3() {
        skip(&format!("there is no program {program}"));
        return;
    }
    let home = Directory::new();
    let [mut a, b] = fronts(&home);
    let balancer = Balancer::start(program, example, &home, [&a, &b]);
    let ca = Path::new(a.text("ca"));
    let client = Client::new(balancer.address, ca, a.text("token"));

    // Without a session: the front is chosen by the token, and stays the same.
    let opened = [(); 4].map(|()| client.session("2025-11-25").id);
    let name = |id: &str| id.split_once('-').map(|(name, _)| name.to_owned());
    assert!(
        opened.iter().all(|id| name(id) == name(&opened[0])),
        "{opened:?}"
    );
    assert_eq!(client.modern("tools/list").send().status, 200);

    // With one front stopped, only a balancer that sends the session to the other one gets answers.
    for (session, stopped) in [
        (a.client().session("2025-11-25"), &b),
        (b.client().session("2025-06-18"), &a),
    ] {
        let session = session.carried_on_by(&client);
        stopped.signal(Signal::SIGSTOP);
        for _ in 0..5 {
            assert_eq!(session.request("ping").send().result(), json!({}));
        }
        stopped.signal(Signal::SIGCONT);
    }

    // Events pass at once.
    let session = a.client().session("2025-11-25").carried_on_by(&client);
    session.subscribe("gatewren:///public/balanced");
    let mut stream = session.stream();
    b.put("balanced", &json!(1));
    assert_eq!(stream.updated(), "gatewren:///public/balanced");

    a.signal(Signal::SIGKILL);
    a.ended();
    let answer = session.call("whoami", json!({})).send();
    assert_eq!(answer.data()["policy"], "operate");
    let mut stream = session.stream();
    b.put("balanced", &json!(2));
    assert_eq!(stream.updated(), "gatewren:///public/balanced");
}

#[test]
fn nginx_keeps_a_session_at_its_front_and_the_other_one_takes_over() {
    sessions_stay_at_their_front("nginx", NGINX);
}

#[test]
fn haproxy_keeps_a_session_at_its_front_and_the_other_one_takes_over() {
    sessions_stay_at_their_front("haproxy", HAPROXY);
}
