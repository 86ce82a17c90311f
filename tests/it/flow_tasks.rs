//! Long commands as tasks: they outlive their request and the server, and end when cancelled.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::machine::{IN_TIME, marked, marker, sleeping, wait_until};
use crate::support::server::{Directory, Server, server};
use crate::support::tasks::{TASKS, about, call, knowing, made, task, until};

/// Commands become tasks at once.
const AT_ONCE: &str = "[tasks]\nafter = \"0s\"\n";

/// Starts a server whose agent may run commands, with these settings, in a directory that stays.
fn serving(home: &Directory, settings: &str) -> Server {
    let builder = server().policy("admin").directory(&home.0);
    builder.settings(settings).start()
}

fn shell(line: &str) -> Value {
    json!({ "command": line, "timeout_s": 300 })
}

/// Returns a shell line that starts a process in a new session and a foreground one.
fn stubborn(marker: &str) -> String {
    format!("echo before; (setsid sleep {marker} &) ; sleep {marker}")
}

/// Starts a command as a task, and waits until it runs.
fn running(client: &Client, marker: &str) -> String {
    let id = made(&call(client, "system_shell", shell(&stubborn(marker))).send());
    wait_until("both run", IN_TIME, || sleeping(marker).len() == 2);
    id
}

fn is_gone(marker: &str) {
    wait_until("all are gone", IN_TIME, || marked(marker).is_empty());
}

/// Returns the output of a gatewren command as JSON.
fn tell(directory: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(args).arg("--json").arg("--dir").arg(directory);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

fn audit_rows(home: &Directory) -> u64 {
    let said = tell(&home.0, &["audit", "verify"]);
    assert_eq!(said["intact"], true);
    said["rows"].as_u64().unwrap()
}

#[test]
fn k2_a_command_becomes_a_task_after_its_time_and_not_before() {
    let home = Directory::new();
    let server = serving(&home, "[tasks]\nafter = \"3s\"\n");
    let client = server.client();
    let declared = client.modern("server/discover").send().result();
    assert_eq!(declared["capabilities"]["extensions"][TASKS], json!({}));
    let mark = marker();
    let begun = Instant::now();
    let id = running(&client, &mark);
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert_eq!(task(&client, &id)["status"], "working");
    about(&client, "tasks/cancel", &id).send();
    is_gone(&mark);
}

#[test]
fn k5_the_result_is_the_one_that_the_call_would_have_had() {
    let home = Directory::new();
    let server = serving(&home, AT_ONCE);
    let client = server.client();
    let line = shell("echo out; echo err >&2; exit 3");
    let mut waited = client.call("system_shell", line.clone()).send().result();
    let id = made(&call(&client, "system_shell", line).send());
    let mut later = until(&client, &id, "completed")["result"].take();
    for result in [&mut waited, &mut later] {
        result["content"].take();
        result["structuredContent"]["duration_ms"].take();
    }
    assert_eq!(waited, later);
    assert_eq!(later["structuredContent"]["stdout"], "out\n");
    assert_eq!(later["structuredContent"]["exit_code"], 3);
}

#[test]
fn k4_what_was_made_is_there_after_kill_9_and_what_ran_has_failed() {
    let home = Directory::new();
    let mut server = serving(&home, AT_ONCE);
    let client = server.client();
    let done = made(&call(&client, "system_shell", shell("echo done")).send());
    let before = until(&client, &done, "completed");
    let mark = marker();
    let ran = running(&client, &mark);
    server.signal(Signal::SIGKILL);
    server.ended();
    is_gone(&mark);
    let server = serving(&home, AT_ONCE);
    let client = server.client();
    assert_eq!(task(&client, &done), before, "not a word of it has changed");
    let failed = task(&client, &ran);
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["error"]["code"], -32_603);
    let words = failed["statusMessage"].as_str().unwrap();
    assert!(words.contains("restarted"), "{words}");
    about(&client, "tasks/cancel", &ran).send().result();
    assert_eq!(task(&client, &ran), failed, "that is its end");
}

#[test]
fn a_stop_kills_what_runs_and_writes_that_down() {
    let home = Directory::new();
    let mut server = serving(&home, AT_ONCE);
    let client = server.client();
    let mark = marker();
    let id = running(&client, &mark);
    let before = audit_rows(&home);
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    is_gone(&mark);
    assert_eq!(audit_rows(&home), before + 1, "the outcome");
    let server = serving(&home, AT_ONCE);
    let ended = task(&server.client(), &id);
    assert_eq!(ended["status"], "completed", "{ended}");
    let outcome = &ended["result"]["structuredContent"];
    assert_eq!(outcome["killed_because"], "shutdown", "{outcome}");
    assert_eq!(outcome["stdout"], "before\n", "what it printed is not lost");
}

#[test]
fn k8_to_cancel_a_task_is_to_kill_its_whole_tree_and_that_is_on_record() {
    let home = Directory::new();
    let server = serving(&home, AT_ONCE);
    let client = server.client();
    let before = audit_rows(&home);
    let (mark, other) = (marker(), marker());
    let (id, kept) = (running(&client, &mark), running(&client, &other));
    about(&client, "tasks/cancel", &id).send().result();
    is_gone(&mark);
    until(&client, &id, "cancelled");
    assert!(!marked(&other).is_empty(), "the other goes on");
    assert_eq!(task(&client, &kept)["status"], "working");
    // Two intents, one outcome.
    wait_until("they are on record", IN_TIME, || {
        audit_rows(&home) == before + 3
    });
    about(&client, "tasks/cancel", &kept).send().result();
    is_gone(&other);
}

