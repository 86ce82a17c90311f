//! One agent asks the helper for as much as it can: the other agents, the owner and the observer are still served.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::helper::{Call, Helper, LONG_MS, host};
use crate::support::machine::{IN_TIME, marked, marker, wait_until};

/// The most operations of one agent that may change something at the same time, in the helper.
const SHARE: usize = 16;

fn helper() -> Helper {
    Helper::start(Path::new("/nonexistent"))
}

fn agent(id: &str) -> Value {
    json!({ "agent": id })
}

/// Starts commands of one agent that run until they are killed.
fn flood(helper: &Helper, id: &str, marker: &str, count: usize) -> Vec<Call> {
    let operation = host(&format!("exec sleep {marker}"));
    let ask = |_| helper.ask_for(&agent(id), &operation);
    (0..count).map(ask).collect()
}

fn succeeds(helper: &Helper, requester: &Value, operation: &Value) {
    let finished = helper.ask_for(requester, operation).finish();
    assert_eq!(
        finished.ending,
        json!({ "exited": { "code": 0 } }),
        "{requester}: {operation}"
    );
}

#[test]
fn while_one_agent_asks_for_150_long_commands_all_others_are_served() {
    let helper = helper();
    let marker = marker();
    let running = flood(&helper, "greedy", &marker, SHARE);
    wait_until("its share runs", IN_TIME, || marked(&marker).len() == SHARE);
    let waiting = flood(&helper, "greedy", &marker, 150 - SHARE);
    let (echo, ping) = (host("echo hi"), json!({ "do": "ping" }));
    for requester in [agent("other"), json!("owner"), json!("observer")] {
        succeeds(&helper, &requester, &echo);
        succeeds(&helper, &requester, &ping);
    }
    // It can still read.
    succeeds(&helper, &agent("greedy"), &ping);
    assert_eq!(marked(&marker).len(), SHARE, "its share runs all the time");
    for call in waiting {
        let (code, words) = call.finish().refusal();
        assert_eq!(code, "busy");
        assert!(
            words.contains("16 commands and changes of this agent"),
            "{words}"
        );
    }
    drop(running);
    wait_until(
        "those that ran are gone with their callers",
        IN_TIME,
        || marked(&marker).is_empty(),
    );
}

#[test]
fn who_names_nobody_has_no_more_than_one_agent() {
    let helper = helper();
    let marker = marker();
    let operation = host(&format!("exec sleep {marker}"));
    let ask = |_| helper.ask(&operation, LONG_MS);
    let _running: Vec<_> = (0..SHARE).map(ask).collect();
    wait_until("its share runs", IN_TIME, || marked(&marker).len() == SHARE);
    succeeds(&helper, &agent("other"), &host("true"));
    assert_eq!(helper.run(&operation).refusal().0, "busy");
}

#[test]
fn a_command_that_waits_runs_when_one_of_its_agent_has_ended() {
    let helper = helper();
    let marker = marker();
    let mut flooding = flood(&helper, "greedy", &marker, SHARE);
    wait_until("its share runs", IN_TIME, || marked(&marker).len() == SHARE);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            succeeds(&helper, &agent("greedy"), &host("true"));
            ended.load(Ordering::SeqCst)
        });
        ended.store(true, Ordering::SeqCst);
        drop(flooding.pop());
        assert!(waiting.join().unwrap(), "it ran before there was a place");
    });
}

#[test]
fn a_caller_that_hangs_up_while_it_waits_leaves_the_queue() {
    let helper = helper();
    let marker = marker();
    let flooding = flood(&helper, "greedy", &marker, SHARE);
    wait_until("its share runs", IN_TIME, || marked(&marker).len() == SHARE);
    // More than may wait at once, one after the other.
    for _ in 0..100 {
        drop(helper.ask_for(&agent("greedy"), &host("true")));
    }
    drop(flooding);
    wait_until("it is served again", IN_TIME, || {
        let finished = helper.ask_for(&agent("greedy"), &host("true")).finish();
        finished.ending == json!({ "exited": { "code": 0 } })
    });
}
