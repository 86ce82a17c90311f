//! `gatewren agent` as a person types it.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::command::{add_agent, refused, tell, words};
use crate::support::history::connect;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// Returns the directory of a server that has run and exited.
fn visited() -> Directory {
    let home = Directory::new();
    drop(server().directory(&home.0).start());
    home
}

/// Adds an agent with at least one option of each kind.
fn add_claude(home: &Directory) -> Value {
    add_agent(
        &home.0,
        "claude",
        &[
            "--policy",
            "operate",
            "--toolset",
            "containers",
            "--toolset",
            "access",
            "--container",
            "arr-*",
            "--tool",
            "container_stop=deny",
            "--mode",
            "disrupt=allow",
            "--network",
            "192.168.1.0/24",
            "--rate",
            "60",
            "--concurrent",
            "2",
            "--expires",
            "2w",
        ],
    )
}

#[test]
fn an_agent_is_shown_in_words_and_as_json() {
    let home = visited();
    let added = add_claude(&home);
    let shown = words(&home.0, &["agent", "show", "claude"]);
    for part in [
        added["id"].as_str().unwrap(),
        "operate, but only the toolsets containers, access",
        "arr-*",
        "container_stop=deny",
        "192.168.1.0/24",
        "60 calls a minute, 2 concurrent calls",
        "valid until",
        "never used",
        "disrupt   run",
        "reveal    are denied",
        "the host and all containers",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (data, _) = tell(&home.0, &["agent", "show", added["id"].as_str().unwrap()]);
    assert_eq!(data["classes"]["execute"], "propose");
    assert_eq!(data["overrides"]["calls_per_minute"], 60);
    let tools = |mode: &str| data["tools"][mode].to_string();
    assert!(
        tools("allow").contains("\"container_restart\"") && tools("allow").contains("\"whoami\"")
    );
    assert!(
        !tools("allow").contains("container_stop") && !tools("propose").contains("system_shell")
    );
    let (list, _) = tell(&home.0, &["agent", "list"]);
    let row = list
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "claude");
    assert_eq!(row.unwrap()["state"], "active");
}

#[test]
fn a_new_token_expires_after_a_year_and_its_owner_is_warned_once() {
    const TITLE: &str = "an agent's token expires soon";
    let home = Directory::new();
    let start = || server().policy("admin").directory(&home.0).start();
    let first = start();
    let expires = |name: &str| {
        let (shown, _) = tell(&home.0, &["agent", "show", name]);
        shown["expires"].as_str().map(str::to_owned)
    };
    let added = words(&home.0, &["agent", "add", "yearly"]);
    let end = expires("yearly").expect("it never expires");
    assert!(added.contains(&format!("valid until {end}")), "{added}");
    words(&home.0, &["agent", "add", "endless", "--expires", "never"]);
    // As doctor adds it for its call; a whole run may end before the server looks for such tokens.
    let doctor = "gatewren-doctor";
    words(&home.0, &["agent", "add", doctor, "--expires", "60s"]);
    words(&home.0, &["agent", "add", "ending", "--expires", "20d"]);
    assert_eq!((expires("endless"), expires("try")), (None, None));

    let warnings = |server: &Server| -> Vec<String> {
        let all = server.client().call("notification_list", json!({}));
        let all = all.send().data()["notifications"].clone();
        let all = all.as_array().unwrap().iter();
        let all = all.filter(|one| one["title"] == TITLE);
        all.map(|one| one["message"].to_string()).collect()
    };
    let is_warned = |server: &Server, name: &str| {
        let end = expires(name).unwrap();
        warnings(server)
            .iter()
            .any(|message| message.contains(&end))
    };
    wait_until("the owner is warned", IN_TIME, || {
        is_warned(&first, "ending")
    });
    assert_eq!(warnings(&first).len(), 1, "{:?}", warnings(&first));
    let (status, _) = tell(&home.0, &["status"]);
    let expiring = &status["tokens_expiring"];
    assert_eq!(expiring[0]["agent"], "ending", "{status}");
    assert_eq!(expiring.as_array().unwrap().len(), 1, "{status}");
    drop(first);
    let second = start();
    words(&home.0, &["agent", "add", "next", "--expires", "10d"]);
    wait_until("of the next one too", IN_TIME, || {
        is_warned(&second, "next")
    });
    assert_eq!(warnings(&second).len(), 2, "of each once");
}

