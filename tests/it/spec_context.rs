//! The fields of requests and results (J, D, E, C, M, L of the checklist), against the fixtures.

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::request::Request;
use crate::support::server::{shared, shared_fixtures};
use crate::support::stream::Stream;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

fn with(request: Request, capabilities: &Value) -> Request {
    request.mcp_meta("clientCapabilities", capabilities.clone())
}

fn needed(answer: &Answer) -> Value {
    assert_eq!(answer.verdict(), (400, -32_021), "{answer:?}");
    answer.rpc()["error"]["data"].clone()
}

/// Returns a request of each served method, and one that gets a question.
fn every_method(client: &Client) -> Vec<Request> {
    let complete = client
        .modern("completion/complete")
        .param(
            "ref",
            json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" }),
        )
        .param("argument", json!({ "name": "arg1", "value": "t" }));
    let asking = client.call("test_input_required_result_elicitation", json!({}));
    vec![
        client.modern("server/discover"),
        client.modern("tools/list"),
        client.call("test_simple_text", json!({})),
        client.call("test_error_handling", json!({})),
        with(asking, &json!({ "elicitation": {} })),
        client.modern("resources/list"),
        client.modern("resources/templates/list"),
        client.modern("resources/read").uri("test://static-text"),
        client.modern("prompts/list"),
        client.modern("prompts/get").name("test_simple_prompt"),
        complete,
    ]
}

fn listen(client: &Client, filter: Value) -> Stream {
    let request = client.modern("subscriptions/listen");
    let mut stream = request.param("notifications", filter).open();
    let first = stream.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    stream
}

#[test]
fn j7_e1_every_result_has_its_type_and_says_which_server_it_is_from() {
    for request in every_method(&shared_fixtures().client()) {
        let result = request.send().result();
        let kind = result["resultType"].as_str();
        assert!(
            matches!(kind, Some("complete" | "input_required")),
            "{result}"
        );
        let server = &result["_meta"][SERVER_INFO];
        assert_eq!(server["name"], "gatewren-everything", "{result}");
        assert!(server["version"].is_string(), "{result}");
    }
}

#[test]
fn c1_c2_each_cacheable_result_has_its_hints_and_nothing_else_has_any() {
    let cacheable = [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ];
    for request in every_method(&shared_fixtures().client()) {
        let message: Value = serde_json::from_slice(&request.bytes()).unwrap();
        let result = request.send().result();
        let hinted = cacheable.iter().any(|method| message["method"] == *method);
        assert_eq!(result["ttlMs"].is_u64(), hinted, "{message}: {result}");
        assert_eq!(
            result.get("cacheScope").is_some(),
            hinted,
            "{message}: {result}"
        );
    }
    // A result that depends on answers is stale at once.
    let read = shared_fixtures().client().modern("resources/read");
    let read = read
        .uri("test://static-text")
        .param("inputResponses", json!({}));
    assert_eq!(read.send().result()["ttlMs"], 0);
}

#[test]
fn j8_a_missing_capability_is_named_exactly() {
    let client = shared_fixtures().client();
    let (form, url) = (json!({ "form": {} }), json!({ "url": {} }));
    for (tool, declared, missing) in [
        ("elicitation", json!({}), json!({ "elicitation": form })),
        (
            "elicitation",
            json!({ "elicitation": url }),
            json!({ "elicitation": form }),
        ),
        (
            "elicitation",
            json!({ "sampling": {} }),
            json!({ "elicitation": form }),
        ),
        (
            "sampling",
            json!({ "elicitation": {} }),
            json!({ "sampling": {} }),
        ),
        (
            "list_roots",
            json!({ "sampling": {} }),
            json!({ "roots": {} }),
        ),
    ] {
        let tool = format!("test_input_required_result_{tool}");
        let call = with(client.call(&tool, json!({})), &declared);
        let data = needed(&call.send());
        assert_eq!(
            data,
            json!({ "requiredCapabilities": missing }),
            "{tool} {declared}"
        );
    }
}

#[test]
fn j5_j6_nothing_is_taken_from_an_earlier_request_of_the_connection() {
    for client in [
        shared_fixtures().client(),
        shared_fixtures().client().http2(),
    ] {
        let mut connection = client.connection();
        let call = client.call("test_input_required_result_elicitation", json!({}));
        for _ in 0..2 {
            let able = with(call.clone(), &json!({ "elicitation": {} }));
            let question = able.send_over(&mut connection).result();
            assert_eq!(question["resultType"], "input_required");
            needed(&call.send_over(&mut connection));
        }
        // Not even the era is remembered: a session is opened and used in between.
        let opened = client.initialize("2025-06-18").send_over(&mut connection);
        assert!(opened.header("mcp-session-id").is_some());
        assert_eq!(call.send_over(&mut connection).verdict(), (400, -32_021));
    }
}

#[test]
fn j6_what_a_client_calls_itself_changes_nothing() {
    let list = shared_fixtures().client().modern("tools/list");
    let plain = list.send().result();
    let names = [
        json!({ "name": "gatewren", "version": "1" }),
        json!({ "name": "", "version": "" }),
        json!("a text"),
        json!(null),
    ];
    for name in names {
        let request = list.clone().mcp_meta("clientInfo", name);
        assert_eq!(request.send().result(), plain);
    }
}

