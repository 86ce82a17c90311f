//! Names of agents: each belongs to one agent, wherever it is made, and the names of older versions go on working.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::command::{add_agent, refused, tell, words};
use crate::support::history::connect;
use crate::support::server::{Directory, server};

/// Returns the directory of a server that has run and exited.
fn visited() -> Directory {
    let home = Directory::new();
    drop(server().directory(&home.0).start());
    home
}

/// Returns the names and policies of the agents that are not revoked.
fn living(home: &Directory) -> Vec<(String, String)> {
    let (list, _) = tell(&home.0, &["agent", "list"]);
    let living = list.as_array().unwrap().iter();
    let living = living.filter(|row| row["state"] != "revoked");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    living
        .map(|row| (text(&row["name"]), text(&row["policy"])))
        .collect()
}

#[test]
fn a_second_agent_of_a_name_is_refused_with_what_to_do() {
    let home = visited();
    add_agent(&home.0, "laptop", &[]);
    let said = refused(&home.0, &["agent", "add", "laptop", "--policy", "admin"]);
    let hint = format!("gatewren agent rotate laptop --dir {}", home.0.display());
    let expected = format!(
        "gatewren: there is already an agent \"laptop\" (observe, never used). New token for it: {hint}\n"
    );
    assert_eq!(said, expected);
    let mut rotate = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let rotate = rotate.args(hint.split(' ').skip(1)).output().unwrap();
    assert!(rotate.status.success(), "the hint works: {rotate:?}");
    let said = refused(&home.0, &["pair", "laptop"]);
    assert!(said.contains("already an agent \"laptop\""), "{said}");

    add_agent(&home.0, "phone", &[]);
    let said = refused(&home.0, &["agent", "edit", "phone", "--name", "laptop"]);
    assert!(said.contains("already an agent \"laptop\""), "{said}");
    for command in [
        &["agent", "add", "Mac mini"][..],
        &["agent", "edit", "phone", "--name", "Mac mini"],
        &["pair", "Mac mini"],
    ] {
        let said = refused(&home.0, command);
        assert!(said.contains("for example mac-mini"), "{command:?}: {said}");
    }
    words(&home.0, &["agent", "revoke", "laptop"]);
    words(&home.0, &["agent", "edit", "phone", "--name", "laptop"]);
    words(&home.0, &["agent", "add", "phone"]);
    let names: Vec<_> = living(&home).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["try", "laptop", "phone"]);
}

#[test]
fn names_of_an_older_vault_go_on_working() {
    let home = visited();
    let old =
        "INSERT INTO agent (id, name, token_sha256, preset, overrides, space, created_ms) VALUES
        ('agent_0000000000000001', 'twin', randomblob(32), 'observe', '{}', '*', 1),
        ('agent_0000000000000002', 'twin', randomblob(32), 'observe', '{}', '*', 2),
        ('agent_0000000000000003', 'Mac mini', randomblob(32), 'observe', '{}', '*', 3)";
    connect(&home.join("vault.db")).execute(old, []).unwrap();
    let said = refused(&home.0, &["agent", "show", "twin"]);
    let ids = ["agent_0000000000000001", "agent_0000000000000002"];
    assert!(ids.iter().all(|id| said.contains(id)), "{said}");
    words(&home.0, &["agent", "edit", ids[0], "--policy", "suggest"]);
    words(&home.0, &["agent", "rotate", ids[1]]);
    let same = ["--name", "Mac mini", "--rate", "5"];
    words(
        &home.0,
        &[&["agent", "edit", "Mac mini"], &same[..]].concat(),
    );
    words(&home.0, &["agent", "rotate", "Mac mini"]);
    words(&home.0, &["agent", "edit", ids[0], "--name", "first-twin"]);
    words(&home.0, &["agent", "show", "twin"]);
    words(
        &home.0,
        &["agent", "edit", "Mac mini", "--name", "mac-mini"],
    );
    let expected = [
        ("first-twin", "suggest"),
        ("twin", "observe"),
        ("mac-mini", "observe"),
    ];
    for (name, policy) in expected {
        let (shown, _) = tell(&home.0, &["agent", "show", name]);
        assert_eq!(shown["policy"], json!(policy), "{name}: {shown}");
    }
}

#[test]
fn a_trial_has_an_agent_of_its_own_name_for_each_policy_and_keeps_it() {
    let home = Directory::new();
    let trial = |policy: &str| {
        let server = server().policy(policy).directory(&home.0).start();
        let who = server.client().call("whoami", json!({})).send().data();
        (server.text("agent").to_owned(), who["policy"].clone())
    };
    assert_eq!(trial("operate"), ("try".to_owned(), json!("operate")));
    let observer = ("try-observe".to_owned(), json!("observe"));
    assert_eq!(trial("observe"), observer);
    assert_eq!(trial("operate").0, "try");
    fs::remove_file(home.join("token-observe")).unwrap();
    assert_eq!(trial("observe"), observer, "its token was lost");
    let expected = [("try", "operate"), ("try-observe", "observe")];
    let expected = expected.map(|(name, policy)| (name.to_owned(), policy.to_owned()));
    assert_eq!(living(&home), expected);

    // Older versions gave all of them the same name.
    let older = "UPDATE agent SET name = 'try' WHERE name = 'try-observe'";
    let changed = connect(&home.join("vault.db")).execute(older, []).unwrap();
    assert_eq!(changed, 1);
    assert_eq!(trial("observe"), ("try".to_owned(), json!("observe")));
    fs::remove_file(home.join("token-observe")).unwrap();
    assert_eq!(trial("observe"), ("try".to_owned(), json!("observe")));
    assert_eq!(living(&home).len(), 2);
}
