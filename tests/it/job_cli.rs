//! `gatewren job`: the owner lists the jobs of all agents, and ends them.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::command::tell_by;
use crate::support::machine::{IN_TIME, marker, sleeping, wait_until};
use crate::support::server::{Server, server};

/// Runs the command as the owner.
fn job(server: &Server, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command
        .arg("job")
        .args(words)
        .arg("--config")
        .arg(server.settings_file());
    command.output().unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn begin(server: &Server, arguments: Value) -> String {
    let begun = server.client().call("job_start", arguments).send().data();
    begun["job"].as_str().unwrap().to_owned()
}

#[test]
fn the_owner_sees_waits_for_reads_and_ends_the_jobs_of_agents() {
    let server = server().policy("admin").settings("").start();
    assert_eq!(text(&job(&server, &["list"])), "there are no jobs\n");
    let marked = marker();
    let long = begin(
        &server,
        json!({ "command": format!("echo begun; exec sleep {marked}") }),
    );
    let failed = begin(
        &server,
        json!({ "command": "printf 'a\\033[2Jb\\n'; exit 3" }),
    );

    let all = json_of(&job(&server, &["list", "--json"]));
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert_eq!(
        (&all[0]["job"], &all[1]["job"]),
        (&json!(failed), &json!(long)),
        "the newest first"
    );
    let agents = tell_by(&server.settings_file(), &["agent", "list"]);
    assert_eq!(all[0]["agent"], agents[0]["id"], "{agents}");
    assert_eq!(all[0]["agent_name"], agents[0]["name"]);
    let running = json_of(&job(&server, &["list", "--json", "--running"]));
    assert_eq!(
        (running.as_array().unwrap().len(), &running[0]["job"]),
        (1, &json!(long))
    );
    let table = text(&job(&server, &["list"]));
    assert!(
        table.starts_with("id ") && table.lines().count() == 3,
        "{table}"
    );
    let nobody = job(&server, &["list", "--agent", "nobody"]);
    assert_eq!(nobody.status.code(), Some(1));

    ended_by_itself(&server, &failed);
    ended_by_hand(&server, &long, &marked);
    nobodys(&server);
}

fn ended_by_itself(server: &Server, failed: &str) {
    let short = &failed[..12];
    let waited = job(server, &["wait", short]);
    assert_eq!(waited.status.code(), Some(4));
    assert!(
        text(&waited).ends_with(": failed, exit code 3\n"),
        "{waited:?}"
    );
    assert_eq!(
        json_of(&job(server, &["get", short, "--json"]))["exit_code"],
        3
    );
    assert!(text(&job(server, &["get", short])).contains("state: failed\n"));
    let printed = job(server, &["output", short, "--follow"]);
    assert_eq!(
        (text(&printed).as_str(), printed.status.code()),
        ("a^[[2Jb\n", Some(0))
    );
    let piece = json_of(&job(server, &["output", short, "--json", "--offset", "1"]));
    assert_eq!(
        (&piece["offset"], &piece["ended"]),
        (&json!(1), &json!(true))
    );
}

fn ended_by_hand(server: &Server, long: &str, marked: &str) {
    let still = job(server, &["wait", long, "--timeout", "1"]);
    assert_eq!(still.status.code(), Some(3), "{still:?}");
    assert_eq!(text(&job(server, &["output", long])), "begun\n");
    wait_until("it runs", IN_TIME, || !sleeping(marked).is_empty());
    let ended = job(server, &["cancel", long, "--json"]);
    assert_eq!(
        (ended.status.code(), &json_of(&ended)["state"]),
        (Some(0), &json!("killed"))
    );
    wait_until("it is gone", IN_TIME, || sleeping(marked).is_empty());
    assert_eq!(
        job(server, &["cancel", long]).status.code(),
        Some(3),
        "it had ended"
    );

    let mut audit = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let audit = audit
        .args(["audit", "list", "--config"])
        .arg(server.settings_file());
    let audit = text(&audit.output().unwrap());
    assert_eq!(audit.matches("job cancel").count(), 1, "{audit}");
}

fn nobodys(server: &Server) {
    for none in [
        "job_",
        "abcd",
        "job_00000000000000000000000000000000",
        "../../x",
    ] {
        let missing = job(server, &["get", none]);
        assert_eq!(missing.status.code(), Some(1), "{missing:?}");
        assert!(
            String::from_utf8(missing.stderr)
                .unwrap()
                .contains("there is no job")
        );
    }
}

#[test]
fn without_a_helper_the_owner_is_told_so() {
    let mut server = server().policy("admin").settings("").start();
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(server.ended().success());
    let output = job(&server, &["list"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("helper"), "{said}");
}
