//! From start to stop: how the server ends, what becomes of calls, and its helper's death.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::machine::{is_alive, marked, marker, wait_until};
use crate::support::server::{Directory, Server, server};

/// How long the kernel and the helper have to end everything.
const GONE: Duration = Duration::from_secs(20);

/// How long a stop may take when a command that does not end is under way: its grace is 5 s.
const STOPPED: Duration = Duration::from_secs(28);

fn admin() -> Server {
    server().policy("admin").start()
}

/// A line that leaves a process out of its session and one in front.
fn stubborn(marker: &str) -> String {
    format!("echo before; (setsid sleep {marker} &) ; sleep {marker}")
}

fn runs(marker: &str) {
    wait_until("both run", GONE, || marked(marker).len() >= 2);
}

fn is_gone(marker: &str) {
    wait_until("all are gone", GONE, || marked(marker).is_empty());
}

#[test]
fn a_server_with_nothing_to_do_stops_at_once() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut server = admin();
        let helper = server.children();
        assert_eq!(helper.len(), 1);
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0));
        assert!(!is_alive(helper[0]));
        assert_eq!(
            server.rest_of_output(),
            "",
            "one line on stdout and no more"
        );
    }
}

#[test]
fn an_idle_connection_does_not_hold_up_a_stop() {
    let mut server = admin();
    let client = server.client();
    let mut kept = [client.connection(), client.clone().http2().connection()];
    for (connection, client) in kept.iter_mut().zip([client.clone(), client.http2()]) {
        client.modern("tools/list").send_over(connection);
    }
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_stop_ends_streams_finishes_short_calls_and_kills_long_ones() {
    let mut server = admin();
    let client = server.client();
    let session = client.session("2025-11-25");
    let mut get = session.stream();
    let filter = json!({ "resourceSubscriptions": ["gatewren:///public/quiet"] });
    let mut listen = client
        .modern("subscriptions/listen")
        .param("notifications", filter)
        .open();
    listen.message();
    let shell = |line: &str| json!({ "command": line });
    let (short, long, orphan) = (marker(), marker(), marker());
    let finishes = client
        .call(
            "system_shell",
            shell(&format!("echo {short}; sleep 1; echo done")),
        )
        .begin();
    let is_killed = client.call("system_shell", shell(&stubborn(&long))).begin();
    drop({
        let running = session
            .call("system_shell", shell(&stubborn(&orphan)))
            .begin();
        runs(&orphan);
        running
    });
    runs(&long);
    let begun = Instant::now();
    server.signal(Signal::SIGTERM);
    let last = listen.message();
    assert_eq!(last["result"]["resultType"], "complete");
    get.ends();
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "streams end first"
    );
    assert!(
        finishes.finish().data()["stdout"]
            .as_str()
            .unwrap()
            .ends_with("done\n")
    );
    let killed = is_killed.finish().data();
    assert_eq!(killed["killed_because"], "shutdown", "{killed}");
    assert_eq!(killed["stdout"], "before\n", "what it printed is not lost");
    assert_eq!(server.ended().code(), Some(0));
    assert!(marked(&long).is_empty() && marked(&orphan).is_empty());
}

#[test]
fn a_server_that_stops_takes_no_new_connections() {
    let server = admin();
    let marker = marker();
    let call = server
        .client()
        .call("system_shell", json!({ "command": stubborn(&marker) }))
        .begin();
    runs(&marker);
    server.signal(Signal::SIGTERM);
    wait_until("it stops listening", GONE, || {
        std::net::TcpStream::connect(server.address()).is_err()
    });
    call.finish();
}

#[test]
fn a_second_signal_ends_it_at_once_with_1() {
    let mut server = admin();
    let marker = marker();
    let _call = server
        .client()
        .call("system_shell", json!({ "command": stubborn(&marker) }))
        .begin();
    runs(&marker);
    server.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(1));
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    is_gone(&marker);
}