#[test]
fn j2_in_2026_nothing_is_kept_by_an_id() {
    let client = shared_fixtures().client().http2();
    let mut connection = client.connection();
    let call = client
        .call("test_tool_with_progress", json!({}))
        .id(json!("same"));
    let stream = |connection: &mut _| call.clone().progress(json!(1)).open_over(connection);
    let mut streams = [stream(&mut connection), stream(&mut connection)];
    for stream in &mut streams {
        let answer = loop {
            let message = stream.message();
            if message.get("id").is_some() {
                break message;
            }
        };
        assert_eq!(
            (&answer["id"], &answer["result"]["resultType"]),
            (&json!("same"), &json!("complete"))
        );
    }
}

#[test]
fn d6_what_is_declared_is_what_is_served() {
    for server in [&*shared_fixtures(), &*shared("observe")] {
        let client = server.client();
        let found = client.modern("server/discover").send().result();
        let declared = &found["capabilities"];
        let served = |method: &str| client.modern(method).send().verdict().0 != 404;
        for (capability, methods) in [
            ("tools", &["tools/list"][..]),
            ("resources", &["resources/list", "resources/templates/list"]),
            ("prompts", &["prompts/list"]),
            ("completions", &["completion/complete"]),
        ] {
            for method in methods {
                assert_eq!(
                    declared.get(capability).is_some(),
                    served(method),
                    "{method}"
                );
            }
        }
        // Only lists that change declare it: the tools change with their agent's policy.
        assert_eq!(declared["tools"]["listChanged"], true, "{declared}");
        let changes = declared["resources"].get("listChanged").is_some();
        let fixtures = found["_meta"][SERVER_INFO]["name"] == "gatewren-everything";
        assert_eq!(changes, fixtures, "{declared}");
        let session = client.session("2025-11-25").opened.result();
        assert!(session["capabilities"]["logging"].is_object(), "{session}");
    }
}

#[test]
fn d7_a_session_is_asked_only_for_what_its_client_declared() {
    let client = shared_fixtures().client();
    let bare = client.session("2025-11-25");
    let asking = [
        ("test_elicitation", json!({ "message": "Who?" })),
        ("test_sampling", json!({ "prompt": "Why?" })),
    ];
    for (tool, arguments) in asking {
        let messages = bare.call(tool, arguments).send().messages();
        assert_eq!(messages.len(), 1, "{tool}: {messages:?}");
        assert!(messages[0].get("method").is_none(), "{tool}: {messages:?}");
    }
}

#[test]
fn m7_m9_an_argument_is_repeated_in_its_header_or_refused() {
    let client = shared_fixtures().client();
    let call = |region: Value| client.call("test_header_parameter", json!({ "region": region }));
    let sent = |region: Value, header: &str| call(region).header("mcp-param-region", header);
    for good in [
        sent(json!("eu"), "eu"),
        sent(json!("eu"), " eu\t"),
        sent(json!("eu"), "=?base64?ZXU=?="),
        sent(json!("Zürich"), "=?base64?WsO8cmljaA==?="),
        client.call("test_header_parameter", json!({})),
        // A header of another tool is ignored.
        client
            .call("test_simple_text", json!({}))
            .header("mcp-param-region", "x"),
    ] {
        assert_eq!(good.send().verdict(), (200, 0), "{good:?}");
    }
    for bad in [
        call(json!("eu")),
        sent(json!("eu"), "us"),
        sent(json!("eu"), "EU"),
        sent(json!("eu"), "=?base64?ZXU?="),
        sent(json!("eu"), "=?base64?Z*U=?="),
        sent(json!("eu"), "=?BASE64?ZXU=?="),
        sent(json!("eu"), "eu").also("mcp-param-region", b"eu"),
        sent(json!("Zürich"), "Zürich"),
    ] {
        assert_eq!(bad.send().verdict(), (400, -32_020), "{bad:?}");
    }
    // Null counts as absent: no header is expected, and the tool checks the null.
    assert_eq!(call(json!(null)).send().status, 200);
}

#[test]
fn l3_l8_a_change_of_a_list_is_told_to_who_asked_for_that_list() {
    let client = shared_fixtures().client();
    let mut tools = listen(&client, json!({ "toolsListChanged": true }));
    let mut prompts = listen(&client, json!({ "promptsListChanged": true }));
    for tool in ["test_trigger_prompt_change", "test_trigger_tool_change"] {
        client.call(tool, json!({})).send().result();
    }
    // Other tests may trigger the same notifications, but no stream gets the other's.
    for (stream, method) in [
        (&mut tools, "notifications/tools/list_changed"),
        (&mut prompts, "notifications/prompts/list_changed"),
    ] {
        let message = stream.message();
        assert_eq!(message["method"], method);
        let id = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(id, 1);
    }
}

#[test]
fn e12_v7_a_url_that_is_to_be_visited_is_an_error_in_2025_11_25_alone() {
    let client = shared_fixtures().client();
    let able = json!({ "elicitation": { "form": {}, "url": {} } });
    let arguments = json!({ "url": "https://example.org/", "errorPath": true });
    for (version, code) in [
        ("2025-03-26", -32_602),
        ("2025-06-18", -32_602),
        ("2025-11-25", -32_042),
    ] {
        let session = client.session_with(version, able.clone());
        let call = session.call("trigger-url-elicitation", arguments.clone());
        assert_eq!(call.send().verdict(), (200, code), "{version}");
    }
    let modern = with(client.call("trigger-url-elicitation", arguments), &able);
    assert_eq!(modern.send().result()["resultType"], "input_required");
}
