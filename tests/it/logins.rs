//! Who logged in, and what changed: over the real server, on whatever this machine records.

use serde_json::json;

use crate::support::server::server;

#[test]
fn the_own_agent_is_in_the_list_and_each_record_was_read_or_is_named_as_unread() {
    let server = server().policy("observe").start();
    let client = server.client();
    client.call("whoami", json!({})).send().data();
    let list = client.call("login_list", json!({ "since": "1h" }));
    let data = list.send().data();
    let logins = data["logins"].as_array().unwrap();
    let own = logins.iter().find(|login| login["kind"] == "agent");
    let own = own.unwrap_or_else(|| panic!("{data}"));
    assert_eq!(
        (&own["success"], &own["method"]),
        (&json!(true), &json!("token"))
    );
    assert!(own["at"].as_str().unwrap().ends_with('Z'), "{own}");
    let words = format!("{}{}", data["read"], data["unread"]);
    assert!(
        words.contains("host "),
        "a host without a record must be named: {data}"
    );
    assert!(data["failed"]["by_address"].is_object(), "{data}");
    let only = client.call("login_list", json!({ "since": "1h", "failed": "only" }));
    let only = only.send().data();
    let good = |login: &serde_json::Value| login["success"] == true;
    assert!(
        !only["logins"].as_array().unwrap().iter().any(good),
        "{only}"
    );
    let unknown = client.call("login_list", json!({ "container": "no-such-container" }));
    assert!(unknown.send().failure().contains("no-such-container"));
}

#[test]
fn what_changed_in_a_day_fits_into_8_kb_and_has_the_logins() {
    let server = server().policy("observe").start();
    let client = server.client();
    client.call("whoami", json!({})).send().data();
    let data = client
        .call("changes_since", json!({ "since": "24h" }))
        .send()
        .data();
    assert!(
        data.to_string().len() <= 8192,
        "{} bytes",
        data.to_string().len()
    );
    let lines = data["summary"].as_array().unwrap();
    let begins = |begin: &str| {
        lines
            .iter()
            .any(|line| line.as_str().unwrap().starts_with(begin))
    };
    assert!(begins("logins: "), "{data}");
    let part = json!({ "since": "24h", "pointer": "/public/serverInfo" });
    let part = client.call("changes_since", part).send().data();
    assert!(!part["summary"].to_string().contains("logins: "), "{part}");
}
