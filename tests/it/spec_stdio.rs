//! stdio (I1 to I5, L7, P3 of the checklist): the fixtures and the product, started as a client starts them.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::pipe::{Pipe, modern};
use crate::support::server::Directory;

/// A call that takes ten minutes and reports progress all the time.
const LONG: &str = "trigger-long-running-operation";

fn long() -> Value {
    let arguments = json!({ "duration": 600, "steps": 1000 });
    json!({ "name": LONG, "arguments": arguments, "_meta": { "progressToken": "long" } })
}

fn echo() -> Value {
    json!({ "name": "echo", "arguments": { "message": "hello" } })
}

fn listen(what: &Value) -> Value {
    json!({ "notifications": what })
}

/// Returns whether a message reports the progress of the call `long`.
fn is_long(message: &Value) -> bool {
    message["params"]["progressToken"] == "long"
}

#[test]
fn i1_nothing_but_messages_is_written_whatever_is_logged() {
    let mut pipe = Pipe::start(&["try", "--stdio", "--policy", "admin", "--log", "trace"]);
    pipe.open("2025-11-25", json!({}));
    let shell =
        json!({ "name": "system_shell", "arguments": { "command": "echo out; echo err >&2" } });
    pipe.ask(1, "tools/call", shell);
    assert_eq!(pipe.answer(1)["result"]["isError"], false);
    pipe.ask_modern(2, "tools/list", json!({}));
    assert!(pipe.answer(2)["result"]["tools"].is_array());
    pipe.close();
    pipe.ends_well();
    let log = pipe.log();
    assert!(
        log.contains("gatewren serves MCP on standard input and output"),
        "{log}"
    );
    assert!(log.contains("system_shell ok"), "{log}");
}

#[test]
fn i1_what_is_no_message_is_answered_and_the_next_line_is_served() {
    let mut pipe = Pipe::fixtures();
    let too_long = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":9,\"x\":\"{}\"}}\n",
        "x".repeat(3 << 20)
    );
    let cases: [(&[u8], i64, Value); 7] = [
        (b"nonsense\n", -32_700, Value::Null),
        (b"\xff\xfe\n", -32_700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\"\n", -32_700, Value::Null),
        (b"[]\n", -32_600, Value::Null),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n",
            -32_600,
            Value::Null,
        ),
        (
            b"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}\n",
            -32_600,
            json!(7),
        ),
        (too_long.as_bytes(), -32_600, Value::Null),
    ];
    for (line, code, id) in cases {
        pipe.write(line);
        let answer = pipe.next();
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_eq!(answer["id"], id, "{answer}");
    }
    // Empty lines and carriage returns are ignored.
    pipe.write(b"\n  \n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n");
    assert_eq!(
        pipe.next(),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} })
    );
    pipe.close();
    assert!(pipe.ends_well().is_empty());
}

#[test]
fn i2_r1_a_stateless_call_is_answered_with_its_question_and_nothing_is_requested() {
    let mut pipe = Pipe::fixtures();
    let call = json!({ "name": "test_input_required_result_elicitation", "arguments": {} });
    let able = json!({ "elicitation": { "form": {} } });
    pipe.ask(1, "tools/call", modern(call.clone(), able.clone()));
    let question = pipe.next();
    assert_eq!(
        question["result"]["resultType"], "input_required",
        "{question}"
    );
    let mut again = modern(call, able);
    again["inputResponses"] =
        json!({ "user_name": { "action": "accept", "content": { "name": "Ada" } } });
    if let Some(state) = question["result"].get("requestState") {
        again["requestState"] = state.clone();
    }
    pipe.ask(2, "tools/call", again);
    assert_eq!(pipe.next()["result"]["resultType"], "complete");
}

#[test]
fn x7_a_session_is_asked_on_the_same_pipe_and_answers_there() {
    let mut pipe = Pipe::fixtures();
    pipe.open(
        "2025-11-25",
        json!({ "elicitation": {}, "sampling": {}, "roots": {} }),
    );
    let asking = json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } });
    pipe.ask(1, "tools/call", asking);
    let question = pipe.told("elicitation/create");
    // Other calls continue while the user answers.
    pipe.ask(2, "tools/call", echo());
    pipe.answer(2);
    let content = json!({ "username": "ada", "email": "ada@example.org" });
    pipe.say(&json!({ "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": content } }));
    let answer = pipe.answer(1);
    assert!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("ada"),
        "{answer}"
    );

    let asking = json!({ "name": "test_sampling", "arguments": { "prompt": "Why?" } });
    pipe.ask(3, "tools/call", asking);
    let question = pipe.told("sampling/createMessage");
    pipe.say(&json!({ "jsonrpc": "2.0", "id": question["id"],
        "error": { "code": -1, "message": "no model here" } }));
    assert!(pipe.answer(3).to_string().contains("no model here"));
}

