//! `X-Request-Id`: what a client sends is in the log and in the response, and the audit keeps the server's own.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, server};

const HEADER: &str = "x-request-id";

fn id_of(answer: &Answer) -> Option<&str> {
    answer.header(HEADER)
}

/// Returns the rows of the audit.
fn audited(directory: &Directory) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(["audit", "list", "--json", "--dir"]);
    let output = command.arg(&directory.0).output().unwrap();
    let rows = String::from_utf8(output.stdout).unwrap();
    rows.lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

/// Returns the value of a field in the line of the log that has this text.
fn field(log: &str, with: &str, name: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains(with))?;
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[test]
fn a_clients_id_is_logged_beside_the_servers_own_and_never_in_the_audit() {
    let home = Directory::new();
    let server = server().policy("observe").directory(&home.0).start();
    for (at, (way, client)) in server.clients().into_iter().enumerate() {
        let session = client.session("2025-11-25");
        let calls = [
            client.call("whoami", json!({})),
            session.call("whoami", json!({})),
        ];
        for (revision, call) in calls.into_iter().enumerate() {
            let own = format!("Client_{at}.{revision}-id");
            let answer = call.clone().header(HEADER, &own).send();
            assert_eq!((answer.status, id_of(&answer)), (200, Some(&*own)), "{way}");
            let logged = format!("client_request=\"{own}\"");
            wait_until("the call is logged", IN_TIME, || {
                server.log().contains(&logged)
            });
            let reference = field(&server.log(), &logged, "request").unwrap();
            let is_of_call = |row: &Value| row["request"] == json!(reference);
            wait_until("the audit has the server's own", IN_TIME, || {
                audited(&home).iter().any(is_of_call)
            });

            // Another call that claims the reference of this one gets its own.
            let forged = call.clone().header(HEADER, &reference).send();
            assert_eq!(id_of(&forged), Some(&*reference), "{way}");
            let logged = format!("client_request=\"{reference}\"");
            wait_until("it is logged", IN_TIME, || server.log().contains(&logged));
            let rows = audited(&home);
            assert_eq!(rows.iter().filter(|row| is_of_call(row)).count(), 1);

            // Without an id, there is none.
            let logged = server.log().matches("client_request").count();
            assert_eq!(id_of(&call.send()), None, "{way}");
            assert_eq!(server.log().matches("client_request").count(), logged);
        }
    }
    let text = json!(audited(&home)).to_string();
    assert!(!text.contains("Client_"), "{text}");
}

#[test]
fn an_id_that_is_too_long_or_not_visible_is_ignored() {
    let server = server().policy("observe").start();
    let longest = "a".repeat(128);
    let too_long = "b".repeat(129);
    for (way, client) in server.clients() {
        let call = client.call("whoami", json!({}));
        for own in [&longest, "Root=1-67891233-abcdef"] {
            let answer = call.clone().header(HEADER, own).send();
            assert_eq!(id_of(&answer), Some(own), "{way}");
        }
        for other in ["", "hush me", "hush\u{e4}", &too_long] {
            let answer = call.clone().header(HEADER, other).send();
            assert_eq!((answer.status, id_of(&answer)), (200, None), "{way}");
        }
        let twice = call.clone().header(HEADER, "hush").also(HEADER, b"hush");
        assert_eq!(id_of(&twice.send()), None, "{way}");

        // Refused and public requests have theirs too, and a page of an allowed origin may read it.
        let refused = client.modern("tools/list").without("authorization");
        let refused = refused.header(HEADER, "stranger").send();
        assert_eq!((refused.status, id_of(&refused)), (401, Some("stranger")));
        let origin = format!("https://{}", server.address());
        let health = client.request("GET", "/health").header("origin", &origin);
        let health = health.header(HEADER, "probe").send();
        assert_eq!((health.status, id_of(&health)), (200, Some("probe")));
        let exposed = health.header("access-control-expose-headers");
        assert!(exposed.is_some_and(|names| names.contains(HEADER)));

        // An id that looks like a token is sent back, and does not come into the log.
        let token = format!("gw_{}", "Zq7".repeat(14));
        let answer = call.header(HEADER, &token).send();
        assert_eq!(id_of(&answer), Some(&*token), "{way}");
        assert!(!server.log().contains("Zq7Zq7"), "{}", server.log());
    }
    assert!(!server.log().contains("hush"), "{}", server.log());
}

#[test]
fn each_call_of_a_batch_has_the_clients_id_and_its_own_reference() {
    let home = Directory::new();
    let server = server().policy("observe").directory(&home.0).start();
    let session = server.client().session("2025-03-26");
    let call = |id: i64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "whoami", "arguments": {} } })
    };
    let batch = session.post(json!([call(1), call(2), call(3)]));
    let answer = batch.header(HEADER, "batch-7").send();
    assert_eq!((answer.status, id_of(&answer)), (200, Some("batch-7")));
    let logged = || server.log().matches("client_request=\"batch-7\"").count() == 3;
    wait_until("all three are logged", IN_TIME, logged);
    wait_until("three are in the audit", IN_TIME, || {
        audited(&home).len() == 3
    });
    let rows = audited(&home);
    let mut references: Vec<_> = rows.iter().map(|row| row["request"].to_string()).collect();
    references.sort();
    references.dedup();
    assert_eq!(references.len(), 3);
}
