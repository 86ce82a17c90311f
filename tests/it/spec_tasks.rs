//! The tasks extension (K of the checklist), against the fixtures.

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::server::shared_fixtures;
use crate::support::stream::Stream;
use crate::support::tasks::{
    TASKS, about, asked, call, fill_in, knowing, made, task, unknowing, until,
};

const METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

/// A duration in seconds that no test waits for.
const LONG: u64 = 3000;

fn slow(seconds: u64) -> Value {
    json!({ "seconds": seconds, "label": "test" })
}

/// Asserts an acknowledgement: a complete result without any data about the task.
fn is_acknowledged(answer: &Answer) {
    let mut result = answer.result();
    let object = result.as_object_mut().unwrap();
    object.remove("_meta");
    assert_eq!(result, json!({ "resultType": "complete" }));
}

#[test]
fn k1_v9_it_is_declared_among_the_extensions_and_does_not_exist_in_a_session() {
    let server = shared_fixtures();
    let client = server.client();
    let capabilities = client.modern("server/discover").send().result()["capabilities"].take();
    assert_eq!(capabilities["extensions"][TASKS], json!({}));
    assert!(capabilities.get("tasks").is_none());
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let knows = json!({ "extensions": { TASKS: {} }, "tasks": {}, "elicitation": {} });
        let initialize = client.initialize(version).param("capabilities", knows);
        let opened = initialize.send().result();
        assert!(opened["capabilities"].get("extensions").is_none());
        assert!(opened["capabilities"].get("tasks").is_none());
        let session = client.session(version);
        for method in METHODS {
            let request = session.request(method).param("taskId", json!("x"));
            assert_eq!(
                request.send().verdict(),
                (200, -32_601),
                "{version} {method}"
            );
        }
        let result = session.call("slow_compute", slow(1)).send().result();
        assert_eq!(result["isError"], false, "{version}: {result}");
        let required = session.call("failing_job", json!({})).send();
        assert_eq!(required.verdict(), (200, -32_602), "{version}");
    }
}

#[test]
fn k2_d9_a_task_is_made_only_for_a_request_that_declares_the_extension() {
    let server = shared_fixtures();
    for (way, client) in server.clients() {
        let waited = client.call("slow_compute", slow(1)).send().result();
        assert_eq!(waited["resultType"], "complete", "{way}");
        made(&call(&client, "slow_compute", slow(1)).send());
        let undeclared = client.call("slow_compute", slow(1));
        let undeclared = undeclared.mcp_meta("clientCapabilities", json!({ "tasks": {} }));
        assert_eq!(
            undeclared.send().result()["resultType"],
            "complete",
            "{way}"
        );
        let refused = client.call("failing_job", json!({})).send();
        assert_eq!(refused.verdict(), (400, -32_021), "{way}");
        let needed = refused.rpc()["error"]["data"]["requiredCapabilities"].take();
        assert_eq!(needed, json!({ "extensions": { TASKS: {} } }), "{way}");
    }
}

#[test]
fn k2_what_is_there_at_once_makes_no_task() {
    let client = shared_fixtures().client();
    let at_once = call(&client, "greet", json!({ "name": "Ada" })).send();
    assert_eq!(at_once.result()["resultType"], "complete");
    for tool in ["slow_compute", "failing_job", "confirm_delete"] {
        let wrong = json!({ "seconds": "many", "filename": 5, "unknown": 1 });
        let answer = call(&client, tool, wrong).send();
        if tool == "failing_job" {
            // This tool accepts any arguments.
            made(&answer);
        } else {
            assert!(answer.failure().contains("invalid argument"), "{tool}");
        }
    }
}

