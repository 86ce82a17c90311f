//! The owner's changes to an agent apply from its next call on, and to its open streams.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::{add_agent, tell, tell_by};
use crate::support::machine::{IN_TIME, LONG_S, marked, marker, wait_until};
use crate::support::server::{Directory, Server, server};
use crate::support::stream::{Next, Stream};

/// A server with an agent that was added while it runs, and is authenticated.
struct House {
    home: Directory,
    server: Server,
    id: String,
    client: Client,
}

fn house(options: &[&str]) -> House {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let visitor = add_agent(&home.0, "visitor", options);
    let client = server
        .client()
        .with_token(visitor["token"].as_str().unwrap());
    let list = client.modern("server/discover");
    wait_until("it comes in", IN_TIME, || list.send().status != 401);
    House {
        home,
        server,
        id: visitor["id"].as_str().unwrap().to_owned(),
        client,
    }
}

impl House {
    fn edit(&self, options: &[&str]) {
        let (said, code) = tell(
            &self.home.0,
            &[&["agent", "edit", "visitor"], options].concat(),
        );
        assert_eq!((code, &said["id"]), (Some(0), &json!(self.id)), "{said}");
    }

    fn tools(&self) -> Vec<String> {
        let mut names = self.client.modern("tools/list").send().names("tools");
        names.sort();
        names
    }
}

#[test]
fn another_policy_holds_for_the_next_call_of_an_open_session() {
    let house = house(&["--policy", "admin"]);
    let session = house.client.session("2025-06-18");
    let shell = || {
        session
            .call("system_shell", json!({ "command": "true" }))
            .send()
    };
    let listed = || session.request("tools/list").send().names("tools");
    assert!(listed().contains(&"system_shell".to_owned()));
    house.edit(&["--mode", "execute=deny"]);
    wait_until("it has no shell", IN_TIME, || {
        !listed().contains(&"system_shell".to_owned())
    });
    assert_eq!(shell().verdict(), (200, -32_602), "as what does not exist");
    house.edit(&["--mode", "execute=allow"]);
    wait_until("it has one again", IN_TIME, || {
        shell().verdict() == (200, 0)
    });
    house.edit(&["--policy", "observe", "--clear", "all"]);
    wait_until("it only looks", IN_TIME, || {
        !listed().contains(&"container_start".to_owned())
    });
    assert_eq!(shell().verdict(), (200, -32_602));
    assert_eq!(
        session.call("whoami", json!({})).send().verdict(),
        (200, 0),
        "in the session of before"
    );
}

#[test]
fn an_agent_hears_that_other_tools_are_there() {
    const CHANGED: &str = "notifications/tools/list_changed";
    let house = house(&["--policy", "admin"]);
    let session = house.client.session("2025-11-25");
    let mut stream = session.stream();
    let mut listen = house
        .client
        .modern("subscriptions/listen")
        .param("notifications", json!({ "toolsListChanged": true }))
        .open();
    let honoured = &listen.message()["params"]["notifications"];
    assert_eq!(*honoured, json!({ "toolsListChanged": true }));
    let mut silent = house
        .client
        .modern("subscriptions/listen")
        .param("notifications", json!({}))
        .open();
    silent.message();
    house.edit(&["--mode", "execute=deny"]);
    let told = stream.event();
    assert_eq!(told.json()["method"], CHANGED);
    assert_eq!(listen.message()["method"], CHANGED);
    let tools = session.request("tools/list").send().names("tools");
    assert!(!tools.contains(&"system_shell".to_owned()));
    drop(stream);
    // A change without an open stream is delivered to the stream that the client resumes.
    house.edit(&["--clear", "modes"]);
    assert_eq!(listen.message()["method"], CHANGED);
    let again = session.get().header("last-event-id", &told.id.unwrap());
    assert_eq!(again.open().call_message()["method"], CHANGED);
    tell(&house.home.0, &["agent", "revoke", "visitor"]);
    assert_eq!(silent.message()["result"]["resultType"], "complete");
}

#[test]
fn another_space_ends_what_was_opened_in_the_one_before() {
    let server = server()
        .policy("admin")
        .settings("[spaces.media]\ncontainers = [\"jellyfin\"]\n")
        .start();
    let settings = server.settings_file();
    let added = tell_by(&settings, &["agent", "add", "visitor", "--space", "*"]);
    let client = server.client().with_token(added["token"].as_str().unwrap());
    let info = || client.call("server_info", json!({})).send().verdict();
    wait_until("it comes in", IN_TIME, || info() == (200, 0));
    let session = client.session("2025-11-25");
    let mut stream = session.stream();
    let mut listen = client
        .modern("subscriptions/listen")
        .param(
            "notifications",
            json!({ "resourceSubscriptions": ["gatewren:///public/serverInfo"] }),
        )
        .open();
    listen.message();
    tell_by(&settings, &["agent", "edit", "visitor", "--space", "media"]);
    ends_sooner_or_later(&mut stream);
    ends_sooner_or_later(&mut listen);
    wait_until("the host is none of its", IN_TIME, || {
        info() == (200, -32_602)
    });
    assert_eq!(
        session.request("ping").send().status,
        200,
        "its session goes on"
    );
}

/// Waits for the end; other notifications, such as changes of the host, may precede it.
fn ends_sooner_or_later(stream: &mut Stream) {
    loop {
        match stream.next(IN_TIME) {
            Next::Event(_) => {}
            Next::End => return,
            Next::Quiet => panic!("it is still open"),
        }
    }
}

