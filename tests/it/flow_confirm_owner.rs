//! The mode confirm-owner: the owner decides in the inbox, and the client takes no part in the decision.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::{add_agent, tell};
use crate::support::consent::{again, asking, yes};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::request::Request;
use crate::support::server::{Directory, Server, server};

struct House {
    home: Directory,
    server: Server,
    /// The client of an agent with the mode confirm-owner for commands.
    client: Client,
}

fn house() -> House {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let options = ["--policy", "admin", "--mode", "execute=confirm-owner"];
    let added = add_agent(&home.0, "careful", &options);
    let client = server.client();
    let client = client.with_token(added["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    House {
        home,
        server,
        client,
    }
}

fn shell(line: &str) -> Value {
    json!({ "command": line })
}

/// Waits for the one pending change, and returns its id.
fn waiting(home: &Path) -> String {
    let mut found = Value::Null;
    wait_until("it is in the inbox", IN_TIME, || {
        found = tell(home, &["inbox", "list"]).0;
        found[0]["id"].is_string()
    });
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    found[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn what_persists_is_decided_by_the_owner_though_the_client_could_answer() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let file = home.join("written");
    let write = json!({ "path": file.to_str().unwrap(), "text": "x" });
    let call = asking(&server.client(), "file_write", write);
    let answer = call.send();
    let invented = again(&call, &answer.result(), &yes()).send();
    assert!(!file.exists(), "an answer that the client invents runs it");
    let change = answer.data();
    assert_eq!(change["applied"], false, "{change}");
    assert_eq!(invented.data()["change"], change["change"]);
}

#[test]
fn a_client_that_hears_progress_waits_for_the_owner_and_gets_the_result() {
    let House {
        home,
        client,
        server: _server,
    } = house();
    let session = client.session("2025-11-25");
    let calls: [Request; 2] = [
        client.call("system_shell", shell("echo modern")),
        session.call("system_shell", shell("echo stateful")),
    ];
    for (call, word) in calls.into_iter().zip(["modern", "stateful"]) {
        let running = call.progress(json!("p")).begin();
        let change = waiting(&home.0);
        assert!(!running.is_finished());
        tell(&home.0, &["inbox", "approve", &change, "--wait"]);
        let result = running.finish().result();
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(result["structuredContent"]["stdout"], format!("{word}\n"));
    }
    let running = client.call("system_shell", shell("echo no"));
    let running = running.progress(json!("p")).begin();
    let change = waiting(&home.0);
    tell(&home.0, &["inbox", "reject", &change]);
    let failure = running.finish().failure();
    assert!(failure.contains("rejected"), "{failure}");
}

#[test]
fn a_client_that_hears_no_progress_gets_the_change_at_once() {
    let House {
        home,
        client,
        server: _server,
    } = house();
    let change = client.call("system_shell", shell("echo hi")).send().data();
    assert_eq!(change["status"], "pending", "{change}");
    assert_eq!(change["change"], waiting(&home.0).as_str());
    let look = json!({ "change": change["change"] });
    let seen = client.call("change_get", look).send().data();
    assert_eq!(seen["status"], "pending", "{seen}");
}
