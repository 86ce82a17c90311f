//! The owner's settings apply: hosts, origins, timeouts and limits.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::machine::{IN_TIME, LONG_S, marked, marker, wait_until};
use crate::support::server::{Directory, server};
use crate::support::stream::Stream;

/// The default timeouts, as `etc/gatewren.toml` has them.
const UNSET_HANDSHAKE: Duration = Duration::from_secs(10);
const UNSET_HEADER: Duration = Duration::from_secs(10);
const UNSET_BODY: Duration = Duration::from_secs(30);
const UNSET_DRAIN: Duration = Duration::from_secs(30);

/// Asserts that the timeout of one second applied, and not the default.
fn is_the_bound_that_was_set(begun: Instant, unset: Duration) {
    let took = begun.elapsed();
    assert!((Duration::from_secs(1)..unset).contains(&took), "{took:?}");
}

#[test]
fn hosts_and_origins_that_the_owner_allows_are_let_in() {
    let server = server()
        .settings(
            "[access]\nallowed_hosts = [\"box.example\"]\n\
             allowed_origins = [\"https://chat.example:8000\"]\n",
        )
        .start();
    for (way, client) in server.clients() {
        let list = client.modern("tools/list");
        assert_eq!(
            list.clone().host("box.example:9").send().status,
            200,
            "{way}"
        );
        assert_eq!(
            list.clone().host("other.example").send().status,
            421,
            "{way}"
        );
        let page = "https://chat.example:8000";
        let answer = list.clone().header("origin", page).send();
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some(page),
            "{way}"
        );
        for other in [
            "https://chat.example",
            "http://chat.example:8000",
            "https://chat.example:8001",
        ] {
            assert_eq!(
                list.clone().header("origin", other).send().status,
                403,
                "{way}: {other}"
            );
        }
    }
}

#[test]
fn an_address_among_the_names_is_let_in() {
    let server = server()
        .settings("names = [\"192.168.7.7\", \"fd00::7\"]\n")
        .start();
    for (host, status) in [
        ("192.168.7.7:8443", 200),
        ("[fd00::7]", 200),
        ("192.168.7.8", 421),
        ("[fd00::8]", 421),
    ] {
        let listed = server.client().modern("tools/list").host(host).send();
        assert_eq!(listed.status, status, "{host}");
    }
}

#[test]
fn a_handshake_a_head_and_a_body_that_take_too_long_are_cut_off() {
    let server = server()
        .settings(
            "[limits]\nhandshake_timeout = \"1s\"\nheader_timeout = \"1s\"\nbody_timeout = \"1s\"\n",
        )
        .start();
    let begun = Instant::now();
    let mut silent = TcpStream::connect(server.address()).unwrap();
    silent.set_read_timeout(Some(IN_TIME)).unwrap();
    assert!(matches!(silent.read(&mut [0]), Ok(0) | Err(_)));
    is_the_bound_that_was_set(begun, UNSET_HANDSHAKE);

    let mut slow = server.client().raw();
    let begun = Instant::now();
    slow.say(b"GET /health HTTP/1.1\r\nHost: local");
    slow.answer();
    is_the_bound_that_was_set(begun, UNSET_HEADER);

    let mut slow = server.client().raw();
    let begun = Instant::now();
    let token = server.text("token");
    slow.say(
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {token}\r\nContent-Length: 10\r\n\r\n{{"
        )
        .as_bytes(),
    );
    let (status, text) = slow.answer();
    assert_eq!(status, 408, "{text}");
    is_the_bound_that_was_set(begun, UNSET_BODY);
}

#[test]
fn a_stop_that_takes_longer_than_it_may_is_exit_1_and_leaves_nothing() {
    let mut server = server()
        .policy("admin")
        .settings("[limits]\ndrain = \"1s\"\n")
        .start();
    let marker = marker();
    let line = format!("(setsid sleep {marker} &) ; sleep {marker}");
    let _call = server
        .client()
        .call(
            "system_shell",
            json!({ "command": line, "timeout_s": LONG_S }),
        )
        .begin();
    wait_until("it runs", IN_TIME, || marked(&marker).len() >= 2);
    let begun = Instant::now();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(1));
    is_the_bound_that_was_set(begun, UNSET_DRAIN);
    wait_until("nothing is left", IN_TIME, || marked(&marker).is_empty());
}

