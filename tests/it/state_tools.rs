//! `changes_since`, `state_blame` and tools that wait for the state agree with the log.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::command::tell_by;
use crate::support::consent::agreed;
use crate::support::container::Containers;
use crate::support::machine::{LONG, skip, wait_until};
use crate::support::server::{Server, server};
use crate::support::state::{command, said, told, trim};

fn call(server: &Server, tool: &str, arguments: Value) -> Value {
    server.client().call(tool, arguments).send().data()
}

/// Writes a value as the program `tester`, through `gatewren state patch`; returns the new revision.
fn put(server: &Server, place: &str, value: &Value, cause: &str) -> u64 {
    let patch = json!([{ "op": "add", "path": place, "value": value }]).to_string();
    let words = ["patch", "--as", "tester", "--cause", cause, "--json"];
    let mut shell = std::process::Command::new("sh");
    let patching = command(server, &words);
    shell.args(["-c", r#"printf %s "$0" | "$@""#, &patch]);
    let output = shell.arg(patching.get_program()).args(patching.get_args());
    let output = output.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let revision = said["revision"].as_u64().unwrap();
    wait_until("the server has read it", LONG, || {
        call(server, "state_get", json!({}))["revision"].as_u64() >= Some(revision)
    });
    revision
}

fn ids(answer: &Value) -> Vec<u64> {
    let rows = answer["revisions"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_u64().unwrap()).collect()
}

#[test]
fn changes_since_says_who_changed_what_is_in_scope_and_why() {
    let server = server().start();
    let before = put(&server, "/public/t", &json!({ "a": {}, "b": {} }), "begin");
    let first = put(&server, "/public/t/a/x", &json!(1), "one");
    put(&server, "/public/t/b/x", &json!(1), "beside");
    let whole = json!({ "a": { "x": 2 }, "b": { "secret": true } });
    let last = put(&server, "/public/t", &whole, "two");
    let arguments = json!({ "revision": before, "pointer": "/public/t/a" });
    let answer = call(&server, "changes_since", arguments);
    assert_eq!(ids(&answer), [first, last]);
    assert_eq!(
        (&answer["more"], &answer["resync"]),
        (&json!(false), &json!(false))
    );
    let rows = &answer["revisions"];
    assert_eq!(
        (&rows[0]["actor"], &rows[0]["cause"]),
        (&json!("local:tester"), &json!("one"))
    );
    assert!(
        rows[0]["at"]
            .as_str()
            .is_some_and(|at| at.starts_with("20") && at.ends_with('Z'))
    );
    let patch = json!([{ "op": "add", "path": "/public/t/a", "value": { "x": 2 } }]);
    assert_eq!(rows[1]["patch"], patch, "nothing of what is beside");
}

#[test]
fn what_changed_since_a_time_is_told_in_words() {
    let server = server().policy("observe").start();
    let begun = call(&server, "state_get", json!({}))["revision"].as_u64();
    put(&server, "/public/notes", &json!({}), "c0");
    for (status, cause) in [("one", "c1"), ("two", "c2"), ("three", "c3")] {
        put(&server, "/public/notes/light", &json!(status), cause);
    }
    let asked = json!({ "since": "1h", "pointer": "/public/notes" });
    let told = call(&server, "changes_since", asked);
    assert_eq!(told["complete"], true, "{told}");
    assert!(told["revision"].as_u64() > begun, "{told}");
    let lines = told["summary"].as_array().unwrap();
    let line = lines[1].as_str().unwrap();
    assert!(
        line.starts_with("notes/light: one -> two -> three; 2"),
        "{told}"
    );
    assert!(line.ends_with("by local:tester, call c3"), "{told}");
    assert_eq!((lines.len(), &told["left_out"]), (2, &json!(0)));
    // All of an hour has no line for each fact of the server's first look at the host.
    let all = call(&server, "changes_since", json!({ "since": "1h" }));
    let words = all["summary"].to_string();
    assert!(words.contains("notes/light: one -> two"), "{all}");
    assert!(!words.contains("host, kernel: "), "{all}");
    assert!(all["summary"].to_string().len() < 8 << 10);
    let later = call(&server, "changes_since", json!({ "since": "2999-01-01" }));
    assert_eq!(later["summary"], json!([]), "{later}");
    // A day, if nothing is said; and the later of two starts.
    let day = call(&server, "changes_since", json!({}));
    // Packages, logins and calls of a day are more than those of an hour; the state is as new as the server.
    let of_notes = |told: &Value| {
        let lines = told["summary"].as_array().unwrap().iter();
        let lines = lines.filter(|line| line.as_str().unwrap().starts_with("notes/"));
        lines.cloned().collect::<Vec<_>>()
    };
    assert_eq!((of_notes(&day), of_notes(&all).len()), (of_notes(&all), 1));
    let both = json!({ "since": "1h", "revision": told["revision"] });
    let both = call(&server, "changes_since", both);
    assert_eq!(of_notes(&both), Vec::<Value>::new(), "{both}");
}

#[test]
fn no_answer_about_the_state_is_longer_than_40_kb() {
    let server = server().policy("observe").start();
    let begun = call(&server, "state_get", json!({}))["revision"].clone();
    put(&server, "/public/notes", &json!({}), "c0");
    let long = "x".repeat(90_000);
    put(&server, "/public/notes/long", &json!(long), "c1");
    let short = json!({ "a": "x".repeat(20_000), "b": "x".repeat(30_000) });
    put(&server, "/public/notes/more", &short, "c2");
    let whole = call(&server, "state_get", json!({ "pointer": "/public/notes" }));
    assert!(
        whole["value"].is_null() && whole["bytes"].as_u64() > Some(140_000),
        "{whole}"
    );
    let sizes = json!([
        { "pointer": "/public/notes/long", "bytes": 90_002 },
        { "pointer": "/public/notes/more", "bytes": 50_015 },
    ]);
    assert_eq!(whole["parts"], sizes);
    let one = call(
        &server,
        "state_get",
        json!({ "pointer": "/public/notes/more/b" }),
    );
    assert_eq!(one["value"].as_str().unwrap().len(), 30_000);
    let asked = json!({ "revision": begun, "pointer": "/public/notes" });
    let since = call(&server, "changes_since", asked);
    let revisions = since["revisions"].as_array().unwrap();
    assert!(revisions[0]["patch"].is_array(), "{since}");
    assert!(revisions[1]["patch"].is_null(), "{since}");
    assert!(
        revisions[1]["patch_bytes"].as_u64() > Some(90_000),
        "{since}"
    );
    assert!(since.to_string().len() < 40 << 10);
}

#[test]
fn changes_since_goes_on_from_its_own_answer_until_there_is_no_more() {
    let server = server().start();
    let before = put(&server, "/public/t", &json!(0), "begin");
    let made: Vec<u64> = (1..=5)
        .map(|n| put(&server, "/public/t", &json!(n), "n"))
        .collect();
    let (mut cursor, mut found) = (before, Vec::new());
    loop {
        let arguments = json!({ "revision": cursor, "pointer": "/public/t", "limit": 2 });
        let answer = call(&server, "changes_since", arguments);
        assert!(ids(&answer).len() <= 2, "{answer}");
        found.extend(ids(&answer));
        cursor = answer["revision"].as_u64().unwrap();
        if answer["more"] == false {
            break;
        }
    }
    assert_eq!(found, made);
    let wrong = json!({ "revision": 0, "limit": 201 });
    let failure = server
        .client()
        .call("changes_since", wrong)
        .send()
        .failure();
    assert!(
        failure.contains("limit") && failure.contains("1 to 200"),
        "{failure}"
    );
}

#[test]
fn a_cursor_that_the_log_does_not_reach_gets_the_value_and_its_revision() {
    let server = server().start();
    let base = put(&server, "/public/t", &json!({ "n": 1 }), "old");
    put(&server, "/public/t/n", &json!(2), "kept");
    let newest = put(&server, "/public/t/n", &json!(3), "new");
    let database = call(&server, "state_get", json!({}))["database"].clone();
    trim(&server, base);
    let begun = base - 1;
    for cursor in [
        json!({ "revision": begun, "pointer": "/public/t" }),
        json!({ "revision": newest + 1000, "pointer": "/public/t", "database": database }),
        json!({ "revision": newest, "pointer": "/public/t", "database": "another" }),
    ] {
        let answer = call(&server, "changes_since", cursor.clone());
        assert_eq!(answer["resync"], true, "{cursor}: {answer}");
        assert_eq!(answer["value"], json!({ "n": 3 }), "{cursor}");
        assert_eq!(answer["floor"], base + 1, "{cursor}");
        assert!(answer["revision"].as_u64() >= Some(newest), "{cursor}");
        assert_eq!(answer["revisions"], json!([]));
    }
    let gone = json!({ "revision": begun, "pointer": "/public/nothing" });
    let answer = call(&server, "changes_since", gone);
    assert!(
        answer.get("value").is_none(),
        "absent is not null: {answer}"
    );
    let reached = json!({ "revision": base, "pointer": "/public/t", "database": database });
    let answer = call(&server, "changes_since", reached);
    assert_eq!(
        (answer["resync"].clone(), ids(&answer).len()),
        (json!(false), 2)
    );

    let words = command(&server, &["at", &begun.to_string()])
        .output()
        .unwrap();
    assert_eq!(words.status.code(), Some(1));
    let words = String::from_utf8(words.stderr).unwrap();
    assert!(words.contains(&format!("revision {base}")), "{words}");
    assert_eq!(
        told(&server, &["at", &base.to_string(), "/public/t"])["value"],
        json!({ "n": 1 })
    );
}

#[test]
fn blame_names_the_last_writer_of_each_value() {
    let server = server().start();
    let first = put(&server, "/public/t", &json!({ "a": 1, "b": 1 }), "first");
    let second = put(&server, "/public/t/b", &json!(2), "second");
    let answer = call(&server, "state_blame", json!({ "pointer": "/public/t" }));
    let leaves = &answer["leaves"];
    assert_eq!(leaves[0]["pointer"], "/public/t/a");
    assert_eq!(leaves[0]["written"]["revision"], first);
    assert_eq!(leaves[1]["written"]["revision"], second);
    assert_eq!(leaves[1]["written"]["cause"], "second");
    assert_eq!(answer["last"]["actor"], "local:tester");
    let printed = told(&server, &["blame", "/public/t"])["leaves"].clone();
    assert_eq!(printed[1]["written"]["revision"], second);
    assert!(leaves[1]["written"]["at"].is_string(), "{leaves}");
    let private = server
        .client()
        .call("state_blame", json!({ "pointer": "/private" }));
    assert!(private.send().failure().contains("/public"));
    let nothing = server
        .client()
        .call("state_blame", json!({ "pointer": "/public/none" }));
    assert!(
        nothing
            .send()
            .failure()
            .contains("path not found: /public/none")
    );
}

#[test]
fn a_program_that_writes_the_state_does_not_pass_for_an_agent_or_the_owner() {
    let server = server().policy("admin").start();
    let mine = json!({ "pointer": "/public/ui/mine", "value": { "a": 1 } });
    let put = server.client().call("state_put", mine).send().data();
    let written = call(
        &server,
        "state_blame",
        json!({ "pointer": "/public/ui/mine" }),
    );
    let last = &written["last"];
    assert_eq!(last["revision"], put["revision"], "{written}");
    let (actor, cause) = (
        last["actor"].as_str().unwrap(),
        last["cause"].as_str().unwrap(),
    );
    assert!(actor.starts_with("agent:"), "{written}");

    // A copy of the agent's write with another value, and a write that claims to be the owner's.
    let state = rusqlite::Connection::open(server.text("state_db")).unwrap();
    for (name, claimed) in [("agent", actor), ("owner", "owner")] {
        let place = format!("/public/ui/{name}");
        let patch = json!([{ "op": "add", "path": place, "value": "forged" }]).to_string();
        let seal = "INSERT OR REPLACE INTO author SELECT (SELECT max(id) + 1 FROM revision), seal FROM author
            WHERE revision = ?1";
        state.execute(seal, [put["revision"].as_i64()]).unwrap();
        let write = "INSERT INTO revision (at_ms, actor, cause, patch)
            VALUES (unixepoch() * 1000, ?1, ?2, ?3)";
        state.execute(write, (claimed, cause, patch)).unwrap();
        wait_until("the server has read it", LONG, || {
            call(&server, "state_get", json!({ "pointer": "/public/ui" }))["value"][name]
                == "forged"
        });
        let blamed = call(&server, "state_blame", json!({ "pointer": place }));
        let expected = format!("local program (claims to be {claimed})");
        assert_eq!(blamed["last"]["actor"], expected, "{blamed}");
        let shown = told(&server, &["blame", &place]);
        assert_eq!(shown["last"]["actor"], expected, "{shown}");
        let logged = told(&server, &["log", &place, "--limit", "1"]);
        assert_eq!(logged["actor"], expected, "{logged}");
        let since = json!({ "revision": put["revision"], "pointer": place });
        let changed = call(&server, "changes_since", since);
        assert_eq!(changed["revisions"][0]["actor"], expected, "{changed}");
    }
}

#[test]
fn what_a_program_falsifies_about_the_server_is_corrected_at_once() {
    let server = server().policy("observe").start();
    let read = |place: &str| {
        let request = server
            .client()
            .call("state_get", json!({ "pointer": place }));
        request.send().result()["structuredContent"].clone()
    };
    let kernel = "/public/serverInfo/kernel";
    wait_until("it has looked", LONG, || read(kernel)["value"].is_string());
    let before = read(kernel)["value"].clone();
    let ghost = json!({ "status": "running" });
    for patch in [
        json!([{ "op": "add", "path": "/public/packageData/ghost", "value": ghost }]),
        json!([{ "op": "replace", "path": kernel, "value": "none" }]),
        json!([{ "op": "remove", "path": "/public/serverInfo" }]),
        json!([{ "op": "replace", "path": "", "value": {} }]),
    ] {
        let written = server.patch_from_outside(&patch);
        // Its own inspections are half a minute apart.
        wait_until("it is corrected", Duration::from_secs(10), || {
            let now = read(kernel);
            let containers = read("/public/packageData");
            now["revision"].as_u64() > Some(written)
                && now["value"] == before
                && containers["value"].is_object()
                && containers["value"]["ghost"].is_null()
        });
    }
}

#[test]
fn a_tool_that_waits_for_the_state_answers_with_a_revision_that_shows_what_it_did() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("synced");
    let server = server()
        .policy("admin")
        .lxcpath(containers.lxcpath())
        .start();
    let begun = Instant::now();
    let mut shown = 0;
    while shown < 2 {
        if begun.elapsed() > LONG {
            return skip("here the observer takes longer to look than a call waits");
        }
        let start = json!({ "container": "synced" });
        let stop = json!({ "container": "synced", "grace_s": 0 });
        for (tool, arguments, status) in [
            ("container_start", start, "running"),
            ("container_stop", stop, "stopped"),
        ] {
            // A response without a revision means that the observer was too late.
            let answer = if tool == "container_stop" {
                agreed(&server.client(), tool, arguments).data()
            } else {
                call(&server, tool, arguments)
            };
            if let Some(revision) = answer["revision"].as_u64() {
                is_shown(&server, revision, status);
                shown += 1;
            }
        }
    }
}

/// Asserts that the document has the status at this revision, and that the log names a call in the journal as the
/// cause.
fn is_shown(server: &Server, revision: u64, status: &str) {
    const PLACE: &str = "/public/packageData/synced/status";
    let then = told(server, &["at", &revision.to_string(), PLACE]);
    assert_eq!(then["value"], status, "at revision {revision}");
    let log = said(server, &["log", PLACE, "--limit", "1", "--json"]);
    let row: Value = serde_json::from_str(&log).unwrap();
    assert!(row["id"].as_u64() <= Some(revision), "{row}");
    assert_eq!(row["actor"], "observer");
    let cause = row["cause"]
        .as_str()
        .unwrap_or_else(|| panic!("no cause: {row}"));
    assert!(
        server.log().contains(cause),
        "{cause} is not in the journal"
    );
}

#[test]
fn the_exit_status_says_whether_it_was_done_and_whether_all_is_well() {
    let server = server().start();
    let status = |words: &[&str]| command(&server, words).output().unwrap().status.code();
    put(&server, "/public/t", &json!(1), "x");
    assert_eq!(status(&["get", "/public/t"]), Some(0));
    assert_eq!(status(&["get", "/public/none"]), Some(1));
    assert_eq!(status(&["get", "public"]), Some(2));
    assert_eq!(status(&["at", "9999999"]), Some(1));
    assert_eq!(status(&["log", "--limit", "0"]), Some(2));
    assert_eq!(status(&["watch", "public"]), Some(2));
    assert_eq!(status(&["export", "--log", "--at", "1"]), Some(2));
    assert_eq!(status(&["check"]), Some(0));
    let database = rusqlite::Connection::open(server.text("state_db")).unwrap();
    database.busy_timeout(LONG).unwrap();
    database
        .execute("DROP TRIGGER revision_is_never_updated", [])
        .unwrap();
    assert_eq!(status(&["check"]), Some(3));
}

#[test]
fn an_agent_writes_what_is_for_showing_and_the_log_says_that_it_was_its_call() {
    let server = server()
        .policy("operate")
        .settings("[spaces.meadow]\ncontainers = [\"*\"]\nhost = true\n")
        .start();
    let client = server.client();
    let who = call(&server, "whoami", json!({}))["agent"].clone();
    let before = call(&server, "state_get", json!({}))["revision"].clone();
    let notes = json!({ "pointer": "/public/ui/notes", "value": { "first": "hello" } });
    let written = client.call("state_put", notes.clone()).send().data();
    assert_eq!(written["pointer"], "/public/ui/notes");
    // Writing it again makes no revision, as the log shows below; others may have made some.
    let again = client.call("state_put", notes).send().data();
    assert!(again["revision"].as_u64() >= written["revision"].as_u64());
    let theme = json!({ "pointer": "/theme", "value": "dark" });
    let theme = client.call("db.put.ui", theme).send().data();
    assert_eq!(theme["pointer"], "/public/ui/theme");
    let shown = call(&server, "state_get", json!({ "pointer": "/public/ui" }));
    let expected = json!({ "notes": { "first": "hello" }, "theme": "dark" });
    assert_eq!(shown["value"], expected);

    let since = json!({ "revision": before, "pointer": "/public/ui" });
    let rows = call(&server, "changes_since", since)["revisions"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows}");
    assert_eq!(rows[0]["id"], written["revision"]);
    let actor = format!("agent:{}", who.as_str().unwrap());
    assert_eq!(rows[0]["actor"], actor.as_str());
    let cause = rows[0]["cause"].as_str().unwrap();
    let told_of = tell_by(&server.settings_file(), &["audit", "show", cause]);
    assert!(told_of.to_string().contains("state_put"), "{told_of}");

    for place in ["/public/serverInfo", "/public", "/public/notifications/1"] {
        let refused = json!({ "pointer": place, "json": "1" });
        let refused = client.call("state_put", refused).send().result();
        assert_eq!(refused["isError"], true, "{place}");
        assert!(refused.to_string().contains("/public/ui"), "{refused}");
    }
    let gone = json!({ "pointer": "/public/ui/notes" });
    client.call("state_put", gone).send().data();
    let shown = call(&server, "state_get", json!({ "pointer": "/public/ui" }));
    assert_eq!(shown["value"], json!({ "theme": "dark" }));

    // An agent that sees only a part of the host can neither write nor read here.
    let part = admit(
        &server,
        "part",
        &["--policy", "operate", "--space", "meadow"],
    );
    let put = json!({ "pointer": "/public/ui/theme", "json": "1" });
    assert!(part.call("state_put", put).send().rpc()["error"].is_object());
    let read = part.call("state_get", json!({ "pointer": "/public/ui" }));
    assert_eq!(read.send().result()["isError"], true);
}
