//! Prompts: a task with the host's current state, within what an agent sees; and completion of their arguments.

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{server, shared};

const NEAR: &str = "heron-k4";
const FAR: &str = "plover-x9";

fn names(client: &Client) -> Vec<String> {
    client.modern("prompts/list").send().names("prompts")
}

/// Returns the messages of a prompt, one below the other.
fn text(result: &Value) -> String {
    let messages = result["messages"].as_array().unwrap().iter();
    let texts = messages.map(|message| message["content"]["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_agent_has_the_prompts_whose_tools_it_has() {
    let observer = names(&shared("observe").client());
    for name in ["diagnose_container", "explain_change", "tidy_disk"] {
        assert!(observer.contains(&name.to_owned()), "{observer:?}");
    }
    let suggest = shared("suggest").client();
    assert_eq!(names(&suggest), [""; 0]);
    let get = |name: &str| suggest.modern("prompts/get").name(name).send();
    let (hidden, absent) = (get("tidy_disk"), get("nothing"));
    assert_eq!(
        hidden.message().replace("tidy_disk", "nothing"),
        absent.message()
    );
}

#[test]
fn a_prompt_has_what_the_tools_say_beside_its_task() {
    let client = shared("observe").client();
    let get = |name: &str, arguments: Value| {
        let get = client.modern("prompts/get").name(name);
        get.param("arguments", arguments).send()
    };
    let tidy = text(&get("tidy_disk", json!({})).result());
    assert!(
        tidy.contains("Remove nothing yet") && tidy.contains("\"filesystems\""),
        "{tidy}"
    );
    let state = client.call("state_get", json!({})).send().data();
    let revision = state["revision"].as_u64().unwrap();
    let explained = get("explain_change", json!({ "change": revision.to_string() }));
    let explained = text(&explained.result());
    assert!(
        explained.contains("\"patch\"") && explained.contains("\"actor\""),
        "{explained}"
    );
    for wrong in [
        json!({}),
        json!({ "change": 5 }),
        json!({ "change": "chg_0" }),
    ] {
        assert_eq!(
            get("explain_change", wrong.clone()).verdict().1,
            -32_602,
            "{wrong}"
        );
    }
    let long = get(
        "diagnose_container",
        json!({ "container": "x".repeat(300) }),
    );
    assert!(long.message().len() < 2000 && long.message().contains("container"));
}

#[test]
fn prompts_and_completions_keep_to_the_space() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    for name in [NEAR, FAR] {
        containers.make(name);
    }
    let settings = format!(
        "[lxc]\nlxcpath = \"{}\"\n[spaces.pond]\ncontainers = [\"{NEAR}\"]\n",
        containers.lxcpath().display()
    );
    let server = server().policy("admin").settings(&settings).start();
    let admin = server.client();
    let typed = |client: &Client, typed: &str| {
        let reference = json!({ "type": "ref/prompt", "name": "diagnose_container" });
        let completing = client.modern("completion/complete").param("ref", reference);
        let argument = json!({ "name": "container", "value": typed });
        let answer = completing.param("argument", argument).send().result();
        answer["completion"]["values"].clone()
    };
    wait_until("both are known", IN_TIME, || {
        typed(&admin, "") == json!([NEAR, FAR])
    });
    assert_eq!(typed(&admin, "PLO"), json!([FAR]));
    let kept = admit(&server, "kept", &["--policy", "observe", "--space", "pond"]);
    assert_eq!(typed(&kept, ""), json!([NEAR]));
    assert_eq!(
        names(&kept),
        ["diagnose_container", "explain_change"],
        "the host is not its own"
    );
    let get = |name: &str| {
        let get = kept.modern("prompts/get").name("diagnose_container");
        get.param("arguments", json!({ "container": name })).send()
    };
    let near = text(&get(NEAR).result());
    assert!(near.contains(NEAR) && near.contains("stopped"), "{near}");
    assert_eq!(
        get(FAR).message().replace(FAR, "x"),
        get("never-0q").message().replace("never-0q", "x")
    );
    paths_keep_to_the_space(&kept);
}

fn paths_keep_to_the_space(kept: &Client) {
    let uri = json!({ "type": "ref/resource", "uri": "gatewren:///public/{+pointer}" });
    let path = |typed: &str| {
        let completing = kept.modern("completion/complete").param("ref", uri.clone());
        let argument = json!({ "name": "pointer", "value": typed });
        completing.param("argument", argument).send().result()["completion"]["values"].clone()
    };
    assert!(
        path("pack")
            .as_array()
            .unwrap()
            .contains(&json!("packageData"))
    );
    assert_eq!(path("packageData/"), json!([format!("packageData/{NEAR}")]));
}

#[test]
fn no_tool_that_a_prompt_calls_fails() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make(NEAR);
    let server = server().policy("admin").lxcpath(containers.lxcpath());
    let server = server.start();
    let client = server.client();
    // Unlike a start from outside, this one has LXC write a log.
    wait_until("it starts", IN_TIME, || {
        let start = client.call("container_start", json!({ "container": NEAR }));
        start.send().result()["isError"] != true
    });
    containers.until_ready(NEAR);
    wait_until("the container is known", IN_TIME, || {
        let listed = client.call("container_list", json!({})).send().data();
        listed.to_string().contains("running")
    });
    let offered = names(&client);
    for (name, arguments) in [
        ("diagnose_container", json!({ "container": NEAR })),
        ("explain_change", json!({ "change": "1" })),
        ("update_plan", json!({})),
        ("tidy_disk", json!({})),
    ] {
        // A machine without apt has no updates to plan.
        if name == "update_plan" && !offered.iter().any(|one| one == name) {
            continue;
        }
        let get = client.modern("prompts/get").name(name);
        let shown = text(&get.param("arguments", arguments).send().result());
        assert!(!shown.contains("It failed:"), "{name}: {shown}");
    }
    let tidy = client.modern("prompts/get").name("tidy_disk");
    let tidy = text(&tidy.param("arguments", json!({})).send().result());
    assert!(tidy.contains("Current output of disk_report"), "{tidy}");
    assert!(tidy.contains("\"freeable_bytes\""), "{tidy}");
    containers.tool("lxc-stop", NEAR, &["-k"]);
}
