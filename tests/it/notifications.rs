//! Notifications: what is kept for the owner, as agents of different spaces see, mark and remove it.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{has_sqlite3, server};

fn ids(client: &Client, arguments: Value) -> Vec<u64> {
    let data = client.call("notification_list", arguments).send().data();
    let all = data["notifications"].as_array().unwrap();
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
        "host": { "3": one("three") },
        "containers": { "web": { "4": one("four"), "6": one("six") }, "db": { "5": one("five") } },
    });
    server.patch_from_outside(
        &json!([{ "op": "add", "path": "/public/notifications", "value": all }]),
    );
    wait_until("it has read them", IN_TIME, || {
        ids(&admin, json!({})).len() == 4
    });
    assert_eq!(ids(&admin, json!({})), [6, 5, 4, 3]);
    assert_eq!(ids(&admin, json!({ "below": 6, "limit": 2 })), [5, 4]);

    let args = [
        "agent", "add", "part", "--policy", "operate", "--space", "meadow",
    ];
    let said = tell_by(&server.settings_file(), &args);
    let part = admin
        .elsewhere()
        .with_token(said["token"].as_str().unwrap());
    wait_until("it comes in", IN_TIME, || {
        part.modern("tools/list").send().status == 200
    });
    assert_eq!(ids(&part, json!({})), [6, 4]);
    let others = json!({ "ids": [3, 5] });
    let done = part.call("notification_remove", others).send().data();
    assert_eq!(done["changed"], 0);
    let done = part.call("notification.mark-seen-before", json!({ "before": 4 }));
    assert_eq!(done.send().data()["changed"], 1);
    let seen = |client: &Client| {
        let data = client.call("notification.list", json!({})).send().data();
        let all = data["notifications"].as_array().unwrap().clone();
        let seen = all.iter().filter(|one| one["seen"] == true);
        seen.map(|one| one["id"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(&admin), [4]);
    let done = admin.call("notification.mark-seen", json!({ "ids": [3, 6, 99] }));
    assert_eq!(done.send().data()["changed"], 2);
    let done = admin.call("notification.mark-unseen", json!({ "ids": [4] }));
    assert_eq!(done.send().data()["changed"], 1);
    assert_eq!(seen(&admin), [6, 3]);
    let done = admin.call("notification.remove-before", json!({ "before": 5 }));
    assert_eq!(done.send().data()["changed"], 2);
    let done = admin.call("notification.remove", json!({ "ids": [5] }));
    assert_eq!(done.send().data()["changed"], 1);
    assert_eq!(
        (ids(&admin, json!({})), ids(&part, json!({}))),
        (vec![6], vec![6])
    );
}
