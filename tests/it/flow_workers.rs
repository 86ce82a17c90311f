//! Background work that is switched off in `[workers]`: commands still end, and each place names the missing work.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::{tell, words};
use crate::support::machine::{IN_TIME, marked, marker, wait_until};
use crate::support::server::{Directory, Server, server};

const OFF: &str = "[workers]\nobserver = false\nnotifier = false\nsweeper = false\njobs = false\n";

fn state(server: &Server, pointer: &str) -> Value {
    let asked = json!({ "pointer": pointer });
    let answer = server.client().call("state_get", asked).send();
    answer.result()["structuredContent"]["value"].clone()
}

/// Returns the finding of `doctor` about the workers.
fn finding(home: &Directory) -> Option<Value> {
    let said = tell(&home.0, &["doctor", "--no-self-test"]).0;
    let mut found = said["findings"].as_array().unwrap().iter();
    found.find(|one| one["check"] == "workers").cloned()
}

/// Tools that need the missing work are refused.
fn refuses_what_needs_the_work(client: &Client) {
    let call = json!({ "tool": "server_info", "arguments": {} });
    let mut schedule = call.clone();
    (schedule["name"], schedule["every"]) = (json!("daily"), json!("1h"));
    let refused = [
        ("schedule_create", schedule, "[workers] jobs"),
        (
            "watch_create",
            json!({ "condition": { "kind": "disk_full", "above_percent": 90 } }),
            "[workers] jobs",
        ),
        ("server_history", json!({}), "[workers] observer"),
    ];
    for (tool, arguments, why) in refused {
        let said = client.call(tool, arguments).send().failure();
        assert!(said.contains(why), "{tool}: {said}");
    }
}

#[test]
fn a_server_without_workers_says_so_and_keeps_what_makes_it_safe() {
    let home = Directory::new();
    let bounds = "host_shell = \"full\"\n";
    let builder = server().policy("admin").directory(&home.0).bounds(bounds);
    let server = builder.settings(OFF).start();
    let client = server.client();
    let keys = json!(["observer", "notifier", "sweeper", "jobs"]);

    refuses_what_needs_the_work(&client);

    // The state, the instructions, `status` and `doctor` name the missing work.
    let why = state(&server, "/public/observer/units/why");
    assert_eq!(why, "switched off in [workers]");
    assert_eq!(state(&server, "/public/observer/switched_off"), keys);
    let told = client.modern("server/discover").send().result()["instructions"].clone();
    assert!(
        told.as_str()
            .unwrap()
            .contains("Switched off by the owner: schedules"),
        "{told}"
    );
    assert_eq!(tell(&home.0, &["status"]).0["workers_off"], keys);
    let status = words(&home.0, &["status"]);
    assert!(
        status.contains("observer, notifier, sweeper, jobs"),
        "{status}"
    );
    let found = finding(&home).expect("doctor names them");
    assert_eq!(found["state"], "note", "it changes no exit code");

    // A change of the host waits for no look, and is in no revision.
    let ran = client
        .call("system_shell", json!({ "command": "true" }))
        .send();
    assert_eq!(ran.data()["exit_code"], 0);

    // Commands end with their calls, and calls are in the audit.
    let mark = marker();
    let line = format!("(setsid sleep {mark} &); sleep {mark}");
    let late = client.call("system_shell", json!({ "command": line, "timeout_s": 1 }));
    assert_eq!(late.send().data()["timed_out"], true);
    wait_until("nothing is left", IN_TIME, || marked(&mark).is_empty());
    let calls = words(
        &home.0,
        &["audit", "list", "--tool", "system_shell", "--json"],
    );
    assert_eq!(calls.lines().count(), 2, "{calls}");

    // A reload changes nothing, and names the keys that wait for a restart.
    let said = server.reload_with("[workers]\njobs = false\n");
    assert!(said.contains("workers.observer"), "{said}");
    drop(server);

    let server = builder_with_all(&home);
    assert_eq!(tell(&home.0, &["status"]).0["workers_off"], json!([]));
    assert_eq!(finding(&home), None);
    assert!(state(&server, "/public/observer/switched_off").is_null());
    wait_until("the units are observed again", IN_TIME, || {
        state(&server, "/public/observer/units/why") != "switched off in [workers]"
    });
}

fn builder_with_all(home: &Directory) -> Server {
    server().policy("admin").directory(&home.0).start()
}

#[test]
fn a_trial_starts_without_workers() {
    let home = Directory::new();
    let builder = server().directory(&home.0).option("--no-workers");
    let server = builder.start();
    let off = tell(&home.0, &["status"]).0["workers_off"].clone();
    assert_eq!(off.as_array().unwrap().len(), 4, "{off}");
    assert!(server.log().contains("background work is switched off"));
}
