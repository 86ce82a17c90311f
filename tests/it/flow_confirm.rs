//! Calls that need the consent of the client's user: asked in both eras, and refused by any answer but a clear yes.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::command::{add_agent, words};
use crate::support::consent::{again, agreed, asked_on, asking, question, say, yes};
use crate::support::container::defined;
use crate::support::machine::{IN_TIME, is_root, wait_until};
use crate::support::server::{Directory, Server, server, shared};

/// Returns all kinds of answers that are not consent.
fn refusals() -> Vec<(&'static str, Value)> {
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    vec![
        ("did not agree", json!({ "action": "decline" })),
        ("did not agree", accept(json!({ "run": false }))),
        ("without an answer", json!({ "action": "cancel" })),
        ("an invalid answer", accept(json!({}))),
        ("an invalid answer", accept(json!({ "run": "true" }))),
        ("an invalid answer", json!({ "action": "accept" })),
        ("an invalid answer", json!({ "run": true })),
    ]
}

fn target() -> Value {
    json!({ "container": "no-such-box" })
}

/// Returns a target: a container that is defined and does not run.
fn there() -> Value {
    json!({ "container": "wren" })
}

/// Returns whether the call ran: it failed only because the container does not exist, or because it needs root.
fn ran(failure: &str) -> bool {
    let reached = if is_root() {
        "no-such-box"
    } else {
        "need root"
    };
    failure.contains(reached) && !failure.contains("person")
}

