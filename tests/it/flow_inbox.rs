//! The inbox end to end: a proposal waits for the owner, runs once when approved, and otherwise never.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::machine::{IN_TIME, marked, marker, wait_until};
use crate::support::server::{Directory, Server, Shared, server, shared};
use crate::support::tasks::{about, call, knowing, made, task, until};

/// Returns a command of gatewren for this directory.
fn gatewren(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(args).arg("--dir").arg(directory);
    command
}

/// Returns the output of a command as JSON, and its exit code.
fn tell(directory: &Path, args: &[&str]) -> (Value, Option<i32>) {
    let output = gatewren(directory, args).arg("--json").output().unwrap();
    let said = serde_json::from_slice(&output.stdout);
    let said = said.unwrap_or_else(|_| panic!("{args:?}: {output:?}"));
    (said, output.status.code())
}

/// Returns the output of a command for people, and its exit code.
fn print(directory: &Path, args: &[&str]) -> (String, Option<i32>) {
    let output = gatewren(directory, args).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (said, output.status.code())
}

/// A shared server, and the test's own agent on it, which proposes commands.
struct House {
    server: Shared,
    home: PathBuf,
    agent: String,
    client: Client,
}

fn house() -> House {
    let server = shared("operate");
    let home = Path::new(server.text("state_db")).parent().unwrap();
    let home = home.to_owned();
    let (agent, client) = agent_of(&server, &home);
    House {
        server,
        home,
        agent,
        client,
    }
}

