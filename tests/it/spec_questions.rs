//! Questions within a call, elicitation, sampling and roots (R and X of the checklist), against the fixtures.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::request::Request;
use crate::support::server::{fixtures, shared, shared_fixtures};

/// Returns every fixture that asks a question, with suitable arguments.
fn asking() -> Vec<(&'static str, Value)> {
    let mut tools: Vec<(&str, Value)> = [
        "elicitation",
        "sampling",
        "list_roots",
        "request_state",
        "tampered_state",
        "multiple_inputs",
        "multi_round",
        "capabilities",
    ]
    .iter()
    .map(|&name| (name, json!({})))
    .collect();
    tools.push(("test_elicitation", json!({ "message": "Who?" })));
    tools.push(("test_sampling", json!({ "prompt": "Why?" })));
    tools.push(("test_elicitation_sep1034_defaults", json!({})));
    tools.push(("test_elicitation_sep1330_enums", json!({})));
    tools
}

/// Returns a call by a client with all capabilities.
fn able(tool: &str, arguments: Value) -> Request {
    if tool.starts_with("test_") {
        able_to(tool, arguments)
    } else {
        able_to(&format!("test_input_required_result_{tool}"), arguments)
    }
}

fn able_to(tool: &str, arguments: Value) -> Request {
    let able = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    let request = shared_fixtures().client().call(tool, arguments);
    request.mcp_meta("clientCapabilities", able)
}

fn asked(answer: &Answer) -> Value {
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result
}

/// Returns the same call with the question's state, and an accepted form for each key.
fn again(request: Request, question: &Value) -> Request {
    let content = json!({ "name": "Ada", "ok": true, "colour": "red" });
    let form = json!({ "action": "accept", "content": content });
    let keys = question["inputRequests"].as_object().unwrap().keys();
    let answers: serde_json::Map<_, _> = keys.map(|key| (key.clone(), form.clone())).collect();
    let request = request.param("inputResponses", Value::Object(answers));
    match question.get("requestState") {
        Some(state) => request.param("requestState", state.clone()),
        None => request,
    }
}

#[test]
fn r2_a_question_holds_requests_of_the_three_kinds_that_there_are() {
    for (tool, arguments) in asking() {
        let question = asked(&able(tool, arguments).send());
        let requests = question["inputRequests"].as_object().unwrap();
        assert!(!requests.is_empty(), "{tool}");
        for request in requests.values() {
            let method = request["method"].as_str().unwrap();
            let kinds = ["elicitation/create", "sampling/createMessage", "roots/list"];
            assert!(kinds.contains(&method), "{tool}: {method}");
            assert!(request["params"].is_object(), "{tool}: {request}");
        }
        for absent in ["ttlMs", "cacheScope", "content"] {
            assert!(question.get(absent).is_none(), "{tool}: {absent}");
        }
    }
}

#[test]
#[rustfmt::skip]
fn r3_x2_a_client_that_cannot_be_asked_is_told_what_it_would_need() {
    let form = json!({ "elicitation": { "form": {} } });
    let sampling = json!({ "sampling": {} });
    let rows = [
        ("elicitation", json!({}), &form),
        ("elicitation", json!({ "elicitation": { "url": {} } }), &form),
        ("elicitation", json!({ "sampling": {}, "roots": {} }), &form),
        ("sampling", json!({ "elicitation": {}, "roots": {} }), &sampling),
        ("list_roots", json!({ "elicitation": {}, "sampling": {} }), &json!({ "roots": {} })),
        ("test_missing_capability", json!({}), &sampling),
    ];
    for (tool, declared, needed) in rows {
        let answer = able(tool, json!({})).mcp_meta("clientCapabilities", declared.clone()).send();
        assert_eq!(answer.verdict(), (400, -32_021), "{tool} with {declared}");
        assert_eq!(&answer.rpc()["error"]["data"]["requiredCapabilities"], needed, "{tool}");
    }
}