/// Returns the decision and the outcome of a tool's calls from the audit, the oldest first.
fn audited(server: &Server, tool: &str) -> Vec<(String, Option<String>)> {
    let path = Path::new(server.text("state_db")).with_file_name("vault.db");
    let vault = Connection::open(path).unwrap();
    vault.busy_timeout(IN_TIME).unwrap();
    let mut rows = vault
        .prepare(
            "SELECT i.decision, o.outcome FROM audit i
             LEFT JOIN audit o ON o.call = i.call AND o.kind = 'outcome'
             WHERE i.kind = 'intent' AND i.tool = ?1 ORDER BY i.seq",
        )
        .unwrap();
    let rows = rows.query_map([tool], |row| row.try_into()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn shows(params: &Value) {
    let message = params["message"].as_str().unwrap();
    for words in [
        "agent \"try\"",
        "container_stop (Stop a container)",
        "class disrupt",
        "the container no-such-box",
        r#"{"container":"no-such-box"}"#,
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let form = &params["requestedSchema"];
    assert_eq!(params["mode"], "form");
    assert_eq!(form["properties"]["run"]["type"], "boolean", "{form}");
    assert_eq!(form["required"], json!(["run"]));
}

#[test]
fn a_yes_lets_a_call_run_once_in_2026() {
    let server = server().policy("admin").start();
    let client = server.client();
    let call = asking(&client, "container_stop", target());
    let asked = question(&call.send());
    shows(&asked["inputRequests"]["confirm"]["params"]);
    let agreed = again(&call, &asked, &yes());
    let failure = agreed.send().failure();
    assert!(ran(&failure), "{failure}");
    let failure = agreed.send().failure();
    assert!(
        failure.contains("belongs to no open question"),
        "it was used: {failure}"
    );

    for (words, answer) in refusals() {
        let asked = question(&call.send());
        let failure = again(&call, &asked, &answer).send().failure();
        assert!(failure.contains(words), "{answer}: {failure}");
        let failure = again(&call, &asked, &yes()).send().failure();
        assert!(
            failure.contains("belongs to no open question"),
            "{answer}: {failure}"
        );
    }
    let silent = question(&call.send());
    let failure = call
        .clone()
        .param("requestState", silent["requestState"].clone());
    assert!(failure.send().failure().contains("an invalid answer"));

    let used = ("confirm", "refused");
    let mut expected = vec![("confirm", "accepted"), ("confirmed", "failed"), used];
    for (words, _) in refusals() {
        expected.push(match words {
            "did not agree" => ("confirm", "declined"),
            "without an answer" => ("confirm", "dismissed"),
            _ => ("confirm", "malformed"),
        });
        expected.push(used);
    }
    expected.push(("confirm", "malformed"));
    let mut rows = Vec::new();
    wait_until("it is all on record", IN_TIME, || {
        rows = audited(&server, "container_stop");
        rows.iter().all(|(_, outcome)| outcome.is_some())
    });
    let rows: Vec<(&str, &str)> = rows
        .iter()
        .map(|(decision, outcome)| (decision.as_str(), outcome.as_deref().unwrap()))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn a_yes_is_good_for_its_call_and_its_agent_alone() {
    let server = server().policy("admin").start();
    let client = server.client();
    let call = asking(&client, "container_stop", target());
    let asked = question(&call.send());
    let refused = |answer: Answer| assert_eq!(answer.verdict(), (200, -32_602), "{answer:?}");

    let other = asking(&client, "container_stop", json!({ "container": "another" }));
    refused(again(&other, &asked, &yes()).send());
    let other = asking(&client, "container_restart", target());
    refused(again(&other, &asked, &yes()).send());
    let more = json!({ "container": "no-such-box", "grace_s": 0 });
    refused(again(&asking(&client, "container_stop", more), &asked, &yes()).send());

    let directory = Path::new(server.text("state_db")).parent().unwrap();
    let added = add_agent(directory, "visitor", &["--policy", "admin"]);
    let visitor = client.clone().with_token(added["token"].as_str().unwrap());
    let list = visitor.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    refused(
        again(
            &asking(&visitor, "container_stop", target()),
            &asked,
            &yes(),
        )
        .send(),
    );

    let mut forged = asked.clone();
    let state = asked["requestState"].as_str().unwrap();
    forged["requestState"] = json!(format!("{state}x"));
    refused(again(&call, &forged, &yes()).send());

    let failure = again(&call, &asked, &yes()).send().failure();
    assert!(ran(&failure), "none of these has used it up: {failure}");
}

#[test]
fn a_yes_is_not_good_for_what_the_agent_may_do_no_more() {
    let home = Directory::new();
    let containers = defined(&["wren"]);
    let builder = server().policy("admin").directory(&home.0);
    let server = builder.lxcpath(&containers.0).start();
    let client = server.client();
    let session = client.session_with("2025-11-25", json!({ "elicitation": {} }));
    let mut stream = session.call("container_stop", there()).open();
    let (id, _) = asked_on(&mut stream);
    let modern = asking(&client, "container_stop", there());
    let asked = question(&modern.send());

    words(&home.0, &["agent", "edit", "try", "--policy", "operate"]);
    let whoami = client.call("whoami", json!({}));
    wait_until("it is known", IN_TIME, || {
        whoami.send().data()["policy"] == "operate"
    });
    assert_eq!(say(&session, &id, &yes()).status, 202);
    let change = stream.call_message()["result"]["structuredContent"].clone();
    assert_eq!(change["applied"], false, "it is the owner who decides now");
    let change = again(&modern, &asked, &yes()).send().data();
    assert_eq!(change["applied"], false, "in both eras");
}

#[test]
fn a_yes_after_the_owners_timeout_runs_nothing() {
    let builder = server().policy("admin");
    let server = builder
        .settings("[limits]\nconfirm_timeout = \"1s\"\n")
        .start();
    let client = server.client();
    let call = asking(&client, "container_stop", target());
    let late = question(&call.send());
    // The session's call ends by itself, because nobody answers.
    let session = client.session_with("2025-11-25", json!({ "elicitation": {} }));
    let mut stream = session.call("container_stop", target()).open();
    asked_on(&mut stream);
    let error = stream.call_message()["error"]["message"].clone();
    assert!(error.to_string().contains("did not answer"), "{error}");
    let failure = again(&call, &late, &yes()).send().failure();
    assert!(failure.contains("its time is over"), "{failure}");
    // In time it is a yes.
    let asked = question(&call.send());
    let failure = again(&call, &asked, &yes()).send().failure();
    assert!(ran(&failure), "{failure}");
}

#[test]
fn what_a_model_writes_is_no_consent() {
    let client = shared("admin").client();
    for word in ["confirm", "run", "confirmed"] {
        let arguments = json!({ "container": "no-such-box", word: true });
        let failure = asking(&client, "container_stop", arguments)
            .send()
            .failure();
        assert!(failure.contains(word), "{failure}");
    }
    // An answer to a question that was not asked has no effect either.
    let call = asking(&client, "container_stop", target());
    let call = call.param("inputResponses", json!({ "confirm": yes() }));
    question(&call.send());
    let failure = asking(&client, "container_stop", json!({ "container": "x/../y" }));
    let failure = failure.send().failure();
    assert!(
        failure.contains("container"),
        "nobody is asked in vain: {failure}"
    );
}

/// Asserts that a call became a change, for this reason.
fn became_change(answer: &Answer, why: &str) {
    let result = answer.result();
    let text = result["content"].to_string();
    assert!(text.contains(why), "{result}");
    let change = answer.data();
    assert_eq!(
        (&change["status"], &change["applied"]),
        (&json!("pending"), &json!(false)),
        "{result}"
    );
}

#[test]
fn a_call_of_a_client_that_cannot_ask_becomes_a_change() {
    let containers = defined(&["wren"]);
    let builder = server().policy("admin").lxcpath(&containers.0);
    let server = builder.start();
    let client = server.client();
    for able in [
        json!({}),
        json!({ "elicitation": { "url": {} } }),
        json!({ "elicitation": null }),
    ] {
        let call = client.call("container_stop", there());
        let call = call.mcp_meta("clientCapabilities", able.clone());
        became_change(&call.send(), "This client cannot ask");
        let session = client.session_with("2025-11-25", able);
        let call = session.call("container_stop", there());
        became_change(&call.send(), "This client cannot ask");
    }
    // A revision without elicitation, although its client declares it.
    let session = client.session_with("2025-03-26", json!({ "elicitation": {} }));
    let answer = session.call("container_stop", there()).send();
    let text = answer.result()["content"].to_string();
    assert!(text.contains("This client cannot ask"), "{text}");
    let proposed = ("confirm".to_owned(), Some("proposed".to_owned()));
    wait_until("it is all on record", IN_TIME, || {
        audited(&server, "container_stop") == vec![proposed.clone(); 7]
    });
}

#[test]
fn a_call_that_no_question_shows_whole_becomes_a_change() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let options = ["--policy", "admin", "--mode", "execute=confirm"];
    let added = add_agent(&home.0, "careful", &options);
    let client = server.client();
    let client = client.with_token(added["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let long = json!({ "command": format!("true {}", "x".repeat(20_000)) });
    let answer = asking(&client, "system_shell", long).send();
    became_change(&answer, "too long to be shown in full");
    // An invalid call is rejected, and becomes no change.
    let wrong = json!({ "command": "x".repeat(20_000), "user": 5 });
    let failure = asking(&client, "system_shell", wrong).send().failure();
    assert!(failure.contains("user"), "{failure}");
}

#[test]
fn a_session_is_asked_on_its_stream() {
    let client = shared("admin").client();
    for version in ["2025-06-18", "2025-11-25"] {
        let session = client.session_with(version, json!({ "elicitation": {} }));
        let mut rows = refusals();
        rows.push(("", yes()));
        for (words, answer) in rows {
            let mut stream = session.call("container_stop", target()).open();
            let (id, params) = asked_on(&mut stream);
            shows(&params);
            assert_eq!(say(&session, &id, &answer).status, 202);
            let result = stream.call_message()["result"].clone();
            let failure = result["content"][0]["text"].as_str().unwrap();
            assert_eq!(result["isError"], true, "{result}");
            if words.is_empty() {
                assert!(ran(failure), "{failure}");
            } else {
                assert!(failure.contains(words), "{answer}: {failure}");
            }
        }
    }
}

#[test]
fn another_session_cannot_answer_and_a_client_that_fails_to_ask_refuses() {
    let client = shared("admin").client();
    let session = client.session_with("2025-11-25", json!({ "elicitation": {} }));
    let other = client.session_with("2025-11-25", json!({ "elicitation": {} }));
    let mut stream = session.call("container_stop", target()).open();
    let (id, _) = asked_on(&mut stream);
    let mut beside = other.call("container_stop", target()).open();
    let (other_id, _) = asked_on(&mut beside);
    say(&other, &id, &json!({ "action": "decline" }));
    say(&other, &other_id, &yes());
    let error = json!({ "code": -32_603, "message": "no screen" });
    let reply = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    assert_eq!(session.post(reply).send().status, 202);
    let end = stream.call_message();
    let words = end["error"]["message"].as_str().unwrap();
    assert!(words.contains("no screen"), "its own answer: {end}");
}

#[test]
fn a_session_that_ends_takes_its_question_along() {
    let server = server().policy("admin").start();
    let client = server.client();
    let session = client.session_with("2025-11-25", json!({ "elicitation": {} }));
    let mut stream = session.call("container_stop", target()).open();
    let (id, _) = asked_on(&mut stream);
    assert!(session.delete().status < 300);
    assert_eq!(say(&session, &id, &yes()).status, 404);
    drop(stream);
    let failure = agreed(&client, "container_restart", target()).failure();
    assert!(ran(&failure), "{failure}");
    let rows = audited(&server, "container_stop");
    assert_eq!(rows, [("confirm".to_owned(), None)], "it waits for nobody");
}

#[test]
fn the_question_has_the_reason_of_the_agent() {
    let server = shared("admin");
    let arguments = json!({ "container": "no-such-box", "reason": "It does not answer." });
    let asked = question(&asking(&server.client(), "container_stop", arguments).send());
    let params = &asked["inputRequests"]["confirm"]["params"];
    shows(params);
    let message = params["message"].as_str().unwrap();
    let end = "The reason, in the agent's own words:\n\n    It does not answer.";
    assert!(message.ends_with(end), "{message}");
}
