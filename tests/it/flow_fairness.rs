//! One agent makes as many calls as it can through the whole server: the others still get their responses.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::Client;
use crate::support::command::{add_agent, tell_by};
use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::request::Running;
use crate::support::server::server;

/// The number of concurrent calls of one agent.
const FLOOD: usize = 150;

/// The share of one agent in the helper.
const SHARE: usize = 16;

/// Another agent's call may take twice its unloaded time, plus the delay that a busy machine adds to any call.
const SLACK: Duration = Duration::from_secs(10);

fn call(client: &Client, command: &str) -> Duration {
    let begun = Instant::now();
    let answer = client.call("system_shell", json!({ "command": command }));
    assert_eq!(answer.send().data()["stdout"], "hi\n");
    begun.elapsed()
}

#[test]
fn while_one_agent_floods_the_server_another_agent_and_the_owner_are_served() {
    // The front admits all calls, so the helper must share its slots.
    let settings = format!("[limits]\nagent_calls = {FLOOD}\n");
    let server = server().policy("admin").settings(&settings).start();
    let added = add_agent(&server.state_dir(), "other", &["--policy", "admin"]);
    let other = server.client();
    let other = other.with_token(added["token"].as_str().unwrap());
    let list = other.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let unloaded = call(&other, "echo hi");

    let marker = marker();
    let long = json!({ "command": format!("exec sleep {marker}"), "timeout_s": LONG_S });
    let flood = server.client().call("system_shell", long);
    let begin = |count: usize| (0..count).map(|_| flood.begin()).collect::<Vec<Running>>();
    let mut running = begin(SHARE);
    wait_until("its share runs", IN_TIME, || {
        sleeping(&marker).len() == SHARE
    });
    running.extend(begin(FLOOD - SHARE));

    let loaded = call(&other, "echo hi");
    assert!(
        loaded <= unloaded * 2 + SLACK,
        "{loaded:?} and without a flood {unloaded:?}"
    );
    let facts = other.call("server_info", json!({})).send().data();
    assert!(facts.is_object(), "{facts}");
    // The flooding agent itself can still read.
    let whoami = server.client().call("whoami", json!({}));
    assert!(whoami.send().data().is_object());
    let jobs = server.client().call("job_list", json!({})).send().data();
    assert!(jobs["jobs"].is_array(), "{jobs}");
    let jobs = tell_by(&server.settings_file(), &["job", "list"]);
    assert!(jobs.is_array(), "{jobs}");
    assert_eq!(sleeping(&marker).len(), SHARE, "they run all the time");
    drop(running);
    wait_until("they are gone with their callers", IN_TIME, || {
        sleeping(&marker).is_empty()
    });
}