#[test]
fn x2_elicitation_without_a_mode_means_forms() {
    let request = able("elicitation", json!({}));
    let answer = request.mcp_meta("clientCapabilities", json!({ "elicitation": {} }));
    asked(&answer.send());
}

#[test]
fn r4_r5_state_is_good_for_the_same_request_alone() {
    let first = able("request_state", json!({}));
    let question = asked(&first.send());
    let state = question["requestState"].as_str().unwrap();
    let done = again(first.clone(), &question).send().result();
    assert!(
        done["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("state-ok")
    );

    let other_tool = again(able("tampered_state", json!({})), &question);
    let other_arguments = again(able("request_state", json!({ "x": 1 })), &question);
    let mut wrong = vec![
        ("another tool", other_tool),
        ("other arguments", other_arguments),
    ];
    let (body, tag) = state.rsplit_once('.').unwrap();
    for (what, text) in [
        ("longer", format!("{state}x")),
        ("shorter", state[..state.len() - 1].to_owned()),
        ("without its seal", body.to_owned()),
        ("with an empty seal", format!("{body}.")),
        ("of another body", format!("{body}A.{tag}")),
        ("empty", String::new()),
        ("no state at all", "gatewren".to_owned()),
    ] {
        let request = again(first.clone(), &question);
        wrong.push((what, request.param("requestState", json!(text))));
    }
    for (what, request) in wrong {
        let answer = request.send();
        assert_eq!(answer.verdict(), (200, -32_602), "{what}: {answer:?}");
        assert!(answer.message().contains("requestState"), "{what}");
    }
    let no_text = first.param("requestState", json!({ "round": 1 })).send();
    assert_eq!(no_text.verdict().1, -32_602);
}

#[test]
fn r6_answers_that_are_missing_are_asked_for_again_and_others_are_passed_over() {
    let first = able("elicitation", json!({}));
    let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
    for answers in [json!({}), json!({ "other": ada })] {
        let request = first.clone().param("inputResponses", answers);
        asked(&request.send());
    }
    let both = json!({ "user_name": ada, "other": 1 });
    let done = first.clone().param("inputResponses", both).send().result();
    assert_eq!(done["content"][0]["text"], "Hello, Ada!");
    for malformed in [json!(null), json!([]), json!("x"), json!(1)] {
        let answer = first.clone().param("inputResponses", malformed).send();
        assert_eq!(answer.verdict().1, -32_602, "{answer:?}");
    }
}

#[test]
fn r7_a_question_holds_nothing_open() {
    let mut server = fixtures();
    let call = server
        .client()
        .call("test_input_required_result_multi_round", json!({}));
    let able = json!({ "elicitation": {} });
    for _ in 0..50 {
        asked(
            &call
                .clone()
                .mcp_meta("clientCapabilities", able.clone())
                .send(),
        );
    }
    server.signal(Signal::SIGTERM);
    // The server would wait 30 seconds for a call in flight.
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn x1_x3_a_form_is_a_flat_object_of_plain_values_and_choices() {
    let plain = ["string", "number", "integer", "boolean"];
    let mut forms = 0;
    for (tool, arguments) in asking() {
        let question = asked(&able(tool, arguments).send());
        for request in question["inputRequests"].as_object().unwrap().values() {
            let schema = &request["params"]["requestedSchema"];
            if schema.is_null() {
                continue;
            }
            forms += 1;
            assert_eq!(schema["type"], "object", "{tool}");
            for (name, field) in schema["properties"].as_object().unwrap() {
                let name = name.to_lowercase();
                for secret in ["password", "secret", "token", "key"] {
                    assert!(!name.contains(secret), "{tool}: {name}");
                }
                let kind = field["type"].as_str().unwrap();
                let items = &field["items"];
                let choices = items.get("enum").is_some() || items.get("anyOf").is_some();
                assert!(
                    plain.contains(&kind) || kind == "array" && choices,
                    "{tool}: {field}"
                );
            }
        }
    }
    assert!(forms > 5, "{forms} forms");
}

#[test]
fn x5_a_person_who_declines_or_cancels_is_an_answer() {
    let first = able("test_elicitation", json!({ "message": "Who?" }));
    for action in ["decline", "cancel"] {
        let answers = json!({ "answer": { "action": action } });
        let done = first
            .clone()
            .param("inputResponses", answers.clone())
            .send();
        let words = done.result()["content"][0]["text"].to_string();
        assert!(words.contains(action), "{words}");

        let client = shared_fixtures().client();
        let session = client.session_with("2025-11-25", json!({ "elicitation": {} }));
        let mut stream = session
            .call("test_elicitation", json!({ "message": "Who?" }))
            .open();
        let question = stream.call_message();
        assert_eq!(question["method"], "elicitation/create");
        let reply =
            json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": action } });
        assert_eq!(session.post(reply).send().status, 202);
        let words = stream.call_message()["result"]["content"][0]["text"].to_string();
        assert!(words.contains(action), "{words}");
    }
}

#[test]
fn x5_a_client_that_fails_to_ask_fails_the_call() {
    let client = shared_fixtures().client();
    let session = client.session_with("2025-06-18", json!({ "elicitation": {} }));
    let mut stream = session
        .call("test_elicitation", json!({ "message": "Who?" }))
        .open();
    let question = stream.call_message();
    let error = json!({ "code": -32_603, "message": "no screen" });
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "error": error });
    assert_eq!(session.post(reply).send().status, 202);
    let end = stream.call_message();
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no screen"),
        "{end}"
    );
}

