//! Two fronts that share the state, the vault and the helper: each serves the sessions of both.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::helper::Helper;
use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::server::{Directory, Server, has_sqlite3, server};

/// Two fronts, and the helper that they share.
struct TwoFronts {
    a: Server,
    b: Server,
    _helper: Helper,
    home: Directory,
}

impl TwoFronts {
    fn start() -> Self {
        let home = Directory::new();
        let helper = Helper::start(Path::new("/nonexistent"));
        let settings = format!(
            "[sessions]\ninstance = \"a\"\n[helper]\nsocket = \"{}\"\n",
            helper.socket().display()
        );
        let builder = server().policy("admin").directory(&home.join("state"));
        let a = builder.settings(&settings).start();
        let b = a.front("b");
        Self {
            a,
            b,
            _helper: helper,
            home,
        }
    }
}

fn works_for_all(front: &Server) -> bool {
    let log = front.log();
    log.contains("this front does the background work from now on")
}

#[test]
fn ids_begin_with_the_name_of_the_front_and_each_front_serves_both() {
    let fronts = TwoFronts::start();
    let (a, b) = (fronts.a.client(), fronts.b.client());
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (of_a, of_b) = (a.session(version), b.session(version));
        assert!(of_a.id.starts_with("a-") && of_b.id.starts_with("b-"));
        for session in [of_a.carried_on_by(&b), of_b.carried_on_by(&a)] {
            let answer = session.call("whoami", json!({})).send();
            let text = answer.result()["content"][0]["text"].to_string();
            assert!(text.contains("admin"), "{text}");
        }
    }
    let ran = b
        .session("2025-11-25")
        .call("system_shell", json!({ "command": "echo shared" }));
    assert_eq!(ran.send().data()["stdout"], "shared\n");
    assert!(
        fronts
            .b
            .log()
            .contains("another front does the background work")
    );
}

#[test]
fn a_delete_at_one_front_ends_the_session_and_kills_its_command_at_the_other() {
    let fronts = TwoFronts::start();
    let session = fronts.a.client().session("2025-11-25");
    let marker = marker();
    let command = json!({ "command": format!("sleep {marker}"), "timeout_s": LONG_S });
    let running = session.call("system_shell", command).begin();
    wait_until("the command runs", IN_TIME, || {
        !sleeping(&marker).is_empty()
    });
    let elsewhere = session.carried_on_by(&fronts.b.client());
    assert_eq!(elsewhere.delete().status, 204);
    wait_until("its command is killed", IN_TIME, || {
        sleeping(&marker).is_empty()
    });
    drop(running);
    for (front, session) in [("b", &elsewhere), ("a", &session)] {
        assert_eq!(session.request("ping").send().status, 404, "{front}");
    }
}

#[test]
fn a_cancellation_at_one_front_reaches_the_call_of_the_other() {
    let fronts = TwoFronts::start();
    let session = fronts.a.client().session("2025-11-25");
    let marker = marker();
    let command = json!({ "command": format!("sleep {marker}"), "timeout_s": LONG_S });
    let call = session.call("system_shell", command).id(json!("mine"));
    let running = call.begin();
    wait_until("the command runs", IN_TIME, || {
        !sleeping(&marker).is_empty()
    });
    let elsewhere = session.carried_on_by(&fronts.b.client());
    let other = elsewhere.notify("notifications/cancelled", &json!({ "requestId": "other" }));
    assert_eq!(other.status, 202);
    let cancelled = elsewhere.notify("notifications/cancelled", &json!({ "requestId": "mine" }));
    assert_eq!(cancelled.status, 202);
    wait_until("its command is killed", IN_TIME, || {
        sleeping(&marker).is_empty()
    });
    drop(running);
    assert_eq!(session.request("ping").send().result(), json!({}));
}

#[test]
fn an_answer_at_one_front_reaches_the_call_that_asked_at_the_other() {
    let fronts = TwoFronts::start();
    let settings = json!({ "elicitation": { "form": {} } });
    let client = fronts.a.client();
    let session = client.session_with("2025-11-25", settings);
    let call = json!({ "container": "no-such-box" });
    let mut stream = session.call("container_stop", call).open();
    let question = stream.call_message();
    assert_eq!(question["method"], "elicitation/create");
    let elsewhere = session.carried_on_by(&fronts.b.client());
    let answer = json!({ "action": "decline" });
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    assert_eq!(elsewhere.post(reply).send().status, 202);
    let words = stream.call_message()["result"]["content"][0]["text"].to_string();
    assert!(words.contains("did not agree"), "{words}");
}

