//! An agent follows its proposals: with tools, as a resource, and by notifications.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::add_agent;
use crate::support::container::define;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server, shared};
use crate::support::stream::Stream;

/// Starts a server with the containers of the tests; none of them runs.
fn operating(home: &Directory) -> Server {
    let containers = home.join("containers");
    define(&containers, &["web", "db"]);
    let builder = server().policy("operate").directory(&home.0);
    builder.lxcpath(&containers).start()
}

/// Adds another agent with the same policy.
fn visitor(server: &Server, home: &Directory) -> Client {
    let added = add_agent(&home.0, "visitor", &["--policy", "operate"]);
    let visitor = server.client().with_token(added["token"].as_str().unwrap());
    let list = visitor.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    visitor
}

/// Proposes to stop a container, and returns the change's id.
fn propose(client: &Client, container: &str) -> String {
    let answer = client.call("container_stop", json!({ "container": container }));
    let change = answer.send().data();
    assert_eq!(
        (&change["status"], &change["applied"]),
        (&json!("pending"), &json!(false))
    );
    change["change"].as_str().unwrap().to_owned()
}

fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    client.call(tool, arguments).send().data()
}

fn uri(change: &str) -> String {
    format!("gatewren:///changes/{change}")
}

fn read(client: &Client, change: &str) -> Value {
    let result = client
        .modern("resources/read")
        .uri(&uri(change))
        .send()
        .result();
    let contents = &result["contents"][0];
    assert_eq!(
        (&contents["uri"], &contents["mimeType"]),
        (&json!(uri(change)), &json!("application/json"))
    );
    serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
}

fn listening(client: &Client, changes: &[&str]) -> Stream {
    let uris: Vec<String> = changes.iter().map(|change| uri(change)).collect();
    let filter = json!({ "resourceSubscriptions": uris });
    let listen = client.modern("subscriptions/listen");
    let mut stream = listen.param("notifications", filter).open();
    let honoured = stream.message()["params"]["notifications"].clone();
    assert_eq!(
        honoured,
        json!({ "resourceSubscriptions": uris }),
        "also those that are not there"
    );
    stream
}

#[test]
fn an_agent_sees_what_it_has_proposed_and_takes_it_back() {
    let home = Directory::new();
    let server = operating(&home);
    let client = server.client();
    let first = propose(&client, "web");
    let second = propose(&client, "db");
    let one = call(&client, "change_get", json!({ "change": first }));
    assert_eq!(
        (&one["change"], &one["status"]),
        (&json!(first), &json!("pending"))
    );
    assert_eq!(
        (&one["tool"], &one["target"]),
        (&json!("container_stop"), &json!("web"))
    );
    assert_eq!(one["arguments"], json!({ "container": "web" }));
    assert_eq!(
        (&one["applied"], &one["space"]),
        (&json!(false), &json!("*"))
    );
    assert_eq!(
        read(&client, &first),
        one,
        "tools and resources say the same"
    );
    let ids = |arguments: Value| -> Vec<String> {
        let listed = call(&client, "change_list", arguments);
        let changes = listed["changes"].as_array().unwrap().iter();
        changes
            .map(|change| change["change"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(json!({})), [second.clone(), first.clone()]);

    let session = client.session("2025-11-25");
    let back = session.call("change_withdraw", json!({ "change": first }));
    assert_eq!(back.send().data()["status"], "withdrawn");
    let failure = client
        .call("change_withdraw", json!({ "change": first }))
        .send()
        .failure();
    assert!(failure.contains("already withdrawn"), "{failure}");
    assert_eq!(ids(json!({})), std::slice::from_ref(&second));
    assert_eq!(ids(json!({ "all": true })), [second, first.clone()]);
    assert_eq!(read(&client, &first)["status"], "withdrawn");
}

#[test]
fn another_agents_change_is_as_if_it_were_not_there() {
    let home = Directory::new();
    let server = operating(&home);
    let mine = server.client();
    let theirs = visitor(&server, &home);
    let id = propose(&mine, "web");
    let none = "chg_0123456789abcdef";
    for tool in ["change_get", "change_withdraw"] {
        let said = |change: &str| {
            let failure = theirs
                .call(tool, json!({ "change": change }))
                .send()
                .failure();
            failure.replace(change, "ID")
        };
        assert_eq!(said(&id), said(none), "{tool}");
    }
    let said = |change: &str| {
        let answer = theirs.modern("resources/read").uri(&uri(change)).send();
        answer.rpc()["error"].to_string().replace(change, "ID")
    };
    assert_eq!(said(&id), said(none));
    let session = theirs.session("2025-06-18");
    let said = |change: &str| {
        let read = session.request("resources/read").uri(&uri(change)).send();
        read.rpc()["error"].to_string().replace(change, "ID")
    };
    assert_eq!(said(&id), said(none));
    for change in [id.as_str(), none] {
        session.subscribe(&uri(change));
    }
    assert_eq!(
        call(&theirs, "change_list", json!({ "all": true }))["changes"],
        json!([])
    );
    assert_eq!(
        call(&mine, "change_get", json!({ "change": id }))["status"],
        "pending"
    );
}

#[test]
fn whoever_subscribes_to_a_change_is_told_when_it_changes_and_nobody_else() {
    let home = Directory::new();
    let server = operating(&home);
    let mine = server.client();
    let theirs = visitor(&server, &home);
    let (first, second) = (propose(&mine, "web"), propose(&mine, "db"));
    let foreign = propose(&theirs, "web");

    let mut modern = listening(&mine, &[&second, &first]);
    let mut strange = listening(&theirs, &[&first, &foreign]);
    let session = mine.session("2025-11-25");
    session.subscribe(&uri(&first));
    let mut stateful = session.stream();

    call(&mine, "change_withdraw", json!({ "change": first }));
    assert_eq!(modern.updated(), uri(&first));
    assert_eq!(stateful.updated(), uri(&first));
    assert_eq!(read(&mine, &first)["status"], "withdrawn");
    call(&mine, "change_withdraw", json!({ "change": second }));
    assert_eq!(modern.updated(), uri(&second));
    // A notification about the first change would have come before this one.
    call(&theirs, "change_withdraw", json!({ "change": foreign }));
    assert_eq!(strange.updated(), uri(&foreign));
}

#[test]
fn who_proposes_nothing_has_nothing_to_ask_after() {
    for policy in ["observe", "suggest"] {
        let client = shared(policy).client();
        for tool in ["change_get", "change_list", "change_withdraw"] {
            let answer = client.call(tool, json!({ "change": "x" })).send();
            assert_eq!(answer.verdict(), (200, -32_602), "{policy}: {tool}");
        }
    }
}
