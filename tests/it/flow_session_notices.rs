//! `gatewren session notify`: notifications from the owner reach the clients that they are meant for, in both eras.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::command::{refused, tell, words};
use crate::support::server::{Directory, server};
use crate::support::session::Session;
use crate::support::stream::Stream;

const MESSAGE: &str = "notifications/message";
const TOOLS: &str = "notifications/tools/list_changed";

/// Sends a message of this level, and returns the number of sessions.
fn notify(home: &Directory, to: &[&str], level: &str, data: &str) -> Value {
    let params = json!({ "level": level, "data": data }).to_string();
    let args = [&["session", "notify", "--params", &params], to].concat();
    let (said, code) = tell(&home.0, &args);
    assert_eq!((code, &said["sent"]), (Some(0), &json!(true)), "{said}");
    said["sessions"].clone()
}

fn tools_changed(home: &Directory) {
    let (said, _) = tell(&home.0, &["session", "notify", "--all", "--method", TOOLS]);
    assert_eq!(said["sent"], true, "{said}");
}

/// Returns the next message as (level, data).
fn message(stream: &mut Stream) -> (Value, Value) {
    let said = stream.message();
    assert_eq!(said["method"], MESSAGE, "{said}");
    let params = &said["params"];
    assert_eq!(params["logger"], "owner");
    (params["level"].clone(), params["data"].clone())
}

fn name_of(session: &Session) -> String {
    let listed = session.call("session_list", json!({})).send().data();
    let all = listed["sessions"].as_array().unwrap().iter();
    let own: Vec<&Value> = all.filter(|one| one["current"] == true).collect();
    own[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn a_notice_of_the_owner_reaches_a_session_an_agent_or_all() {
    let home = Directory::new();
    let server = server()
        .directory(&home.0)
        .policy("operate")
        .settings("")
        .start();
    let client = server.client();
    let (first, second) = (client.session("2025-11-25"), client.session("2025-03-26"));
    let other = admit(&server, "other", &["--policy", "observe"]);
    let other = other.session("2025-06-18");
    let mut streams = [&first, &second, &other].map(Session::stream);
    let mut listening = client
        .modern("subscriptions/listen")
        .param("notifications", json!({ "toolsListChanged": true }))
        .open();
    let begun = listening.message();
    assert_eq!(begun["method"], "notifications/subscriptions/acknowledged");

    assert_eq!(notify(&home, &[&name_of(&first)], "info", "one"), 1);
    assert_eq!(notify(&home, &["--agent", "try"], "debug", "two"), 2);
    assert_eq!(notify(&home, &["--all"], "alert", "three"), 3);
    let said = |level: &str, data: &str| (json!(level), json!(data));
    assert_eq!(message(&mut streams[0]), said("info", "one"));
    for stream in &mut streams[..2] {
        assert_eq!(message(stream), said("debug", "two"));
    }
    for stream in &mut streams {
        assert_eq!(message(stream), said("alert", "three"));
    }

    // A client that asked for severe messages gets no other ones, and 2026-07-28 has none outside of requests.
    first
        .request("logging/setLevel")
        .param("level", json!("error"))
        .send()
        .result();
    notify(&home, &["--all"], "info", "four");
    tools_changed(&home);
    assert_eq!(streams[0].message()["method"], TOOLS);
    for stream in &mut streams[1..] {
        assert_eq!(message(stream), said("info", "four"));
        assert_eq!(stream.message()["method"], TOOLS);
    }
    let changed = listening.message();
    assert_eq!(changed["method"], TOOLS, "{changed}");

    // Each is on record, and only the server's user can open the socket.
    let calls = words(&home.0, &["audit", "list", "--json"]);
    assert_eq!(calls.matches("session notify").count(), 5, "{calls}");
    let socket = fs::metadata(home.0.join("notices.sock")).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_notice_that_no_client_may_get_is_refused() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let long = json!({ "level": "info", "data": "x".repeat(5000) }).to_string();
    let cases: [(&[&str], &str); 6] = [
        (&["--all"], "level must be"),
        (&["--all", "--params", "[]"], "no JSON object"),
        (&["--all", "--params", &long], "larger than 4096 bytes"),
        (
            &["--all", "--method", "tools/call"],
            "must be notifications/message",
        ),
        (
            &["--agent", "nobody", "--method", TOOLS],
            "there is no agent",
        ),
        (
            &["3f2b8a52-9a0b-4c7e-8a6c-0d6a5a8c1f11", "--method", TOOLS],
            "no open session",
        ),
    ];
    for (args, why) in cases {
        let said = refused(&home.0, &[&["session", "notify"], args].concat());
        assert!(said.contains(why), "{args:?}: {said}");
    }
    let tools = ["session", "notify", "--all", "--method", TOOLS];
    for _ in 0..60 {
        if words_or_error(&home, &tools).contains("more than 60") {
            break;
        }
    }
    let said = words_or_error(&home, &tools);
    assert!(said.contains("more than 60 notices"), "{said}");
    drop(server);
    let said = words_or_error(&home, &tools);
    assert!(said.contains("the server is not running"), "{said}");
}

fn words_or_error(home: &Directory, args: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(args)
        .arg("--dir")
        .arg(&home.0)
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}