#[test]
fn k3_k4_what_makes_a_task_is_flat_and_the_task_is_there() {
    let client = shared_fixtures().client();
    let answer = call(&client, "slow_compute", slow(LONG)).send();
    let created = answer.result();
    let fields = [
        "_meta",
        "createdAt",
        "lastUpdatedAt",
        "pollIntervalMs",
        "resultType",
        "status",
        "taskId",
        "ttlMs",
    ];
    let names: Vec<&String> = created.as_object().unwrap().keys().collect();
    assert_eq!(names, fields);
    assert_eq!(created["status"], "working");
    assert!(created["ttlMs"].as_u64().unwrap() >= 60_000);
    for moment in ["createdAt", "lastUpdatedAt"] {
        assert!(
            created[moment].as_str().unwrap().ends_with('Z'),
            "{created}"
        );
    }
    let found = task(&client, &made(&answer));
    assert_eq!(found["resultType"], "complete");
    for name in ["taskId", "createdAt", "ttlMs"] {
        assert_eq!(found[name], created[name]);
    }
    is_acknowledged(&about(&client, "tasks/cancel", &made(&answer)).send());
}

#[test]
fn k5_k6_each_end_carries_what_belongs_to_it() {
    let client = shared_fixtures().client();
    let id = |tool: &str| made(&call(&client, tool, slow(1)).send());
    let (slow, failing, broken) = (
        id("slow_compute"),
        id("failing_job"),
        id("protocol_error_job"),
    );
    let done = until(&client, &slow, "completed");
    assert_eq!(done["result"]["isError"], false);
    assert_eq!(done["result"]["resultType"], "complete");
    let done = until(&client, &failing, "completed");
    assert_eq!(
        done["result"]["isError"], true,
        "an error of the tool is a result"
    );
    assert!(done.get("error").is_none());
    let failed = until(&client, &broken, "failed");
    assert_eq!(failed["error"]["code"], -32_603);
    assert_eq!(failed["error"]["message"], failed["statusMessage"]);
    assert!(failed.get("result").is_none());
    for (id, was) in [(&slow, "completed"), (&broken, "failed")] {
        is_acknowledged(&about(&client, "tasks/cancel", id).send());
        assert_eq!(task(&client, id)["status"], was, "what has ended stays so");
    }
}

#[test]
fn k8_a_task_is_cancelled_and_an_unknown_one_is_not() {
    let client = shared_fixtures().client();
    let id = made(&call(&client, "slow_compute", slow(LONG)).send());
    is_acknowledged(&about(&client, "tasks/cancel", &id).send());
    let cancelled = until(&client, &id, "cancelled");
    assert!(cancelled.get("result").is_none() && cancelled.get("error").is_none());
    is_acknowledged(&about(&client, "tasks/cancel", &id).send());
    let waiting = made(&call(&client, "confirm_delete", json!({})).send());
    is_acknowledged(&about(&client, "tasks/cancel", &waiting).send());
    until(&client, &waiting, "cancelled");
    for method in METHODS {
        for unknown in ["", "task_0", "../../etc/passwd"] {
            let answer = about(&client, method, unknown).send();
            assert_eq!(answer.verdict(), (200, -32_602), "{method} {unknown:?}");
        }
    }
}

#[test]
fn k7_answers_come_in_parts_and_strange_ones_are_passed_over() {
    let client = shared_fixtures().client();
    let id = made(&call(&client, "multi_input", json!({})).send());
    let waiting = until(&client, &id, "input_required");
    assert_eq!(asked(&waiting), ["confirm", "name"]);
    for request in waiting["inputRequests"].as_object().unwrap().values() {
        assert_eq!(request["method"], "elicitation/create");
    }
    for strange in ["never-asked", "__proto__", ""] {
        is_acknowledged(&fill_in(&client, &id, strange, &json!({})));
    }
    assert_eq!(asked(&task(&client, &id)).len(), 2);
    is_acknowledged(&fill_in(&client, &id, "name", &json!({ "name": "first" })));
    assert_eq!(asked(&task(&client, &id)), ["confirm"]);
    is_acknowledged(&fill_in(&client, &id, "name", &json!({ "name": "second" })));
    is_acknowledged(&fill_in(
        &client,
        &id,
        "confirm",
        &json!({ "confirm": true }),
    ));
    let done = until(&client, &id, "completed");
    let words = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        words.contains("first") && !words.contains("second"),
        "{words}"
    );
    is_acknowledged(&fill_in(&client, &id, "name", &json!({ "name": "third" })));
    for wrong in [json!(1), json!([]), Value::Null] {
        let request = about(&client, "tasks/update", &id).param("inputResponses", wrong);
        assert_eq!(request.send().verdict(), (200, -32_602));
    }
}

