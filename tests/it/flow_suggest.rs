//! Agents that only suggest: four tools to look around, and an inbox for everything else.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::spaces;
use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::defined;
use crate::support::machine::{IN_TIME, is_root, skip, wait_until};
use crate::support::server::{Server, has_sqlite3, server, shared};
use crate::support::tasks;

fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    client.call(tool, arguments).send().data()
}

fn propose(tool: &str, arguments: &Value) -> Value {
    json!({ "tool": tool, "arguments": arguments, "reason": "it hangs" })
}

/// Returns the inbox, the oldest first: tool, arguments, reason, status.
fn inbox(server: &Server) -> Vec<(String, String, String, String)> {
    let path = Path::new(server.text("state_db")).with_file_name("vault.db");
    let vault = Connection::open(path).unwrap();
    vault.busy_timeout(IN_TIME).unwrap();
    let mut rows = vault
        .prepare("SELECT tool, arguments, reason, status FROM change ORDER BY serial")
        .unwrap();
    let rows = rows.query_map([], |row| row.try_into()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Returns a pending proposal, in the form of `inbox`.
fn row(tool: &str, arguments: &str) -> (String, String, String, String) {
    let words = [tool, arguments, "it hangs", "pending"];
    words.map(str::to_owned).into()
}

#[test]
fn what_is_known_of_the_box_is_found_by_words_and_read() {
    if !has_sqlite3() {
        return;
    }
    let server = server().policy("suggest").start();
    let client = server.client();
    let note = json!({ "door/1": { "words": "the wren sings", "n": 5 }, "other": "wren" });
    let revision = server.put("notes", &note);
    let found = |query: &str| call(&client, "search", json!({ "query": query }));
    wait_until("it is found", IN_TIME, || {
        found("door sings")["results"][0].is_object()
    });
    let hit = found("door sings")["results"][0].clone();
    assert_eq!(hit["id"], "gatewren:///public/notes/door~11/words");
    assert_eq!(hit["text"], "the wren sings");
    let read = call(&client, "read", json!({ "id": hit["id"] }));
    assert_eq!(read["value"], "the wren sings");
    assert!(read["revision"].as_u64() >= Some(revision));
    let whole = call(&client, "read", json!({ "id": "/public/notes/door~11" }));
    assert_eq!(whole["value"]["n"], 5);
    assert_eq!(found("notes wren")["results"].as_array().unwrap().len(), 2);
    let few = call(
        &client,
        "search",
        json!({ "query": "notes wren", "limit": 1 }),
    );
    assert_eq!(
        (few["results"].as_array().unwrap().len(), &few["more"]),
        (1, &json!(true))
    );
    assert_eq!(found("no-such-thing")["results"], json!([]));
    for nowhere in [
        "/public/none",
        "/private",
        "gatewren:///none",
        "file:///etc/passwd",
        "/",
    ] {
        let answer = client.call("read", json!({ "id": nowhere })).send();
        let failure = answer.failure();
        assert!(failure.contains("Path not found"), "{failure}");
    }
    let failure = client
        .call("search", json!({ "query": "" }))
        .send()
        .failure();
    assert!(failure.contains("query"), "{failure}");
}

#[test]
fn an_agent_is_told_what_it_can_propose_and_how() {
    let client = shared("suggest").client();
    let about = call(&client, "context", json!({}));
    assert_eq!(
        (&about["policy"], &about["name"]),
        (&json!("suggest"), &json!("try"))
    );
    let offers = about["proposals"].as_array().unwrap();
    let names: Vec<&str> = offers.iter().map(|o| o["tool"].as_str().unwrap()).collect();
    for name in ["container_restart", "container_start", "system_shell"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for offer in offers {
        assert!(["write", "disrupt", "execute"].contains(&offer["class"].as_str().unwrap()));
        assert!(offer.get("arguments").is_none());
    }
    let one = call(&client, "context", json!({ "tool": "container_stop" }));
    let schema = &one["proposals"][0]["arguments"];
    assert_eq!(
        schema["properties"]["container"]["type"], "string",
        "{schema}"
    );
    for none in ["container_list", "propose_change", "nothing"] {
        let failure = client
            .call("context", json!({ "tool": none }))
            .send()
            .failure();
        assert!(failure.contains("can be proposed"), "{none}: {failure}");
    }
}

#[test]
fn a_proposal_waits_in_the_inbox_and_does_nothing() {
    let server = server().policy("suggest").start();
    let client = server.client();
    let marker = std::env::temp_dir().join(format!("gatewren-it-suggest-{}", std::process::id()));
    let command = json!({ "command": format!("touch {}", marker.display()) });
    let who = call(&client, "context", json!({}));

    let change = call(&client, "propose_change", propose("system_shell", &command));
    assert_eq!(
        (&change["applied"], &change["status"]),
        (&json!(false), &json!("pending"))
    );
    assert_eq!(
        (&change["agent"], &change["space"]),
        (&who["agent"], &who["space"])
    );
    assert_eq!(change["tool"], "system_shell");
    assert_eq!(
        inbox(&server),
        [row("system_shell", &command.to_string())],
        "with its exact arguments"
    );
    assert!(!marker.exists());
}

#[test]
fn a_proposal_is_made_in_both_eras_and_is_a_task_for_who_knows_of_them() {
    let home = defined(&["web"]);
    let server = server().policy("suggest").lxcpath(&home.0).start();
    let client = server.client();
    let session = client.session("2025-11-25");
    let stop = propose("container_stop", &json!({ "container": "web" }));
    let second = session.call("propose_change", stop).send().data();
    assert_eq!(second["applied"], false);
    let restart = propose("package.restart", &json!({ "id": "web" }));
    let third = tasks::call(&client, "propose_change", restart).send();
    let task = tasks::made(&third);
    assert_eq!(tasks::task(&client, &task)["status"], "working");

    let web = r#"{"container":"web"}"#;
    let expected = [row("container_stop", web), row("container_restart", web)];
    assert_eq!(inbox(&server), expected);
}

#[test]
fn what_cannot_be_proposed_is_said_at_once() {
    let server = server().policy("suggest").start();
    let client = server.client();
    for (arguments, word) in [
        (
            propose("container_stop", &json!({ "container": "../etc" })),
            "container",
        ),
        (
            propose("container_stop", &json!({ "containr": "web" })),
            "containr",
        ),
        (propose("container_stop", &json!({})), "container"),
        (propose("container_list", &json!({})), "container_list"),
        (propose("propose_change", &json!({})), "propose_change"),
        (propose("nothing", &json!({})), "nothing"),
        (
            json!({ "tool": "container_stop", "arguments": { "container": "web" } }),
            "reason",
        ),
        (
            json!({ "tool": "container_stop", "arguments": { "container": "web" }, "reason": " " }),
            "reason",
        ),
        (
            json!({ "tool": "container_stop", "arguments": ["web"], "reason": "x" }),
            "arguments",
        ),
    ] {
        for failure in [
            client
                .call("propose_change", arguments.clone())
                .send()
                .failure(),
            client
                .session("2025-06-18")
                .call("propose_change", arguments.clone())
                .send()
                .failure(),
        ] {
            assert!(failure.contains(word), "{arguments}: {failure}");
        }
    }
    for tool in [
        "container_stop",
        "package.stop",
        "container_list",
        "whoami",
        "change_get",
    ] {
        let answer = client.call(tool, json!({ "container": "web" })).send();
        assert_eq!(answer.verdict(), (200, -32_602), "{tool}");
    }
    assert_eq!(inbox(&server), []);
}

#[test]
fn an_agent_in_a_space_finds_and_proposes_nothing_beyond_it() {
    if !has_sqlite3() {
        return;
    }
    let spaces = "[spaces.media]\ncontainers = [\"jellyfin\"]\n";
    let server = server().policy("suggest").settings(spaces).start();
    let all = server.client();
    let add = [
        "agent", "add", "narrow", "--policy", "suggest", "--space", "media",
    ];
    let narrow = tell_by(&server.settings_file(), &add);
    let client = server
        .client()
        .with_token(narrow["token"].as_str().unwrap());
    server.put("notes", &json!({ "word": "zaunkoenig" }));
    let found = |client: &Client| call(client, "search", json!({ "query": "zaunkoenig" }));
    wait_until("it is found", IN_TIME, || {
        found(&all)["results"][0].is_object()
    });
    let list = client.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    assert_eq!(found(&client)["results"], json!([]));
    let nothing = |id: &str| {
        let failure = client.call("read", json!({ "id": id })).send().failure();
        failure.replace(id, "ID")
    };
    let uri = |key: &str| format!("gatewren:///public/{key}");
    assert_eq!(nothing(&uri("notes/word")), nothing(&uri("never/been")));

    let offers = call(&client, "context", json!({}));
    assert_eq!(offers["space"], "media");
    let offers = offers["proposals"].to_string();
    assert!(
        offers.contains("\"tool\":\"container_stop\"")
            && !offers.contains("\"tool\":\"system_shell\""),
        "{offers}"
    );
    let shell = propose("system_shell", &json!({ "command": "true" }));
    let failure = client.call("propose_change", shell).send().failure();
    assert!(failure.contains("You cannot propose"), "{failure}");
}

#[test]
fn a_proposal_about_a_container_out_of_sight_is_answered_as_one_about_none() {
    if !is_root() {
        return skip("whether a container exists needs root");
    }
    let home = defined(&["jellyfin", "elsewhere"]);
    let settings = format!(
        "[spaces.media]\ncontainers = [\"jellyfin\", \"new-*\"]\n[lxc]\nlxcpath = \"{}\"\n",
        home.0.display()
    );
    let server = server().policy("suggest").settings(&settings).start();
    let add = |name, policy| admit(&server, name, &["--policy", policy, "--space", "media"]);
    let suggesting = add("narrow", "suggest");
    let operating = add("working", "operate");
    let none = |name: &str| json!({ "container": name });
    let failures = |name: &str| {
        let stop = propose("container_stop", &none(name));
        [
            suggesting.call("propose_change", stop),
            operating.call("container_stop", none(name)),
        ]
        .map(|call| call.send().failure().replace(name, "NAME"))
    };
    let [suggested, called] = failures("nowhere");
    assert_eq!(suggested, called);
    assert!(called.contains("there is no container 'NAME'"), "{called}");
    assert_eq!(failures("elsewhere"), [suggested, called]);
    let new = json!({ "container": "other-1", "template": "busybox" });
    let failure = suggesting.call("propose_change", propose("container_create", &new));
    let failure = failure.send().failure();
    assert!(failure.contains("this agent's reach"), "{failure}");
    assert_eq!(inbox(&server), [], "nothing of it reached the inbox");

    let stop = propose("container_stop", &none("jellyfin"));
    let change = call(&suggesting, "propose_change", stop);
    assert_eq!(
        (&change["space"], &change["applied"]),
        (&json!("media"), &json!(false))
    );
    let new = json!({ "container": "new-1", "template": "busybox" });
    call(
        &suggesting,
        "propose_change",
        propose("container_create", &new),
    );
    assert_eq!(inbox(&server).len(), 2);
}

/// Whether the arguments of a change name a container.
fn names(arguments: &Value, container: &str) -> bool {
    let is_it = |value: &Value| value.to_string().contains(container);
    let inner = arguments.get("arguments");
    let keys = [
        "container",
        "new_container",
        "containers",
        "targets",
        "items",
        "backup",
        "stack",
    ];
    keys.iter().any(|key| arguments.get(key).is_some_and(is_it))
        || inner.is_some_and(|inner| names(inner, container))
}

#[test]
fn no_tool_makes_a_change_about_a_container_of_another_space_or_about_none() {
    if !is_root() {
        return skip("whether a container exists needs root");
    }
    let home = defined(&["jellyfin", "elsewhere"]);
    let settings = format!(
        "[spaces.media]\ncontainers = [\"jellyfin\"]\n[inbox]\nper_agent = 4096\n[lxc]\nlxcpath = \"{}\"\n",
        home.0.display()
    );
    let server = server().policy("suggest").settings(&settings).start();
    let classes = ["scan", "write", "disrupt", "execute", "reveal", "persist"];
    let modes = classes.map(|class| format!("{class}=propose"));
    let modes = modes.iter().flat_map(|mode| ["--mode", mode.as_str()]);
    let options = ["--policy", "suggest", "--space", "media"];
    let options: Vec<&str> = options.into_iter().chain(modes).collect();
    let agent = admit(&server, "narrow", &options);
    let offers = call(&agent, "context", json!({}));
    let mut tried = 0;
    for offer in offers["proposals"].as_array().unwrap() {
        let tool = offer["tool"].as_str().unwrap();
        let offer = call(&agent, "context", json!({ "tool": tool }));
        let schema = &offer["proposals"][0]["arguments"];
        let definition = json!({ "name": tool, "inputSchema": schema });
        for container in ["elsewhere", "nowhere"] {
            for arguments in spaces::arguments(&definition, container) {
                if !names(&arguments, container) {
                    continue;
                }
                tried += 1;
                let proposal = agent.call("propose_change", propose(tool, &arguments));
                let answer = proposal.send().rpc();
                let is_change = answer["result"]["structuredContent"]["change"].is_string();
                assert!(!is_change, "{tool} {arguments}: {answer}");
            }
        }
    }
    assert!(tried > 80, "only {tried} calls about a container");
    let changes = inbox(&server);
    let about = |(_, arguments, ..): &&(String, String, String, String)| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        names(&arguments, "elsewhere") || names(&arguments, "nowhere")
    };
    assert_eq!(changes.iter().find(about), None);
}

#[test]
fn a_proposal_about_a_job_that_is_not_there_never_reaches_the_inbox() {
    let server = server().policy("suggest").start();
    let none = json!({ "job": format!("job_{:032x}", 7) });
    let cancel = propose("job_cancel", &none);
    let answer = server.client().call("propose_change", cancel).send();
    let failure = answer.failure();
    assert!(failure.contains("there is no job"), "{failure}");
    assert_eq!(inbox(&server), []);
}