#[test]
fn a_server_that_is_killed_leaves_nothing() {
    let mut server = admin();
    let marker = marker();
    let helper = server.children()[0];
    let client = server.client();
    let _call = client
        .call("system_shell", json!({ "command": stubborn(&marker) }))
        .begin();
    runs(&marker);
    server.signal(Signal::SIGKILL);
    server.ended();
    is_gone(&marker);
    wait_until("the helper is gone", GONE, || !is_alive(helper));
}

#[test]
fn a_helper_that_is_killed_is_an_error_once_and_comes_back() {
    let server = admin();
    let client = server.client();
    for _ in 0..2 {
        let marker = marker();
        let call = client
            .call("system_shell", json!({ "command": stubborn(&marker) }))
            .begin();
        runs(&marker);
        let helper = server.children()[0];
        kill(Pid::from_raw(helper), Signal::SIGKILL).unwrap();
        let failure = call.finish().failure();
        assert!(failure.contains("helper"), "{failure}");
        is_gone(&marker);
        wait_until("another helper", GONE, || {
            server.children().iter().any(|pid| *pid != helper)
        });
        let begun = Instant::now();
        loop {
            let answer = client
                .call("system_shell", json!({ "command": "echo again" }))
                .send();
            let result = answer.result();
            if result["isError"] == false {
                assert_eq!(result["structuredContent"]["stdout"], "again\n");
                break;
            }
            assert!(begun.elapsed() < GONE, "{result}");
        }
    }
}

#[test]
fn a_reload_keeps_streams_and_connections() {
    let server = admin();
    let client = server.client();
    let session = client.session("2025-11-25");
    let mut stream = session.stream();
    let mut connection = client.connection();
    client.modern("tools/list").send_over(&mut connection);
    server.signal(Signal::SIGHUP);
    wait_until("it says so", GONE, || server.log().contains("reloaded"));
    stream.stays_quiet(Duration::from_millis(300));
    assert_eq!(
        client
            .modern("tools/list")
            .send_over(&mut connection)
            .status,
        200
    );
    assert_eq!(client.modern("tools/list").send().status, 200);
}

/// A service manager that listens.
struct Manager {
    socket: UnixDatagram,
    path: std::path::PathBuf,
    _home: Directory,
}

impl Manager {
    fn new() -> Self {
        let home = Directory::new();
        let path = home.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(GONE)).unwrap();
        Self {
            socket,
            path,
            _home: home,
        }
    }

    fn notice(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a notice in time");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// The time until a notice has this line; the others may come before.
    fn hears(&self, line: &str) -> Duration {
        let begun = Instant::now();
        while !self.notice().lines().any(|said| said == line) {
            assert!(begun.elapsed() < GONE, "{line} did not come");
        }
        begun.elapsed()
    }
}

#[test]
fn a_service_manager_hears_ready_alive_reloading_and_stopping() {
    let manager = Manager::new();
    let mut server = server()
        .env("NOTIFY_SOCKET", manager.path.to_str().unwrap())
        .env("WATCHDOG_USEC", "900000")
        .start();
    manager.hears("READY=1");
    for _ in 0..3 {
        let waited = manager.hears("WATCHDOG=1");
        assert!(waited < Duration::from_millis(900), "{waited:?}");
    }
    server.signal(Signal::SIGHUP);
    manager.hears("RELOADING=1");
    manager.hears("READY=1");
    server.signal(Signal::SIGTERM);
    manager.hears("STOPPING=1");
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_server_that_stands_still_gives_no_sign_of_life() {
    let manager = Manager::new();
    let server = server()
        .env("NOTIFY_SOCKET", manager.path.to_str().unwrap())
        .env("WATCHDOG_USEC", "600000")
        .start();
    manager.hears("WATCHDOG=1");
    server.signal(Signal::SIGSTOP);
    manager
        .socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut bytes = [0; 4096];
    while manager.socket.recv(&mut bytes).is_ok() {}
    manager
        .socket
        .set_read_timeout(Some(Duration::from_millis(1200)))
        .unwrap();
    assert!(manager.socket.recv(&mut bytes).is_err());
    server.signal(Signal::SIGCONT);
    manager.socket.set_read_timeout(Some(GONE)).unwrap();
    manager.hears("WATCHDOG=1");
}
