//! `gatewren init`, `status` and `doctor` beside a real server.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::container::Containers;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::port::free_port;
use crate::support::server::{Server, server};

/// Starts a server on a port from its settings; returns the address too.
fn serving(settings: &str) -> (Server, String) {
    let address = format!("127.0.0.1:{}", free_port());
    (
        server().listen(&address).settings(settings).start(),
        address,
    )
}

fn run(server: &Server, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command
        .args(words)
        .arg("--config")
        .arg(server.settings_file());
    command.output().unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Returns the states of one check of `doctor`, and the first remedy.
fn found(said: &Value, check: &str) -> (Vec<String>, String) {
    let all = said["findings"].as_array().unwrap().iter();
    let of = all.filter(|one| one["check"] == check);
    let states = of
        .clone()
        .map(|one| one["state"].as_str().unwrap().to_owned());
    let remedy = of.clone().find_map(|one| one["remedy"].as_str());
    (states.collect(), remedy.unwrap_or_default().to_owned())
}

#[test]
fn status_says_whether_it_serves_and_whom() {
    let (mut server, address) = serving("");
    let output = run(&server, &["status", "--json"]);
    let said = json_of(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(
        (&said["serving"], &said["agents"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(said["inbox_open"], json!(0));
    server.client().call("whoami", json!({})).send().data();
    let words = String::from_utf8(run(&server, &["status"]).stdout).unwrap();
    assert!(words.contains("whoami by try"), "{words}");
    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.ended();
    let output = run(&server, &["status", "--json"]);
    assert_eq!(output.status.code(), Some(3));
    let why = json_of(&output)["why_not"].as_str().unwrap().to_owned();
    assert!(why.contains(&address), "{why}");
}

#[test]
fn doctor_makes_a_real_call_and_leaves_no_token_behind() {
    let (server, _) = serving("");
    for _ in 0..2 {
        let said = json_of(&run(&server, &["doctor", "--json"]));
        for check in [
            "settings", "answers", "names", "state", "audit", "helper", "call",
        ] {
            let (states, remedy) = found(&said, check);
            assert_eq!(states, ["ok"], "{check}: {remedy}: {said}");
        }
        let agents = json_of(&run(&server, &["agent", "list", "--json"]));
        let agents = agents.as_array().unwrap();
        let made: Vec<&Value> = agents
            .iter()
            .filter(|agent| agent["name"] == "gatewren-doctor")
            .collect();
        assert_eq!(made.len(), 1, "{agents:?}");
        assert_eq!(made[0]["state"], "expired", "{:?}", made[0]);
        let shown = run(&server, &["agent", "list"]).stdout;
        let shown = String::from_utf8(shown).unwrap();
        assert!(!shown.contains("gatewren-doctor"), "{shown}");
    }
    let said = json_of(&run(&server, &["doctor", "--json", "--no-self-test"]));
    assert_eq!(found(&said, "call").0, Vec::<String>::new());
}

#[test]
fn doctor_kills_a_command_in_a_real_container_with_all_it_started() {
    // A separate container: another test may be changing its own at this moment.
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("wren");
    containers.tool("lxc-start", "wren", &["-d"]);
    containers.until_ready("wren");
    let server = server().lxcpath(containers.lxcpath()).start();
    let address = server.said["url"].as_str().unwrap();
    let address = address
        .trim_start_matches("https://")
        .trim_end_matches("/mcp");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command
        .args(["doctor", "--json", "--address", address, "--dir"])
        .arg(server.state_dir());
    let said = json_of(&command.output().unwrap());
    assert_eq!(found(&said, "kill test").0, ["ok"], "{said}");
}

#[test]
fn doctor_names_what_is_wrong_and_what_to_do() {
    let (server, _) = serving("");
    server.client().call("whoami", json!({})).send().data();
    let vault = server.state_dir().join("vault.db");
    let sqlite = |statement: &str| {
        let mut sqlite = Command::new("sqlite3");
        let sqlite = sqlite.args(["-cmd", ".timeout 10000"]).arg(&vault);
        let output = sqlite.arg(statement).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    // The audit row of a read-only call is written a moment after the call.
    wait_until("the call is written down", IN_TIME, || {
        sqlite("SELECT count(*) FROM audit WHERE tool = 'whoami'") != b"0\n"
    });
    sqlite(
        "DROP TRIGGER audit_is_never_changed; UPDATE audit SET tool = 'other' WHERE seq = (SELECT min(seq) FROM audit)",
    );
    let output = run(&server, &["doctor", "--json", "--no-self-test"]);
    let said = json_of(&output);
    assert_eq!(output.status.code(), Some(2));
    let (states, remedy) = found(&said, "audit");
    assert_eq!(states, ["problem"]);
    assert!(remedy.contains("gatewren audit verify"), "{remedy}");
    let words = run(
        &server,
        &["doctor", "--no-self-test", "--address", "127.0.0.1:9"],
    );
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.contains("problem  answers"), "{words}");
    assert!(words.contains("-> "), "{words}");
}

#[test]
fn doctor_names_the_line_of_an_invalid_helper_policy_and_what_is_in_force() {
    let (server, _) = serving("");
    let policy = server.settings_file().with_file_name("helper.toml");
    let look = || {
        let output = run(&server, &["doctor", "--json", "--no-self-test"]);
        (json_of(&output), output.status.code())
    };
    fs::write(&policy, "units = \"on\"\n").unwrap();
    let (said, _) = look();
    assert_eq!(found(&said, "helper.toml").0, ["ok"], "{said}");
    fs::write(&policy, "\nunits = \"om\"\n").unwrap();
    let invalid_settings = server.settings_file().with_file_name("conf.d");
    for settings in ["", "listn = 1\n"] {
        fs::create_dir_all(&invalid_settings).unwrap();
        fs::write(invalid_settings.join("90-test.toml"), settings).unwrap();
        let (said, code) = look();
        assert_eq!(code, Some(2), "{said}");
        let (states, remedy) = found(&said, "helper.toml");
        assert_eq!(states, ["problem"], "{said}");
        assert!(remedy.contains("gatewren-helper"), "{remedy}");
        let all = said["findings"].as_array().unwrap();
        let one = all.iter().find(|one| one["check"] == "helper.toml");
        let seen = one.unwrap()["seen"].as_str().unwrap();
        assert!(
            seen.contains(&format!("{}:2: ", policy.display())) && seen.contains("\"om\""),
            "{seen}"
        );
        assert!(seen.contains("keeps its previous policy"), "{seen}");
    }
}

#[test]
fn init_changes_what_is_asked_for_and_a_second_time_nothing() {
    let (server, _) = serving("");
    let init = [
        "init", "--yes", "--json", "--name", "box.lan", "--agent", "phone",
    ];
    let said = json_of(&run(&server, &init));
    assert!(
        said["url"]
            .as_str()
            .unwrap()
            .starts_with("https://box.lan:"),
        "{said}"
    );
    let token = said["agent"]["token"].as_str().unwrap();
    assert!(token.starts_with("gw_"));
    assert!(server.reload().contains("names"));
    let again = json_of(&run(&server, &init));
    assert_eq!(
        (&again["changed"], &again["agent"]["token"]),
        (&json!([]), &Value::Null)
    );
    let said = json_of(&run(&server, &["doctor", "--json", "--no-self-test"]));
    assert_eq!(found(&said, "names").0, ["ok"], "{said}");
    let other = ["init", "--yes", "--agent", "phone", "--policy", "suggest"];
    let words = String::from_utf8(run(&server, &other).stdout).unwrap();
    let advice = "gatewren agent edit phone --policy suggest";
    assert!(words.contains(advice), "{words}");
}

#[test]
fn init_leaves_everything_as_it_was_where_it_cannot_be() {
    let (server, _) = serving("");
    let folder = server.settings_file().with_file_name("conf.d");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("50-mine.toml"), "names = [\"mine.lan\"]\n").unwrap();
    let refused = run(&server, &["init", "--yes", "--name", "other.lan"]);
    assert_eq!(refused.status.code(), Some(1));
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("50-mine.toml:1"), "{words}");
    assert!(!folder.join("10-init.toml").exists());
    let helper = server.settings_file().with_file_name("helper.toml");
    let before = fs::read_to_string(&helper).ok();
    let wrong = ["init", "--yes", "--profile", "home", "--agent", "lap top"];
    let refused = run(&server, &wrong);
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("cannot be the name of an agent"), "{words}");
    assert_eq!(fs::read_to_string(&helper).ok(), before);
    let nobody = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["init", "--config"])
        .arg(server.settings_file())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let words = String::from_utf8(nobody.stderr).unwrap();
    assert!(words.contains("--yes"), "{words}");
}

#[test]
fn completions_whose_reader_ends_early_end_without_a_panic() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(["completions", "bash"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The script is longer than the pipe, so writing fails whenever the reader ends.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
