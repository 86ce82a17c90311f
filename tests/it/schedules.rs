//! Schedules: calls that the server makes at their times, as approved, and within the agent's policy then and now.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::owner_page::{code, get, house, set_up};
use crate::support::client::Client;
use crate::support::command::{add_agent, refused, tell, tell_by, words};
use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::server::{Directory, Server, server};
use gatewren_base::sys::{now_ms, rfc3339};

/// Returns the calendar expression of a time some seconds from now.
fn in_seconds(seconds: u64) -> String {
    let text = rfc3339(now_ms() + seconds * 1_000);
    format!("{} UTC", text[..19].replace('T', " "))
}

/// Returns a client of a new agent.
fn agent(home: &Path, server: &Server, name: &str, options: &[&str]) -> Client {
    let added = add_agent(home, name, options);
    let client = server.client();
    let client = client.with_token(added["token"].as_str().unwrap());
    let list = client.modern("tools/list");
    wait_until("it is admitted", IN_TIME, || list.send().status == 200);
    client
}

/// The options of an agent that needs no approval.
const FREE: [&str; 6] = [
    "--policy",
    "admin",
    "--mode",
    "persist=allow",
    "--mode",
    "disrupt=allow",
];

fn note(text: &str) -> Value {
    json!({ "pointer": "/public/ui/note", "value": { "text": text } })
}

fn schedule(name: &str, at: &str, text: &str) -> Value {
    json!({ "name": name, "tool": "state_put", "arguments": note(text), "at": at })
}

/// Returns the only schedule with this name, as the owner sees it.
fn shown(home: &Path, name: &str) -> Value {
    tell(home, &["schedule", "show", name]).0
}

/// Waits until a run of a schedule has ended; returns it.
fn newest_run(home: &Path, name: &str, count: usize) -> Value {
    let mut run = Value::Null;
    wait_until("it has run", IN_TIME, || {
        let runs = shown(home, name)["runs"].clone();
        run = runs[0].clone();
        runs.as_array().unwrap().len() >= count && run["outcome"] != "running"
    });
    run
}

fn in_vault(home: &Path, sql: &str) {
    let vault = Connection::open(home.join("vault.db")).unwrap();
    vault.busy_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(vault.execute(sql, []).unwrap(), 1, "{sql}");
}

