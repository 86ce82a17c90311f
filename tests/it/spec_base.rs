//! The allowed bodies of the stateless era, and the fields of a response.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::server::{server, shared};

const PARSE: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const HEADERS_DIFFER: i64 = -32_020;

#[test]
#[rustfmt::skip]
fn h8_h15_e3_e4_b5_what_is_not_one_message_is_400() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let list = client.modern("tools/list");
        let whole = String::from_utf8(list.bytes()).unwrap();
        let sent = |body: &str| list.clone().body(body.as_bytes());
        let twice = whole.replacen('{', r#"{"id":1,"#, 1);
        let nest = format!("\"deep\":{}{},\"_meta\":", "[".repeat(70), "]".repeat(70));
        let deep = whole.replacen("\"_meta\":", &nest, 1);
        let inner = whole.replacen("\"_meta\":{", "\"_meta\":{\"a\":1,\"a\":2,", 1);
        assert!(deep.len() > whole.len() && inner.len() > whole.len());
        let rows = [
            ("nothing", sent(""), (400, PARSE)),
            ("half a message", sent(&whole[..whole.len() / 2]), (400, PARSE)),
            ("two messages", sent(&format!("{whole}{whole}")), (400, PARSE)),
            ("no JSON", sent("<html>"), (400, PARSE)),
            ("no UTF-8", list.clone().body(b"{\"\xff\":1}"), (400, PARSE)),
            ("the same key twice", sent(&twice), (400, PARSE)),
            ("the same key twice inside", sent(&inner), (400, PARSE)),
            ("nested too deep", sent(&deep), (400, PARSE)),
            ("a number", sent("1"), (400, INVALID_REQUEST)),
            ("null", sent("null"), (400, INVALID_REQUEST)),
            ("no version of JSON-RPC", list.clone().field("jsonrpc", json!("1.0")), (400, INVALID_REQUEST)),
            ("id null", list.clone().id(Value::Null), (400, INVALID_REQUEST)),
            ("id a list", list.clone().id(json!([1])), (400, INVALID_REQUEST)),
            ("id a fraction", list.clone().id(json!(1.5)), (400, INVALID_REQUEST)),
            ("method a number", list.clone().field("method", json!(1)), (400, INVALID_REQUEST)),
            ("params a list", list.clone().field("params", json!([])), (400, INVALID_REQUEST)),
            ("an empty batch", sent("[]"), (400, INVALID_REQUEST)),
            ("a batch", sent(&format!("[{whole}]")), (400, INVALID_REQUEST)),
            (
                "a response",
                sent(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
                (400, INVALID_REQUEST),
            ),
        ];
        for (what, request, expected) in rows {
            let answer = request.send();
            assert_eq!(answer.verdict(), expected, "{way}: {what}: {answer:?}");
        }
    }
}

#[test]
fn j1_ids_come_back_as_they_were() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        for id in [
            json!(0),
            json!(-7),
            json!(9_007_199_254_740_993_i64),
            json!("7"),
            json!(""),
            json!("ü\"\\"),
        ] {
            let good = client.modern("tools/list").id(id.clone()).send();
            assert_eq!(good.rpc()["id"], id, "{way}");
            let bad = client.modern("nothing").id(id.clone()).send();
            assert_eq!(bad.rpc()["id"], id, "{way}");
        }
    }
}

#[test]
fn h6_j3_m11_a_notification_is_202_and_its_headers_are_checked_if_there() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let note = client.modern("notifications/cancelled").without_id();
        let answer = note.clone().send();
        assert_eq!((answer.status, answer.body.as_str()), (202, ""), "{way}");
        assert_eq!(note.clone().without("mcp-method").send().status, 202);
        assert_eq!(
            note.clone().header("mcp-method", "x").send().verdict(),
            (400, HEADERS_DIFFER)
        );
        assert_eq!(client.modern("nothing").without_id().send().status, 202);
    }
}

#[test]
fn h7_h16_s1_any_accept_header_of_a_post_is_answered() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let list = client.modern("tools/list");
        let takes = [
            "*/*",
            "application/json",
            "application/*, text/plain;q=0.1",
            "text/html",
        ];
        for accept in takes {
            let answer = list.clone().accept(accept).send();
            assert_eq!(answer.verdict(), (200, 0), "{way}: {accept}");
            assert_eq!(answer.header("content-type"), Some("application/json"));
        }
        assert_eq!(list.clone().without("accept").send().verdict(), (200, 0));
        let stream = list.accept("text/event-stream").send();
        assert!(stream.is_stream() && stream.verdict() == (200, 0));
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    }
}

#[test]
fn c1_c4_e1_a_result_says_its_type_how_long_it_holds_and_who_gave_it() {
    let server = shared("observe");
    let client = server.client();
    let read = client
        .modern("resources/read")
        .uri("gatewren:///mcp/system-prompt");
    let cacheable = [
        client.modern("server/discover"),
        client.modern("tools/list"),
        client.modern("resources/list"),
        client.modern("resources/templates/list"),
        read,
    ];
    for request in cacheable {
        let result = request.send().result();
        assert_eq!(result["resultType"], "complete");
        assert!(result["ttlMs"].is_u64(), "{result}");
        assert_eq!(result["cacheScope"], "private");
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server["name"], "gatewren");
    }
    let call = client.call("whoami", json!({})).send().result();
    assert_eq!(call["resultType"], "complete");
    assert!(
        call.get("ttlMs").is_none() && call.get("cacheScope").is_none(),
        "{call}"
    );
}

