//! The reason that an agent gives for a call: shown to the person who decides, and no part of the call.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::{add_agent, tell};
use crate::support::consent::{again, asking, question, yes};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Server, server};

/// Returns the reasons of a tool's calls in the audit, the oldest first, each with its arguments.
fn recorded(server: &Server, tool: &str) -> Vec<(Option<String>, String)> {
    let path = Path::new(server.text("state_db")).with_file_name("vault.db");
    let vault = Connection::open(path).unwrap();
    vault.busy_timeout(IN_TIME).unwrap();
    let rows =
        "SELECT reason, arguments FROM audit WHERE kind = 'intent' AND tool = ?1 ORDER BY seq";
    let mut rows = vault.prepare(rows).unwrap();
    let rows = rows.query_map([tool], |row| row.try_into()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Adds an agent with these options, and waits until the server knows it.
fn admit(server: &Server, options: &[&str]) -> Client {
    let added = add_agent(&server.state_dir(), "shy", options);
    let client = server.client().with_token(added["token"].as_str().unwrap());
    wait_until("it comes in", IN_TIME, || {
        client.modern("tools/list").send().status == 200
    });
    client
}

/// Returns the schema of a tool's arguments in the list.
fn listed(client: &Client, tool: &str) -> Value {
    let tools = client.modern("tools/list").send().result()["tools"].clone();
    let tools = tools.as_array().unwrap();
    let found = tools.iter().find(|one| one["name"] == tool).unwrap();
    found["inputSchema"]["properties"].clone()
}

#[test]
fn a_proposal_has_the_reason_beside_its_arguments() {
    let server = server().policy("admin").start();
    let options = ["--policy", "operate", "--mode", "execute=propose"];
    let client = admit(&server, &options);
    assert_eq!(
        listed(&client, "system_shell")["reason"],
        json!({ "type": "string" })
    );
    assert!(listed(&client, "container_start")["reason"].is_null());
    let propose = |reason: Value| {
        let arguments = json!({ "command": "uptime", "reason": reason });
        let change = client.call("system_shell", arguments).send().data();
        change["change"].as_str().unwrap().to_owned()
    };
    let long = format!("  {}", "why ".repeat(100));
    let change = propose(json!(long));
    assert_eq!(propose(json!("another")), change, "it is the same call");
    assert_eq!(propose(Value::Null), change);
    let no_text = json!({ "command": "uptime", "reason": 7 });
    let refused = client.call("system_shell", no_text).send();
    assert!(
        refused.body.contains("reason must be a text"),
        "{}",
        refused.body
    );
    let kept = client
        .call("change_get", json!({ "change": change }))
        .send()
        .data();
    let reason = kept["reason"].as_str().unwrap();
    assert_eq!(reason.chars().count(), 300, "{reason}");
    assert!(reason.starts_with("why why") && reason.ends_with('…'));
    assert_eq!(kept["arguments"], json!({ "command": "uptime" }), "{kept}");
    let rows = recorded(&server, "system_shell");
    let reasons: Vec<_> = rows.iter().map(|(reason, _)| reason.as_deref()).collect();
    assert_eq!(reasons, [Some(reason), Some("another"), None]);
    for (_, arguments) in rows {
        assert_eq!(arguments, r#"{"command":"uptime"}"#);
    }
}

#[test]
fn an_approved_call_runs_without_its_reason_and_is_recorded_with_it() {
    let server = server().policy("admin").start();
    let options = ["--policy", "admin", "--mode", "write=propose"];
    let client = admit(&server, &options);
    let put = json!({ "pointer": "/public/ui/x", "value": 1, "reason": "to see it" });
    let change = client.call("state_put", put).send().data();
    let change = change["change"].as_str().unwrap();
    let args = ["inbox", "approve", change, "--wait"];
    let (applied, _) = tell(&server.state_dir(), &args);
    assert_eq!(applied[0]["status"], "applied", "{applied}");
    let reason = Some("to see it".to_owned());
    let rows = recorded(&server, "state_put");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row.0 == reason), "{rows:?}");
}

#[test]
fn another_reason_in_the_next_round_is_the_same_call() {
    let server = server().policy("admin").start();
    let client = server.client();
    let call = |reason: &str| {
        let target = json!({ "container": "no-such-box", "reason": reason });
        asking(&client, "container_stop", target)
    };
    let asked = question(&call("it hangs").send());
    let failure = again(&call("it really hangs"), &asked, &yes())
        .send()
        .failure();
    assert!(!failure.contains("person"), "{failure}");
    let reasons: Vec<_> = recorded(&server, "container_stop")
        .into_iter()
        .map(|row| row.0.unwrap())
        .collect();
    assert_eq!(reasons, ["it hangs", "it really hangs"]);
}
