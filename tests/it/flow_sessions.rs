//! The stateful era: sessions, and the form of the same responses in each revision.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::barrier::Barrier;
use crate::support::command::tell_by;
use crate::support::machine::{IN_TIME, LONG_S, wait_until};
use crate::support::server::{Directory, server, shared};

const STATEFUL: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

#[test]
fn d4_d5_initialize_settles_on_each_stateful_revision() {
    let server = shared("operate");
    for (way, client) in server.clients() {
        for version in STATEFUL {
            let session = client.session(version);
            assert_eq!(session.version, version, "{way}");
            assert!(
                session.id.bytes().all(|b| (0x21..=0x7e).contains(&b)),
                "{}",
                session.id
            );
            let result = session.opened.result();
            assert_eq!(session.opened.rpc()["id"], 0);
            assert_eq!(result["serverInfo"]["name"], "gatewren");
            assert_eq!(result["capabilities"]["resources"]["subscribe"], true);
            assert!(result["instructions"].is_string());
            assert!(session.request("tools/list").send().names("tools").len() > 5);
        }
    }
}

#[test]
fn d4_b6_initialize_with_another_version_is_offered_the_newest_stateful_one() {
    let server = shared("operate");
    for asked in ["2026-07-28", "2024-10-07", "2099-01-01", "nonsense"] {
        let session = server.client().session(asked);
        assert_eq!(session.version, "2025-11-25", "{asked}");
    }
}

#[test]
fn d11_initialize_that_lacks_a_parameter_is_told_which() {
    let server = shared("operate");
    let wrong = [
        ("protocolVersion", Value::Null),
        ("protocolVersion", json!(20_251_125)),
        ("capabilities", Value::Null),
        ("capabilities", json!([])),
        ("clientInfo", Value::Null),
        ("clientInfo", json!("a client")),
        ("clientInfo", json!({ "name": "a client" })),
        ("clientInfo", json!({ "name": 1, "version": "1" })),
    ];
    for (parameter, value) in wrong {
        let request = server.client().initialize("2025-11-25");
        let answer = request.param(parameter, value.clone()).send();
        assert_eq!(answer.verdict(), (200, -32_602), "{parameter}: {value}");
        assert!(answer.message().contains(parameter), "{}", answer.message());
        assert_eq!(answer.header("mcp-session-id"), None);
    }
}

#[test]
fn initialize_with_a_dead_session_makes_a_new_one() {
    let server = shared("operate");
    let client = server.client();
    let old = client.session("2025-11-25");
    assert_eq!(old.delete().status, 204);
    for stale in [old.id.as_str(), "junk"] {
        let answer = client
            .initialize("2025-11-25")
            .header("mcp-session-id", stale)
            .send();
        assert_eq!(answer.status, 200);
        assert_ne!(answer.header("mcp-session-id"), Some(stale));
    }
}