#[test]
fn x6_w5_the_product_uses_nothing_that_is_deprecated() {
    let client = shared("admin").client();
    let found = client.modern("server/discover").send().result();
    assert!(found["capabilities"].get("logging").is_none(), "{found}");
    let call = client.call("whoami", json!({})).progress(json!("t"));
    let answer = call.mcp_meta("logLevel", json!("debug")).send();
    assert_eq!(answer.messages().len(), 1, "{answer:?}");
}

#[test]
fn e12_x4_in_2026_a_visit_to_a_url_is_a_question_and_never_an_error() {
    let visit = json!({ "url": "https://example.org/", "errorPath": true });
    let question = asked(&able_to("trigger-url-elicitation", visit.clone()).send());
    let request = question["inputRequests"].as_object().unwrap().values();
    let params = &request.clone().next().unwrap()["params"];
    assert_eq!(params["mode"], "url");
    assert_eq!(params["url"], "https://example.org/");
    assert!(params.get("elicitationId").is_none(), "{params}");
    for url in [
        "javascript:alert(1)",
        "https://me@example.org/",
        "example.org",
        "",
    ] {
        let call = able_to("trigger-url-elicitation", json!({ "url": url }));
        assert_eq!(call.send().result()["isError"], true, "{url}");
    }
}

#[test]
fn v7_a_session_is_asked_in_the_ways_that_its_revision_knows() {
    let client = shared_fixtures().client();
    let able = json!({ "elicitation": { "form": {}, "url": {} } });
    for (version, form, url) in [
        ("2025-03-26", false, false),
        ("2025-06-18", true, false),
        ("2025-11-25", true, true),
    ] {
        let session = client.session_with(version, able.clone());
        let rows = [
            ("test_elicitation", json!({ "message": "Who?" }), form),
            (
                "trigger-url-elicitation",
                json!({ "url": "https://example.org/" }),
                url,
            ),
        ];
        for (tool, arguments, knows) in rows {
            let call = session.call(tool, arguments);
            if knows {
                let first = call.open().call_message();
                assert_eq!(first["method"], "elicitation/create", "{version}: {tool}");
            } else {
                assert_eq!(call.send().verdict(), (200, -32_602), "{version}: {tool}");
            }
        }
    }
}