#[test]
fn a_command_in_a_container_is_a_task_that_can_be_cancelled() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("wren");
    let (home, path) = (Directory::new(), containers.lxcpath().display());
    let server = serving(&home, &format!("{AT_ONCE}[lxc]\nlxcpath = \"{path}\"\n"));
    let client = server.client();
    let start = client.call("container_start", json!({ "container": "wren" }));
    start.send().data();
    let mark = marker();
    let mut arguments = shell(&stubborn(&mark));
    arguments["container"] = json!("wren");
    let id = made(&call(&client, "container_shell", arguments).send());
    wait_until("both run", IN_TIME, || sleeping(&mark).len() == 2);
    assert_eq!(task(&client, &id)["status"], "working");
    about(&client, "tasks/cancel", &id).send().result();
    is_gone(&mark);
    until(&client, &id, "cancelled");
    assert_eq!(containers.state("wren"), "RUNNING");
}

#[test]
fn k12_a_task_lives_as_long_as_it_says_and_no_longer() {
    let home = Directory::new();
    let server = serving(&home, "[tasks]\nafter = \"0s\"\nttl = \"6s\"\n");
    let client = server.client();
    let begun = Instant::now();
    let done = call(&client, "system_shell", shell("echo done")).send();
    assert_eq!(done.result()["ttlMs"], 6_000);
    let done = made(&done);
    let mark = marker();
    let ran = made(&call(&client, "system_shell", shell(&stubborn(&mark))).send());
    let gone = |id: &str| about(&client, "tasks/get", id).send().verdict() == (200, -32_602);
    wait_until("its time is over", IN_TIME, || gone(&done));
    assert!(begun.elapsed() >= Duration::from_secs(6));
    wait_until("the other's too", IN_TIME, || gone(&ran));
    is_gone(&mark);
}

#[test]
fn k12_another_agents_task_is_as_if_it_never_was() {
    let home = Directory::new();
    let server = serving(&home, AT_ONCE);
    let mine = server.client();
    let visitor = tell(&home.0, &["agent", "add", "visitor", "--policy", "admin"]);
    let theirs = mine
        .elsewhere()
        .with_token(visitor["token"].as_str().unwrap());
    let list = theirs.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let mark = marker();
    let id = running(&mine, &mark);
    let done = made(&call(&mine, "system_shell", shell("echo done")).send());
    until(&mine, &done, "completed");
    let never = "task_00000000000000000000000000000000";
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unknown = about(&theirs, method, never);
        let unknown = unknown.param("inputResponses", json!({})).send();
        assert_eq!(unknown.verdict(), (200, -32_602), "{method}");
        for id in [&id, &done] {
            let answer = about(&theirs, method, id);
            let answer = answer.param("inputResponses", json!({})).send();
            assert_eq!(answer.body, unknown.body, "{method}");
        }
    }
    let filter = json!({ "taskIds": [id, done, never] });
    let listen = knowing(theirs.modern("subscriptions/listen"));
    let first = listen.param("notifications", filter).open().message();
    assert_eq!(first["params"]["notifications"], json!({}));
    assert!(!marked(&mark).is_empty(), "it was not cancelled");
    about(&mine, "tasks/cancel", &id).send().result();
    is_gone(&mark);
}

#[test]
fn a_revoked_agents_task_is_ended() {
    let home = Directory::new();
    let server = serving(&home, AT_ONCE);
    let visitor = tell(&home.0, &["agent", "add", "visitor", "--policy", "admin"]);
    let client = server.client();
    let client = client.with_token(visitor["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let mark = marker();
    running(&client, &mark);
    tell(
        &home.0,
        &["agent", "revoke", visitor["id"].as_str().unwrap()],
    );
    is_gone(&mark);
}

#[test]
fn without_room_for_a_task_the_call_is_answered_when_it_ends() {
    let home = Directory::new();
    let server = serving(&home, "[tasks]\nafter = \"0s\"\nper_agent = 1\n");
    let client = server.client();
    let mark = marker();
    let id = running(&client, &mark);
    let answer = call(&client, "system_shell", shell("echo here")).send();
    assert_eq!(answer.data()["stdout"], "here\n");
    assert_eq!(answer.result()["resultType"], "complete");
    let gone = marker();
    let waiting = call(&client, "system_shell", shell(&stubborn(&gone))).begin();
    wait_until("it runs", IN_TIME, || marked(&gone).len() >= 2);
    drop(waiting);
    is_gone(&gone);
    assert!(!marked(&mark).is_empty(), "a task needs no client");
    about(&client, "tasks/cancel", &id).send().result();
    until(&client, &id, "cancelled");
    let answer = call(&client, "system_shell", shell("echo here")).send();
    assert_eq!(
        answer.data()["stdout"],
        "here\n",
        "an ended task has its place until its time is over"
    );
}