#[test]
fn h14_e13_z2_a_request_without_session_is_400() {
    let server = shared("operate");
    for (way, client) in server.clients() {
        let list = client.post(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        let answer = list.clone().send();
        assert_eq!(answer.verdict(), (400, -32_600), "{way}");
        assert!(answer.message().contains("Mcp-Session-Id"));
        assert_eq!(answer.header("mcp-session-id"), None);
        let two = list
            .header("mcp-session-id", "a")
            .also("mcp-session-id", b"b");
        assert_eq!(two.send().status, 400);
        assert_eq!(client.request("DELETE", "/mcp").send().status, 400);
        let stream = client.request("GET", "/mcp").accept("text/event-stream");
        assert_eq!(stream.send().status, 400);
    }
}

#[test]
fn z3_a10_an_unknown_an_ended_and_somebody_elses_session_are_404_alike() {
    let home = Directory::new();
    let other = {
        let server = server().policy("observe").directory(&home.0).start();
        server.client().session("2025-11-25").id
    };
    let server = server().policy("operate").directory(&home.0).start();
    for (way, client) in server.clients() {
        let mut session = client.session("2025-11-25");
        assert_eq!(session.delete().status, 204);
        let good = client.session("2025-11-25").id;
        let mut forged = good.clone();
        let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
        forged.push(last);
        let ids = [
            session.id.clone(),
            "junk".to_owned(),
            other.clone(),
            forged,
            "a.b".to_owned(),
        ];
        let mut answers = Vec::new();
        for id in ids {
            session.id = id;
            for answer in [
                session.request("tools/list").id(json!(1)).send(),
                session.notify("notifications/initialized", &json!({})),
                session.delete(),
                session.get().send(),
            ] {
                assert_eq!(answer.status, 404, "{way}: {}: {answer:?}", session.id);
                answers.push(answer.rpc()["error"].clone());
            }
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:?}");
    }
}

#[test]
fn a_session_outlives_a_server_that_is_killed() {
    let home = Directory::new();
    let mut before = server().directory(&home.0).start();
    let client = before.client();
    let (alive, ended) = (client.session("2025-06-18"), client.session("2025-11-25"));
    assert_eq!(ended.delete().status, 204);
    before.signal(Signal::SIGKILL);
    before.ended();
    let after = server().directory(&home.0).start();
    assert_eq!(after.text("token"), before.text("token"));
    let alive = alive.carried_on_by(&after.client());
    let answer = alive.call("whoami", json!({})).send();
    assert_eq!(answer.data()["policy"], "operate");
    let ended = ended.carried_on_by(&after.client());
    assert_eq!(ended.request("ping").send().status, 404);
}

#[test]
fn h12_h13_b7_v11_a_version_header_that_no_revision_has_is_400() {
    let server = shared("operate");
    for (way, client) in server.clients() {
        let session = client.session("2025-06-18");
        for version in ["2025-01-01", "1", ""] {
            let answer = session
                .request("ping")
                .header("mcp-protocol-version", version)
                .send();
            assert_eq!(answer.verdict(), (400, -32_600), "{way}: {version:?}");
        }
        for version in ["2024-11-05", "2025-03-26", "2025-11-25"] {
            let answer = session
                .request("ping")
                .header("mcp-protocol-version", version)
                .send();
            assert_eq!(answer.verdict(), (200, 0), "{way}: {version:?}");
        }
        let silent = session
            .request("ping")
            .without("mcp-protocol-version")
            .send();
        assert_eq!(silent.result(), json!({}));
    }
}

#[test]
fn h4_b2_a_request_of_2026_within_a_session_is_answered_as_one() {
    let server = shared("operate");
    let session = server.client().session("2025-06-18");
    let request = server
        .client()
        .modern("tools/list")
        .header("mcp-session-id", &session.id);
    let answer = request.send();
    assert_eq!(answer.result()["resultType"], "complete");
    assert_eq!(answer.header("mcp-session-id"), None);
}

#[test]
fn e5_e7_e9_what_a_session_cannot_have_is_an_error_within_200() {
    let server = shared("operate");
    let session = server.client().session("2025-11-25");
    let rows = [
        (session.request("nothing"), -32_601),
        (session.request("server/discover"), -32_601),
        (session.request("subscriptions/listen"), -32_601),
        (session.request("logging/setLevel"), -32_602),
        (session.call("nothing", json!({})), -32_602),
        (
            session
                .request("tools/list")
                .param("cursor", json!("bogus")),
            -32_602,
        ),
        (
            session
                .request("resources/read")
                .uri("gatewren:///public/nothing"),
            -32_002,
        ),
        (
            session
                .request("resources/subscribe")
                .uri("file:///etc/passwd"),
            -32_002,
        ),
        (session.request("resources/subscribe"), -32_602),
    ];
    for (request, code) in rows {
        let answer = request.id(json!("an id")).send();
        assert_eq!(answer.verdict(), (200, code), "{answer:?}");
        assert_eq!(answer.rpc()["id"], "an id");
    }
}

#[test]
fn p6_h6_ping_is_answered_and_responses_and_notifications_are_202() {
    let server = shared("operate");
    for version in STATEFUL {
        let session = server.client().session(version);
        assert_eq!(session.request("ping").send().result(), json!({}));
        let response = session
            .post(json!({ "jsonrpc": "2.0", "id": 99, "result": {} }))
            .send();
        assert_eq!((response.status, response.body.as_str()), (202, ""));
        let unknown = session.notify("notifications/unknown", &json!({ "requestId": 5 }));
        assert_eq!((unknown.status, unknown.body.as_str()), (202, ""));
    }
}

#[test]
fn h9_b5_v10_a_batch_is_answered_on_a_session_of_2025_03_26_alone() {
    let server = shared("operate");
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": { "name": "whoami" } },
        { "jsonrpc": "2.0", "id": 3, "method": "nothing" },
    ]);
    for (way, client) in server.clients() {
        let answer = client.session("2025-03-26").post(batch.clone()).send();
        assert_eq!(answer.status, 200, "{way}: {answer:?}");
        let answers = answer.json();
        let by_id = |id: Value| {
            let mut all = answers.as_array().unwrap().iter();
            all.find(|a| a["id"] == id)
                .unwrap_or_else(|| panic!("{id}: {answers}"))
                .clone()
        };
        assert_eq!(answers.as_array().unwrap().len(), 3);
        assert_eq!(by_id(json!(1))["result"], json!({}));
        assert!(by_id(json!("b"))["result"]["content"].is_array());
        assert_eq!(by_id(json!(3))["error"]["code"], -32_601);
        for version in ["2025-06-18", "2025-11-25"] {
            let answer = client.session(version).post(batch.clone()).send();
            assert_eq!(answer.verdict(), (400, -32_600), "{way}: {version}");
        }
    }
}

