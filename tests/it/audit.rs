//! The audit of calls from outside: listed, shown, exported, verified, trimmed; and its man page.

use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::machine::{IN_TIME, LONG_S, marked, marker, skip, wait_until};
use crate::support::manual::Manual;
use crate::support::server::{Directory, Server, server};

fn page() -> Manual {
    Manual::named("gatewren-audit.5")
}

/// Runs `gatewren audit` on a state directory.
fn audit(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.arg("audit").args(words).arg("--dir").arg(directory);
    command.output().unwrap()
}

/// Returns its output. It must succeed.
fn said(directory: &Path, words: &[&str]) -> String {
    let output = audit(directory, words);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns its output with `--json`: one object per line.
fn told(directory: &Path, words: &[&str]) -> Vec<Value> {
    let text = said(directory, &[words, &["--json"]].concat());
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Stops a server with SIGTERM, so that everything is written.
fn stop(mut server: Server) {
    server.signal(Signal::SIGTERM);
    server.ended();
}

fn admin_in(directory: &Path) -> Server {
    server().policy("admin").directory(directory).start()
}

/// Makes calls with each kind of outcome, one after the other.
fn make_calls(server: &Server) {
    let client = server.client();
    client.call("whoami", json!({})).send().data();
    let wrong = client.call("system_shell", json!({ "command": 5 }));
    wrong.send().failure();
    let absent = client.call("container_start", json!({ "container": "absent" }));
    absent.send();
    let shell = json!({ "command": "echo --password hunter2 is in it" });
    client.call("system_shell", shell).send().data();
}

#[test]
fn a_call_is_on_record_with_its_agent_space_and_session() {
    let home = Directory::new();
    let server = server()
        .policy("admin")
        .settings("[spaces.box]\nhost = true\n")
        .directory(&home.0)
        .start();
    let session = server.client().session("2025-11-25");
    session.call("whoami", json!({})).send().data();
    server.client().call("whoami", json!({})).send().data();
    let rows = || told(&home.0, &["list"]);
    wait_until("both are written", IN_TIME, || rows().len() == 2);
    let rows = rows();
    for row in &rows {
        assert_eq!(row["tool"], "whoami", "{row}");
        assert!(row["agent"].is_string() && !row["space"].is_null(), "{row}");
    }
    assert_eq!(rows[0]["session"], Value::Null, "2026 has no sessions");
    let kept = rows[1]["session"].as_str().unwrap();
    assert!(!session.id.contains(kept), "the id is more than its name");
}

#[test]
fn calls_are_listed_and_shown_while_the_server_runs() {
    let home = Directory::new();
    let server = admin_in(&home.0);
    make_calls(&server);
    let ended = || {
        told(&home.0, &["list"])
            .iter()
            .all(|call| call["status"] != "open")
    };
    wait_until("every outcome is written", IN_TIME, ended);

    let calls = told(&home.0, &["list"]);
    let tools: Vec<&str> = calls
        .iter()
        .map(|call| call["tool"].as_str().unwrap())
        .collect();
    assert_eq!(
        tools,
        ["system_shell", "container_start", "system_shell", "whoami"]
    );
    assert_eq!(
        calls[0]["arguments"]["command"],
        "echo --password [redacted] is in it"
    );
    assert_eq!(calls[1]["target"], "absent");
    let statuses: Vec<&str> = calls
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["ok", "failed", "failed", "ok"]);
    tell_why_they_failed(&calls, &home.0);

    filters_choose_among(&calls, &home.0);
    is_a_table(&home.0);
    is_shown_by_each_of_its_names(&calls[0], &home.0);
    // The journal and the audit have the same reference for a call.
    let reference = calls[0]["request"].as_str().unwrap();
    assert!(
        server.log().contains(&format!("request=\"{reference}\"")),
        "{reference}"
    );
}

fn tell_why_they_failed(calls: &[Value], home: &Path) {
    let errors: Vec<&str> = calls
        .iter()
        .map(|call| call["ended"]["error"].as_str().unwrap_or_default())
        .collect();
    assert!(errors[0].is_empty() && errors[3].is_empty(), "{errors:?}");
    assert!(errors[1].contains("absent"), "{errors:?}");
    assert!(errors[2].contains("command"), "{errors:?}");
    let shown = said(home, &["show", &calls[1]["seq"].to_string()]);
    assert!(
        shown.contains(&format!("\nerror      {}", errors[1])),
        "{shown}"
    );
}

fn filters_choose_among(calls: &[Value], home: &Path) {
    for (words, expected) in [
        (vec!["--tool", "whoami"], 1),
        (vec!["--tool", "nothing"], 0),
        (vec!["--agent", "try"], 4),
        (vec!["--agent", calls[0]["agent"].as_str().unwrap()], 4),
        (vec!["--agent", "nobody"], 0),
        (vec!["--target", "absent"], 1),
        (vec!["--decision", "allow"], 4),
        (vec!["--decision", "propose"], 0),
        (vec!["--outcome", "ok"], 2),
        (vec!["--since", "1d"], 4),
        (vec!["--until", "1d"], 0),
        (
            vec![
                "--since",
                calls[0]["at"].as_str().unwrap(),
                "--tool",
                "system_shell",
            ],
            1,
        ),
        (vec!["--limit", "3"], 3),
    ] {
        let found = told(home, &[vec!["list"], words.clone()].concat());
        assert_eq!(found.len(), expected, "{words:?}");
    }
}

fn is_a_table(home: &Path) {
    let table = said(home, &["list"]);
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    assert_eq!(
        said(home, &["list", "--tool", "nothing"]),
        "no matching calls\n"
    );
}

fn is_shown_by_each_of_its_names(last: &Value, home: &Path) {
    let names = [
        &last["call"],
        &last["request"],
        &last["seq"],
        &last["ended"]["seq"],
    ];
    for name in names.map(|name| {
        name.as_str()
            .map_or_else(|| name.to_string(), str::to_owned)
    }) {
        assert_eq!(told(home, &["show", &name]), std::slice::from_ref(last));
    }
    let shown = said(home, &["show", last["request"].as_str().unwrap()]);
    assert!(
        shown.contains("decision   allow\n") && shown.contains("outcome    ok\n"),
        "{shown}"
    );
    assert_eq!(audit(home, &["show", "nothing"]).status.code(), Some(1));
    assert_eq!(
        audit(home, &["list", "--since", "soon"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_call_that_was_cut_off_is_shown_as_such() {
    let home = Directory::new();
    let mut server = admin_in(&home.0);
    let mark = marker();
    let line = json!({ "command": format!("sleep {mark}"), "timeout_s": LONG_S });
    let call = server.client().call("system_shell", line).begin();
    wait_until("it runs", IN_TIME, || !marked(&mark).is_empty());
    let status = || told(&home.0, &["list", "--tool", "system_shell"])[0]["status"].clone();
    assert_eq!(status(), "open");
    server.signal(Signal::SIGKILL);
    server.ended();
    drop(call);
    wait_until("it is killed with its server", IN_TIME, || {
        marked(&mark).is_empty()
    });
    assert_eq!(status(), "open");
    drop(server);
    let _server = admin_in(&home.0);
    assert_eq!(status(), "unknown");
    let unknown = told(&home.0, &["list", "--outcome", "unknown"]);
    assert_eq!(unknown.len(), 1);
    let shown = said(&home.0, &["show", &unknown[0]["seq"].to_string()]);
    assert!(
        shown.contains("unknown: no outcome was recorded"),
        "{shown}"
    );
    assert!(said(&home.0, &["verify"]).starts_with("all 1 rows"));
}

/// Runs the man page's script on an export; returns its output, and whether it finds no error.
fn verified(home: &Directory, export: &str) -> (String, bool) {
    let (script, file) = (home.join("verify.py"), home.join("audit.jsonl"));
    std::fs::write(&script, page().example("verify")).unwrap();
    std::fs::write(&file, export).unwrap();
    let output = Command::new("python3")
        .args([&script, &file])
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8(said).unwrap(), output.status.success())
}

#[test]
fn somebody_else_can_verify_an_export_with_the_script_of_the_man_page() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no program python3");
    }
    let home = Directory::new();
    let directory = home.join("state");
    let server = admin_in(&directory);
    make_calls(&server);
    stop(server);
    let export = said(&directory, &["export"]);
    let lines: Vec<&str> = export.lines().collect();
    // A row for the call that only reads, two for each of the others.
    assert_eq!(lines.len(), 1 + 7);
    let (words, good) = verified(&home, &export);
    assert!(good && words.starts_with("good up to row 7, "), "{words}");

    let rest = said(&directory, &["export", "--after", "4"]);
    assert_eq!(rest.lines().count(), 1 + 3);
    assert_eq!(verified(&home, &rest), (words, true));
    assert_eq!(
        audit(&directory, &["export", "--after", "99"])
            .status
            .code(),
        Some(1)
    );

    let altered = export.replace("container_start", "container_stop");
    let without = |left_out: usize| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
        kept.flat_map(|(_, line)| [*line, "\n"]).collect::<String>()
    };
    let mut swapped = lines.clone();
    swapped.swap(3, 4);
    for (spoiled, row) in [
        (altered, 4),
        (without(1), 1),
        (without(4), 4),
        (without(7), 7),
        (swapped.join("\n"), 3),
    ] {
        let (words, good) = verified(&home, &spoiled);
        assert!(
            !good && words.starts_with(&format!("row {row} is ")),
            "{row}: {words}"
        );
    }
}

#[test]
fn the_oldest_calls_are_trimmed_and_the_rest_still_proves_itself() {
    let home = Directory::new();
    let directory = home.join("state");
    let first = admin_in(&directory);
    make_calls(&first);
    stop(first);
    let before = said(&directory, &["export"]);
    let newest = told(&directory, &["list", "--limit", "1"])[0]["ended"]["at_ms"].clone();
    wait_until("all of it is old enough", IN_TIME, || {
        let now = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_millis();
        now > u128::from(newest.as_u64().unwrap()) + 1000
    });
    let server = server().policy("admin").directory(&directory);
    let server = server.settings("[audit]\nkeep = \"1s\"\n").start();
    let verify = || told(&directory, &["verify"]).remove(0);
    wait_until("the audit is trimmed", IN_TIME, || verify()["trimmed"] == 7);
    let whole = json!({ "intact": true, "rows": 2, "trimmed": 7, "anchors": null,
        "exact": { "sealed": 0, "lost": [], "without_key": {}, "key_is_altered": false } });
    assert_eq!(verify(), whole);
    let trimmed = told(&directory, &["list"]).remove(0);
    assert_eq!(
        (&trimmed["tool"], &trimmed["status"]),
        (&json!("audit trim"), &json!("ok"))
    );
    server.client().call("whoami", json!({})).send().data();
    stop(server);
    assert!(said(&directory, &["verify"]).contains("all 3 rows are intact, and continue the 7"));

    // The earlier export and the current one form one chain.
    let after = said(&directory, &["export"]);
    let beginning: Value = serde_json::from_str(after.lines().next().unwrap()).unwrap();
    let last: Value = serde_json::from_str(before.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&beginning["after"], &beginning["sha256"]),
        (&json!(7), &last["sha256"])
    );
    assert_eq!(beginning["trimmed"]["sealed"], true, "{beginning}");

    let vault = rusqlite::Connection::open(directory.join("vault.db")).unwrap();
    let forge = "DROP TRIGGER audit_checkpoint_is_never_changed;
        UPDATE audit_checkpoint SET at_ms = at_ms + 1";
    vault.execute_batch(forge).unwrap();
    let found = audit(&directory, &["verify", "--json"]);
    assert_eq!(found.status.code(), Some(3));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(
        (&found["row"], &found["fault"]),
        (&json!(7), &json!("checkpoint"))
    );
}

#[test]
fn the_man_page_is_written_well_and_names_every_command() {
    Manual::named("gatewren-audit.1").names_every_command("audit");
    page().is_written_well();
}
