//! The owner adds and revokes agents while the server runs, and every call is in the audit.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::command::{add_agent, tell};
use crate::support::machine::{IN_TIME, LONG_S, marked, marker, wait_until};
use crate::support::server::{Directory, Server, server};

fn add(directory: &Path, policy: &str) -> Value {
    add_agent(directory, "visitor", &["--policy", policy])
}

/// Prints a figure for the reader; a slow machine does not fail the test.
fn took(what: &str, since: Instant) {
    let line = format!("measured: {what} {} ms\n", since.elapsed().as_millis());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn admin_in(home: &Directory) -> Server {
    server().policy("admin").directory(&home.0).start()
}

#[test]
fn an_agent_that_is_added_comes_in_and_has_nothing_of_anothers() {
    let home = Directory::new();
    let server = admin_in(&home);
    let visitor = add(&home.0, "observe");
    let client = server
        .client()
        .with_token(visitor["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let data = client.call("whoami", json!({})).send().data();
    assert_eq!(
        (&data["name"], &data["policy"]),
        (&json!("visitor"), &json!("observe"))
    );
    assert_eq!(data["agent"], visitor["id"]);
    let session = server.client().session("2025-11-25");
    let stolen = session.carried_on_by(&client);
    assert_eq!(stolen.request("ping").send().status, 404);
    assert_eq!(stolen.delete().status, 404);
    assert_eq!(
        session.request("ping").send().status,
        200,
        "the owner of it still has it"
    );
}

#[test]
fn l6_an_agent_that_is_revoked_is_out_with_its_streams_and_calls() {
    let home = Directory::new();
    let server = admin_in(&home);
    let visitor = add(&home.0, "admin");
    let client = server
        .client()
        .with_token(visitor["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let session = client.session("2025-11-25");
    let mut get = session.stream();
    let filter = json!({ "resourceSubscriptions": [] });
    let mut listen = client
        .modern("subscriptions/listen")
        .param("notifications", filter)
        .open();
    listen.message();
    let (_, code) = tell(
        &home.0,
        &["agent", "revoke", visitor["id"].as_str().unwrap()],
    );
    let revoked = Instant::now();
    assert_eq!(code, Some(0));
    get.ends();
    assert_eq!(listen.message()["result"]["resultType"], "complete");
    listen.ends();
    took("a revoked agent's streams end after", revoked);
    wait_until("it is refused", IN_TIME, || list.send().status == 401);
    assert_eq!(session.request("ping").send().status, 401);
    assert_eq!(server.client().modern("tools/list").send().status, 200);
}

#[test]
fn a_revoked_agents_running_command_is_killed() {
    let home = Directory::new();
    let server = admin_in(&home);
    let visitor = add(&home.0, "admin");
    let client = server
        .client()
        .with_token(visitor["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let marks = [marker(), marker()];
    let shell = |mark: &String| json!({ "command": format!("sleep {mark}"), "timeout_s": LONG_S });
    let modern = client.call("system_shell", shell(&marks[0])).begin();
    let session = client.session("2025-06-18");
    let stateful = session.call("system_shell", shell(&marks[1])).begin();
    for mark in &marks {
        wait_until("it runs", IN_TIME, || !marked(mark).is_empty());
    }
    tell(
        &home.0,
        &["agent", "revoke", visitor["id"].as_str().unwrap()],
    );
    for mark in &marks {
        wait_until("it is killed", IN_TIME, || marked(mark).is_empty());
    }
    for call in [modern, stateful] {
        // The stream may already be open, with its status sent.
        let (status, code) = call.finish().verdict();
        assert!(
            [200, 401].contains(&status) && code == -32_600,
            "{status} {code}"
        );
    }
}

#[test]
fn each_running_call_of_a_revoked_agents_sessions_is_answered() {
    /// The race under test was lost in one try of four.
    const SESSIONS: usize = 12;
    let home = Directory::new();
    let server = admin_in(&home);
    let visitor = add(&home.0, "admin");
    let client = server
        .client()
        .with_token(visitor["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let calls = (0..SESSIONS).map(|_| {
        let mark = marker();
        let arguments = json!({ "command": format!("sleep {mark}"), "timeout_s": LONG_S });
        let session = client.session("2025-11-25");
        let call = session.call("system_shell", arguments);
        (mark, call.accept("text/event-stream").open())
    });
    let calls: Vec<_> = calls.collect();
    for (mark, _) in &calls {
        wait_until("it runs", IN_TIME, || !marked(mark).is_empty());
    }
    tell(
        &home.0,
        &["agent", "revoke", visitor["id"].as_str().unwrap()],
    );
    for (_, mut stream) in calls {
        assert_eq!(stream.call_message()["error"]["code"], -32_600);
        stream.ends();
    }
}

#[test]
fn every_call_is_on_record_also_those_that_were_cut_short() {
    let home = Directory::new();
    let server = admin_in(&home);
    let client = server.client();
    let rows = || {
        tell(&home.0, &["audit", "verify"]).0["rows"]
            .as_u64()
            .unwrap()
    };
    let before = rows();
    client.call("whoami", json!({})).send().data();
    client
        .call("system_shell", json!({ "command": 5 }))
        .send()
        .failure();
    let mark = marker();
    let call = client.call(
        "system_shell",
        json!({ "command": format!("sleep {mark}"), "timeout_s": LONG_S }),
    );
    let running = call.begin();
    wait_until("it runs", IN_TIME, || !marked(&mark).is_empty());
    drop(running);
    // One row for the call that only reads, an intent and an outcome for the others.
    wait_until("five rows", IN_TIME, || rows() == before + 5);
    let (said, code) = tell(&home.0, &["audit", "verify"]);
    assert_eq!((said["intact"].as_bool(), code), (Some(true), Some(0)));
}