#[test]
fn h9_a_batch_with_an_element_that_is_no_message_is_refused_whole() {
    let server = shared("operate");
    let good = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for bad in [json!(1), json!({ "jsonrpc": "2.0", "id": 2 }), json!([])] {
        let session = server.client().session("2025-03-26");
        let answer = session.post(json!([good, bad])).send();
        assert_eq!(answer.verdict(), (400, -32_600), "{bad}: {answer:?}");
    }
}

#[test]
fn h9_b5_a_batch_without_requests_is_202_and_one_with_initialize_is_400() {
    let server = shared("operate");
    let session = server.client().session("2025-03-26");
    let notes = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    let answer = session.post(notes).send();
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    let with = |message: Value| session.post(json!([message])).send().verdict();
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    assert_eq!(with(initialize), (400, -32_600));
    assert_eq!(with(json!(1)), (400, -32_600));
    let modern = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
    assert_eq!(with(modern), (400, -32_600));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(
        session.post(json!(vec![ping; 101])).send().verdict(),
        (400, -32_600)
    );
}

#[test]
fn j2_an_id_that_is_under_way_is_refused() {
    let server = shared("admin");
    let session = server.client().session("2025-06-18");
    let barrier = Barrier::new();
    let slow = session
        .call(
            "system_shell",
            json!({ "command": barrier.line(), "timeout_s": LONG_S }),
        )
        .id(json!(7));
    let running = slow.begin();
    barrier.until_reached();
    let second = session.call("whoami", json!({})).id(json!(7)).send();
    assert_eq!(second.verdict(), (200, -32_600));
    barrier.open();
    assert_eq!(running.finish().data()["exit_code"], 0);
    assert_eq!(
        session
            .call("whoami", json!({}))
            .id(json!(7))
            .send()
            .verdict(),
        (200, 0)
    );
}

#[test]
fn e1_each_revision_sees_what_it_knows_and_no_more() {
    let server = server().policy("admin").settings("").start();
    let client = server.client();
    tell_by(
        &server.settings_file(),
        &["agent", "edit", "try", "--toolset", "all"],
    );
    wait_until("the list is in full", IN_TIME, || {
        client
            .modern("tools/list")
            .send()
            .body
            .contains("outputSchema")
    });
    for version in STATEFUL {
        let session = client.session(version);
        let titled = version != "2025-03-26";
        let list = session.request("tools/list").send().result();
        let tools = list["tools"].as_array().unwrap();
        let whoami = tools.iter().find(|tool| tool["name"] == "whoami").unwrap();
        assert_eq!(whoami.get("title").is_some(), titled, "{version}: {whoami}");
        assert_eq!(
            whoami["annotations"].get("title").is_some(),
            !titled,
            "{version}: {whoami}"
        );
        assert_eq!(
            whoami.get("outputSchema").is_some(),
            titled,
            "{version}: {whoami}"
        );
        let call = session.call("whoami", json!({})).send().result();
        assert_eq!(
            call.get("structuredContent").is_some(),
            titled,
            "{version}: {call}"
        );
        let text: Value =
            serde_json::from_str(call["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text["policy"], "admin");
        let server_info = &session.opened.result()["serverInfo"];
        assert_eq!(
            server_info.get("title").is_some(),
            titled,
            "{version}: {server_info}"
        );
        let templates = session.request("resources/templates/list").send().result();
        let resources = session.request("resources/list").send().result();
        for result in [list, call, templates, resources, session.opened.result()] {
            for modern in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                assert!(
                    result.get(modern).is_none(),
                    "{version}: {modern} in {result}"
                );
            }
        }
    }
    let modern = client.call("whoami", json!({})).send().result();
    assert_eq!(modern["structuredContent"]["policy"], "admin");
}

#[test]
fn people_are_shown_an_icon_where_a_client_meets_the_server() {
    let server = shared("admin");
    let client = server.client();
    let of_icon = |server: &Value| server["icons"][0]["src"].as_str().map(str::to_owned);
    let source = include_bytes!("../../src/owner/assets/icon.svg");
    let icon = format!("data:image/svg+xml;base64,{}", STANDARD.encode(source));
    for version in STATEFUL {
        let opened = client.session(version).opened.result();
        let shown = (version == "2025-11-25").then(|| icon.clone());
        assert_eq!(of_icon(&opened["serverInfo"]), shown, "{version}");
        assert_eq!(
            opened["serverInfo"]["description"].is_string(),
            shown.is_some()
        );
    }
    let named = |answer: Value| answer["_meta"]["io.modelcontextprotocol/serverInfo"].clone();
    let met = named(client.modern("server/discover").send().result());
    assert_eq!(of_icon(&met), Some(icon));
    let called = named(client.call("whoami", json!({})).send().result());
    assert_eq!(
        (called["name"].as_str(), of_icon(&called)),
        (Some("gatewren"), None)
    );
}
