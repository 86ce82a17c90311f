//! The list of containers is right at the time of the call, though answers of the engines are kept for it: containers are
//! changed by the engine's own client, and listed at once.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::engines::{Engine, EngineContainer, EngineKind};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Server, server};

/// Longer than a stream of events must be open before answers are kept.
const SETTLED: Duration = Duration::from_millis(1500);

/// Lets a container name its operating system, which the lab's image does not.
fn with_os<'a>(engine: &Engine, container: EngineContainer<'a>) -> EngineContainer<'a> {
    let line = "mkdir -p /etc && echo ID=lab >/etc/os-release";
    engine.cli(&["exec", &container.name, "/bin/sh", "-c", line]);
    container
}

/// Returns the container in the list of all; `None` if it is not there.
fn listed(server: &Server, reference: &str) -> Option<Value> {
    let answer = server
        .client()
        .call("container_list", json!({}))
        .send()
        .data();
    let all = answer["containers"].as_array().unwrap();
    all.iter().find(|one| one["name"] == reference).cloned()
}

/// Lists at once, and again when the answer may be kept: each time the list shows what the engine itself says.
fn check(server: &Server, container: &EngineContainer<'_>, done: &str) {
    for time in ["at once", "again", "a third time"] {
        let shown = listed(server, &container.reference())
            .unwrap_or_else(|| panic!("{done}, {time}: it is not in the list"));
        let what = format!("{done}, {time}: {shown:#}");
        let status = container.inspect(".State.Status");
        assert_eq!(shown["engine"]["engine_state"], status.as_str(), "{what}");
        let (state, has_ended) = match status.as_str() {
            "running" => ("running", false),
            "paused" => ("frozen", false),
            "exited" => ("stopped", true),
            other => panic!("{done}: {other}"),
        };
        assert_eq!(shown["state"], state, "{what}");
        let pid: u64 = container.inspect(".State.Pid").parse().unwrap();
        assert_eq!(shown["init_pid"].as_u64().unwrap_or(0), pid, "{what}");
        let code: i64 = container.inspect(".State.ExitCode").parse().unwrap();
        let expected = has_ended.then_some(code);
        assert_eq!(shown["engine"]["exit_code"].as_i64(), expected, "{what}");
        let arguments = json!({ "container": container.reference() });
        let alone = server.client().call("container_info", arguments).send();
        let alone = alone.data();
        for member in [
            "addresses",
            "autostart",
            "engine",
            "init_pid",
            "os",
            "runtime",
            "state",
            "unprivileged",
        ] {
            assert_eq!(shown[member], alone[member], "{what}");
        }
        let os = (pid != 0).then_some("lab");
        assert_eq!(shown["os"]["id"].as_str(), os, "{what}");
    }
}

#[test]
fn the_list_shows_each_change_by_the_engines_own_client_at_once() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let server = server()
            .policy("admin")
            .engines(std::slice::from_ref(&engine))
            .start();
        let mut container = with_os(&engine, engine.run(&[]));
        let reference = container.reference();
        wait_until("it is listed", IN_TIME, || {
            listed(&server, &reference).is_some()
        });
        sleep(SETTLED);
        check(&server, &container, "start");
        for verbs in [
            &["pause"][..],
            &["unpause"],
            &["restart", "-t", "0"],
            &["restart", "-t", "0"],
            &["kill"],
            &["start"],
            &["stop", "-t", "0"],
            &["start"],
        ] {
            engine.cli(&[verbs, &[container.name.as_str()]].concat());
            check(&server, &container, verbs[0]);
        }

        let old = container.name.clone();
        let new = format!("{old}-new");
        engine.cli(&["rename", &old, &new]);
        container.name = new;
        assert_eq!(listed(&server, &reference), None);
        check(&server, &container, "rename");

        let second = with_os(&engine, engine.run_named(&old));
        check(&server, &second, "a new one of the old name");
        check(&server, &container, "a new one of the old name");
        drop(second);
        assert_eq!(listed(&server, &reference), None);
        let reference = container.reference();
        drop(container);
        assert_eq!(listed(&server, &reference), None);
    }
}

#[test]
fn the_list_shows_a_restart_policy_that_docker_has_just_been_given() {
    let Some(engine) = Engine::shared(EngineKind::Docker) else {
        return;
    };
    let server = server()
        .policy("admin")
        .engines(std::slice::from_ref(&engine))
        .start();
    let container = engine.run(&[]);
    let reference = container.reference();
    wait_until("it is listed", IN_TIME, || {
        listed(&server, &reference).is_some()
    });
    sleep(SETTLED);
    // Docker's list does not show it: only an event tells of it.
    for (policy, is_automatic) in [("always", true), ("no", false)].repeat(10) {
        for _ in 0..2 {
            listed(&server, &reference);
        }
        engine.cli(&["update", "--restart", policy, &container.name]);
        let shown = listed(&server, &reference).unwrap();
        assert_eq!(shown["autostart"], is_automatic, "{policy}: {shown:#}");
    }
}

#[test]
fn the_list_is_right_after_the_engine_was_restarted() {
    for kind in EngineKind::ALL {
        let Some(engine) = Engine::own(kind, "--live-restore") else {
            return;
        };
        let server = server()
            .policy("admin")
            .engines(std::slice::from_ref(&engine))
            .start();
        let container = with_os(&engine, engine.run(&[]));
        let reference = container.reference();
        wait_until("it is listed", IN_TIME, || {
            listed(&server, &reference).is_some()
        });
        sleep(SETTLED);
        check(&server, &container, "start");
        engine.restart(true, "--live-restore");
        check(&server, &container, "a restart of the engine");
        engine.cli(&["kill", &container.name]);
        check(&server, &container, "kill");
    }
}
