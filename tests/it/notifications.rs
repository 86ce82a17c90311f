//! Notifications: what is kept for the owner, as agents of different spaces see, mark and remove it.

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{has_sqlite3, server, shared};
use crate::support::session::Session;
use crate::support::stream::Stream;

/// Returns the test's notifications, without those of the server about this machine, such as a full disk.
fn own(client: &Client, tool: &str, arguments: Value) -> Vec<Value> {
    let data = client.call(tool, arguments).send().data();
    let all = data["notifications"].as_array().unwrap().iter();
    all.filter(|one| one["message"] == "m").cloned().collect()
}

fn ids(client: &Client, arguments: Value) -> Vec<u64> {
    let all = own(client, "notification_list", arguments);
    all.iter().map(|one| one["id"].as_u64().unwrap()).collect()
}

#[test]
fn each_agent_sees_what_is_of_its_space_and_startos_names_do_the_same() {
    if !has_sqlite3() {
        return;
    }
    let server = server()
        .policy("operate")
        .settings("[spaces.meadow]\ncontainers = [\"web\"]\n")
        .start();
    let admin = server.client();
    let one = |title: &str| json!({ "at_ms": 7, "level": "info", "title": title, "message": "m", "seen": false });
    let all = json!({
        "host": { "103": one("three") },
        "containers": { "web": { "104": one("four"), "106": one("six") }, "db": { "105": one("five") } },
    });
    server.patch_from_outside(
        &json!([{ "op": "add", "path": "/public/notifications", "value": all }]),
    );
    wait_until("it has read them", IN_TIME, || {
        ids(&admin, json!({})).len() == 4
    });
    assert_eq!(ids(&admin, json!({})), [106, 105, 104, 103]);
    let times = own(&admin, "notification_list", json!({}));
    assert_eq!(times[0]["at"], "1970-01-01T00:00:00.007Z");
    assert_eq!(ids(&admin, json!({ "below": 106, "limit": 2 })), [105, 104]);

    let part = admit(
        &server,
        "part",
        &["--policy", "operate", "--space", "meadow"],
    );
    assert_eq!(ids(&part, json!({})), [106, 104]);
    let others = json!({ "ids": [103, 105] });
    let done = part.call("notification_remove", others).send().data();
    assert_eq!(done["changed"], 0);
    let done = part.call("notification.mark-seen-before", json!({ "before": 104 }));
    assert_eq!(done.send().data()["changed"], 1);
    let seen = |client: &Client| {
        let all = own(client, "notification.list", json!({}));
        let seen = all.iter().filter(|one| one["seen"] == true);
        seen.map(|one| one["id"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(&admin), [104]);
    let done = admin.call("notification.mark-seen", json!({ "ids": [103, 106, 99] }));
    assert_eq!(done.send().data()["changed"], 2);
    let done = admin.call("notification.mark-unseen", json!({ "ids": [104] }));
    assert_eq!(done.send().data()["changed"], 1);
    assert_eq!(seen(&admin), [106, 103]);
    let done = admin.call("notification.remove-before", json!({ "before": 105 }));
    // The server's own are removed too.
    assert!(done.send().data()["changed"].as_u64().unwrap() >= 2);
    let done = admin.call("notification.remove", json!({ "ids": [105] }));
    assert_eq!(done.send().data()["changed"], 1);
    assert_eq!(
        (ids(&admin, json!({})), ids(&part, json!({}))),
        (vec![106], vec![106])
    );
}

/// Returns level and data of the log messages among these, without those about this machine.
fn logged(messages: &[Value]) -> Vec<(String, Value)> {
    let notes = messages.iter();
    let notes = notes.filter(|one| one["method"] == "notifications/message");
    notes
        .map(|one| &one["params"])
        .map(|one| {
            (
                one["level"].as_str().unwrap().to_owned(),
                one["data"].clone(),
            )
        })
        .collect()
}

/// Sets the level from which on a session receives log messages.
fn set_level(session: &Session, level: &str) {
    let set = session
        .request("logging/setLevel")
        .param("level", json!(level));
    assert_eq!(set.send().result(), json!({}));
}

#[test]
fn w1_a_session_is_logged_its_own_calls_from_its_level_on() {
    let session = shared("operate").client().session("2025-11-25");
    let calls = |arguments: Value| {
        let answer = session.call("notification_list", arguments).send();
        logged(&answer.messages())
    };
    assert_eq!(calls(json!({})), [], "no level is set");
    set_level(&session, "debug");
    let told = calls(json!({}));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|(level, _)| level == "debug"), "{told:?}");
    let (_, end) = &told[1];
    assert_eq!(end["tool"], "notification_list", "{end}");
    assert!(end["request"].is_string(), "{end}");
    assert!(end["duration_ms"].is_u64(), "{end}");
    set_level(&session, "error");
    assert_eq!(calls(json!({})), []);
    let told = calls(json!({ "limit": 0 }));
    let levels: Vec<_> = told.iter().map(|(level, _)| level.as_str()).collect();
    assert_eq!(levels, ["error"], "{told:?}");
}

/// Returns the next log message of a stream: its level and the title in it.
fn next_title(stream: &mut Stream) -> (String, Value) {
    let found = logged(&[stream.event().json()]);
    let (level, data) = found.into_iter().next().unwrap();
    (level, data["title"].clone())
}

#[test]
fn w4_a_session_is_logged_only_the_notifications_that_its_agent_may_see() {
    if !has_sqlite3() {
        return;
    }
    let server = server()
        .policy("operate")
        .settings("[spaces.meadow]\ncontainers = [\"web\"]\n")
        .start();
    let admin = server.client();
    let part = admit(
        &server,
        "part",
        &["--policy", "operate", "--space", "meadow"],
    );
    let sessions = [&part, &admin].map(|client| client.session("2025-11-25"));
    for session in &sessions {
        set_level(session, "warning");
    }
    let [mut of_part, mut of_admin] = sessions.each_ref().map(Session::stream);
    let one = |level: &str, title: &str| json!({ "at_ms": 7, "level": level, "title": title, "message": "m", "seen": false });
    let all = json!({
        "host": { "90003": one("warning", "of the host") },
        "containers": {
            "db": { "90004": one("error", "of another container") },
            "web": { "90005": one("info", "below the level"), "90006": one("error", "of its container") },
        },
    });
    server.patch_from_outside(
        &json!([{ "op": "add", "path": "/public/notifications", "value": all }]),
    );
    let own = ("error".to_owned(), json!("of its container"));
    assert_eq!(next_title(&mut of_part), own);
    let expected = [
        ("warning", "of the host"),
        ("error", "of another container"),
    ];
    for (level, title) in expected {
        let expected = (level.to_owned(), json!(title));
        assert_eq!(next_title(&mut of_admin), expected);
    }
    assert_eq!(next_title(&mut of_admin), own);
}