#[test]
fn i3_the_end_of_input_is_the_end_and_what_was_asked_before_is_answered() {
    let mut pipe = Pipe::fixtures();
    pipe.open("2025-11-25", json!({}));
    pipe.ask(1, "tools/call", echo());
    pipe.ask(2, "tools/list", json!({}));
    // The last line may lack its line feed.
    pipe.write(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}");
    pipe.close();
    let said = pipe.ends_well();
    for id in 1..=3 {
        assert!(
            said.iter()
                .any(|m| m["id"] == id && m["result"].is_object()),
            "{id}: {said:?}"
        );
    }
}

#[test]
fn i3_neither_a_long_call_nor_a_subscription_nor_a_question_keeps_it_from_ending() {
    let mut pipe = Pipe::fixtures();
    pipe.open("2025-11-25", json!({ "elicitation": {} }));
    pipe.ask(1, "tools/call", long());
    pipe.ask(
        2,
        "tools/call",
        json!({ "name": "test_elicitation", "arguments": { "message": "?" } }),
    );
    pipe.ask_modern(
        3,
        "subscriptions/listen",
        listen(&json!({ "toolsListChanged": true })),
    );
    pipe.told("notifications/subscriptions/acknowledged");
    pipe.close();
    // If something delayed the exit until the stop's timeout, the exit would not be clean.
    pipe.ends_well();
}

#[test]
fn i3_a_client_that_waits_no_longer_ends_what_would_outlast_it() {
    let mut pipe = Pipe::fixtures();
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let slow = json!({ "name": "slow_compute", "arguments": { "seconds": 600, "label": "x" } });
    pipe.ask(1, "tools/call", modern(slow, able));
    assert_eq!(pipe.answer(1)["result"]["resultType"], "task");
    pipe.close();
    // Clients close the pipe and then send the signal; the server may see them in either order.
    let begun = Instant::now();
    while pipe.is_running() && begun.elapsed() < IN_TIME {
        pipe.signal(Signal::SIGTERM);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!pipe.is_running(), "{}", pipe.log());
}

#[test]
fn i3_l7_a_signal_ends_it_and_ends_subscriptions_in_words() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut pipe = Pipe::fixtures();
        let wanted = listen(&json!({ "toolsListChanged": true }));
        pipe.ask_modern(5, "subscriptions/listen", wanted);
        pipe.told("notifications/subscriptions/acknowledged");
        // A rejected subscription never began, so it gets no final message.
        pipe.ask_modern(6, "subscriptions/listen", json!({}));
        assert_eq!(pipe.answer(6)["error"]["code"], -32_602);
        pipe.signal(signal);
        let said = pipe.ends_well();
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(said[0]["method"], "notifications/cancelled");
        assert_eq!(said[0]["params"]["requestId"], 5);
        assert_eq!(said[1]["id"], 5);
        let result = &said[1]["result"];
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
    }
}

#[test]
fn i3_a_client_that_reads_no_more_ends_it_without_a_panic() {
    let mut pipe = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    pipe.args(["everything", "stdio"]).stdin(Stdio::piped());
    let mut process = pipe
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(process.stdout.take());
    let mut input = process.stdin.take().unwrap();
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    // Its input stays open: a closed output is reason enough to exit.
    std::io::Write::write_all(&mut input, ping).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    drop(input);
}