#[test]
fn k9_who_does_not_declare_the_extension_is_told_what_it_would_need() {
    let client = shared_fixtures().client();
    let id = made(&call(&client, "slow_compute", slow(LONG)).send());
    for known in [id.as_str(), "unknown"] {
        let mut requests = METHODS
            .map(|method| unknowing(&client, method, known))
            .to_vec();
        let filter = json!({ "taskIds": [known] });
        let listen = client.modern("subscriptions/listen");
        requests.push(listen.param("notifications", filter));
        for request in requests {
            let refused = request.send();
            assert_eq!(refused.verdict().1, -32_021, "{refused:?}");
            let needed = refused.rpc()["error"]["data"]["requiredCapabilities"].take();
            assert_eq!(needed, json!({ "extensions": { TASKS: {} } }));
        }
    }
    let refused = unknowing(&client, "tasks/get", &id).send();
    assert_eq!(refused.status, 400);
    assert_eq!(task(&client, &id)["status"], "working");
    about(&client, "tasks/cancel", &id).send();
}

#[test]
fn k10_what_was_removed_is_not_served_and_a_wish_for_a_task_is_passed_over() {
    let client = shared_fixtures().client();
    for method in ["tasks/result", "tasks/list"] {
        let answer = about(&client, method, "x").send();
        assert_eq!(answer.verdict(), (404, -32_601), "{method}");
    }
    let wish = json!({ "ttl": 60_000, "pollInterval": 10 });
    let greeted = call(&client, "greet", json!({ "name": "Ada" })).param("task", wish.clone());
    assert_eq!(greeted.send().result()["resultType"], "complete");
    let undeclared = client.call("slow_compute", slow(1)).param("task", wish);
    assert_eq!(undeclared.send().result()["resultType"], "complete");
}

/// Opens a stream for these tasks; returns the acknowledged ids too.
fn listen(ids: &[&str]) -> (Stream, Vec<String>) {
    let filter = json!({ "taskIds": ids });
    let request = shared_fixtures().client().modern("subscriptions/listen");
    let request = knowing(request).param("notifications", filter);
    let mut stream = request.id(json!("mine")).open();
    let first = stream.message();
    assert_eq!(
        first["method"], "notifications/subscriptions/acknowledged",
        "{first}"
    );
    let honoured = first["params"]["notifications"]["taskIds"].clone();
    (stream, serde_json::from_value(honoured).unwrap_or_default())
}

/// Returns the task in the next notification, which has the same form as in `tasks/get`.
fn told(stream: &mut Stream) -> Value {
    let mut message = stream.message();
    assert_eq!(message["method"], "notifications/tasks", "{message}");
    assert!(message.get("id").is_none());
    let mut task = message["params"].take();
    let meta = task.as_object_mut().unwrap().remove("_meta").unwrap();
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], "mine");
    task
}

/// Returns the result of `tasks/get` without the fields that every result has.
fn bare(mut task: Value) -> Value {
    let object = task.as_object_mut().unwrap();
    object.remove("_meta");
    object.remove("resultType");
    task
}

#[test]
fn k11_a_listener_hears_of_its_tasks_what_asking_would_say() {
    let client = shared_fixtures().client();
    let id = made(&call(&client, "multi_input", json!({})).send());
    let other = made(&call(&client, "slow_compute", slow(LONG)).send());
    let waiting = bare(until(&client, &id, "input_required"));
    let (mut stream, honoured) = listen(&[&id, "task_unknown", &id]);
    assert_eq!(honoured, [id.as_str()]);
    assert_eq!(told(&mut stream), waiting, "it waits since before");
    fill_in(&client, &id, "name", &json!({ "name": "Ada" }));
    let left = told(&mut stream);
    assert_eq!(
        (&left["status"], asked(&left).len()),
        (&json!("input_required"), 1)
    );
    about(&client, "tasks/cancel", &other).send();
    fill_in(&client, &id, "confirm", &json!({ "confirm": true }));
    let mut last = told(&mut stream);
    if last["status"] == "working" {
        last = told(&mut stream);
    }
    assert_eq!(last["status"], "completed", "{last}");
    assert_eq!(last, bare(task(&client, &id)));
    let (mut stream, honoured) = listen(&[&id]);
    assert_eq!(honoured, [id.as_str()]);
    assert_eq!(told(&mut stream), last, "it had ended before");
    let (_, honoured) = listen(&["task_unknown"]);
    assert!(honoured.is_empty());
}