#[test]
fn connections_beyond_the_cap_wait_for_their_turn() {
    let server = server().settings("[limits]\nmax_connections = 2\n").start();
    let client = server.client();
    // Without an identity the server would close them to make room.
    let [first, second] = [(); 2].map(|()| {
        let mut connection = client.connection();
        let list = client.modern("tools/list");
        assert_eq!(list.send_over(&mut connection).status, 200);
        connection
    });
    let waiting = client.modern("tools/list").begin();
    std::thread::sleep(Duration::from_millis(500));
    assert!(!waiting.is_finished());
    drop(first);
    assert_eq!(waiting.finish().status, 200);
    drop(second);
}

#[test]
fn an_agent_in_a_hurry_is_429_and_another_is_not() {
    let home = Directory::new();
    drop(server().policy("observe").directory(&home.0).start());
    let server = server()
        .directory(&home.0)
        .settings("[limits]\nagent_rate = 5\n")
        .start();
    let list = server.client().modern("tools/list");
    let begun = Instant::now();
    let mut passed = 0;
    let refused = loop {
        let answer = list.send_once();
        if answer.status != 200 {
            break answer;
        }
        passed += 1;
    };
    // Five at once and one more every twelve seconds, which a slow machine may reach.
    let most = 5 + begun.elapsed().as_secs() / 12;
    assert!((5..=most).contains(&passed), "{passed}, {most} at most");
    assert_eq!(
        (refused.status, refused.json()["error"].as_str()),
        (429, Some("agent_rate"))
    );
    assert!(
        refused
            .header("retry-after")
            .unwrap()
            .parse::<u32>()
            .unwrap()
            >= 1
    );
    let other = fs::read_to_string(home.join("token-observe")).unwrap();
    let other = server.client().with_token(other.trim());
    assert_eq!(other.modern("tools/list").send_once().status, 200);
}

#[test]
fn l9_all_agents_together_have_no_more_streams_than_they_may() {
    let home = Directory::new();
    drop(server().policy("observe").directory(&home.0).start());
    let limits = "[limits]\nmax_streams = 3\nmax_streams_per_agent = 2\n";
    let server = server().directory(&home.0).settings(limits).start();
    let other = fs::read_to_string(home.join("token-observe")).unwrap();
    let listen = |client: &crate::support::client::Client| {
        let filter = json!({ "resourceSubscriptions": [] });
        client
            .modern("subscriptions/listen")
            .param("notifications", filter)
            .open()
    };
    let (one, other) = (server.client(), server.client().with_token(other.trim()));
    let mut open: Vec<Stream> = vec![listen(&one), listen(&one)];
    assert_eq!(listen(&one).status(), 503, "one agent has had its share");
    open.push(listen(&other));
    assert_eq!(
        open.iter().map(Stream::status).collect::<Vec<_>>(),
        [200; 3]
    );
    assert_eq!(listen(&other).status(), 503, "the house is full");
}

#[test]
fn the_health_check_is_where_the_owner_puts_it_and_tells_the_version_only_if_asked() {
    let server = server().settings("").start();
    let plain = json!({ "status": "ok" });
    let with_version = json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") });
    for (way, client) in server.clients() {
        let get = |path: &str| {
            let answer = client.request("GET", path).without("authorization").send();
            (answer.status, answer.json())
        };
        server.reload_with("");
        assert_eq!(get("/health"), (200, plain.clone()), "{way}");
        assert_eq!(get("/-/ready").0, 404, "{way}");
        server.reload_with("[access]\nhealth_path = \"/-/ready\"\nhealth_version = true\n");
        assert_eq!(get("/-/ready"), (200, with_version.clone()), "{way}");
        assert_eq!(get("/health").0, 404, "{way}");
        let answer = client.request("POST", "/-/ready").send();
        assert_eq!(answer.status, 405, "{way}");
    }
    let before = server.log();
    for own in [
        "/mcp",
        "/owner/inbox",
        "/login",
        "/",
        "/.well-known/mcp",
        "/a b",
    ] {
        let file = server.settings_file();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("/-/ready", own)).unwrap();
        let mut check = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        let checked = check.args(["check", "--config"]).arg(&file).output();
        let checked = checked.unwrap();
        let words = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(2), "{own}: {words}");
        assert!(
            words.contains("access.health_path must be a path"),
            "{words}"
        );
        fs::write(&file, text).unwrap();
    }
    assert_eq!(server.log(), before);
}