#[test]
fn i4_p3_nothing_more_is_said_of_a_cancelled_request() {
    for modern_era in [false, true] {
        let mut pipe = Pipe::fixtures();
        if modern_era {
            pipe.ask_modern(1, "tools/call", long());
        } else {
            pipe.open("2025-11-25", json!({}));
            pipe.ask(1, "tools/call", long());
        }
        assert!(is_long(&pipe.told("notifications/progress")));
        pipe.cancel(1);
        pipe.ask_modern(2, "server/discover", json!({}));
        pipe.answer(2);
        pipe.passed();
        // Cancelling unknown or finished requests, or a malformed cancellation, also has no response.
        pipe.cancel(1);
        pipe.cancel(99);
        pipe.notify("notifications/cancelled", &json!({}));
        pipe.notify("notifications/cancelled", &json!({ "requestId": {} }));
        // The id is free again; its new call reports under another token.
        let mut again = long();
        again["_meta"]["progressToken"] = json!("again");
        again["arguments"] = json!({ "duration": 2, "steps": 2 });
        if modern_era {
            pipe.ask_modern(1, "tools/call", again);
        } else {
            pipe.ask(1, "tools/call", again);
        }
        assert!(pipe.answer(1)["result"].is_object());
        let said = pipe.passed();
        assert!(!said.is_empty() && !said.iter().any(is_long), "{said:?}");
        pipe.close();
        assert!(!pipe.ends_well().iter().any(is_long));
    }
}

#[test]
fn i4_a_cancelled_question_takes_its_call_with_it() {
    let mut pipe = Pipe::fixtures();
    pipe.open("2025-06-18", json!({ "elicitation": {} }));
    pipe.ask(
        1,
        "tools/call",
        json!({ "name": "test_elicitation", "arguments": { "message": "?" } }),
    );
    let question = pipe.told("elicitation/create");
    pipe.cancel(1);
    pipe.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } }));
    pipe.ask(2, "ping", json!({}));
    pipe.answer(2);
    pipe.close();
    let said = pipe.ends_well();
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn i4_a_cancelled_subscription_hears_nothing_more() {
    let mut pipe = Pipe::fixtures();
    pipe.ask_modern(
        1,
        "subscriptions/listen",
        listen(&json!({ "toolsListChanged": true })),
    );
    pipe.ask_modern(
        2,
        "subscriptions/listen",
        listen(&json!({ "toolsListChanged": true })),
    );
    for _ in 0..2 {
        pipe.told("notifications/subscriptions/acknowledged");
    }
    pipe.cancel(1);
    pipe.ask_modern(
        3,
        "tools/call",
        json!({ "name": "test_trigger_tool_change", "arguments": {} }),
    );
    let note = pipe.told("notifications/tools/list_changed");
    assert_eq!(
        note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        2
    );
    pipe.signal(Signal::SIGTERM);
    let said = pipe.ends_well();
    let of_the_first = said.iter().any(|m| {
        m["id"] == 1 || m["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1
    });
    assert!(!of_the_first, "{said:?}");
}

#[test]
fn l1_l2_subscriptions_share_the_pipe_under_their_ids() {
    let mut pipe = Pipe::fixtures();
    let watched = json!({ "resourceSubscriptions": ["test://watched-resource"] });
    pipe.say(
        &json!({ "jsonrpc": "2.0", "id": "a", "method": "subscriptions/listen",
        "params": modern(listen(&watched), json!({})) }),
    );
    pipe.ask_modern(
        7,
        "subscriptions/listen",
        listen(&json!({ "promptsListChanged": true })),
    );
    let key = "io.modelcontextprotocol/subscriptionId";
    let mut acknowledged = Vec::new();
    for _ in 0..2 {
        let note = pipe.told("notifications/subscriptions/acknowledged");
        acknowledged.push(note["params"]["_meta"][key].clone());
    }
    assert!(acknowledged.contains(&json!("a")) && acknowledged.contains(&json!(7)));
    let update = json!({ "name": "test_trigger_resource_update", "arguments": {} });
    pipe.ask_modern(8, "tools/call", update);
    let note = pipe.told("notifications/resources/updated");
    assert_eq!(note["params"]["_meta"][key], "a");
    assert_eq!(note["params"]["uri"], "test://watched-resource");
    pipe.ask_modern(
        9,
        "tools/call",
        json!({ "name": "test_trigger_prompt_change", "arguments": {} }),
    );
    let note = pipe.told("notifications/prompts/list_changed");
    assert_eq!(note["params"]["_meta"][key], 7);
}

#[test]
fn i5_a_probe_is_answered_before_anything_else_and_both_eras_share_the_process() {
    let mut pipe = Pipe::fixtures();
    pipe.ask_modern(1, "server/discover", json!({}));
    assert_eq!(
        pipe.next()["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    let mut later = modern(json!({}), json!({}));
    later["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    pipe.ask(2, "server/discover", later);
    let refused = pipe.next();
    assert_eq!(refused["error"]["code"], -32_022, "{refused}");
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    // A probe without a revision gets an error, not silence.
    pipe.ask(3, "server/discover", json!({}));
    assert_eq!(pipe.next()["error"]["code"], -32_602);
    pipe.ask(4, "ping", json!({}));
    assert_eq!(pipe.next()["result"], json!({}));
    pipe.ask(5, "tools/list", json!({}));
    let refused = pipe.next();
    assert_eq!(refused["error"]["code"], -32_600, "{refused}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("initialize")
    );

    let opened = pipe.open("2025-06-18", json!({}));
    assert_eq!(opened["protocolVersion"], "2025-06-18");
    pipe.ask(6, "tools/call", echo());
    assert!(pipe.answer(6)["result"].get("resultType").is_none());
    pipe.ask_modern(7, "tools/call", echo());
    assert_eq!(pipe.answer(7)["result"]["resultType"], "complete");
    pipe.ask_modern(8, "ping", json!({}));
    assert_eq!(pipe.answer(8)["error"]["code"], -32_601);
    // A process has one session.
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "x", "version": "1" } });
    pipe.ask(9, "initialize", params);
    assert_eq!(pipe.answer(9)["error"]["code"], -32_600);
}

#[test]
fn d4_every_stateful_revision_opens_a_session() {
    let asked = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    for (asked, settled) in asked
        .map(|v| (v, v))
        .into_iter()
        .chain([("2026-07-28", "2025-11-25")])
    {
        let mut pipe = Pipe::fixtures();
        assert_eq!(pipe.open(asked, json!({}))["protocolVersion"], settled);
        pipe.ask(
            1,
            "tools/call",
            json!({ "name": "test_audio_content", "arguments": {} }),
        );
        let answer = pipe.answer(1);
        let kind = if asked == "2024-11-05" {
            "text"
        } else {
            "audio"
        };
        assert_eq!(
            answer["result"]["content"][0]["type"], kind,
            "{asked}: {answer}"
        );
    }
}

#[test]
fn h9_a_batch_is_one_line_both_ways_where_its_session_takes_it() {
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/unheard-of" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": echo() },
    ]);
    let mut pipe = Pipe::fixtures();
    pipe.say(&batch);
    assert_eq!(pipe.next()["error"]["code"], -32_600);
    pipe.open("2025-03-26", json!({}));
    pipe.say(&batch);
    let answers = pipe.next();
    let ids: Vec<&Value> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["id"])
        .collect();
    assert_eq!(ids, [1, 2], "{answers}");
    // A batch without requests gets no response.
    pipe.say(&json!([{ "jsonrpc": "2.0", "method": "notifications/unheard-of" }]));
    pipe.ask(3, "ping", json!({}));
    assert_eq!(pipe.next()["id"], 3);

    for version in ["2024-11-05", "2025-11-25"] {
        let mut pipe = Pipe::fixtures();
        pipe.open(version, json!({}));
        pipe.say(&batch);
        assert_eq!(pipe.next()["error"]["code"], -32_600, "{version}");
    }
}