#[test]
fn k11_a_filter_for_tasks_is_a_list_of_so_many_ids() {
    let client = shared_fixtures().client();
    let many: Vec<String> = (0..257).map(|n| format!("task_{n}")).collect();
    for wrong in [json!("x"), json!([1]), json!(many)] {
        let request = knowing(client.modern("subscriptions/listen"));
        let request = request.param("notifications", json!({ "taskIds": wrong }));
        assert_eq!(request.send().rpc()["error"]["code"], -32_602);
    }
}

#[test]
fn k12_t12_ids_have_nothing_in_common() {
    let client = shared_fixtures().client();
    let mut ids: Vec<String> = (0..8)
        .map(|_| made(&call(&client, "slow_compute", slow(LONG)).send()))
        .collect();
    for id in &ids {
        about(&client, "tasks/cancel", id).send();
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8);
    let digits = ids.iter().map(|id| id.strip_prefix("task_").unwrap());
    let numbers: Vec<u128> = digits
        .inspect(|digits| assert_eq!(digits.len(), 32))
        .map(|digits| u128::from_str_radix(digits, 16).unwrap())
        .collect();
    for pair in numbers.windows(2) {
        // Eight numbers of 128 random bits are this close once in 2^54 runs.
        assert!(pair[1] - pair[0] > 1 << 68, "{ids:?}");
    }
}

#[test]
fn k13_what_is_asked_before_the_task_is_asked_by_the_call() {
    let client = shared_fixtures().client();
    let first = call(&client, "test_tool_with_task", json!({}));
    let question = first.send().result();
    assert_eq!(question["resultType"], "input_required");
    assert!(question.get("taskId").is_none());
    assert_eq!(asked(&question), ["user_name"]);
    let form = json!({ "action": "accept", "content": { "name": "Alice" } });
    let answered = first.param("inputResponses", json!({ "user_name": form }));
    let created = answered.send();
    let id = made(&created);
    assert!(created.result().get("requestState").is_none());
    let done = until(&client, &id, "completed");
    let words = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("Alice"), "{words}");
}

#[test]
fn k13_a_tool_that_asks_on_the_way_asks_every_client_in_the_way_that_it_knows() {
    let client = shared_fixtures().client();
    let arguments = json!({ "filename": "notes.txt" });
    let form = json!({ "action": "accept", "content": { "confirm": true } });
    let words = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    let id = made(&call(&client, "confirm_delete", arguments.clone()).send());
    until(&client, &id, "input_required");
    fill_in(&client, &id, "confirm", &json!({ "confirm": true }));
    let by_task = words(&until(&client, &id, "completed")["result"]);
    let able = json!({ "elicitation": {} });
    let round = client.call("confirm_delete", arguments.clone());
    let round = round.mcp_meta("clientCapabilities", able);
    assert_eq!(asked(&round.send().result()), ["confirm"]);
    let by_rounds = round.param("inputResponses", json!({ "confirm": form }));
    assert_eq!(words(&by_rounds.send().result()), by_task);
    // The call already has the answer, so there is no question and no task either.
    let answered = knowing(by_rounds);
    assert_eq!(words(&answered.send().result()), by_task);
    let unable = json!({ "extensions": { TASKS: {} } });
    let unable = client
        .call("confirm_delete", arguments)
        .mcp_meta("clientCapabilities", unable);
    assert_eq!(unable.send().verdict(), (400, -32_021));
}

#[test]
fn m3_the_name_header_repeats_the_task() {
    let client = shared_fixtures().client();
    for method in METHODS {
        let request = about(&client, method, "task_x");
        for wrong in [
            request.clone().without("mcp-name"),
            request.header("mcp-name", "task_y"),
        ] {
            assert_eq!(wrong.send().verdict(), (400, -32_020), "{method}");
        }
    }
}
