//! What an agent's policy lets it see and do, and how arguments are checked.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::{add_agent, tell_by};
use crate::support::machine::{IN_TIME, is_root, wait_until};
use crate::support::manual::gatewren;
use crate::support::server::{server, shared};

/// Some tools of each class; the tables have the rest.
const READING: [&str; 6] = [
    "changes_since",
    "container_info",
    "container_list",
    "server_info",
    "state_get",
    "whoami",
];

const CHANGING: [&str; 3] = ["container_restart", "container_start", "container_stop"];

const ASKING_AFTER: [&str; 3] = ["change_get", "change_list", "change_withdraw"];

const SCANNING: [&str; 3] = ["dns_query", "network_check_port", "network_ping"];

const RUNNING: [&str; 2] = ["container_shell", "system_shell"];

const SUGGESTING: [&str; 4] = ["context", "propose_change", "read", "search"];

/// Returns the class of every tool that any host may have.
fn classes() -> BTreeMap<String, String> {
    let described: Value =
        serde_json::from_str(&gatewren(&["describe", "tools", "--json"])).unwrap();
    let text = |tool: &Value, key: &str| tool[key].as_str().unwrap().to_owned();
    let tools = described.as_array().unwrap().iter();
    tools
        .map(|tool| (text(tool, "name"), text(tool, "class")))
        .collect()
}

fn seen(policy: &'static str) -> Vec<String> {
    let server = shared(policy);
    let mut names = server.client().modern("tools/list").send().names("tools");
    let session = server.client().session("2025-06-18");
    assert_eq!(
        session.request("tools/list").send().names("tools"),
        names,
        "both eras alike"
    );
    assert_eq!(
        server
            .client()
            .http2()
            .modern("tools/list")
            .send()
            .names("tools"),
        names
    );
    names.sort();
    names
}

#[test]
fn t2_each_policy_sees_its_tools() {
    let classes = classes();
    let lists = ["observe", "operate", "admin"].map(seen);
    let own = |name: &String| {
        SUGGESTING.contains(&name.as_str()) || ASKING_AFTER.contains(&name.as_str())
    };
    // The tools of this machine: an admin sees all of them.
    let here = |of: &[&str]| {
        let all = lists[2].iter().filter(|name| !own(name));
        let all = all.filter(|name| of.contains(&classes[*name].as_str()));
        all.cloned().collect::<Vec<_>>()
    };
    let [observe, operate, admin] = &lists;
    let reading = here(&["read"]);
    assert!(
        observe.iter().all(|name| reading.contains(name)),
        "{observe:?}"
    );
    assert!((25..50).contains(&observe.len()), "{observe:?}");
    assert_eq!(here(&["scan"]), SCANNING);
    // The owner decides on class persist, so an admin can ask about its changes.
    for name in admin.iter().filter(|name| own(name)) {
        assert!(ASKING_AFTER.contains(&name.as_str()), "{name}");
    }
    let may = here(&["read", "scan", "write", "disrupt", "execute"]);
    for name in operate.iter().filter(|name| !own(name)) {
        // Of class persist, and proposed: each of its runs is judged again.
        let is_proposed = name == "schedule_create";
        assert!(is_proposed || may.contains(name), "{name}");
    }
    for (list, parts) in [
        (observe, vec![&READING[..]]),
        (operate, vec![&CHANGING, &RUNNING]),
        (admin, vec![&READING, &CHANGING, &RUNNING]),
    ] {
        let missing = parts
            .concat()
            .into_iter()
            .find(|name| !list.iter().any(|n| n == name));
        assert_eq!(missing, None, "{list:?}");
    }
    assert!((10..40).contains(&operate.len()), "{operate:?}");
    assert_eq!(seen("suggest"), SUGGESTING);
}

#[test]
fn a_list_is_short_and_a_long_one_where_toolsets_are_named() {
    for policy in ["observe", "operate"] {
        list_shortly(policy);
    }
}