#[test]
fn u6_d8_a_session_hears_of_its_subscriptions_once_it_has_said_that_it_is_ready() {
    let mut pipe = Pipe::fixtures();
    let watched = json!({ "uri": "test://watched-resource" });
    let update = json!({ "name": "test_trigger_resource_update", "arguments": {} });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "x", "version": "1" } });
    pipe.ask(1, "initialize", params);
    pipe.ask(2, "resources/subscribe", watched.clone());
    pipe.answer(2);
    pipe.ask(3, "tools/call", update.clone());
    pipe.answer(3);
    assert!(
        pipe.passed().iter().all(|m| m.get("method").is_none()),
        "it was not ready"
    );
    pipe.notify("notifications/initialized", &json!({}));
    let note = pipe.told("notifications/resources/updated");
    assert_eq!(note["params"]["uri"], "test://watched-resource");
    pipe.ask(4, "resources/unsubscribe", watched);
    pipe.answer(4);
    pipe.ask(5, "tools/call", update);
    pipe.answer(5);
    pipe.close();
    let said = pipe.ends_well();
    assert!(
        said.iter()
            .all(|m| m["method"] != "notifications/resources/updated"),
        "{said:?}"
    );
}

#[test]
fn w1_a_session_is_logged_to_from_its_level_on() {
    let mut pipe = Pipe::fixtures();
    pipe.open("2025-11-25", json!({}));
    let logging = json!({ "name": "test_tool_with_logging", "arguments": {} });
    pipe.ask(1, "logging/setLevel", json!({ "level": "error" }));
    pipe.ask(2, "tools/call", logging.clone());
    pipe.answer(2);
    assert_eq!(pipe.passed().len(), 1, "only the answer to setLevel");
    pipe.ask(3, "logging/setLevel", json!({ "level": "debug" }));
    pipe.ask(4, "tools/call", logging);
    pipe.answer(4);
    let logs = pipe
        .passed()
        .iter()
        .filter(|m| m["method"] == "notifications/message")
        .count();
    assert!(logs >= 3, "{logs}");
}

