//! Clients see and use exactly what the owner of the host allows the helper to do.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::attacked_helper::NOTHING;
use crate::support::client::Client;
use crate::support::command::{add_agent, tell};
use crate::support::machine::{IN_TIME, is_root, wait_until};
use crate::support::server::{Server, server};

fn tools(client: &Client) -> Vec<String> {
    client.modern("tools/list").send().names("tools")
}

/// Returns what is off, as the helper has reported it to the server.
fn off(client: &Client) -> Value {
    client.call("whoami", json!({})).send().data()["off_on_this_box"].clone()
}

/// Starts a server whose helper has this policy, and waits for the helper's report: a start does not wait forever.
fn bounded(bounds: &str) -> Server {
    let server = server().policy("admin").settings("").bounds(bounds).start();
    wait_until("the helper is heard", IN_TIME, || {
        why_off(&server, "system_shell") == "host_shell"
    });
    server
}

/// Returns why a tool is unavailable, as the owner sees it.
fn why_off(server: &Server, tool: &str) -> Value {
    let (shown, _) = tell(&server.state_dir(), &["agent", "show", "try"]);
    shown["off_on_this_box"][tool].clone()
}

/// Kills the helper; the server starts a new one, which reads the policy again.
fn start_helper_again(server: &Server) {
    let helper = server.children();
    assert_eq!(helper.len(), 1);
    kill(Pid::from_raw(helper[0]), Signal::SIGKILL).unwrap();
}

#[test]
fn tools_of_a_class_that_is_off_are_not_there_for_anybody() {
    let server = bounded("");
    let client = server.client();
    let listed = tools(&client);
    let has = |name: &str| listed.iter().any(|listed| listed == name);
    assert!(has("container_shell") && has("container_list") && has("container_start"));
    assert!(!has("system_shell") && !has("server_restart"), "{listed:?}");
    assert_eq!(has("update_check"), Path::new("/usr/bin/apt-get").exists());
    let session = client.session("2025-06-18");
    assert_eq!(session.request("tools/list").send().names("tools"), listed);
    for name in ["system_shell", "system.shell"] {
        let answer = client.call(name, json!({ "command": "true" })).send();
        assert_eq!(answer.verdict().1, -32602);
        let words =
            format!("{name} is switched off on this server: it needs host_shell in helper.toml");
        assert!(answer.message().starts_with(&words), "{}", answer.message());
    }
    // An agent that sees only a part of the server, or that its policy denies the tool, does not learn what is off.
    for (name, limit) in [
        ("limited", "--container=none-*"),
        ("reading", "--policy=observe"),
    ] {
        let mut args = vec!["--policy=admin", limit];
        if limit.starts_with("--policy") {
            args.remove(0);
        }
        let made = add_agent(&server.state_dir(), name, &args);
        let other = server.client().with_token(made["token"].as_str().unwrap());
        wait_until("it comes in", IN_TIME, || {
            other.modern("tools/list").send().status == 200
        });
        let answer = other.call("server_restart", json!({})).send();
        assert!(
            !answer.message().contains("switched off"),
            "{}",
            answer.message()
        );
    }
    let strict = [
        "host_shell",
        "lxc_manage",
        "container_files",
        "power",
        "updates = \"apply\"",
        "units",
        "host_file_reads",
        "host_file_writes",
        "network",
        "storage",
        "cleanup",
        "backup",
        "backup = \"delete\"",
        "ssh_keys",
        "host_settings",
        "mail_to",
    ];
    assert_eq!(off(&client), json!(strict));
    let (shown, _) = tell(&server.state_dir(), &["agent", "show", "try"]);
    let shown = shown["tools"].to_string();
    assert!(!shown.contains("system_shell") && shown.contains("container_shell"));
}

#[test]
fn nothing_that_the_helper_would_do_is_there_when_all_is_off() {
    let server = bounded(NOTHING);
    let listed = tools(&server.client());
    let gone = [
        "container_",
        "system_shell",
        "server_restart",
        "server_shutdown",
        "server_processes",
        "update_",
        "firmware_",
        "logs_",
        "kernel_logs",
        "boot_list",
        "host_uptime_history",
    ];
    let left = |name: &&String| gone.iter().any(|gone| name.starts_with(gone));
    assert_eq!(listed.iter().find(left), None);
    assert!(listed.contains(&"server_info".to_owned()));
}

#[test]
fn what_is_off_cannot_be_proposed_either() {
    let server = bounded("");
    let visitor = add_agent(&server.state_dir(), "visitor", &["--policy", "suggest"]);
    let token = visitor["token"].as_str().unwrap();
    let client = server.client().with_token(token);
    let discover = client.modern("server/discover");
    wait_until("it comes in", IN_TIME, || discover.send().status != 401);
    let propose = |tool: &str, arguments: Value| {
        let proposal = json!({ "tool": tool, "arguments": arguments, "reason": "to see" });
        client.call("propose_change", proposal).send()
    };
    let refused = propose("system_shell", json!({ "command": "true" }));
    assert!(
        refused.failure().contains("the tool system_shell"),
        "{refused:?}"
    );
    // A tool of an enabled class can be proposed, for a container that exists.
    let container = propose("container_start", json!({ "container": "web" }));
    if is_root() {
        let failure = container.failure();
        assert!(failure.contains("there is no container"), "{failure}");
    } else {
        container.data();
    }
}

#[test]
fn clients_hear_when_the_owner_switches_something_on_or_off() {
    const CHANGED: &str = "notifications/tools/list_changed";
    let server = bounded("");
    let client = server.client();
    let mut listen = client
        .modern("subscriptions/listen")
        .param("notifications", json!({ "toolsListChanged": true }))
        .open();
    listen.message();
    let session = client.session("2025-11-25");
    let mut stream = session.stream();
    for (bounds, is_there) in [("host_shell = \"full\"\n", true), ("", false)] {
        server.bound(bounds);
        start_helper_again(&server);
        assert_eq!(listen.message()["method"], CHANGED);
        assert_eq!(stream.event().json()["method"], CHANGED);
        assert_eq!(
            tools(&client).contains(&"system_shell".to_owned()),
            is_there
        );
        let call = client.call("system_shell", json!({ "command": "true" }));
        assert_eq!(call.send().verdict().1 == 0, is_there);
        wait_until("the owner is told", IN_TIME, || {
            why_off(&server, "system_shell").is_null() == is_there
        });
    }
}