#[test]
fn only_tools_of_the_groups_that_are_named_exist() {
    let house = house(&["--policy", "operate", "--toolset", "access"]);
    let of_access = ["session_kill", "session_list", "whoami"];
    assert_eq!(house.tools(), of_access);
    let outside = house.client.call("server_time", json!({})).send();
    assert_eq!(outside.verdict(), (200, -32_602));
    house.edit(&["--toolset", "access", "--toolset", "server"]);
    let of_server = ["server_info", "server_metrics", "server_time"];
    wait_until("there is another group", IN_TIME, || {
        let tools = house.tools();
        let is_of_them =
            |name: &String| of_access.contains(&name.as_str()) || name.starts_with("server_");
        tools.iter().all(is_of_them) && of_server.iter().all(|name| tools.iter().any(|t| t == name))
    });
    house.edit(&["--toolset", "access", "--tool", "server_time=allow"]);
    wait_until("one tool alone", IN_TIME, || {
        house.tools() == ["server_time", "session_kill", "session_list", "whoami"]
    });
    assert_eq!(
        house.client.call("server_time", json!({})).send().verdict(),
        (200, 0)
    );
}

#[test]
fn an_agent_comes_from_where_it_may_also_into_a_session_begun_there() {
    let house = house(&["--policy", "observe"]);
    let session = house.client.session("2025-11-25");
    let elsewhere = house.client.elsewhere();
    assert_eq!(
        session
            .carried_on_by(&elsewhere)
            .request("ping")
            .send()
            .status,
        200
    );
    let mut stream = session.stream();
    let stolen = session.carried_on_by(&elsewhere);
    let mut other = stolen.stream();
    let mut listen = elsewhere
        .modern("subscriptions/listen")
        .param("notifications", json!({}))
        .open();
    listen.message();
    house.edit(&["--network", &format!("{}/32", house.client.source())]);
    other.ends();
    assert_eq!(listen.message()["result"]["resultType"], "complete");
    let answer = stolen.request("ping").send();
    assert_eq!(answer.status, 403);
    assert_eq!(answer.json()["error"], "address_not_allowed");
    assert_eq!(elsewhere.modern("tools/list").send().status, 403);
    assert_eq!(stolen.get().send().status, 403);
    assert_eq!(stolen.delete().status, 403);
    assert_eq!(session.request("ping").send().status, 200);
    house.edit(&["--network", "192.0.2.0/24"]);
    stream.ends();
    assert_eq!(session.request("ping").send().status, 403);
    house.edit(&["--clear", "networks"]);
    wait_until("it comes in again", IN_TIME, || {
        session.request("ping").send().status == 200
    });
}

#[test]
fn an_agent_has_a_rate_of_its_own() {
    let house = house(&["--policy", "observe"]);
    house.edit(&["--rate", "1"]);
    let ask = || house.client.modern("tools/list").send_once();
    let mut last = ask();
    wait_until("it has used up its calls", IN_TIME, || {
        last = ask();
        last.status == 429
    });
    assert_eq!(last.json()["error"], "agent_rate");
    let after: u64 = last.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    // No other agent is affected.
    assert_eq!(
        house.server.client().modern("tools/list").send().status,
        200
    );
    house.edit(&["--clear", "rate"]);
    wait_until("it may call again", IN_TIME, || ask().status == 200);
}

#[test]
fn an_agent_has_as_many_calls_at_once_as_its_policy_says() {
    let house = house(&["--policy", "admin", "--concurrent", "1"]);
    let mark = marker();
    let shell = |command: &str| json!({ "command": command, "timeout_s": LONG_S });
    let running = house
        .client
        .call("system_shell", shell(&format!("sleep {mark}")))
        .begin();
    wait_until("it runs", IN_TIME, || !marked(&mark).is_empty());
    let quick = || house.client.call("system_shell", shell("true")).send();
    let refused = quick();
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"], "too_many_calls");
    assert!(refused.header("retry-after").is_some());
    house.edit(&["--concurrent", "2"]);
    wait_until("there is a second place", IN_TIME, || quick().status == 200);
    house.edit(&["--concurrent", "1"]);
    wait_until("there is none", IN_TIME, || quick().status == 503);
    drop(running);
    wait_until("the place is free", IN_TIME, || quick().status == 200);
}

#[test]
fn a_token_ends_at_its_time_with_what_it_has_open() {
    let house = house(&["--policy", "observe", "--expires", "30d"]);
    let session = house.client.session("2025-11-25");
    let mut stream = session.stream();
    let mut listen = house
        .client
        .modern("subscriptions/listen")
        .param("notifications", json!({}))
        .open();
    listen.message();
    house.edit(&["--expires", "1s"]);
    stream.ends();
    assert_eq!(listen.message()["result"]["resultType"], "complete");
    let list = house.client.modern("tools/list");
    assert_eq!(list.send().status, 401);
    house.edit(&["--no-expiry"]);
    wait_until("it comes in again", IN_TIME, || list.send().status == 200);
}

#[test]
fn a_new_token_ends_the_old_one_and_goes_on_in_its_session() {
    let house = house(&["--policy", "observe"]);
    let session = house.client.session("2025-11-25");
    let mut stream = session.stream();
    let (said, code) = tell(&house.home.0, &["agent", "rotate", "visitor"]);
    assert_eq!((code, &said["id"]), (Some(0), &json!(house.id)));
    stream.ends();
    assert_eq!(session.request("ping").send().status, 401);
    let renewed = house
        .client
        .clone()
        .with_token(said["token"].as_str().unwrap());
    let session = session.carried_on_by(&renewed);
    assert_eq!(session.request("ping").send().status, 200);
    let data: Value = renewed.call("whoami", json!({})).send().data();
    assert_eq!(data["agent"], house.id);
}
