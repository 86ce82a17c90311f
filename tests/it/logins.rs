//! Who logged in, and what changed: over the real server, on whatever this machine records.

use std::fs;

use gatewren_base::sys::{now_ms, rfc3339};
use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::server::{Server, server};

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
    let good = |login: &Value| login["success"] == true;
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

#[test]
fn an_agent_that_may_not_list_logins_learns_none_from_what_changed() {
    let server = server().policy("observe").settings("").start();
    let summary = |mode: &str| {
        let tool = format!("login_list={mode}");
        let options = ["--policy", "admin", "--tool", &tool];
        let agent = admit(&server, &format!("reader-{mode}"), &options);
        agent.call("whoami", json!({})).send().data();
        let changes = agent.call("changes_since", json!({ "since": "24h" }));
        let data = changes.send().data();
        let has_logins = data["summary"].to_string().contains("logins: ");
        let is_told = data["unread"]
            .to_string()
            .contains("your policy does not allow login_list");
        (has_logins, is_told)
    };
    assert_eq!(summary("allow"), (true, false));
    for mode in ["deny", "propose", "confirm", "confirm-owner"] {
        assert_eq!(summary(mode), (false, true), "{mode}");
    }
}

/// Two containers with logins in their records, and the agents of two spaces. The host's own logins are in neither.
struct TwoSpaces {
    _containers: Containers,
    server: Server,
    admin: Client,
}

impl TwoSpaces {
    fn new() -> Option<Self> {
        let mut containers = Containers::new()?;
        for (name, user) in [("heron-near", "nina"), ("heron-far0", "fred")] {
            let root = containers.make(name);
            fs::create_dir_all(root.join("var/log")).unwrap();
            let at = rfc3339(now_ms() - 60_000);
            let lines = format!(
                "{at} box sshd[12]: Accepted publickey for {user} from 192.0.2.7 port 5 ssh2\n\
                 {at} box sshd[13]: Failed password for root from 192.0.2.9 port 6 ssh2\n"
            );
            fs::write(root.join("var/log/auth.log"), lines).unwrap();
        }
        let settings = format!(
            "[lxc]\nlxcpath = \"{}\"\n\
             [spaces.near-reeds]\ncontainers = [\"heron-near\"]\n\
             [spaces.far-reeds]\ncontainers = [\"heron-far0\"]\n",
            containers.lxcpath().display()
        );
        let server = server().policy("admin").settings(&settings).start();
        let admin = server.client();
        Some(Self {
            _containers: containers,
            server,
            admin,
        })
    }

    fn agent(&self, name: &str, space: &str) -> Client {
        let client = admit(
            &self.server,
            name,
            &["--policy", "observe", "--space", space],
        );
        client.call("whoami", json!({})).send().data();
        client
    }

    fn logins(client: &Client) -> Value {
        let all = json!({ "since": "1h", "failed": "with", "limit": 200 });
        client.call("login_list", all).send().data()
    }
}

#[test]
fn an_agent_sees_the_logins_of_its_own_space_alone() {
    let Some(home) = TwoSpaces::new() else { return };
    let near = home.agent("nearling", "near-reeds");
    let far = home.agent("farling", "far-reeds");
    // There are logins of agents and of the host's container elsewhere, and who reaches everything sees them.
    let all = TwoSpaces::logins(&home.admin).to_string();
    for mark in ["nina", "fred", "nearling", "farling", "host "] {
        assert!(all.contains(mark), "{mark}: {all}");
    }
    for (client, own, user, other) in [
        (&near, "heron-near", "nina", "heron-far0"),
        (&far, "heron-far0", "fred", "heron-near"),
    ] {
        let data = TwoSpaces::logins(client);
        let logins = data["logins"].as_array().unwrap();
        assert_eq!(logins.len(), 2, "{data}");
        assert!(
            logins.iter().all(|login| login["container"] == own),
            "{data}"
        );
        let good = logins.iter().find(|login| login["success"] == true);
        let good = good.unwrap();
        assert_eq!(
            (&good["user"], &good["from"], &good["kind"]),
            (&json!(user), &json!("192.0.2.7"), &json!("ssh"))
        );
        assert_eq!(data["failed"]["by_address"], json!({ "192.0.2.9": 1 }));
        let text = data.to_string();
        for mark in [other, "ling", "\"host ", "audit", "agent"] {
            assert!(!text.contains(mark), "{mark}: {data}");
        }
        let ask = |name: &str| {
            let call = client.call("login_list", json!({ "container": name }));
            call.send().failure().replace(name, "NAME")
        };
        assert_eq!(ask(other), ask("heron-none"));
        let changes = client.call("changes_since", json!({ "since": "1h" }));
        let changes = changes.send().data();
        let summary = changes["summary"].to_string();
        assert!(
            summary.contains("logins: ") && summary.contains("192.0.2.7"),
            "{changes}"
        );
        for mark in [other, "farling\"", "nearling\"", "\"host "] {
            assert!(!changes.to_string().contains(mark), "{mark}: {changes}");
        }
    }
}
