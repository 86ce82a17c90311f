//! From start to stop: how the server exits, what happens to calls, and the helper's death.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::machine::{IN_TIME, LONG_S, is_alive, marked, marker, sleeping, wait_until};
use crate::support::notify_socket::NotifySocket;
use crate::support::server::{Directory, Server, server};

fn admin() -> Server {
    server().policy("admin").start()
}

/// Returns a shell line that starts a process in a new session and a foreground one.
fn stubborn(marker: &str) -> String {
    format!("echo before; (setsid sleep {marker} &) ; sleep {marker}")
}

fn runs(marker: &str) {
    wait_until("both run", IN_TIME, || sleeping(marker).len() == 2);
}

fn is_gone(marker: &str) {
    wait_until("all are gone", IN_TIME, || marked(marker).is_empty());
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
fn a_connection_that_was_accepted_is_answered_although_the_server_stops() {
    // As long as the test may take on a busy machine.
    let limits = "[limits]\ndrain = \"5m\"\nheader_timeout = \"5m\"\n";
    for http2 in [false, true] {
        let mut server = server().policy("admin").settings(limits).start();
        let client = server.client();
        let client = if http2 { client.http2() } else { client };
        let mut fresh = client.connection();
        server.signal(Signal::SIGTERM);
        wait_until("it stops", IN_TIME, || server.log().contains("stopping"));
        let answer = client.modern("tools/list").send_over(&mut fresh);
        assert_eq!(answer.status, 200, "{http2}");
        assert_eq!(server.ended().code(), Some(0));
    }
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
    let shell = |line: &str| json!({ "command": line, "timeout_s": LONG_S });
    let (short, long, orphan) = (Directory::new(), marker(), marker());
    let is_killed = client.call("system_shell", shell(&stubborn(&long))).begin();
    drop({
        let running = session
            .call("system_shell", shell(&stubborn(&orphan)))
            .begin();
        runs(&orphan);
        running
    });
    runs(&long);
    // This one starts last, because it ends by itself.
    let begun = short.join("begun");
    let line = format!("touch {}; sleep 1; echo done", begun.display());
    let finishes = client.call("system_shell", shell(&line)).begin();
    wait_until("the short one runs", IN_TIME, || begun.exists());
    server.signal(Signal::SIGTERM);
    let last = listen.message();
    assert_eq!(last["result"]["resultType"], "complete");
    get.ends();
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
        .call(
            "system_shell",
            json!({ "command": stubborn(&marker), "timeout_s": LONG_S }),
        )
        .begin();
    runs(&marker);
    server.signal(Signal::SIGTERM);
    wait_until("it stops listening", IN_TIME, || {
        std::net::TcpStream::connect(server.address()).is_err()
    });
    call.finish();
}

#[test]
fn a_second_signal_ends_it_at_once_with_1() {
    // Otherwise the server would wait longer than the test for a body that does not come.
    let limits = "[limits]\ndrain = \"5m\"\nbody_timeout = \"5m\"\n";
    let mut server = server().policy("admin").settings(limits).start();
    let mut unfinished = server.client().raw();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {}\r\nContent-Length: 10\r\n\r\n{{",
        server.text("token")
    );
    unfinished.say(head.as_bytes());
    let marker = marker();
    let _call = server
        .client()
        .call(
            "system_shell",
            json!({ "command": stubborn(&marker), "timeout_s": LONG_S }),
        )
        .begin();
    runs(&marker);
    server.signal(Signal::SIGTERM);
    // Two signals at the same moment count as one.
    wait_until("it stops", IN_TIME, || server.log().contains("stopping"));
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(1));
    is_gone(&marker);
}

#[test]
fn a_server_that_is_killed_leaves_nothing() {
    let mut server = admin();
    let marker = marker();
    let helper = server.children()[0];
    let client = server.client();
    let _call = client
        .call(
            "system_shell",
            json!({ "command": stubborn(&marker), "timeout_s": LONG_S }),
        )
        .begin();
    runs(&marker);
    server.signal(Signal::SIGKILL);
    server.ended();
    is_gone(&marker);
    wait_until("the helper is gone", IN_TIME, || !is_alive(helper));
}

#[test]
fn a_helper_that_is_killed_is_an_error_once_and_comes_back() {
    let server = admin();
    let client = server.client();
    for _ in 0..2 {
        let marker = marker();
        let call = client
            .call(
                "system_shell",
                json!({ "command": stubborn(&marker), "timeout_s": LONG_S }),
            )
            .begin();
        runs(&marker);
        let helper = server.children()[0];
        kill(Pid::from_raw(helper), Signal::SIGKILL).unwrap();
        let failure = call.finish().failure();
        assert!(failure.contains("helper"), "{failure}");
        is_gone(&marker);
        wait_until("another helper", IN_TIME, || {
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
            assert!(begun.elapsed() < IN_TIME, "{result}");
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
    wait_until("it says so", IN_TIME, || server.log().contains("reloaded"));
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

#[test]
fn a_service_manager_hears_ready_alive_reloading_and_stopping() {
    let notify = NotifySocket::new();
    let mut server = server()
        .env("NOTIFY_SOCKET", notify.path())
        .env("WATCHDOG_USEC", "900000")
        .start();
    notify.expect("READY=1");
    for _ in 0..3 {
        notify.expect("WATCHDOG=1");
    }
    server.signal(Signal::SIGHUP);
    notify.expect("RELOADING=1");
    notify.expect("READY=1");
    server.signal(Signal::SIGTERM);
    notify.expect("STOPPING=1");
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_server_that_stands_still_gives_no_sign_of_life() {
    let notify = NotifySocket::new();
    let server = server()
        .env("NOTIFY_SOCKET", notify.path())
        .env("WATCHDOG_USEC", "600000")
        .start();
    notify.expect("WATCHDOG=1");
    server.signal(Signal::SIGSTOP);
    wait_until("it stands still", IN_TIME, || server.stands_still());
    notify
        .socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut bytes = [0; 4096];
    while notify.socket.recv(&mut bytes).is_ok() {}
    notify
        .socket
        .set_read_timeout(Some(Duration::from_millis(1200)))
        .unwrap();
    assert!(notify.socket.recv(&mut bytes).is_err());
    server.signal(Signal::SIGCONT);
    notify.socket.set_read_timeout(Some(IN_TIME)).unwrap();
    notify.expect("WATCHDOG=1");
}