/// Starts a server that backs up the directory `data` to `kept`, both below this directory.
fn backup_server(files: &Directory) -> Option<Server> {
    for program in ["tar", "zstd", "rsync"] {
        if Command::new(program).arg("--version").output().is_err() {
            skip(&format!("there is no program {program}"));
            return None;
        }
    }
    for folder in ["kept", "data"] {
        fs::create_dir(files.join(folder)).unwrap();
        fs::set_permissions(files.join(folder), Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(files.join("data").join("photo"), "x").unwrap();
    let bounds = format!(
        "backup = \"on\"\nbackup_targets = [\"local: {}\"]\nbackup_paths = [\"{}\"]\n",
        files.join("kept").display(),
        files.join("data").display()
    );
    let server = server().policy("operate").settings("").bounds(&bounds);
    Some(server.start())
}

/// Waits until so many runs of the schedule `nightly` have ended; returns the newest.
fn nightly_run(client: &Client, count: usize) -> Value {
    let mut run = Value::Null;
    wait_until("it has run", IN_TIME, || {
        let all = client.call("schedule_list", json!({ "schedule": "nightly" }));
        let runs = all.send().data()["schedules"][0]["runs"].clone();
        run = runs[0].clone();
        runs.as_array().unwrap().len() >= count && run["outcome"] != "running"
    });
    run
}

#[test]
fn a_backup_is_made_at_its_time_with_two_calls_of_an_operator_and_one_approval() {
    let files = Directory::new();
    let Some(server) = backup_server(&files) else {
        return;
    };
    let (kept, data) = (files.join("kept"), files.join("data"));
    let client = server.client();
    let settings = server.settings_file();
    let listed = client.modern("tools/list").send().names("tools");
    for tool in ["schedule_create", "backup_create", "backup_target_list"] {
        assert!(listed.contains(&tool.to_owned()), "{listed:?}");
    }

    let targets = client.call("backup_target_list", json!({})).send().data();
    assert!(targets.to_string().contains("local"), "{targets}");
    let call = json!({ "target": "local", "path": data.to_str().unwrap() });
    let at = in_seconds(8);
    let asked = json!({ "name": "nightly", "tool": "backup_create", "arguments": call, "at": at });
    let answer = client.call("schedule_create", asked).send();
    let change = answer.data()["change"].as_str().unwrap().to_owned();
    let content = answer.result()["content"].to_string();
    assert!(content.contains("once, on 20"), "{content}");

    let inbox = tell_by(&settings, &["inbox", "show", &change]);
    let said = inbox["schedule"].as_str().unwrap();
    let expected = format!("Run backup_create {call} once, on 20");
    assert!(said.starts_with(&expected), "{said}");
    tell_by(&settings, &["inbox", "approve", &change, "--wait"]);
    let first = nightly_run(&client, 1);
    assert_eq!(first["outcome"], "ok", "{first}");
    let made = fs::read_dir(&kept).unwrap().flatten();
    let made = made.filter(|one| one.path().join("manifest.json").exists());
    assert_eq!(made.count(), 1);
    let one = tell_by(&settings, &["schedule", "show", "nightly"]);
    assert_eq!(one["approval"], change.as_str());
    let call_id = one["runs"][0]["ran_in"].as_str().unwrap();
    let audit = tell_by(&settings, &["audit", "show", call_id]).to_string();
    assert!(audit.contains("\"scheduled\"") && audit.contains(one["id"].as_str().unwrap()));
}

#[test]
fn the_owner_is_notified_when_a_schedule_begins_to_fail_and_when_it_succeeds_again() {
    let files = Directory::new();
    let Some(server) = backup_server(&files) else {
        return;
    };
    let data = files.join("data");
    let client = server.client();
    let settings = server.settings_file();
    let call = json!({ "target": "local", "path": data.to_str().unwrap() });
    let asked =
        json!({ "name": "nightly", "tool": "backup_create", "arguments": call, "at": "daily" });
    let change = client.call("schedule_create", asked).send().data();
    let change = change["change"].as_str().unwrap();
    tell_by(&settings, &["inbox", "approve", change, "--wait"]);
    let counts = || {
        let all = client.call("notification_list", json!({})).send().data();
        let count = |words: &str| all.to_string().matches(words).count();
        [
            count("a scheduled call failed"),
            count("a scheduled call succeeds again"),
        ]
    };
    fs::rename(&data, files.join("away")).unwrap();
    for number in 1..3 {
        tell_by(&settings, &["schedule", "run", "nightly"]);
        let failed = nightly_run(&client, number);
        assert_eq!(failed["outcome"], "failed", "{failed}");
        assert!(!failed["error"].as_str().unwrap().is_empty());
    }
    wait_until("it is reported", IN_TIME, || counts() == [1, 0]);
    fs::rename(files.join("away"), &data).unwrap();
    tell_by(&settings, &["schedule", "run", "nightly"]);
    assert_eq!(nightly_run(&client, 3)["outcome"], "ok");
    wait_until("it is reported", IN_TIME, || counts() == [1, 1]);
}

#[test]
fn a_missed_run_is_made_up_for_once_after_a_restart_unless_the_agent_said_no() {
    let home = Directory::new();
    let first = server().policy("admin").directory(&home.0).start();
    let client = agent(&home.0, &first, "clerk", &FREE);
    for (name, catch_up) in [("kept", true), ("dropped", false)] {
        let mut asked = schedule(name, "daily", name);
        asked["catch_up"] = json!(catch_up);
        let made = client.call("schedule_create", asked).send().data();
        assert_eq!(made["next"].as_array().unwrap().len(), 3, "{made}");
        assert_eq!(
            made["times"],
            "every day at 00:00 (in the host's time zone)"
        );
    }
    drop(first);
    let missed = now_ms() - 2 * 3_600_000;
    for name in ["kept", "dropped"] {
        in_vault(
            &home.0,
            &format!("UPDATE schedule SET next_ms = {missed} WHERE name = '{name}'"),
        );
    }
    let _second = server().policy("admin").directory(&home.0).start();
    let run = newest_run(&home.0, "kept", 1);
    assert_eq!(
        (&run["outcome"], &run["caught_up"]),
        (&json!("ok"), &json!(true))
    );
    wait_until("the other is skipped", IN_TIME, || {
        let vault = Connection::open(home.0.join("vault.db")).unwrap();
        let next = "SELECT next_ms FROM schedule WHERE name = 'dropped'";
        let next: i64 = vault.query_row(next, [], |row| row.get(0)).unwrap();
        u64::try_from(next).unwrap() > now_ms()
    });
    assert_eq!(shown(&home.0, "dropped")["runs"], json!([]));
    assert_eq!(shown(&home.0, "kept")["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_schedule_runs_only_while_its_agents_policy_of_then_and_of_now_allows_it() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let client = agent(&home.0, &server, "clerk", &FREE);
    let create = |name: &str| {
        let asked = schedule(name, "daily", name);
        client.call("schedule_create", asked).send().data()
    };
    let id = create("one")["schedule"].as_str().unwrap().to_owned();
    let run = |count: usize| {
        tell(&home.0, &["schedule", "run", &id]);
        newest_run(&home.0, "one", count)
    };
    assert_eq!(run(1)["outcome"], "ok");
    // Narrower now: it fails.
    let edit = |mode: &str| tell(&home.0, &["agent", "edit", "clerk", "--mode", mode]);
    edit("write=deny");
    let denied = run(2);
    assert!(
        denied["error"].as_str().unwrap().contains("denies"),
        "{denied}"
    );
    // An approval that the schedule does not have.
    edit("write=propose");
    let unapproved = run(3);
    let why = unapproved["error"].as_str().unwrap();
    assert!(why.contains("needs the owner's approval"), "{why}");
    edit("write=allow");
    assert_eq!(run(4)["outcome"], "ok");
    // Narrower then: wider rights today do not matter.
    edit("write=propose");
    create("then");
    edit("write=allow");
    tell(&home.0, &["schedule", "run", "then"]);
    let why = newest_run(&home.0, "then", 1)["error"].clone();
    assert!(
        why.as_str().unwrap().contains("needs the owner's approval"),
        "{why}"
    );
    // The end of the agent is the end of its schedules.
    create("two");
    tell(&home.0, &["agent", "revoke", "clerk"]);
    wait_until("it ends", IN_TIME, || {
        shown(&home.0, "two")["status"] == "ended"
    });
    let why = shown(&home.0, "two")["why"].clone();
    assert!(why.as_str().unwrap().contains("revoked"), "{why}");
    refused(&home.0, &["schedule", "run", "two"]);
}

#[test]
fn only_exactly_what_the_owner_approved_is_run() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    // The approval of the schedule is also that of each run.
    let options = ["--policy", "operate", "--mode", "write=propose"];
    let client = agent(&home.0, &server, "clerk", &options);
    let asked = schedule("approved", "daily", "approved");
    let change = client.call("schedule_create", asked).send().data();
    let change = change["change"].as_str().unwrap().to_owned();
    let page = words(&home.0, &["inbox", "show", &change]);
    assert!(
        page.contains("schedule  Run state_put {\"pointer\":\"/public/ui/note\",\"value\":{\"text\":\"approved\"}} every day at 00:00"),
        "{page}"
    );
    tell(&home.0, &["inbox", "approve", &change, "--wait"]);
    assert_eq!(shown(&home.0, "approved")["approval"], change.as_str());
    tell(&home.0, &["schedule", "run", "approved"]);
    assert_eq!(newest_run(&home.0, "approved", 1)["outcome"], "ok");
    let other = note("other").to_string();
    in_vault(
        &home.0,
        &format!("UPDATE schedule SET arguments = '{other}' WHERE name = 'approved'"),
    );
    tell(&home.0, &["schedule", "run", "approved"]);
    wait_until("it ends", IN_TIME, || {
        shown(&home.0, "approved")["status"] == "ended"
    });
    let why = shown(&home.0, "approved")["why"].clone();
    assert!(
        why.as_str().unwrap().contains("differs from the approved"),
        "{why}"
    );
    let look = json!({ "pointer": "/public/ui/note" });
    let now = client.call("state_get", look).send().data();
    assert_eq!(
        now["value"]["text"], "approved",
        "what was altered did not run"
    );
}

#[test]
fn what_cannot_be_scheduled_is_refused_at_once() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let client = agent(&home.0, &server, "clerk", &["--policy", "operate"]);
    let ask = |tool: &str, arguments: Value, at: &str| {
        let asked = json!({ "name": "x", "tool": tool, "arguments": arguments, "at": at });
        client.call("schedule_create", asked).send().failure()
    };
    let inner = json!({ "name": "y", "tool": "server_info", "at": "daily" });
    for (tool, arguments, at, why) in [
        ("schedule_create", inner, "daily", "themselves"),
        (
            "schedule_delete",
            json!({ "schedule": "x" }),
            "daily",
            "themselves",
        ),
        (
            "change_withdraw",
            json!({ "change": "x" }),
            "daily",
            "themselves",
        ),
        (
            "system_shell",
            json!({ "command": "id" }),
            "daily",
            "runs commands",
        ),
        ("file_write", json!({}), "daily", "unknown tool"),
        ("no_such_tool", json!({}), "daily", "unknown tool"),
        ("state_put", json!({ "pointer": 1 }), "daily", "pointer"),
        (
            "container_restart",
            json!({ "container": "nosuch" }),
            "daily",
            "nosuch",
        ),
        (
            "state_put",
            json!({ "pointer": "/public/ui/x", "value": { "password": "hunter2hunter2" } }),
            "daily",
            "secret",
        ),
        ("state_put", note("x"), "every day", "systemd"),
        ("state_put", note("x"), "*:*:0/10", "300 s"),
        ("state_put", note("x"), "2020-01-01", "future"),
    ] {
        let said = ask(tool, arguments.clone(), at);
        assert!(said.contains(why), "{tool} {arguments} {at}: {said}");
    }
    assert_eq!(tell(&home.0, &["inbox", "list", "--all"]).0, json!([]));
}

#[test]
fn an_agent_learns_nothing_of_another_agents_schedules_and_changes_none() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let one = agent(&home.0, &server, "one", &FREE);
    let other = agent(&home.0, &server, "other", &FREE);
    let made = one.call("schedule_create", schedule("mine", "daily", "x"));
    let id = made.send().data()["schedule"].as_str().unwrap().to_owned();
    let all = other.call("schedule_list", json!({})).send().data();
    assert_eq!(all["schedules"], json!([]));
    for (tool, arguments) in [
        ("schedule_list", json!({ "schedule": id })),
        ("schedule_delete", json!({ "schedule": id })),
        ("schedule_delete", json!({ "schedule": "mine" })),
        ("schedule_pause", json!({ "schedule": id })),
    ] {
        let named = arguments["schedule"].as_str().unwrap().to_owned();
        let said = other.call(tool, arguments).send().failure();
        let never = said.replace(&named, "never");
        let missing = other.call(tool, json!({ "schedule": "never" }));
        assert_eq!(never, missing.send().failure(), "{tool}");
    }
    assert_eq!(shown(&home.0, "mine")["status"], "active");
    let resource = |client: &Client| {
        let read = client.modern("resources/read").uri("gatewren:///schedules");
        read.send().result()["contents"][0]["text"].clone()
    };
    let own: Value = serde_json::from_str(resource(&one).as_str().unwrap()).unwrap();
    assert_eq!(own["schedules"][0]["name"], "mine");
    assert_eq!(resource(&other), r#"{"schedules":[]}"#);
    let listed = |client: &Client| client.modern("resources/list").send().result().to_string();
    assert!(listed(&one).contains("gatewren:///schedules"));
    assert!(!listed(&other).contains("gatewren:///schedules"));
    let paused = one.call("schedule_pause", json!({ "schedule": "mine" }));
    assert_eq!(paused.send().data()["status"], "paused");
    refused(&home.0, &["schedule", "run", "mine"]);
    tell(&home.0, &["schedule", "resume", "mine"]);
    assert_eq!(shown(&home.0, "mine")["status"], "active");
    let again = one.call("schedule_create", schedule("mine", "daily", "x"));
    assert!(again.send().failure().contains("already have"));
    let listed = words(&home.0, &["schedule", "list"]);
    assert!(
        listed.contains("mine") && listed.contains("state_put"),
        "{listed}"
    );
    let gone = one.call("schedule_delete", json!({ "schedule": "mine" }));
    assert_eq!(gone.send().data()["name"], "mine");
    assert_eq!(tell(&home.0, &["schedule", "list"]).0, json!([]));
}

#[test]
fn the_owners_page_shows_a_proposed_schedule_in_words_and_the_schedules_of_all_agents() {
    let home = Directory::new();
    let server = house(&home);
    let owner = server.client();
    let cookie = set_up(&owner, &code(&home));
    let client = agent(&home.0, &server, "clerk", &["--policy", "operate"]);
    let asked = schedule("weekly <b>", "daily", "x");
    let why = client.call("schedule_create", asked).send().failure();
    assert!(why.contains("name"), "{why}");
    let asked = schedule("tidy", "Mon 03:00", "<i>");
    let change = client.call("schedule_create", asked).send().data();
    let change = change["change"].as_str().unwrap().to_owned();
    let page = get(&owner, &format!("/owner/changes/{change}"), &cookie).body;
    assert!(page.contains("every Monday at 03:00"), "{page}");
    assert!(!page.contains("<i>"), "{page}");
    tell(&home.0, &["inbox", "approve", &change, "--wait"]);
    let page = get(&owner, "/owner/agents", &cookie).body;
    for text in [
        "Schedules",
        "tidy",
        "clerk",
        "every Monday at 03:00",
        "state_put",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("<i>"), "{page}");
}
