//! The owner's channels: messages from agents, the server's own messages, and slow, rejecting or redirecting servers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::http_sink::{HttpSink, SinkBehavior};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// Returns the settings of an ntfy channel, with more lines.
fn ntfy(name: &str, url: &str, more: &str) -> String {
    format!("[notify.{name}]\nkind = \"ntfy\"\nurl = \"{url}\"\ntopic = \"box\"\n{more}\n")
}

fn hook(name: &str, url: &str, more: &str) -> String {
    format!("[notify.{name}]\nkind = \"webhook\"\nurl = \"{url}\"\n{more}\n")
}

fn names(client: &Client) -> Vec<String> {
    client.modern("tools/list").send().names("tools")
}

fn is_listed(client: &Client) -> bool {
    names(client).iter().any(|name| name == "notify_send")
}

pub fn send(client: &Client, arguments: Value) -> crate::support::answer::Answer {
    client.call("notify_send", arguments).send()
}

/// Returns a file with a token that only its owner may read.
fn token_file(directory: &Directory, token: &str) -> String {
    let path = directory.join("channel-token");
    fs::write(&path, format!("{token}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[test]
fn an_agent_tells_the_owner_over_tls_and_a_channel_comes_and_goes_with_a_reload() {
    let directory = Directory::new();
    let ca = directory.join("ca.pem");
    let phone = HttpSink::secure(&ca);
    let token = token_file(&directory, "tk_w0rd");
    let server = server()
        .policy("admin")
        .env("SSL_CERT_FILE", ca.to_str().unwrap())
        .settings("")
        .start();
    let client = server.client();
    assert!(!is_listed(&client), "there is no channel");
    assert!(send(&client, json!({ "message": "x" })).rpc()["error"].is_object());

    let url = phone.url("");
    server.reload_with(&ntfy(
        "phone",
        &url,
        &format!("token_file = \"{token}\"\non = []"),
    ));
    assert!(is_listed(&client));
    let said =
        json!({ "title": "The backup", "message": "It ended.\nAll is well.", "priority": "high" });
    let sent = send(&client, said).data();
    assert_eq!(sent, json!({ "channel": "phone", "delivered": true }));
    let letter = phone.after(1).remove(0);
    assert!(
        letter.head.starts_with("POST / HTTP/1.1\r\n"),
        "{}",
        letter.head
    );
    assert!(
        letter.head.contains("authorization: Bearer tk_w0rd\r\n"),
        "{}",
        letter.head
    );
    assert!(letter.head.contains("content-type: application/json\r\n"));
    assert_eq!(letter.body["topic"], "box");
    let title = letter.body["title"].as_str().unwrap();
    assert!(
        title.starts_with("agent ") && title.ends_with(": The backup"),
        "{title}"
    );
    assert_eq!(letter.body["message"], "It ended.\nAll is well.");
    assert_eq!(
        (&letter.body["priority"], &letter.body["tags"][0]),
        (&json!(4), &json!("agent"))
    );

    server.reload_with(&ntfy("phone", &url, "agents = false"));
    assert!(!is_listed(&client), "it is not for agents any more");
    assert_eq!(phone.requests().len(), 1);
}

#[test]
fn a_server_that_nobody_vouches_for_hears_nothing() {
    let directory = Directory::new();
    let (ours, other) = (directory.join("ca.pem"), directory.join("other.pem"));
    let phone = HttpSink::secure(&ours);
    let _ = HttpSink::secure(&other);
    let server = server()
        .policy("admin")
        .env("SSL_CERT_FILE", other.to_str().unwrap())
        .settings(&ntfy("phone", &phone.url(""), "on = []"))
        .start();
    let failure = send(&server.client(), json!({ "message": "x" })).failure();
    assert!(
        failure.contains("The channel phone did not deliver the message"),
        "{failure}"
    );
    assert!(
        !failure.contains("localhost") && !failure.contains("ertificate"),
        "{failure}"
    );
    assert_eq!(phone.requests().len(), 0);
    assert!(server.log().contains("an agent's message was not sent"));
}

#[test]
#[ignore = "long: waits for timeouts"]
fn servers_that_refuse_lead_elsewhere_or_take_their_time_are_told_of_and_not_followed() {
    let (phone, elsewhere) = (HttpSink::plain(), HttpSink::plain());
    let server = server()
        .policy("admin")
        .settings(&hook("phone", &phone.url("/a?b=s3cr3tpath"), "on = []"))
        .start();
    let client = server.client();
    let moved = format!("location: {}\r\n", elsewhere.url("/"));
    for (manner, words) in [
        (SinkBehavior::Says(403, String::new()), "it answered 403"),
        (SinkBehavior::Says(500, String::new()), "it answered 500"),
        (SinkBehavior::Says(307, moved), "it answered 307"),
        (SinkBehavior::Babbles, "it does not speak HTTP"),
        (SinkBehavior::Silent, "it did not answer within 10 s"),
        (SinkBehavior::Drips, "it did not answer within 10 s"),
    ] {
        phone.behave(manner.clone());
        let failure = send(&client, json!({ "message": "x" })).failure();
        assert!(failure.contains(words), "{manner:?}: {failure}");
        assert!(!failure.contains("s3cr3tpath"), "{failure}");
    }
    assert_eq!(phone.requests().len(), 6, "each was asked once");
    assert_eq!(elsewhere.requests().len(), 0);
    assert!(
        !server.log().contains("s3cr3tpath"),
        "an address may be a secret"
    );
    server.reload_with(&hook("phone", "http://localhost:1/", "on = []"));
    let failure = send(&client, json!({ "message": "x" })).failure();
    assert!(
        failure.contains("there is no connection to it"),
        "{failure}"
    );
}

#[test]
fn what_agents_say_is_bounded_theirs_and_cannot_pass_for_more() {
    let (first, second) = (HttpSink::plain(), HttpSink::plain());
    let settings = |most: u32| {
        let channels = [
            hook("aaa", &first.url("/closed"), "agents = false\non = []"),
            hook("phone", &first.url("/in"), "on = []"),
            ntfy("tablet", &second.url(""), "on = []"),
        ];
        format!("[limits]\nagent_messages = {most}\n{}", channels.concat())
    };
    let server = server().policy("admin").settings(&settings(3)).start();
    let client = server.client();
    let hostile = json!({ "title": "t\r\nX-Injected: 1", "message": "\u{1b}[2J\u{202e}m\r\n\r\nPOST / HTTP/1.1" });
    assert_eq!(
        send(&client, hostile).data()["channel"],
        "phone",
        "the first that is open"
    );
    let letter = first.after(1).remove(0);
    assert!(letter.head.starts_with("POST /in HTTP/1.1\r\n"));
    assert!(!letter.head.contains("Injected"));
    assert_eq!(letter.body["kind"], "agent");
    assert_eq!(letter.body["message"], "^[[2J<U+202E>m\n\nPOST / HTTP/1.1");
    assert!(
        letter.body["title"]
            .as_str()
            .unwrap()
            .ends_with(": t  X-Injected: 1")
    );
    assert!(letter.body["agent"].is_string() && letter.body["box"].is_string());

    let to = |channel: &str| send(&client, json!({ "message": "x", "channel": channel }));
    for there_is_none in ["aaa", "nobody"] {
        let failure = to(there_is_none).failure();
        assert!(failure.contains("Channels: phone, tablet."), "{failure}");
    }
    assert_eq!(to("tablet").data()["channel"], "tablet");
    assert_eq!(
        second.after(1)[0].body["title"].as_str().unwrap(),
        letter.body["title"]
            .as_str()
            .unwrap()
            .split(": ")
            .next()
            .unwrap()
    );
    what_does_not_fit_is_refused(&client);
    assert_eq!(to("phone").data()["delivered"], true);
    let failure = to("phone").failure();
    assert!(failure.contains("limit of 3 messages an hour"), "{failure}");
    assert_eq!(first.requests().len() + second.requests().len(), 3);
    server.reload_with(&settings(4));
    assert_eq!(
        to("phone").data()["delivered"],
        true,
        "the limit in force counts"
    );
    another_agent_has_its_own(&server);
}

fn what_does_not_fit_is_refused(client: &Client) {
    for bad in [
        json!({ "message": "m".repeat(1001) }),
        json!({ "message": " \n" }),
        json!({ "message": "m", "title": "t".repeat(121) }),
        json!({ "message": "m", "url": "http://localhost/" }),
        json!({ "message": "m", "priority": "urgent" }),
    ] {
        let refused = send(client, bad.clone()).failure();
        assert!(!refused.is_empty(), "{bad}");
    }
}

fn another_agent_has_its_own(server: &Server) {
    let other = admit(server, "teller", &["--policy", "operate"]);
    let sent = send(&other, json!({ "message": "x" })).data();
    assert_eq!(sent["delivered"], true);
}

#[test]
fn a_token_that_others_could_read_is_not_sent() {
    let directory = Directory::new();
    let phone = HttpSink::plain();
    let token = token_file(&directory, "tk_open");
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let channel = ntfy(
        "phone",
        &phone.url(""),
        &format!("token_file = \"{token}\"\non = []"),
    );
    let server = server().policy("admin").settings(&channel).start();
    let client = server.client();
    let failure = send(&client, json!({ "message": "x" })).failure();
    assert!(failure.contains("its token cannot be used"), "{failure}");
    assert!(!failure.contains(&token), "{failure}");
    assert!(server.log().contains("chmod 640"), "{}", server.log());
    fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(
        send(&client, json!({ "message": "x" })).data()["delivered"],
        true
    );
    assert!(!server.log().contains("tk_open"));
}

/// Runs `gatewren notify` as the owner.
pub fn notify(server: &Server, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let command = command.arg("notify").args(words).arg("--config");
    command.arg(server.settings_file()).output().unwrap()
}

pub fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Adds a notification, as any program on the host may.
pub fn notice(server: &Server, id: u64, level: &str) {
    let one = json!({ "at_ms": 7, "level": level, "title": level, "message": "m\u{1b}[2J", "seen": false });
    let all = json!({ "host": { id.to_string(): one } });
    server.patch_from_outside(
        &json!([{ "op": "add", "path": "/public/notifications", "value": all }]),
    );
}

#[test]
fn a_proposal_and_a_job_that_failed_reach_the_channels_that_are_told_of_them() {
    let (phone, hook) = (HttpSink::plain(), HttpSink::plain());
    let channels = [
        ntfy("phone", &phone.url(""), "on = [\"inbox\"]"),
        hook_of(&hook),
    ];
    let server = server()
        .policy("admin")
        .settings(&channels.concat())
        .start();
    let options = ["--policy", "operate", "--mode", "execute=propose"];
    let shy = admit(
        &server,
        "shy",
        &[&options[..], &["--toolset", "all"]].concat(),
    );
    let proposed = shy
        .call(
            "system_shell",
            json!({ "command": "echo s3cr3targument", "reason": "to test; --password hunter2" }),
        )
        .send()
        .data();
    let change = proposed["change"].as_str().unwrap();
    let told = phone.after(1).remove(0).body;
    assert_eq!(
        (&told["title"], &told["tags"][0]),
        (&json!("a change waits in the inbox"), &json!("inbox"))
    );
    let link = told["click"].as_str().unwrap();
    assert!(
        link.ends_with(&format!("/owner/changes/{change}")),
        "{link}"
    );
    let text = told["message"].as_str().unwrap();
    assert!(
        text.starts_with("system_shell is proposed.") && text.contains(change),
        "{text}"
    );
    assert!(
        text.contains("\nThe agent's reason: “to test;") && !text.contains("hunter2"),
        "{text}"
    );
    assert!(
        !text.contains("s3cr3targument") && !text.contains("shy"),
        "{text}"
    );

    it_is_seen_once_it_is_decided_on(&server, change);
    a_job_fails(&server, &hook);
    assert_eq!(
        (phone.requests().len(), hook.requests().len()),
        (1, 1),
        "each its own"
    );
}

fn it_is_seen_once_it_is_decided_on(server: &Server, change: &str) {
    let list = server.client().call("notification_list", json!({}));
    let first = || list.send().data()["notifications"][0].clone();
    assert_eq!(
        (&first()["title"], &first()["seen"]),
        (&json!("a change waits in the inbox"), &json!(false))
    );
    let rejected = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["inbox", "reject", change, "--config"])
        .arg(server.settings_file())
        .output();
    assert!(rejected.unwrap().status.success());
    wait_until("it is seen", IN_TIME, || first()["seen"] == true);
}

fn a_job_fails(server: &Server, hook: &HttpSink) {
    let failing = json!({ "command": "exit 7" });
    let job = server.client().call("job_start", failing).send().data();
    let told = hook.after(1).remove(0).body;
    assert_eq!(told["kind"], "error");
    assert_eq!(told["title"], "a job of job_start failed");
    assert!(told["link"].as_str().unwrap().ends_with("/owner/home"));
    let text = told["message"].as_str().unwrap();
    assert!(
        text.contains(job["job"].as_str().unwrap()) && text.contains("exit code 7"),
        "{text}"
    );
}

fn hook_of(hook: &HttpSink) -> String {
    hook_with(hook, "on = [\"error\"]")
}

fn hook_with(to: &HttpSink, more: &str) -> String {
    hook("hook", &to.url("/"), more)
}

#[test]
#[ignore = "long: waits for retries"]
fn what_is_not_taken_is_tried_again_over_a_restart_and_given_up_where_that_is_no_use() {
    if !crate::support::server::has_sqlite3() {
        return;
    }
    let (hook, home) = (HttpSink::plain(), Directory::new());
    let state = home.join("state");
    let start = || {
        server()
            .policy("admin")
            .directory(&state)
            .settings(&hook_of(&hook))
            .start()
    };
    let first = start();
    hook.behave(SinkBehavior::Says(503, String::new()));
    notice(&first, 1_000_003, "error");
    hook.after(1);
    let waiting = || json_of(&notify(&first, &["list", "--json"]))["waiting"].clone();
    wait_until("it waits", IN_TIME, || waiting()[0]["tries"] == 1);
    assert!(waiting()[0]["error"].as_str().unwrap().contains("503"));
    drop(first);
    hook.behave(SinkBehavior::Says(200, String::new()));
    let second = start();
    let told = hook.after(2).remove(1).body;
    assert_eq!(
        (&told["title"], &told["message"]),
        (&json!("error"), &json!("m^[[2J"))
    );
    let list = || json_of(&notify(&second, &["list", "--json"]));
    wait_until("nothing waits", IN_TIME, || list()["waiting"] == json!([]));

    hook.behave(SinkBehavior::Says(401, String::new()));
    notice(&second, 1_000_009, "warning");
    notice(&second, 1_000_010, "error");
    wait_until("it is given up", IN_TIME, || {
        list()["given_up"][0]["tries"] == 1
    });
    assert_eq!(
        hook.requests().len(),
        3,
        "a warning is not told, and 401 is no use"
    );
    let words = String::from_utf8(notify(&second, &["list"]).stdout).unwrap();
    assert!(
        words.contains("given up: ") && words.contains("hook: webhook; gets error, agents"),
        "{words}"
    );
}

#[test]
fn a_change_of_a_watched_place_is_sent_and_no_other() {
    let hook = HttpSink::plain();
    let rule = "on = []\nwatch = [\"/public/watched/*/level\"]";
    let server = server().settings(&hook_with(&hook, rule)).start();
    server.put("other", &json!(1));
    server.put("watched", &json!({ "a": { "level": 1, "beside": 1 } }));
    let told = hook.after(1).remove(0).body;
    assert_eq!(told["kind"], "state");
    assert_eq!(told["title"], "/public/watched/a/level");
    assert_eq!(told["message"], "now 1; it was absent");
    assert!(told["link"].as_str().unwrap().ends_with("/owner/home"));
    server.put("watched", &json!({ "a": { "level": 1, "beside": 2 } }));
    server.put("watched", &json!({ "a": { "level": 2, "beside": 2 } }));
    let told = hook.after(2).remove(1).body;
    assert_eq!(told["message"], "now 2; it was 1");
}

#[test]
fn the_path_in_the_example_of_the_settings_sends_a_container_that_starts() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("alpha");
    let example = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/etc/gatewren.toml"));
    let example = example.unwrap();
    let mut lines = example.lines();
    let watch = lines.find_map(|line| line.strip_prefix("# watch = "));
    let hook = HttpSink::plain();
    let server = server()
        .policy("admin")
        .settings(&format!(
            "[lxc]\nlxcpath = \"{}\"\n{}",
            containers.lxcpath().display(),
            hook_with(&hook, &format!("on = []\nwatch = {}", watch.unwrap()))
        ))
        .start();
    let state = json!({ "pointer": "/public/packageData/alpha/status" });
    wait_until("it is observed", IN_TIME, || {
        let answer = server.client().call("state_get", state.clone()).send();
        answer.rpc()["result"]["structuredContent"]["value"] == "stopped"
    });
    containers.tool("lxc-start", "alpha", &[]);
    wait_until("the start is sent", IN_TIME, || {
        hook.requests().iter().any(|one| {
            let words = one.body["message"].as_str().unwrap();
            one.body["title"] == "/public/packageData/alpha/status" && words.contains("running")
        })
    });
}

#[test]
fn the_owner_tries_the_channels_by_hand() {
    let (phone, hook) = (HttpSink::plain(), HttpSink::plain());
    let server = server().policy("admin").settings("").start();
    assert_eq!(
        notify(&server, &["test"]).status.code(),
        Some(1),
        "there is none"
    );
    server.reload_with(&[ntfy("phone", &phone.url(""), ""), hook_of(&hook)].concat());
    let tried = notify(&server, &["test", "--json"]);
    assert_eq!(tried.status.code(), Some(0), "{tried:?}");
    assert_eq!(
        json_of(&tried),
        json!([
            { "channel": "hook", "delivered": true, "error": null, "local_network": true },
            { "channel": "phone", "delivered": true, "error": null, "local_network": true },
        ])
    );
    assert_eq!(phone.requests()[0].body["tags"][0], "test");
    assert_eq!(hook.requests()[0].body["kind"], "test");
    let link = phone.requests()[0].body["click"].clone();
    let link = link.as_str().unwrap();
    assert!(
        link.starts_with("https://") && link.ends_with("/owner"),
        "{link}"
    );
    assert_eq!(hook.requests()[0].body["link"], link);
    hook.behave(SinkBehavior::Says(404, String::new()));
    let tried = notify(&server, &["test", "hook"]);
    assert_eq!(tried.status.code(), Some(4));
    let words = String::from_utf8(tried.stdout).unwrap();
    assert_eq!(
        words,
        "hook did not accept it: it answered 404 Not Found, not 200\n"
    );
    assert_eq!(notify(&server, &["test", "nobody"]).status.code(), Some(1));
}