#[test]
fn the_complete_list_of_an_admin_is_below_70_kilobytes() {
    let server = server().policy("admin").settings("").start();
    let listed = server.client().modern("tools/list").send();
    let count = listed.names("tools").len();
    let size = listed.body.len();
    assert!(count > 90 && size < 70_000, "{count} tools, {size} bytes");
}

fn list_shortly(policy: &str) {
    let server = server().policy(policy).settings("").start();
    let client = server.client();
    let listed = || client.modern("tools/list").send();
    assert!(listed().body.len() < 24_000, "{}", listed().body.len());
    let left_out = "network_routes";
    assert!(!listed().names("tools").contains(&left_out.to_owned()));
    // The tool is missing only in the list; it can still be called.
    assert!(client.call(left_out, json!({})).send().data()["routes"].is_array());
    let short = listed().names("tools");
    let edit = ["agent", "edit", "try", "--toolset", "all"];
    tell_by(&server.settings_file(), &edit);
    wait_until("it has every tool", IN_TIME, || {
        listed().names("tools").contains(&left_out.to_owned())
    });
    let long = listed().names("tools");
    assert!(short.iter().all(|name| long.contains(name)), "{long:?}");
    let answers = listed().result()["tools"].clone();
    let answers = answers.as_array().unwrap().iter();
    let mut answers = answers.filter(|tool| tool["name"] == "container_list");
    let containers = &answers.next().unwrap()["outputSchema"]["properties"]["containers"];
    assert_eq!(containers["type"], "array");
}

#[test]
fn an_admin_has_every_tool_and_no_schemas_of_answers_until_toolsets_are_named() {
    let server = server().policy("admin").settings("").start();
    let client = server.client();
    let listed = || client.modern("tools/list").send();
    let (short, names) = (listed().body.len(), listed().names("tools"));
    assert!(short < 90_000 && names.len() > 60, "{short} {names:?}");
    assert!(!listed().body.contains("outputSchema"));
    let edit = ["agent", "edit", "try", "--toolset", "all"];
    tell_by(&server.settings_file(), &edit);
    wait_until("the list is in full", IN_TIME, || {
        listed().body.contains("outputSchema")
    });
    let long = listed();
    assert!(long.body.len() > short * 3 / 2, "{}", long.body.len());
    assert!(names.iter().all(|name| long.names("tools").contains(name)));
}

#[test]
fn a_similar_name_is_suggested_among_the_tools_that_the_agent_may_call() {
    let words = |policy: &'static str, tool: &str| {
        let answer = shared(policy).client().call(tool, json!({})).send();
        assert_eq!(answer.verdict(), (200, -32_602), "{policy}: {tool}");
        answer.message()
    };
    let typed = words("admin", "container_restrt");
    let wanted = "unknown tool \"container_restrt\"; did you mean \"container_restart\"?";
    assert!(typed.starts_with(wanted), "{typed}");
    // An observer has no such tool, so it is not suggested.
    let denied = words("observe", "container_restrt");
    assert!(!denied.contains("container_restart"), "{denied}");
    let seen = words("observe", "server_inf");
    assert!(seen.contains("did you mean \"server_info\"?"), "{seen}");
    let far = words("admin", "paint_the_fence");
    assert!(!far.contains("did you mean"), "{far}");
}

#[test]
fn t10_what_a_policy_denies_is_answered_as_what_does_not_exist() {
    let words = |policy: &'static str, tool: &str| {
        let answer = shared(policy)
            .client()
            .call(tool, json!({ "command": "true" }))
            .send();
        assert_eq!(answer.verdict(), (200, -32_602), "{policy}: {tool}");
        let message = answer.message();
        assert!(
            message.starts_with(&format!("unknown tool {tool:?};")),
            "{message}"
        );
        // The similar name depends only on the name that was typed and on the tools that the agent has.
        let (_, rest) = message.split_once(" it does not exist here").unwrap();
        rest.to_owned()
    };
    let unknown = words("observe", "nothing");
    for tool in
        CHANGING
            .iter()
            .chain(&RUNNING)
            .chain(&["package.shell", "system.shell", "package.stop"])
    {
        assert_eq!(words("observe", tool), unknown, "{tool}");
    }
    for tool in SCANNING {
        assert_eq!(words("observe", tool), unknown, "{tool}");
    }
    assert!(unknown.contains("your policy (observe) does not allow it"));
    let unknown = words("suggest", "nothing");
    for tool in READING.iter().chain(&SCANNING) {
        assert_eq!(words("suggest", tool), unknown, "{tool}");
    }
    let session = shared("observe").client().session("2025-06-18");
    let answer = session
        .call("system_shell", json!({ "command": "true" }))
        .send();
    assert_eq!(answer.verdict(), (200, -32_602));
}