#[test]
fn a_subscription_at_one_front_is_notified_on_a_stream_of_the_other() {
    if !has_sqlite3() {
        return;
    }
    let fronts = TwoFronts::start();
    let session = fronts.a.client().session("2025-11-25");
    let elsewhere = session.carried_on_by(&fronts.b.client());
    let mut stream = elsewhere.stream();
    session.subscribe("gatewren:///public/shared");
    // The other front learns of it within moments, and then reports every change since.
    fronts.a.put("shared", &json!(1));
    assert_eq!(stream.updated(), "gatewren:///public/shared");
}

#[test]
fn after_a_kill_the_other_front_serves_the_sessions_and_does_the_background_work() {
    let mut fronts = TwoFronts::start();
    let session = fronts.a.client().session("2025-06-18");
    let before = session.call("whoami", json!({})).send().data();
    fronts.a.signal(Signal::SIGKILL);
    fronts.a.ended();
    let elsewhere = session.carried_on_by(&fronts.b.client());
    assert_eq!(elsewhere.call("whoami", json!({})).send().data(), before);
    wait_until("it takes over", IN_TIME, || works_for_all(&fronts.b));

    // The first one comes back beside the other, and serves its sessions again.
    let again = fronts.a.front("a");
    assert!(
        again
            .log()
            .contains("another front does the background work")
    );
    let back = session.carried_on_by(&again.client());
    assert_eq!(back.call("whoami", json!({})).send().data(), before);
    fronts.b.signal(Signal::SIGTERM);
    assert!(fronts.b.ended().success());
    wait_until("it takes over", IN_TIME, || works_for_all(&again));
}

/// What an owner's command says of the fronts.
fn told(fronts: &TwoFronts, words: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(words).args(["--json", "--dir"]);
    let said = command.arg(fronts.home.join("state")).output().unwrap();
    let words = String::from_utf8_lossy(&said.stderr);
    serde_json::from_slice(&said.stdout).expect(&words)
}

/// The names and addresses in the output of `gatewren status`, and whether each does the background work.
fn listed(fronts: &TwoFronts) -> Value {
    told(fronts, &["status"])["fronts"].clone()
}

/// State and words of the finding of `gatewren doctor` about the fronts.
fn found(fronts: &TwoFronts) -> (String, String) {
    let said = told(fronts, &["doctor", "--no-self-test"]);
    let all = said["findings"].as_array().unwrap();
    let of_fronts: Vec<_> = all.iter().filter(|one| one["check"] == "fronts").collect();
    assert_eq!(of_fronts.len(), 1, "{said:#}");
    let member = |name: &str| of_fronts[0][name].as_str().unwrap().to_owned();
    (member("state"), member("seen"))
}

#[test]
fn doctor_finds_a_front_that_does_not_answer() {
    let fronts = TwoFronts::start();
    let good = ("ok".to_owned(), "2 fronts run, and each answers".to_owned());
    assert_eq!(found(&fronts), good);
    fronts.b.signal(Signal::SIGSTOP);
    let (state, seen) = found(&fronts);
    fronts.b.signal(Signal::SIGCONT);
    assert_eq!(state, "problem");
    assert!(
        seen.starts_with("front b runs and does not answer"),
        "{seen}"
    );
}

#[test]
fn status_lists_the_running_fronts_and_which_does_the_background_work() {
    let mut fronts = TwoFronts::start();
    let one = |front: &Server, name: &str, works: bool| {
        let address = front.address().to_string();
        json!({ "name": name, "address": address, "background_work": works })
    };
    let (a, b) = (&fronts.a, &fronts.b);
    assert_eq!(
        listed(&fronts),
        json!([one(a, "a", true), one(b, "b", false)])
    );
    fronts.a.signal(Signal::SIGKILL);
    fronts.a.ended();
    let alone = json!([one(&fronts.b, "b", true)]);
    wait_until("it takes over", IN_TIME, || listed(&fronts) == alone);
}

#[test]
fn two_fronts_cannot_have_the_same_name() {
    let fronts = TwoFronts::start();
    let mut third = fronts.a.launch_front("b");
    assert!(!third.ended().success());
    let log = third.log();
    assert!(
        log.contains("another gatewren with the name b uses"),
        "{log}"
    );
    let mut bad = fronts.a.launch_front("B");
    assert_eq!(bad.ended().code(), Some(2));
}