#[test]
fn what_was_said_of_an_agent_is_taken_back_and_the_agent_ended() {
    let home = visited();
    add_claude(&home);
    let edited = words(
        &home.0,
        &[
            "agent",
            "edit",
            "claude",
            "--clear",
            "all",
            "--no-expiry",
            "--name",
            "mac",
        ],
    );
    for part in [
        "calls per minute: 60 -> -",
        "name: claude -> mac",
        "networks: 192.168.1.0/24 -> -",
        "expires: ",
    ] {
        assert!(edited.contains(part), "{part}: {edited}");
    }
    let shown = words(&home.0, &["agent", "show", "mac"]);
    assert!(
        shown.contains("operate\n") && shown.contains("no expiry"),
        "{shown}"
    );
    words(&home.0, &["agent", "revoke", "mac"]);
    let shown = words(&home.0, &["agent", "show", "mac"]);
    assert!(
        shown.contains("access denied") && shown.contains("revoked"),
        "{shown}"
    );
    assert!(refused(&home.0, &["agent", "edit", "mac", "--rate", "5"]).contains("was revoked"));
    assert!(refused(&home.0, &["agent", "rotate", "mac"]).contains("was revoked"));
}

#[test]
fn what_is_mistyped_or_ambiguous_is_refused_and_says_what_to_do() {
    let home = visited();
    let first = add_agent(&home.0, "twin", &[]);
    let second = add_agent(&home.0, "other", &[]);
    // As an older version allowed it.
    let twins = "UPDATE agent SET name = 'twin' WHERE name = 'other'";
    connect(&home.join("vault.db")).execute(twins, []).unwrap();
    let (first, second) = (
        first["id"].as_str().unwrap(),
        second["id"].as_str().unwrap(),
    );
    let said = refused(&home.0, &["agent", "revoke", "twin"]);
    assert!(said.contains(first) && said.contains(second), "{said}");
    words(&home.0, &["agent", "revoke", first]);
    words(&home.0, &["agent", "revoke", "twin"]);
    for (subcommand, remedy) in [
        ("show", "use one of these ids"),
        ("rotate", "add a new agent"),
        ("revoke", "add a new agent"),
    ] {
        let said = refused(&home.0, &["agent", subcommand, "twin"]);
        assert!(said.contains(first) && said.contains(second), "{said}");
        assert!(
            said.contains("are revoked") && said.contains(remedy),
            "{said}"
        );
    }
    words(&home.0, &["agent", "show", first]);
    for (args, part) in [
        (&["show", "nobody"][..], "gatewren agent list"),
        (&["add", "a\u{1b}[2J"], "for example a-2j"),
        (
            &["add", "x", "--policy", "root"],
            "observe, suggest, operate, admin",
        ),
        (
            &["add", "x", "--tool", "container_stp=allow"],
            "did you mean \"container_stop\"?",
        ),
        (
            &["add", "x", "--toolset", "container"],
            "did you mean \"containers\"?",
        ),
        (&["add", "x", "--space", "media"], "[spaces.NAME]"),
        (
            &["add", "x", "--network", "192.168.1.5/24"],
            "192.168.1.0/24",
        ),
        (&["add", "x", "--expires", "yesterday"], "30d"),
        (&["add", "x", "--mode", "shell=deny"], "read, scan, write"),
        (&["edit", "try"], "already has these values"),
        (
            &["edit", "try", "--expires", "1d", "--no-expiry"],
            "cannot be used",
        ),
    ] {
        let said = refused(&home.0, &[&["agent"], args].concat());
        assert!(
            said.contains(part) && !said.contains('\u{1b}'),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn each_change_is_on_record_and_no_token_is() {
    let home = visited();
    let rows = || {
        tell(&home.0, &["audit", "verify"]).0["rows"]
            .as_u64()
            .unwrap()
    };
    let before = rows();
    let added = add_agent(&home.0, "claude", &["--rate", "7"]);
    words(&home.0, &["agent", "edit", "claude", "--policy", "operate"]);
    let (rotated, _) = tell(&home.0, &["agent", "rotate", "claude"]);
    words(&home.0, &["agent", "revoke", "claude"]);
    assert_eq!(rows(), before + 8, "an intent and an outcome each");
    refused(&home.0, &["agent", "revoke", "claude"]);
    assert_eq!(rows(), before + 8, "nothing was done");
    for token in [&added["token"], &rotated["token"]] {
        let token = token.as_str().unwrap().as_bytes();
        for file in fs::read_dir(&home.0).unwrap().flatten() {
            let bytes = fs::read(file.path()).unwrap_or_default();
            let there = bytes.windows(token.len()).any(|part| part == token);
            assert!(!there, "{}", file.path().display());
        }
    }
}

/// Returns a runner of commands with settings that name a state directory.
fn with_settings(home: &Directory, settings: &str) -> impl Fn(&[&str]) -> Output {
    let file = home.join("gatewren.toml");
    let own = format!(
        "listen = [\"127.0.0.1:0\"]\nstate_dir = \"{}\"\n",
        home.0.display()
    );
    fs::write(&file, own + settings).unwrap();
    move |args| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.args(args).arg("--config").arg(&file);
        command.output().unwrap()
    }
}

#[test]
fn where_the_box_is_divided_the_space_must_be_said() {
    let home = visited();
    let run = with_settings(
        &home,
        "[spaces.media]\ncontainers = [\"jellyfin\"]\n[spaces.box]\nhost = true\n",
    );
    let refused = |args: &[&str]| {
        let output = run(args);
        assert!(!output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&["agent", "add", "a"]);
    assert!(
        said.contains("--space box, --space media, or --space '*'"),
        "{said}"
    );
    let said = refused(&["agent", "add", "a", "--space", "medai"]);
    assert!(said.contains("did you mean \"media\"?"), "{said}");
    assert!(
        run(&["agent", "add", "a", "--space", "media"])
            .status
            .success()
    );
    assert!(run(&["agent", "add", "b", "--space", "*"]).status.success());
    let shown = run(&["agent", "show", "a", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(
        (&shown["space"], &shown["state"]),
        (&json!("media"), &json!("active"))
    );
    let allowed = shown["tools"]["allow"].to_string();
    assert!(
        allowed.contains("\"container_info\"") && !allowed.contains("\"server_info\""),
        "{allowed}"
    );
    assert!(refused(&["agent", "edit", "a", "--space", "attic"]).contains("--space box"));
    assert!(
        run(&["agent", "edit", "a", "--space", "box"])
            .status
            .success()
    );
    // Without the settings there are no spaces, so the agent is in none.
    let (shown, _) = tell(&home.0, &["agent", "show", "a"]);
    assert_eq!(shown["state"], "no space");
}

#[test]
fn a_first_start_makes_no_token_and_says_how_one_is_made() {
    let home = Directory::new();
    let settings = format!(
        "listen = [\"127.0.0.1:0\"]\nstate_dir = \"{}\"\n",
        home.join("state").display()
    );
    fs::write(home.join("gatewren.toml"), settings).unwrap();
    let log = home.join("log");
    let mut server = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["serve", "--config"])
        .arg(home.join("gatewren.toml"))
        .env_remove("NOTIFY_SOCKET")
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let said = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("it says so", IN_TIME, || {
        said().contains("gatewren agent add NAME")
    });
    let (list, _) = tell(&home.join("state"), &["agent", "list"]);
    assert_eq!(list, json!([]));
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(!said().contains("gw_"));
}