#[test]
fn what_needs_approval_is_not_done() {
    let server = shared("operate");
    let file = std::env::temp_dir().join(format!("gatewren-it-approval-{}", std::process::id()));
    let command = format!("touch {}", file.display());
    let call = |arguments: Value| server.client().call("system_shell", arguments).send();
    // No argument that a model adds to its call counts as consent.
    let consent = json!({ "command": command, "confirm": true });
    let failure = call(consent).failure();
    assert!(failure.contains("confirm"), "{failure}");
    let data = call(json!({ "command": command })).data();
    assert_eq!(
        (&data["applied"], &data["status"]),
        (&json!(false), &json!("pending"))
    );
    assert!(!file.exists());
}

#[test]
fn whoami_says_the_policy_the_limits_and_what_waits() {
    for policy in ["observe", "operate", "admin"] {
        let answer = shared(policy).client().call("whoami", json!({})).send();
        let data = answer.data();
        assert_eq!(
            (&data["policy"], &data["name"]),
            (&json!(policy), &json!("try"))
        );
        assert_eq!(data["calls_per_minute"], 600_000);
        assert_eq!(data["concurrent_calls"], 16);
    }
    let server = server()
        .policy("operate")
        .settings("[inbox]\nper_agent = 3\n")
        .start();
    let client = server.client();
    let waiting = || {
        let data = client.call("whoami", json!({})).send().data();
        (
            data["open_proposals"].clone(),
            data["max_proposals"].clone(),
        )
    };
    assert_eq!(waiting(), (json!(0), json!(3)));
    let proposed = client
        .call("system_shell", json!({ "command": "true" }))
        .send()
        .data();
    assert_eq!(waiting(), (json!(1), json!(3)));
    let withdrawn = json!({ "change": proposed["change"] });
    client.call("change_withdraw", withdrawn).send().data();
    assert_eq!(waiting(), (json!(0), json!(3)));
}

#[test]
#[rustfmt::skip]
fn t10_an_argument_error_names_the_field_and_the_rule_and_does_nothing() {
    let server = shared("admin");
    let rows: [(&str, Value, &[&str]); 11] = [
        ("system_shell", json!({ "command": "true", "timeout_s": 0 }), &["timeout_s", "1 to 300"]),
        ("system_shell", json!({ "command": "true", "timeout_s": 301 }), &["timeout_s", "1 to 300"]),
        ("system_shell", json!({ "command": "true", "timeout_s": "5" }), &["timeout_s"]),
        ("system_shell", json!({ "command": "true", "timeout_s": 1.5 }), &["timeout_s"]),
        ("system_shell", json!({ "comand": "true" }), &["comand", "command"]),
        ("system_shell", json!({}), &["command", "argv"]),
        ("system_shell", json!({ "command": "true", "argv": ["true"] }), &["command", "argv"]),
        ("system_shell", json!({ "command": 5 }), &["command", "string"]),
        ("container_info", json!({}), &["container"]),
        ("container_info", json!({ "container": "../etc" }), &["container"]),
        ("changes_since", json!({ "revision": -1 }), &["revision"]),
    ];
    for (tool, arguments, words) in rows {
        for failure in [
            server.client().call(tool, arguments.clone()).send().failure(),
            server.client().session("2025-06-18").call(tool, arguments.clone()).send().failure(),
        ] {
            for word in words {
                assert!(failure.contains(word), "{tool} {arguments}: {failure}");
            }
        }
    }
}