#[test]
fn more_calls_at_once_than_an_agent_may_have_are_refused_in_words() {
    let mut pipe = Pipe::fixtures();
    for id in 1..=17 {
        let call = json!({ "name": LONG, "arguments": { "duration": 600, "steps": 1 } });
        pipe.ask_modern(id, "tools/call", call);
    }
    let refused = pipe.next();
    assert_eq!(refused["id"], 17, "{refused}");
    assert_eq!(refused["error"]["data"]["error"], "too_many_calls");
    pipe.cancel(1);
    // A request that is not a call needs no slot.
    pipe.ask_modern(18, "server/discover", json!({}));
    pipe.answer(18);
    pipe.ask_modern(19, "tools/call", echo());
    let answer = pipe.answer(19);
    assert!(
        answer["result"].is_object() || answer["error"]["data"]["retryAfterSeconds"] == 1,
        "{answer}"
    );
    pipe.close();
    pipe.ends_well();
}

#[test]
fn the_same_id_twice_at_once_is_refused() {
    let mut pipe = Pipe::fixtures();
    pipe.ask_modern(1, "tools/call", long());
    pipe.ask_modern(1, "tools/call", echo());
    let refused = pipe.answer(1);
    assert_eq!(refused["error"]["code"], -32_600, "{refused}");
}

#[test]
fn the_fixtures_serve_a_pipe_without_an_argument() {
    for words in [vec!["everything"], vec!["everything", "--log", "error"]] {
        let mut pipe = Pipe::start(&words);
        pipe.ask_modern(1, "tools/call", echo());
        let answer = pipe.answer(1);
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }
}

#[test]
fn what_makes_no_sense_on_a_pipe_is_refused() {
    for words in [
        vec!["everything", "stdio", "--json"],
        vec!["everything", "stdio", "--tls"],
        vec!["everything", "stdio", "--token", "x"],
        vec!["try", "--stdio", "--json"],
        vec!["try", "--stdio", "--listen", "127.0.0.1:0"],
    ] {
        let mut pipe = Pipe::start(&words);
        let (status, said) = pipe.end();
        assert_eq!(
            (status.code(), said.len()),
            (Some(2), 0),
            "{words:?}: {}",
            pipe.log()
        );
    }
}

#[test]
fn a_command_dies_with_the_pipe_of_whoever_asked_for_it() {
    let mut pipe = Pipe::trial("admin");
    pipe.open("2025-11-25", json!({}));
    let marker = marker();
    let command = format!("sleep {marker} & sleep {marker}");
    pipe.ask(
        1,
        "tools/call",
        json!({ "name": "system_shell", "arguments": { "command": command, "timeout_s": LONG_S } }),
    );
    wait_until("the command runs", IN_TIME, || sleeping(&marker).len() == 2);
    pipe.close();
    pipe.ends_well();
    wait_until("it is gone", IN_TIME, || sleeping(&marker).is_empty());
}

#[test]
fn a1_the_policy_holds_on_a_pipe_and_calls_are_on_record() {
    let mut pipe = Pipe::trial("observe");
    pipe.open("2025-11-25", json!({}));
    pipe.ask(1, "tools/list", json!({}));
    let tools = pipe.answer(1)["result"]["tools"].to_string();
    assert!(
        tools.contains("whoami") && !tools.contains("system_shell"),
        "{tools}"
    );
    pipe.ask(
        2,
        "tools/call",
        json!({ "name": "system_shell", "arguments": { "command": "id" } }),
    );
    assert_eq!(pipe.answer(2)["error"]["code"], -32_602);
    pipe.ask(
        3,
        "tools/call",
        json!({ "name": "whoami", "arguments": {} }),
    );
    let who = pipe.answer(3)["result"]["structuredContent"].clone();
    assert_eq!(
        (&who["name"], &who["policy"]),
        (&json!("try"), &json!("observe"))
    );
    pipe.close();
    pipe.ends_well();
    let verify = gatewren(
        &["audit", "verify", "--dir", pipe.state().to_str().unwrap()],
        "",
    );
    assert!(
        verify.contains("all 1 rows"),
        "a call that only reads: {verify}"
    );
}