#[test]
fn d1_discover_says_what_the_server_can_do() {
    let server = shared("observe");
    let result = server.client().modern("server/discover").send().result();
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert!(result["capabilities"]["tools"].is_object());
    assert_eq!(result["capabilities"]["resources"]["subscribe"], true);
    assert!(result["capabilities"]["prompts"].is_object());
    assert!(
        result["capabilities"].get("logging").is_none(),
        "no messages are served"
    );
    let told = result["instructions"].as_str().unwrap();
    assert!(told.starts_with("You are the agent "), "{told}");
    assert!(told.contains("the policy `observe`"), "{told}");
    assert!(
        told.contains("container_list") && !told.contains("container_shell"),
        "{told}"
    );
}

#[test]
fn h6_j3_a_notification_that_is_not_accepted_is_an_error_without_an_id() {
    let server = shared("observe");
    let client = server.client();
    let note = client.modern("notifications/cancelled").without_id();
    let claimed = note
        .clone()
        .mcp_meta("protocolVersion", json!("2099-01-01"));
    let both = claimed.clone().header("mcp-protocol-version", "2099-01-01");
    let orphan = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for (what, request, expected) in [
        (
            "another version in its header",
            claimed,
            (400, HEADERS_DIFFER),
        ),
        ("a version that is not served", both, (400, -32_022)),
        ("half a message", note.body(b"{"), (400, PARSE)),
        ("no session", client.post(orphan), (400, INVALID_REQUEST)),
    ] {
        let answer = request.send();
        assert_eq!(answer.verdict(), expected, "{what}: {answer:?}");
        assert!(answer.json().get("id").is_none(), "{what}: {answer:?}");
    }
}

#[test]
fn j3_a_call_without_an_id_is_not_run() {
    let server = shared("admin");
    let marker = marker();
    let line = json!({ "command": format!("sleep {marker}"), "timeout_s": LONG_S });
    let session = server.client().session("2025-11-25");
    let calls = [
        server.client().call("system_shell", line.clone()),
        session.call("system_shell", line),
    ];
    for call in calls {
        let answer = call.without_id().send();
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    }
    // Anything that they started would have begun before this ends.
    let after = json!({ "command": "sleep 0.2" });
    server.client().call("system_shell", after).send().data();
    assert!(sleeping(&marker).is_empty());
}

#[test]
fn j9_our_keys_of_meta_follow_the_grammar() {
    let server = shared("observe");
    let client = server.client();
    let mut keys = Vec::new();
    for request in [
        client.modern("server/discover"),
        client.modern("tools/list"),
        client.modern("resources/list"),
        client.modern("resources/read").uri("gatewren:///public"),
        client.call("whoami", json!({})),
    ] {
        collect_meta_keys(&request.send().rpc(), &mut keys);
    }
    let ours = ["io.modelcontextprotocol/serverInfo", "gatewren/revision"];
    for name in &ours {
        assert!(keys.iter().any(|key| key == name), "{name} in {keys:?}");
    }
    for key in keys {
        let (prefix, name) = key.split_once('/').unwrap();
        let reserved = prefix.split('.').nth(1);
        let is_ours = !matches!(reserved, Some("modelcontextprotocol" | "mcp"));
        assert!(is_ours || key == ours[0], "{key} is reserved");
        for label in prefix.split('.').chain([name]) {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            assert!(label.bytes().all(plain) && !label.is_empty(), "{key}");
            assert!(label.as_bytes()[0].is_ascii_alphabetic(), "{key}");
        }
    }
}

fn collect_meta_keys(value: &Value, keys: &mut Vec<String>) {
    if let Some(meta) = value.get("_meta").and_then(Value::as_object) {
        keys.extend(meta.keys().cloned());
    }
    match value {
        Value::Object(object) => object.values().for_each(|v| collect_meta_keys(v, keys)),
        Value::Array(items) => items.iter().for_each(|v| collect_meta_keys(v, keys)),
        _ => {}
    }
}

#[test]
fn j10_a_calls_line_in_the_log_names_its_trace() {
    let server = server().policy("observe").start();
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
    let whoami = server.client().call("whoami", json!({}));
    let lines = || {
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains("whoami ok"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let malformed = format!("00-{trace}-{span}");
    whoami
        .clone()
        .meta("traceparent", json!(malformed))
        .send()
        .data();
    let traced = format!("00-{trace}-{span}-01");
    whoami.meta("traceparent", json!(traced)).send().data();
    let both = || lines().len() == 2;
    wait_until("both are in the log", IN_TIME, both);
    let lines = lines();
    assert!(!lines[0].contains("trace="), "{lines:?}");
    for part in [format!("trace=\"{trace}\""), format!("span=\"{span}\"")] {
        assert!(lines[1].contains(&part), "{lines:?}");
    }
}

#[test]
fn e2_only_codes_of_the_specification_are_sent() {
    let mut found = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            // The fuzz targets check ranges of codes and send none.
            if path.is_dir() && !path.ends_with("fuzz") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
                found.extend(lines.flat_map(codes).map(|code| (code, path.clone())));
            }
        }
    }
    let allowed = [
        -32_700, -32_600, -32_601, -32_602, -32_603, -32_002, -32_020, -32_021, -32_022,
        // In sessions of 2025-11-25, by one fixture.
        -32_042,
    ];
    let named: BTreeSet<i32> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(named, BTreeSet::from(allowed));
    for (code, path) in found {
        assert!(
            path.ends_with("protocol/error.rs"),
            "{code} in {}",
            path.display()
        );
    }
}

/// Returns the numbers in a line that look like JSON-RPC codes.
fn codes(line: &str) -> Vec<i32> {
    let numbers = line.split("-32").skip(1).map(|rest| {
        let digits: String = rest.chars().filter(|c| *c != '_').take(3).collect();
        format!("-32{digits}").parse().ok()
    });
    numbers.flatten().filter(|code| *code < -32_000).collect()
}
