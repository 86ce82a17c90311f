//! Tools on real containers of Docker and Podman, by their references and by their names.

use serde_json::json;

use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::server;

#[test]
fn tools_take_references_of_both_engines_and_names_that_only_one_container_has() {
    let engines: Vec<Engine> = EngineKind::ALL
        .into_iter()
        .filter_map(Engine::shared)
        .collect();
    if engines.len() < EngineKind::ALL.len() {
        return;
    }
    let server = server().policy("admin").engines(&engines).start();
    let client = server.client();
    let shell = |container: &str| {
        let arguments = json!({ "container": container, "command": "echo out; exit 3" });
        client.call("container_shell", arguments).send()
    };
    let listed = client.call("container_list", json!({})).send();
    let listed = listed.data()["containers"].clone();
    for engine in &engines {
        for name in ["alpha", "beta"] {
            let reference = engine.reference(name);
            let mut containers = listed.as_array().unwrap().iter();
            assert!(
                containers.any(|one| one["name"] == reference.as_str()),
                "{listed:#}"
            );
        }
        let answer = shell(&engine.reference("alpha")).data();
        assert_eq!(answer["stdout"], "out\n");
        assert_eq!(answer["exit_code"], 3);
        let own = engine.run(&[]);
        wait_until("the server has seen the container", IN_TIME, || {
            shell(&own.name).result()["isError"] != true
        });
        let unknown = shell(&engine.reference("no-such-container")).failure();
        assert!(unknown.contains("no-such-container"), "{unknown}");
    }
    let ambiguous = shell("alpha").failure();
    assert!(ambiguous.contains("docker:alpha and "), "{ambiguous}");
    assert!(ambiguous.contains("podman:alpha"), "{ambiguous}");
}

#[test]
fn a_process_is_shown_with_the_container_of_the_engine_that_it_is_in() {
    let engines: Vec<Engine> = EngineKind::ALL
        .into_iter()
        .filter_map(Engine::shared)
        .collect();
    if engines.is_empty() {
        return;
    }
    let server = server().policy("admin").engines(&engines).start();
    for engine in &engines {
        let own = engine.run(&[]);
        let reference = own.reference();
        // It is deleted with the container.
        engine.cli(&[
            "exec",
            "--detach",
            &own.name,
            "/bin/sh",
            "-c",
            "while :; do :; done",
        ]);
        wait_until("its busy process is among the first", IN_TIME, || {
            let list = server
                .client()
                .call("server_processes", json!({}))
                .send()
                .data();
            let mut processes = list["processes"].as_array().unwrap().iter();
            processes.any(|one| {
                let of = one["container"].as_str();
                of == Some(reference.as_str()) && one["cpu_percent"].as_f64() > Some(5.0)
            })
        });
    }
}

#[test]
fn a_container_of_lxc_is_never_made_under_the_name_of_another_runtimes_container() {
    let Some(engine) = Engine::shared(EngineKind::Docker) else {
        return;
    };
    let helper = engine.helper();
    let create = json!({ "do": "container_create", "name": "docker:new", "template": "busybox" });
    let (code, message) = helper.run(&create).refusal();
    assert!(message.contains("LXC only"), "{code}: {message}");
}
