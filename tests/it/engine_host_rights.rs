//! A container of an engine that is root on the host counts as the host: for the helper's policy and for the agent's.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::command::tell_by;
use crate::support::engines::{Engine, EngineContainer, EngineKind};
use crate::support::machine::{IN_TIME, marker, wait_until};
use crate::support::server::{Directory, Server, server};

/// The text of every refusal.
const ROOT: &str = "has the rights of the host's root";

/// A mount that gives root on the host to whoever is root in the container.
const MOUNT: [&str; 2] = ["--volume", "/etc:/host-etc"];

fn start(engine: &Engine, host_shell: &str, settings: &str) -> Server {
    let (name, socket) = (engine.kind.name(), engine.socket());
    let socket = socket.display();
    let bounds = format!(
        "runtimes = [\"{name}\"]\n{name}_socket = \"{socket}\"\nhost_shell = \"{host_shell}\"\n\
         container_files = \"on\"\n"
    );
    let server = server().policy("admin").settings(settings);
    server.bounds(&bounds).run_inside(engine).start()
}

/// The calls that would run something in a container.
fn running_calls(container: &str) -> [(&'static str, Value); 3] {
    [
        (
            "container_shell",
            json!({ "container": container, "command": "true" }),
        ),
        (
            "job_start",
            json!({ "container": container, "command": "true" }),
        ),
        (
            "container_file_write",
            json!({ "container": container, "path": "/written", "text": "x" }),
        ),
    ]
}

/// Adds an agent that is asked nothing, and waits until it sees the container.
fn agent(server: &Server, options: &[&str], container: &str) -> crate::support::client::Client {
    let fixed = [
        "agent",
        "add",
        "guest",
        "--policy",
        "admin",
        "--mode",
        "persist=allow",
    ];
    let said = tell_by(&server.settings_file(), &[&fixed[..], options].concat());
    let client = server.client().with_token(said["token"].as_str().unwrap());
    wait_until("the agent sees the container", IN_TIME, || {
        let pointer = format!("/public/packageData/{container}");
        let seen = client
            .call("state_get", json!({ "pointer": pointer }))
            .send();
        seen.status == 200 && seen.result()["isError"] != true
    });
    client
}

#[test]
fn without_host_shell_nothing_runs_in_a_container_that_is_root_on_the_host() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let root = engine.run(&MOUNT);
        let plain = engine.run(&[]);
        let server = start(&engine, "off", "");
        let client = agent(&server, &["--space", "*"], &root.reference());
        for (tool, arguments) in running_calls(&root.reference()) {
            // A job is refused when it begins; its answer says so.
            let refused = client.call(tool, arguments).send().body;
            assert!(refused.contains(ROOT), "{tool}: {refused}");
        }
        let shell = json!({ "container": plain.reference(), "command": "true" });
        assert_eq!(
            client.call("container_shell", shell).send().data()["exit_code"],
            0
        );
        // What only reads, and what starts and stops it, is as for any other.
        let info = json!({ "container": root.reference() });
        let info = client.call("container_info", info).send().data();
        let right = info["engine"]["host_rights"][0].as_str().unwrap();
        assert!(right.contains("/etc"), "{right}");
    }
}

#[test]
fn an_agent_without_the_right_to_run_commands_on_the_host_runs_none_in_a_container_that_is_root_on_it()
 {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let root = engine.run(&MOUNT);
        let name = root.reference();
        let settings = format!("[spaces.media]\ncontainers = [\"{name}\"]\n");
        for options in [
            // No access to the host at all.
            &["--space", "media"][..],
            // Access to the host, but no commands on it.
            &["--space", "*", "--tool", "system_shell=deny"],
        ] {
            let server = start(&engine, "full", &settings);
            let client = agent(&server, options, &name);
            for (tool, arguments) in running_calls(&name) {
                let answer = client.call(tool, arguments).send();
                let said = answer.body.clone();
                assert!(said.contains(ROOT), "{options:?} {tool}: {said}");
            }
        }
        let server = start(&engine, "full", &settings);
        let client = agent(&server, &["--space", "*"], &name);
        let shell = json!({ "container": name, "command": "true" });
        let ran = client.call("container_shell", shell).send().data();
        assert_eq!(ran["exit_code"], 0);
    }
}

#[test]
fn a_link_and_a_volume_that_are_the_hosts_root_count_as_it() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let home = Directory::new();
        let link = home.join("link");
        symlink("/", &link).unwrap();
        let volume = format!("it-{}", marker());
        let create = ["volume", "create", "--opt", "type=none", "--opt", "o=bind"];
        engine.cli(&[&create[..], &["--opt", "device=/", &volume]].concat());
        let by_link = format!("{}:/x", link.display());
        let by_volume = format!("{volume}:/x");
        {
            let roots = [&by_link, &by_volume].map(|mount| engine.run(&["--volume", mount]));
            let plain = engine.run(&["--volume", &format!("{}:/y", home.0.display())]);
            let server = start(&engine, "off", "");
            let client = agent(&server, &["--space", "*"], &plain.reference());
            let info = |container: &EngineContainer<'_>| {
                let info = json!({ "container": container.reference() });
                client.call("container_info", info).send().data()["engine"].clone()
            };
            for root in &roots {
                let right = info(root)["host_rights"].to_string();
                assert!(right.contains("it has / of the host"), "{right}");
                for (tool, arguments) in running_calls(&root.reference()) {
                    let refused = client.call(tool, arguments).send().body;
                    assert!(refused.contains(ROOT), "{tool}: {refused}");
                }
            }
            assert_eq!(info(&plain).get("host_rights"), None);
            let shell = json!({ "container": plain.reference(), "command": "true" });
            let ran = client.call("container_shell", shell).send().data();
            assert_eq!(ran["exit_code"], 0);
        }
        engine.cli(&["volume", "rm", "--force", &volume]);
    }
}

#[test]
fn a_command_in_a_container_that_is_root_on_the_host_waits_as_one_on_the_host() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let root = engine.run(&MOUNT);
        let name = root.reference();
        let server = start(&engine, "full", "");
        let options = ["--space", "*", "--tool", "system_shell=propose"];
        let client = agent(&server, &options, &name);
        let shell = json!({ "container": name, "command": "true" });
        let waits = client.call("container_shell", shell).send().data();
        assert_eq!(waits["status"], "pending", "{waits}");
        assert_eq!(waits["applied"], false);
    }
}
