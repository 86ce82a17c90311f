//! Tools, resources, prompts, completion, pages and log messages (T, U, Q, G, W of the checklist).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::request::Request;
use crate::support::server::{Server, fixtures, shared, shared_fixtures};
use crate::support::session::Session;

/// Each list method and the name of its list.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

const STATEFUL: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

fn capabilities(server: &Server) -> Value {
    let found = server.client().modern("server/discover").send().result();
    found["capabilities"].clone()
}

/// Returns a request of this method for each era: in 2026-07-28, and in a session of each stateful revision.
fn in_every_era(server: &Server, method: &str) -> Vec<(String, Request)> {
    let client = server.client();
    let mut requests = vec![("2026-07-28".to_owned(), client.modern(method))];
    for version in STATEFUL {
        let session = client.session(version);
        requests.push((version.to_owned(), session.request(method)));
    }
    requests
}

#[test]
fn t1_u1_q1_q4_what_is_declared_is_served_and_nothing_else() {
    let fixtures = shared_fixtures();
    let product = shared("observe");
    for server in [&*fixtures, &*product] {
        let declared = capabilities(server);
        for (feature, method) in [
            ("tools", "tools/list"),
            ("resources", "resources/list"),
            ("resources", "resources/templates/list"),
            ("prompts", "prompts/list"),
            ("completions", "completion/complete"),
        ] {
            let offered = declared.get(feature).is_some();
            let modern = server.client().modern(method).send().verdict();
            assert_eq!(modern != (404, -32_601), offered, "{method}: {modern:?}");
            for version in STATEFUL {
                let session = server.client().session(version);
                let opened = &session.opened.result()["capabilities"];
                assert_eq!(
                    opened.get(feature).is_some(),
                    offered,
                    "{version}: {opened}"
                );
                let code = session.request(method).send().verdict().1;
                assert_eq!(code != -32_601, offered, "{version}: {method}: {code}");
            }
        }
    }
}

#[test]
fn t3_each_list_is_the_same_each_time() {
    for (method, list) in LISTS {
        let server = shared_fixtures();
        let first = server.client().modern(method).send().result();
        let items = first[list].as_array().unwrap();
        assert!(!items.is_empty(), "{method}");
        let again = server.client().elsewhere().http2().modern(method).send();
        assert_eq!(again.result()[list], first[list], "{method}");
    }
}

#[test]
fn t4_t5_names_are_portable_and_schemas_are_objects() {
    let fixtures = shared_fixtures();
    let product = shared("admin");
    for server in [&*fixtures, &*product] {
        let list = server.client().modern("tools/list").send().result();
        let mut names = Vec::new();
        for tool in list["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
            assert!(
                (1..=64).contains(&name.len()) && name.bytes().all(plain),
                "{name}"
            );
            assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
            let output = tool.get("outputSchema");
            assert!(output.is_none_or(Value::is_object), "{name}");
            names.push(name.to_owned());
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "each once");
    }
}

#[test]
fn t6_structured_content_is_also_text() {
    let server = shared("observe");
    for tool in ["whoami", "server_info", "container_list"] {
        let result = server.client().call(tool, json!({})).send().result();
        let text = result["content"][0]["text"].as_str().unwrap();
        let text: Value = serde_json::from_str(text).unwrap();
        assert_eq!(text, result["structuredContent"], "{tool}");
    }
}

#[test]
fn t6_commands_and_output_are_answered_in_prose() {
    let server = shared("admin");
    let is_json = |tool: &str, arguments: Value| {
        let result = server.client().call(tool, arguments).send().result();
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        serde_json::from_str::<Value>(text).is_ok()
    };
    let start = json!({ "command": "echo out" });
    let job = server.client().call("job_start", start).send().data();
    let prose = [
        ("system_shell", json!({ "command": "true" })),
        ("job_output", json!({ "job": job["job"] })),
    ];
    for (tool, arguments) in prose {
        assert!(!is_json(tool, arguments), "{tool}");
    }
    for tool in ["job_list", "schedule_list", "watch_list", "state_get"] {
        assert!(is_json(tool, json!({})), "{tool}");
    }
}

