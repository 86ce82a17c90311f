//! Agents that may run commands or make lasting changes without approval: `doctor` and the log at the start name them.

use serde_json::Value;

use crate::support::command::tell;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

const WORDS: &str = "without a proposal or a confirmation";

fn started(home: &Directory) -> Server {
    server().policy("operate").directory(&home.0).start()
}

/// Returns the finding of `doctor`, if there is one.
fn finding(home: &Directory) -> Option<Value> {
    let said = tell(&home.0, &["doctor", "--no-self-test"]).0;
    let findings = said["findings"].as_array().unwrap();
    let is_it = |one: &&Value| one["seen"].as_str().unwrap().contains(WORDS);
    let mut found = findings.iter().filter(is_it);
    let first = found.next().cloned();
    assert!(found.next().is_none(), "one line for all agents: {said}");
    first
}

fn change(home: &Directory, args: &[&str]) {
    assert_eq!(tell(&home.0, args).1, Some(0), "{args:?}");
}

#[test]
fn doctor_and_the_start_name_agents_that_need_no_approval() {
    let home = Directory::new();
    let server = started(&home);
    assert_eq!(finding(&home), None, "operate proposes what lasts");
    assert!(!server.log().contains(WORDS), "{}", server.log());
    for name in ["boss", "chief"] {
        change(&home, &["agent", "add", name, "--policy", "admin"]);
    }
    let found = finding(&home).expect("an admin runs commands");
    assert_eq!(found["state"], "note", "it changes no exit code");
    let seen = found["seen"].as_str().unwrap();
    assert!(
        seen.contains("boss (admin), chief (admin) may run commands"),
        "{seen}"
    );
    let remedy = found["remedy"].as_str().unwrap().to_owned();
    drop(server);

    let server = started(&home);
    wait_until("the start names them", IN_TIME, || {
        server.log().contains(WORDS)
    });
    let log = server.log();
    let line = log.lines().find(|line| line.contains(WORDS)).unwrap();
    assert!(
        line.contains("INFO") && line.contains("boss (admin)"),
        "{line}"
    );
    assert!(line.contains(&remedy), "{line}");

    // The remedy, as it is printed, for each agent.
    for name in ["boss", "chief"] {
        let found = finding(&home).expect("there is one left");
        let remedy = found["remedy"].as_str().unwrap().to_owned();
        let args: Vec<&str> = remedy.split(' ').skip(1).collect();
        assert_eq!(args[..3], ["agent", "edit", name], "{remedy}");
        change(&home, &args);
    }
    assert_eq!(finding(&home), None);

    // One tool that the owner allows by name is enough, and so is a class.
    let exception = ["agent", "edit", "boss", "--tool", "system_shell=allow"];
    change(&home, &exception);
    let found = finding(&home).expect("a tool is allowed by name");
    let seen = found["seen"].as_str().unwrap();
    assert!(
        seen.starts_with("boss (admin with exceptions) may"),
        "{seen}"
    );
    let remedy = found["remedy"].as_str().unwrap();
    let expected = "gatewren agent edit boss --tool system_shell=confirm-owner";
    assert_eq!(remedy, expected);
    change(&home, &["agent", "revoke", "boss"]);
    assert_eq!(finding(&home), None, "it has no access any more");
}
