//! What a container's failures look like to a client: why it does not start, and that it was stopped during a command.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::backups::Home;

/// Below the 10 seconds of grace that a container has by default.
const SOON: Duration = Duration::from_secs(8);

#[test]
fn a_container_that_does_not_start_gives_the_reason_from_its_log() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let config = home.directory("wren").join("config");
    let mut file = OpenOptions::new().append(true).open(config).unwrap();
    writeln!(
        file,
        "lxc.mount.entry = /nonexistent/of-test mnt none bind 0 0"
    )
    .unwrap();
    let said = home.refused("container_start", json!({ "container": "wren" }));
    assert!(said.contains("/nonexistent/of-test"), "{said}");
    assert!(
        said.contains("container_logs") && !said.contains("foreground"),
        "{said}"
    );
}

#[test]
fn a_container_without_its_init_gives_that_as_the_reason() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let config = home.directory("wren").join("config");
    let mut file = OpenOptions::new().append(true).open(config).unwrap();
    writeln!(file, "lxc.init.cmd = /sbin/no-init-of-test").unwrap();
    let said = home.refused("container_start", json!({ "container": "wren" }));
    let cause = "Failed to exec \"/sbin/no-init-of-test\"";
    assert!(said.contains(cause), "{said}");
    assert!(
        said.contains("Call container_logs with source: lxc"),
        "{said}"
    );
    for noise in ["foreground", "another process", "Failed to spawn", "\\u{a}"] {
        assert!(!said.contains(noise), "{noise}: {said}");
    }
    let log = json!({ "container": "wren", "source": "lxc" });
    let shown = home.call("container_logs", log).to_string();
    assert!(shown.contains("no-init-of-test"), "{shown}");
}

#[test]
fn a_frozen_container_is_stopped_without_waiting_for_its_grace() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    let wren = || json!({ "container": "wren" });
    home.call("container_start", wren());
    home.containers.until_ready("wren");
    home.call("container_freeze", wren());
    let said = home.refused("container_start", wren());
    assert!(
        said.contains("container_unfreeze") && !said.contains("container_start starts"),
        "{said}"
    );
    let begun = Instant::now();
    home.call("container_stop", wren());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(home.containers.state("wren"), "STOPPED");
}

#[test]
fn a_command_whose_container_was_stopped_says_so() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    home.call("container_start", json!({ "container": "wren" }));
    home.containers.until_ready("wren");
    let ended = std::thread::scope(|scope| {
        let command = json!({ "container": "wren", "command": "echo begun; sleep 60" });
        let running = scope.spawn(|| home.call("container_shell", command));
        std::thread::sleep(Duration::from_secs(1));
        home.call(
            "container_stop",
            json!({ "container": "wren", "grace_s": 0 }),
        );
        running.join().unwrap()
    });
    assert_eq!(ended["stdout"], "begun\n", "{ended}");
    assert!(
        ended["note"]
            .as_str()
            .unwrap()
            .contains("container stopped"),
        "{ended}"
    );
    assert_eq!(home.containers.state("wren"), "STOPPED");
}

#[test]
fn a_state_that_another_program_changed_is_shown_at_once() {
    let Some(mut home) = Home::new() else { return };
    home.containers.make("wren");
    home.containers.make("owl");
    let states = |home: &Home| {
        let listed = home.call("container_list", json!({}));
        let listed = listed["containers"].as_array().unwrap().clone();
        let state = |name: &str| {
            let found = listed.iter().find(|one| one["name"] == name);
            found.unwrap()["state"].as_str().unwrap().to_owned()
        };
        [state("wren"), state("owl")]
    };
    assert_eq!(states(&home), ["stopped", "stopped"]);
    home.call("container_start", json!({ "container": "wren" }));
    home.containers.until_ready("wren");
    assert_eq!(states(&home), ["running", "stopped"]);
    for (tool, expected) in [
        ("lxc-freeze", "frozen"),
        ("lxc-unfreeze", "running"),
        ("lxc-stop", "stopped"),
        ("lxc-start", "running"),
    ] {
        let kill: &[&str] = if tool == "lxc-stop" { &["-k"] } else { &[] };
        home.containers.tool(tool, "wren", kill);
        match tool {
            "lxc-stop" => home.containers.until_stopped("wren"),
            "lxc-start" => home.containers.until_ready("wren"),
            _ => {}
        }
        assert_eq!(states(&home), [expected, "stopped"], "{tool}");
    }
}