#[test]
fn t8_an_unknown_tool_and_a_malformed_call_are_protocol_errors() {
    let server = shared("admin");
    for (era, call) in in_every_era(&server, "tools/call") {
        let rows = [
            call.clone().name("no_such_tool"),
            call.clone().name(""),
            call.clone().name("whoami").param("arguments", json!([])),
            call.clone().name("whoami").param("arguments", json!("x")),
        ];
        for row in rows {
            assert_eq!(row.send().verdict(), (200, -32_602), "{era}");
        }
        let answer = call.name("no_such_tool").send();
        assert!(answer.message().contains("no_such_tool"), "{era}");
    }
}

#[test]
fn t9_arguments_that_do_not_fit_are_a_result_that_says_so() {
    let server = shared("admin");
    for (era, call) in in_every_era(&server, "tools/call") {
        for arguments in [json!({ "timeout_s": 0 }), json!({ "x": 1 })] {
            let call = call.clone().name("system_shell");
            let answer = call.param("arguments", arguments).send();
            assert_eq!(answer.result()["isError"], true, "{era}");
        }
    }
}

#[test]
fn t11_a_list_that_changes_is_told_to_who_listens() {
    // A separate server: other tests change the same lists.
    let server = fixtures();
    let client = server.client();
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let listen = client.modern("subscriptions/listen");
    let mut modern = listen.param("notifications", filter).open();
    modern.message();
    let session = client.session("2025-06-18");
    let mut stateful = session.stream();
    for (trigger, method) in [
        (
            "test_trigger_tool_change",
            "notifications/tools/list_changed",
        ),
        (
            "test_trigger_prompt_change",
            "notifications/prompts/list_changed",
        ),
    ] {
        let done = client.call(trigger, json!({})).send();
        assert_eq!(done.verdict(), (200, 0));
        assert_eq!(modern.message()["method"], method);
        assert_eq!(stateful.message()["method"], method);
    }
}

#[test]
fn u2_u3_a_resource_that_is_not_there_has_the_code_of_its_revision() {
    let fixtures = shared_fixtures();
    let product = shared("observe");
    for (server, uri) in [
        (&*fixtures, "test://nothing"),
        (&*product, "gatewren:///public/nothing"),
    ] {
        for (era, read) in in_every_era(server, "resources/read") {
            let answer = read.uri(uri).send();
            let code = if era == "2026-07-28" {
                -32_602
            } else {
                -32_002
            };
            assert_eq!(answer.verdict(), (200, code), "{era}");
            let error = answer.rpc();
            assert_eq!(error["error"]["data"]["uri"], uri, "{era}");
            assert!(error.get("result").is_none(), "{era}");
        }
    }
}