/// Adds an agent with the policy `operate`; returns its id, and a client that is authenticated.
fn agent_of(server: &Server, home: &Path) -> (String, Client) {
    let name = format!("agent-{}", marker());
    let (added, _) = tell(home, &["agent", "add", &name, "--policy", "operate"]);
    let client = server.client().with_token(added["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    (added["id"].as_str().unwrap().to_owned(), client)
}

/// A file to which a command appends a line at each run.
struct Counter(Directory);

impl Counter {
    fn new() -> Self {
        Self(Directory::new())
    }

    fn line(&self) -> String {
        format!("echo ran >> {}", self.0.join("ran").display())
    }

    fn runs(&self) -> usize {
        let text = fs::read_to_string(self.0.join("ran")).unwrap_or_default();
        text.lines().count()
    }
}

fn shell(line: &str) -> Value {
    json!({ "command": line, "timeout_s": 300 })
}

/// Proposes a command; returns the change's id.
fn propose(client: &Client, line: &str) -> String {
    let data = client.call("system_shell", shell(line)).send().data();
    assert_eq!(data["status"], "pending", "{data}");
    assert_eq!(data["applied"], false, "{data}");
    data["change"].as_str().unwrap().to_owned()
}

fn show(home: &Path, change: &str) -> Value {
    tell(home, &["inbox", "show", change]).0
}

fn until_status(home: &Path, change: &str, status: &str) -> Value {
    let mut last = Value::Null;
    wait_until(status, IN_TIME, || {
        last = show(home, change);
        last["status"] == status
    });
    last
}

#[test]
fn a_proposal_waits_is_shown_as_it_is_and_runs_once_when_it_is_approved() {
    let House {
        home,
        agent,
        client,
        ..
    } = house();
    let counter = Counter::new();
    let line = format!("{}; echo done", counter.line());
    let change = propose(&client, &line);
    assert_eq!(propose(&client, &line), change, "the same one is the same");
    let (listed, _) = tell(&home, &["inbox", "list", "--agent", &agent]);
    assert_eq!(listed[0]["id"], change.as_str());
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let shown = show(&home, &change);
    assert_eq!(shown["arguments"], shell(&line));
    assert_eq!(
        (&shown["space"], &shown["agent"]),
        (&json!("*"), &json!(agent))
    );
    assert_eq!(counter.runs(), 0);
    let args = ["inbox", "approve", &change, "--note", "go on", "--wait"];
    let (approved, code) = tell(&home, &args);
    assert_eq!((&approved[0]["status"], code), (&json!("applied"), Some(0)));
    let ended = show(&home, &change);
    assert_eq!(ended["result"]["structuredContent"]["stdout"], "done\n");
    assert_eq!(ended["note"], "go on");
    assert_eq!(counter.runs(), 1);
    let (again, code) = tell(&home, &["inbox", "approve", &change]);
    assert_eq!(code, Some(3), "{again}");
    let (again, code) = tell(&home, &["inbox", "reject", &change]);
    assert_eq!(code, Some(3), "{again}");
    assert_eq!(counter.runs(), 1);
}

#[test]
fn what_was_decided_and_by_whom_is_on_record() {
    let House { home, client, .. } = house();
    let change = propose(&client, "true");
    tell(&home, &["inbox", "approve", &change, "--wait"]);
    let shown = show(&home, &change);
    let call = |id: &str| tell(&home, &["audit", "show", id]).0;
    let proposal = call(shown["proposed_in"].as_str().unwrap());
    let run = call(shown["ran_in"].as_str().unwrap());
    assert_eq!(proposal["decision"], "propose", "{proposal}");
    assert_eq!(proposal["status"], "proposed", "{proposal}");
    assert_eq!(run["decision"], "approved", "{run}");
    assert_eq!(run["change"], change.as_str(), "{run}");
    assert_eq!(run["arguments_sha256"], shown["arguments_sha256"], "{run}");
    let by = shown["decided_by"].as_str().unwrap();
    assert!(by.starts_with("local:"), "{by}");
    let (verified, code) = tell(&home, &["audit", "verify"]);
    assert_eq!((&verified["intact"], code), (&json!(true), Some(0)));
}

#[test]
fn a_batch_is_decided_at_once_and_a_rejected_change_never_runs() {
    let House {
        home,
        agent,
        client,
        ..
    } = house();
    let counter = Counter::new();
    for n in 0..3 {
        propose(&client, &format!("{}; true {n}", counter.line()));
    }
    let rejected = propose(&client, &format!("{}; true rejected", counter.line()));
    let args = ["inbox", "reject", &rejected, "--note", "not today"];
    assert_eq!(tell(&home, &args).1, Some(0));
    let (shown, _) = tell(&home, &["inbox", "show", "--all-of", &agent]);
    let digest = shown["as_of"].as_str().unwrap();
    let args = [
        "inbox", "approve", "--all-of", &agent, "--as-of", digest, "--wait",
    ];
    let (approved, code) = tell(&home, &args);
    assert_eq!(code, Some(0), "{approved}");
    assert_eq!(approved.as_array().unwrap().len(), 3);
    assert_eq!(counter.runs(), 3);
    assert_eq!(show(&home, &rejected)["status"], "rejected");
}

#[test]
fn of_many_who_approve_at_once_one_does_and_it_runs_once() {
    let House { home, client, .. } = house();
    let counter = Counter::new();
    let change = propose(&client, &counter.line());
    let approve = || {
        let mut command = gatewren(&home, &["inbox", "approve", &change]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let racers: Vec<Child> = (0..6).map(|_| approve().unwrap()).collect();
    let codes = racers.into_iter().map(|mut r| r.wait().unwrap().code());
    let codes: Vec<_> = codes.collect();
    let of = |code| codes.iter().filter(|c| **c == Some(code)).count();
    assert_eq!((of(0), of(3)), (1, 5), "{codes:?}");
    until_status(&home, &change, "applied");
    assert_eq!(counter.runs(), 1);
}

#[test]
fn what_a_tool_refuses_is_not_proposed_and_what_fails_says_so() {
    let House { home, client, .. } = house();
    let wrong = json!({ "comand": "true" });
    let failure = client.call("system_shell", wrong).send().failure();
    assert!(failure.contains("comand"), "{failure}");
    let unknown = json!({ "command": "true", "user": "no-such-user-here" });
    let data = client.call("system_shell", unknown).send().data();
    let change = data["change"].as_str().unwrap();
    let (approved, code) = tell(&home, &["inbox", "approve", change, "--wait"]);
    assert_eq!((&approved[0]["status"], code), (&json!("failed"), Some(4)));
    assert!(
        approved[0]["words"]
            .as_str()
            .unwrap()
            .contains("no-such-user-here")
    );
}

#[test]
fn what_an_agent_wrote_does_not_reach_the_terminal() {
    let House { home, client, .. } = house();
    let line = "true \u{1b}[2J\u{202e}\nstatus    applied";
    let change = propose(&client, line);
    let (page, _) = print(&home, &["inbox", "show", &change]);
    let (lines, _) = print(&home, &["inbox", "list"]);
    assert!(page.contains(r"true \u{1b}[2J\u{202e}"), "{page}");
    for said in [&page, &lines] {
        assert!(
            !said.contains('\u{1b}') && !said.contains('\u{202e}'),
            "{said}"
        );
        assert!(
            !said
                .lines()
                .any(|line| line.starts_with("status    applied")),
            "{said}"
        );
    }
    tell(&home, &["inbox", "reject", &change]);
}

#[test]
fn for_a_client_that_knows_of_tasks_a_change_is_one_whose_result_is_the_outcome() {
    let House { home, client, .. } = house();
    let id = made(&call(&client, "system_shell", shell("echo approved")).send());
    assert_eq!(task(&client, &id)["status"], "working");
    tell(&home, &["inbox", "approve", &id]);
    let done = until(&client, &id, "completed");
    assert_eq!(done["result"]["structuredContent"]["stdout"], "approved\n");
    let id = made(&call(&client, "system_shell", shell("echo rejected")).send());
    tell(&home, &["inbox", "reject", &id, "--note", "never"]);
    let done = until(&client, &id, "completed");
    assert_eq!(done["result"]["isError"], true);
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("rejected") && text.contains("never"),
        "{text}"
    );
    let id = made(&call(&client, "system_shell", shell("echo cancelled")).send());
    about(&client, "tasks/cancel", &id).send().result();
    until(&client, &id, "cancelled");
    assert_eq!(show(&home, &id)["status"], "withdrawn");
}

#[test]
fn another_agents_change_is_as_if_it_were_not_there() {
    let House {
        server,
        home,
        client,
        ..
    } = house();
    let id = made(&call(&client, "system_shell", shell("true")).send());
    let (_, other) = agent_of(&server, &home);
    let unknown = about(&other, "tasks/get", "chg_0000000000000000").send();
    for method in ["tasks/get", "tasks/cancel"] {
        let answer = about(&other, method, &id).send();
        assert_eq!(answer.verdict(), unknown.verdict());
        assert_eq!(answer.message(), unknown.message());
    }
    assert_eq!(show(&home, &id)["status"], "pending");
}

#[test]
fn a_grant_lets_calls_run_until_it_ends() {
    let House {
        home,
        agent,
        client,
        ..
    } = house();
    let runs = || {
        let data = client.call("system_shell", shell("true")).send().data();
        data.get("change").is_none()
    };
    assert!(!runs());
    let args = [
        "inbox",
        "grant",
        &agent,
        "system_shell",
        "--broad",
        "--for",
        "2h",
    ];
    let (given, code) = tell(&home, &args);
    assert_eq!(code, Some(0), "{given}");
    wait_until("it is granted", IN_TIME, runs);
    let id = given["id"].as_str().unwrap();
    assert_eq!(tell(&home, &["inbox", "ungrant", id]).1, Some(0));
    wait_until("it has ended", IN_TIME, || !runs());
    let change = propose(&client, "true");
    let args = ["inbox", "approve", &change, "--grant", "1s", "--wait"];
    let (approved, code) = tell(&home, &args);
    assert_eq!(code, Some(0), "{approved}");
    assert!(approved[0]["grant"].is_string(), "{approved}");
    let holds = || {
        let (held, _) = tell(&home, &["inbox", "grants"]);
        let mut held = held.as_array().unwrap().iter();
        held.any(|grant| grant["agent"] == agent.as_str())
    };
    wait_until("its time is over", IN_TIME, || !holds());
    assert!(!runs());
}

#[test]
fn a_revoked_agents_changes_are_withdrawn() {
    let House {
        home,
        agent,
        client,
        ..
    } = house();
    let counter = Counter::new();
    let change = propose(&client, &counter.line());
    tell(&home, &["agent", "revoke", &agent]);
    until_status(&home, &change, "withdrawn");
    assert_eq!(tell(&home, &["inbox", "approve", &change]).1, Some(3));
    assert_eq!(counter.runs(), 0);
}

/// Starts a server for one test, whose agent proposes commands.
fn serving(home: &Directory) -> Server {
    server().policy("operate").directory(&home.0).start()
}

#[test]
fn what_was_approved_while_the_server_was_down_runs_when_it_is_back() {
    let home = Directory::new();
    let counter = Counter::new();
    let mut first = serving(&home);
    let client = first.client();
    let change = propose(&client, &counter.line());
    let waiting = made(&call(&client, "system_shell", shell("echo later")).send());
    first.signal(Signal::SIGTERM);
    first.ended();
    assert_eq!(tell(&home.0, &["inbox", "approve", &change]).1, Some(0));
    assert_eq!(counter.runs(), 0);
    let second = serving(&home);
    until_status(&home.0, &change, "applied");
    assert_eq!(counter.runs(), 1);
    let client = second.client();
    assert_eq!(
        task(&client, &waiting)["status"],
        "working",
        "it outlived the restart"
    );
    tell(&home.0, &["inbox", "approve", &waiting]);
    let done = until(&client, &waiting, "completed");
    assert_eq!(done["result"]["structuredContent"]["stdout"], "later\n");
}

#[test]
fn what_ran_when_the_server_was_killed_is_unknown_and_does_not_run_again() {
    let home = Directory::new();
    let (counter, mark) = (Counter::new(), marker());
    let mut first = serving(&home);
    let client = first.client();
    let line = format!("{}; sleep {mark}", counter.line());
    let killed = made(&call(&client, "system_shell", shell(&line)).send());
    tell(&home.0, &["inbox", "approve", &killed]);
    wait_until("it runs", IN_TIME, || {
        counter.runs() == 1 && !marked(&mark).is_empty()
    });
    first.signal(Signal::SIGKILL);
    first.ended();
    wait_until("it is gone with it", IN_TIME, || marked(&mark).is_empty());
    assert_eq!(
        show(&home.0, &killed)["status"],
        "running",
        "as it was left"
    );
    let second = serving(&home);
    let left = until_status(&home.0, &killed, "unknown");
    assert!(
        left["words"].as_str().unwrap().contains("not run again"),
        "{left}"
    );
    let client = second.client();
    let done = until(&client, &killed, "completed");
    assert_eq!(done["result"]["isError"], true);
    // The worker runs a later change: it has skipped the one that was left.
    let next = propose(&client, &format!("{}; true", counter.line()));
    assert_eq!(
        tell(&home.0, &["inbox", "approve", &next, "--wait"]).1,
        Some(0)
    );
    assert_eq!(counter.runs(), 2, "once each");
    assert_eq!(tell(&home.0, &["inbox", "approve", &killed]).1, Some(3));
}

#[test]
fn what_is_about_a_container_that_moved_comes_back_to_the_owner() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("wren");
    let home = Directory::new();
    let builder = server().policy("operate").directory(&home.0);
    let server = builder.lxcpath(containers.lxcpath()).start();
    let client = server.client();
    let stands = |status: &str| {
        let pointer = json!({ "pointer": "/public/packageData/wren/status" });
        let answer = client.call("state_get", pointer).send().result();
        answer["structuredContent"]["value"] == status
    };
    let start = json!({ "container": "wren" });
    client.call("container_start", start.clone()).send().data();
    containers.until_ready("wren");
    wait_until("it is seen to run", IN_TIME, || stands("running"));
    let data = client.call("container_stop", start).send().data();
    let change = data["change"].as_str().unwrap();
    assert_eq!(show(&home.0, change)["target"], "wren");
    containers.tool("lxc-stop", "wren", &["-k"]);
    wait_until("it is seen to be stopped", IN_TIME, || stands("stopped"));
    assert!(show(&home.0, change)["moved_since"].is_u64());
    let approve = ["inbox", "approve", change, "--wait"];
    let (asked, code) = tell(&home.0, &approve);
    assert_eq!((&asked[0]["status"], code), (&json!("pending"), Some(4)));
    assert!(asked[0]["moved"].is_u64(), "{asked}");
    containers.tool("lxc-start", "wren", &[]);
    containers.until_ready("wren");
    wait_until("it is seen to run again", IN_TIME, || stands("running"));
    // It may be seen to change once more before it is done.
    wait_until("it is done", IN_TIME, || {
        tell(&home.0, &approve).1 == Some(0)
    });
    assert_eq!(containers.state("wren"), "STOPPED");
}

#[test]
fn a_batch_says_which_change_is_pending_again_because_another_changed_its_target() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("wren");
    containers.tool("lxc-start", "wren", &[]);
    containers.until_ready("wren");
    let home = Directory::new();
    let builder = server().directory(&home.0);
    let server = builder.lxcpath(containers.lxcpath()).start();
    let (agent, client) = agent_of(&server, &home.0);
    let propose = |tool: &str| {
        let wren = json!({ "container": "wren" });
        let data = client.call(tool, wren).send().data();
        data["change"].as_str().unwrap().to_owned()
    };
    wait_until("it is seen to run", IN_TIME, || {
        let pointer = json!({ "pointer": "/public/packageData/wren/status" });
        let answer = client.call("state_get", pointer).send().result();
        answer["structuredContent"]["value"] == "running"
    });
    let stop = propose("container_stop");
    let restart = propose("container_restart");
    let (shown, _) = tell(&home.0, &["inbox", "show", "--all-of", &agent]);
    let digest = shown["as_of"].as_str().unwrap();
    let all = ["inbox", "approve", "--all-of", &agent, "--as-of", digest];
    let (told, code) = tell(&home.0, &all);
    assert_eq!(code, Some(4), "{told}");
    let of = |id: &str| {
        let all = told.as_array().unwrap();
        let found = all.iter().find(|one| one["id"] == id).unwrap();
        found["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (of(&stop), of(&restart)),
        ("applied".into(), "pending".into()),
        "{told}"
    );
}

#[test]
fn a_listener_hears_how_a_change_that_it_waits_for_has_ended() {
    let House { home, client, .. } = house();
    let ids = ["echo approved", "echo rejected"]
        .map(|line| made(&call(&client, "system_shell", shell(line)).send()));
    let listen = knowing(client.modern("subscriptions/listen"));
    let mut listen = listen
        .param("notifications", json!({ "taskIds": ids }))
        .open();
    let acknowledged = listen.message();
    let granted = &acknowledged["params"]["notifications"]["taskIds"];
    assert_eq!(granted.as_array().unwrap().len(), 2, "{acknowledged}");
    for (id, verb) in ids.iter().zip(["approve", "reject"]) {
        tell(&home, &["inbox", verb, id]);
        let told = listen.message();
        let task = &told["params"];
        assert_eq!(
            (&task["taskId"], &task["status"]),
            (&json!(id), &json!("completed"))
        );
        assert_eq!(task["result"]["isError"], verb == "reject", "{told}");
    }
}

#[test]
fn proposals_end_by_themselves_and_there_are_never_too_many() {
    let home = Directory::new();
    let settings = "[inbox]\nexpires = \"2s\"\nper_agent = 1\n";
    let builder = server().policy("operate").directory(&home.0);
    let server = builder.settings(settings).start();
    let client = server.client();
    let counter = Counter::new();
    let change = propose(&client, &counter.line());
    // On a slow machine the first has ended by now, and the inbox has room.
    let second = client.call("system_shell", shell("true")).send().result();
    let text = second["content"][0]["text"].as_str().unwrap();
    let full = second["isError"] == true && text.contains("inbox is full");
    let over = show(&home.0, &change)["status"] != "pending";
    assert!(
        full || over || second["structuredContent"]["change"].is_string(),
        "{second}"
    );
    until_status(&home.0, &change, "expired");
    assert_eq!(tell(&home.0, &["inbox", "approve", &change]).1, Some(3));
    wait_until("there is room again", IN_TIME, || {
        let answer = client.call("system_shell", shell("true")).send().result();
        answer["isError"] == false
    });
    assert_eq!(counter.runs(), 0);
}