#[test]
fn no_arguments_at_all_are_none() {
    let server = shared("observe");
    let modern = |field: Value| {
        let request = server.client().modern("tools/call").name("whoami");
        request.param("arguments", field).send().data()["policy"].clone()
    };
    assert_eq!(modern(json!({})), "observe");
    assert_eq!(modern(Value::Null), "observe");
    let request = server.client().modern("tools/call").name("whoami");
    assert_eq!(request.send().data()["policy"], "observe");
    let session = server.client().session("2025-03-26");
    let answer = session.request("tools/call").name("whoami").send();
    assert_eq!(answer.verdict(), (200, 0));
    let needing = server
        .client()
        .modern("tools/call")
        .name("container_info")
        .send();
    assert!(needing.failure().contains("container"));
}

#[test]
fn a_call_without_a_name_is_refused() {
    let server = shared("observe");
    let session = server.client().session("2025-06-18");
    assert_eq!(
        session.request("tools/call").send().verdict(),
        (200, -32_602)
    );
    let number = session.request("tools/call").param("name", json!(5));
    assert_eq!(number.send().verdict(), (200, -32_602));
}

#[test]
fn the_names_of_the_startos_dialect_are_understood() {
    let server = shared("admin");
    let shell = |tool: &str, arguments: Value| server.client().call(tool, arguments).send();
    let host = shell(
        "system.shell",
        json!({ "command": "echo hi", "timeout": 5 }),
    );
    assert_eq!(host.data()["stdout"], "hi\n");
    let inside = shell(
        "package.shell",
        json!({ "id": "no-such-box", "command": "true" }),
    )
    .failure();
    let refused = if is_root() {
        "no-such-box"
    } else {
        "need root"
    };
    assert!(inside.contains(refused), "{inside}");
    assert!(shell("auth.get-pubkey", json!({})).data()["policy"] == "admin");
    let state = shell("db.dump", json!({ "pointer": "/public" })).data();
    assert!(state["revision"].is_u64());
    // gatewren's own tools keep their parameter names.
    let ours = shell("container_shell", json!({ "id": "x", "command": "true" })).failure();
    assert!(ours.contains("id") && ours.contains("container"), "{ours}");
    let listed = server.client().modern("tools/list").send().names("tools");
    assert!(!listed.iter().any(|name| name.contains('.')), "{listed:?}");
}

#[test]
fn a_dialect_call_in_2026_names_what_it_calls_in_its_header() {
    let server = shared("observe");
    let call = server.client().call("auth.get-pubkey", json!({}));
    assert_eq!(call.clone().send().status, 200);
    assert_eq!(
        call.header("mcp-name", "whoami").send().verdict(),
        (400, -32_020)
    );
}

#[test]
fn the_list_is_the_same_each_time_and_says_what_each_tool_does() {
    let server = shared("admin");
    let first = server.client().modern("tools/list").send().result();
    assert_eq!(
        first["tools"],
        server.client().modern("tools/list").send().result()["tools"]
    );
    let classes = classes();
    for tool in first["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 64 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
        let reads = ["read", "scan", "reveal"].contains(&classes[name].as_str());
        // Absent means false (2025-03-26, schema).
        let hint = &tool["annotations"]["readOnlyHint"];
        assert_eq!(hint.as_bool().unwrap_or(false), reads, "{name}");
    }
}

#[test]
fn an_error_names_no_tool_that_the_agent_does_not_have() {
    let server = server().policy("observe").settings("").start();
    let refused = |client: &Client| {
        let call = client.call("container_info", json!({ "container": "nowhere" }));
        call.send().failure()
    };
    let whole = refused(&server.client());
    assert!(whole.contains("container_list"), "{whole}");
    let options = ["--policy", "observe", "--tool", "container_list=deny"];
    let less = add_agent(&server.state_dir(), "less", &options);
    let client = server.client().with_token(less["token"].as_str().unwrap());
    let discover = client.modern("server/discover");
    wait_until("it comes in", IN_TIME, || discover.send().status != 401);
    let cut = refused(&client);
    assert!(!cut.contains("container_list"), "{cut}");
    assert!(cut.contains("nowhere"), "it says what failed: {cut}");
}