#[test]
fn u4_no_uri_leads_out_of_what_is_public() {
    let server = shared("admin");
    for uri in [
        "gatewren:///",
        "gatewren:///private",
        "gatewren:///public/../private",
        "gatewren:///public/%2e%2e/private",
        "gatewren:///public/..%2fprivate",
        "gatewren:////etc/passwd",
        "gatewren://etc/passwd",
        "file:///etc/passwd",
        "/etc/passwd",
        "gatewren:///public/\u{0}",
        "gatewren:///public/%00",
        "gatewren:///public/%zz",
        "gatewren:///public/%",
        "",
        "x",
    ] {
        for (era, read) in in_every_era(&server, "resources/read") {
            // In 2026-07-28 the header repeats the URI, and these URIs are not valid as a plain header.
            let encoded = format!("=?base64?{}?=", base64(uri));
            let mut read = read.uri("x").param("uri", json!(uri));
            if era == "2026-07-28" {
                read = read.header("mcp-name", &encoded);
            }
            let answer = read.send();
            let code = answer.verdict().1;
            assert!(
                [-32_602, -32_002].contains(&code),
                "{era}: {uri:?}: {answer:?}"
            );
            assert!(!answer.body.contains("root:"), "{uri}");
        }
    }
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

#[test]
fn u4_a_blob_is_base64() {
    let read = shared_fixtures().client().modern("resources/read");
    let result = read.uri("test://static-binary").send().result();
    let contents = &result["contents"][0];
    assert!(contents.get("text").is_none(), "{contents}");
    let bytes = STANDARD.decode(contents["blob"].as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"));
}

#[test]
fn u5_what_a_template_lists_can_be_read_by_it() {
    let client = shared_fixtures().client();
    let list = client.modern("resources/templates/list").send().result();
    let templates = list["resourceTemplates"].as_array().unwrap();
    let family = "test://template/{id}/data";
    assert!(templates.iter().any(|t| t["uriTemplate"] == family));
    let read = client.modern("resources/read");
    let one = read.clone().uri("test://template/a%20b/data").send();
    let text = one.result()["contents"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.contains("a b") || text.contains("a%20b"), "{text}");
    let more = read.uri("test://template/a/b/data").send();
    assert_eq!(more.verdict(), (200, -32_602), "a variable is one segment");
}

#[test]
fn the_system_prompt_is_plain_text_with_the_server_and_its_version() {
    let server = shared("observe");
    for scheme in ["gatewren", "startos"] {
        let uri = format!("{scheme}:///mcp/system-prompt");
        for (era, request) in in_every_era(&server, "resources/read") {
            let contents = request.uri(&uri).send().result()["contents"][0].clone();
            assert_eq!(contents["uri"], uri, "{era}");
            assert_eq!(contents["mimeType"], "text/plain", "{era}");
            let text = contents["text"].as_str().unwrap();
            let first = format!("gatewren {}\n\n", env!("CARGO_PKG_VERSION"));
            assert!(text.starts_with(&first) && text.len() > 300, "{text}");
        }
    }
}

#[test]
fn u6_subscribing_is_answered_with_nothing_and_gone_in_2026() {
    let server = shared("observe");
    let uri = "gatewren:///public/serverInfo";
    for (era, request) in in_every_era(&server, "resources/subscribe") {
        let answer = request.uri(uri).send();
        if era == "2026-07-28" {
            assert_eq!(answer.verdict(), (404, -32_601));
        } else {
            assert_eq!(answer.result(), json!({}), "{era}");
        }
    }
    let session = server.client().session("2025-11-25");
    for _ in 0..2 {
        let answer = session.request("resources/unsubscribe").uri(uri).send();
        assert_eq!(answer.result(), json!({}), "also when there is none");
    }
    let unknown = session.request("resources/subscribe").uri("x:/y").send();
    assert_eq!(unknown.verdict(), (200, -32_002));
}

#[test]
fn u7_our_uris_have_a_scheme_of_our_own() {
    let client = shared("observe").client();
    let list = client.modern("resources/list").send().result();
    for resource in list["resources"].as_array().unwrap() {
        let uri = resource["uri"].as_str().unwrap();
        let is_ours = uri.starts_with("gatewren://") || uri.starts_with("skill://");
        assert!(is_ours, "{uri}");
    }
}

#[test]
fn q2_an_unknown_prompt_and_a_missing_argument_are_refused() {
    let server = shared_fixtures();
    for (era, get) in in_every_era(&server, "prompts/get") {
        let rows = [
            (get.clone().name("no_such_prompt"), "no_such_prompt"),
            (get.clone().name("test_prompt_with_arguments"), "arg1"),
            (
                get.clone()
                    .name("test_prompt_with_arguments")
                    .param("arguments", json!({ "arg1": "a" })),
                "arg2",
            ),
        ];
        for (row, word) in rows {
            let answer = row.send();
            assert_eq!(answer.verdict(), (200, -32_602), "{era}");
            assert!(answer.message().contains(word), "{era}: {answer:?}");
        }
        let list = get.clone().name("test_simple_prompt");
        let answer = list.param("arguments", json!([])).send();
        assert_eq!(answer.verdict(), (200, -32_602), "{era}");
    }
}

#[test]
fn q4_completion_is_bounded_and_refuses_what_there_is_not() {
    let server = shared_fixtures();
    for (era, complete) in in_every_era(&server, "completion/complete") {
        let argument = json!({ "name": "arg1", "value": "" });
        let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
        let known = complete
            .clone()
            .param("ref", prompt("test_prompt_with_arguments"))
            .param("argument", argument.clone());
        let values = known.send().result()["completion"]["values"].clone();
        assert!(values.as_array().unwrap().len() <= 100, "{era}");
        let rows = [
            complete.clone(),
            known.clone().param("ref", prompt("no_such_prompt")),
            known
                .clone()
                .param("ref", json!({ "type": "ref/other", "name": "x" })),
            known.clone().param(
                "ref",
                json!({ "type": "ref/resource", "uri": "test://nothing" }),
            ),
            known.clone().param("argument", json!({ "name": "arg1" })),
            known.clone().param("argument", json!("x")),
            known.clone().param("context", json!("x")),
            known.clone().param("context", json!({ "arguments": [] })),
            known
                .clone()
                .param("context", json!({ "arguments": { "arg2": 2 } })),
        ];
        for row in rows {
            assert_eq!(row.send().verdict(), (200, -32_602), "{era}");
        }
    }
}

#[test]
fn g2_a_cursor_that_is_not_ours_is_refused() {
    let server = shared_fixtures();
    for (method, _) in LISTS {
        for (era, list) in in_every_era(&server, method) {
            for cursor in [
                json!(""),
                json!("x"),
                json!("YXQ6MA"),
                json!("YXQ6OTk5OTk5"),
                json!(1),
                json!({}),
            ] {
                let answer = list.clone().param("cursor", cursor.clone()).send();
                assert_eq!(answer.verdict(), (200, -32_602), "{era} {method} {cursor}");
            }
        }
    }
}

/// Returns a session's log messages of a call that logs.
fn logged(session: &Session) -> Vec<String> {
    let answer = session.call("test_tool_with_logging", json!({})).send();
    let messages = answer.messages();
    let notes = messages
        .iter()
        .filter(|m| m["method"] == "notifications/message");
    notes
        .map(|m| m["params"]["level"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn w1_each_session_has_a_level_of_its_own() {
    let client = shared_fixtures().client();
    let [loud, quiet, silent] = [(); 3].map(|()| client.session("2025-11-25"));
    for (session, level) in [(&loud, "debug"), (&quiet, "error")] {
        let set = session
            .request("logging/setLevel")
            .param("level", json!(level));
        assert_eq!(set.send().result(), json!({}));
    }
    assert!(logged(&loud).len() >= 3);
    assert_eq!(logged(&quiet), Vec::<String>::new());
    let wrong = [json!("loud"), json!(3), json!(null)];
    for level in wrong {
        let set = silent.request("logging/setLevel").param("level", level);
        assert_eq!(set.send().verdict(), (200, -32_602));
    }
    assert_eq!(
        silent.request("logging/setLevel").send().verdict(),
        (200, -32_602)
    );
}

#[test]
fn w2_a_log_message_comes_for_the_request_that_asked_from_its_level_up() {
    let client = shared_fixtures().client();
    let call = client.call("test_tool_with_logging", json!({}));
    let notes = |request: Request| request.send().messages().len() - 1;
    assert_eq!(notes(call.clone()), 0, "nobody asked");
    assert!(notes(call.clone().mcp_meta("logLevel", json!("debug"))) >= 3);
    assert!(notes(call.clone().mcp_meta("logLevel", json!("info"))) >= 3);
    assert_eq!(notes(call.mcp_meta("logLevel", json!("emergency"))), 0);
}

#[test]
fn w3_a_level_that_there_is_not_is_refused() {
    let client = shared_fixtures().client();
    for level in [json!("loud"), json!(""), json!(7), json!(null), json!({})] {
        let call = client.call("test_tool_with_logging", json!({}));
        let answer = call.mcp_meta("logLevel", level.clone()).send();
        assert_eq!(answer.verdict(), (400, -32_602), "{level}");
    }
}