#[test]
fn a_revoked_agent_is_out() {
    let mut pipe = Pipe::trial("observe");
    pipe.open("2025-11-25", json!({}));
    pipe.ask(
        1,
        "tools/call",
        json!({ "name": "whoami", "arguments": {} }),
    );
    let who = pipe.answer(1)["result"]["structuredContent"].clone();
    let wanted = json!({ "resourceSubscriptions": ["gatewren:///public"] });
    pipe.ask_modern(2, "subscriptions/listen", listen(&wanted));
    pipe.told("notifications/subscriptions/acknowledged");
    let state = pipe.state();
    gatewren(
        &[
            "agent",
            "revoke",
            who["agent"].as_str().unwrap(),
            "--dir",
            state.to_str().unwrap(),
        ],
        "",
    );
    let (status, said) = pipe.end();
    assert_eq!(status.code(), Some(1), "{}", pipe.log());
    assert!(pipe.log().contains("revoked"), "{}", pipe.log());
    let end = said.iter().find(|m| m["id"] == 2);
    assert_eq!(end.unwrap()["result"]["resultType"], "complete", "{said:?}");
}

#[test]
fn a_change_of_the_box_is_heard_of_on_a_pipe() {
    let mut pipe = Pipe::trial("operate");
    pipe.open("2025-11-25", json!({}));
    pipe.ask(
        1,
        "resources/subscribe",
        json!({ "uri": "gatewren:///public/notes" }),
    );
    pipe.answer(1);
    let state = pipe.state();
    let patch = r#"[{"op":"add","path":"/public/notes","value":"hello"}]"#;
    gatewren(&["state", "patch", "--dir", state.to_str().unwrap()], patch);
    let note = pipe.told("notifications/resources/updated");
    assert_eq!(note["params"]["uri"], "gatewren:///public/notes");
}

#[test]
fn clients_that_start_it_side_by_side_each_get_a_directory_of_their_own() {
    let home = Directory::new();
    let words = ["try", "--stdio"];
    let mut pipes: Vec<Pipe> = (0..3).map(|_| Pipe::start_at(&home.0, &words)).collect();
    let mut directories = Vec::new();
    for pipe in &mut pipes {
        pipe.open("2025-11-25", json!({}));
        let log = pipe.log();
        let (_, rest) = log.split_once("state and vault are kept in ").unwrap();
        directories.push(rest.lines().next().unwrap().to_owned());
    }
    directories.sort();
    directories.dedup();
    assert_eq!(directories.len(), 3, "{directories:?}");
    for pipe in &mut pipes {
        pipe.close();
        pipe.ends_well();
    }
    // The first directory is free again.
    let mut pipe = Pipe::start_at(&home.0, &words);
    pipe.open("2025-11-25", json!({}));
    assert!(
        pipe.log()
            .contains(&format!("{}\n", home.join("gatewren-try").display())),
        "{}",
        pipe.log()
    );
}

#[test]
fn a_directory_that_was_named_and_is_in_use_is_refused_with_the_reason() {
    let home = Directory::new();
    let named = home.join("mine");
    let words = ["try", "--stdio", "--dir", named.to_str().unwrap()];
    let mut first = Pipe::start(&words);
    first.open("2025-11-25", json!({}));
    let mut second = Pipe::start(&words);
    let (status, said) = second.end();
    assert_eq!((status.code(), said.len()), (Some(1), 0));
    let log = second.log();
    assert!(
        log.contains("another gatewren uses") && log.contains("mine"),
        "{log}"
    );
}

/// Runs another gatewren until it exits; returns its output.
fn gatewren(words: &[&str], input: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut to = process.stdin.take().unwrap();
    std::io::Write::write_all(&mut to, input.as_bytes()).unwrap();
    drop(to);
    let output = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}
