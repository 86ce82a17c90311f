//! `watch_*`: conditions that the server checks, and one message when each begins and one when it ends.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::http_sink::HttpSink;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, server};

fn create(client: &Client, arguments: Value) -> Value {
    client.call("watch_create", arguments).send().data()
}

fn refused(client: &Client, arguments: Value) -> String {
    client.call("watch_create", arguments).send().failure()
}

/// The watches of this client's agent.
fn watches(client: &Client) -> Vec<Value> {
    let data = client.call("watch_list", json!({})).send().data();
    data["watches"].as_array().unwrap().clone()
}

fn phase(client: &Client, name: &str) -> String {
    let all = watches(client);
    let one = all.iter().find(|one| one["name"] == name);
    one.map_or_else(String::new, |one| one["phase"].as_str().unwrap().to_owned())
}

/// The titles of the notifications about a condition, oldest first.
fn messages(client: &Client, words: &str) -> Vec<String> {
    let data = client.call("notification_list", json!({})).send().data();
    let all = data["notifications"].as_array().unwrap().iter().rev();
    let titles = all.map(|one| one["title"].as_str().unwrap().to_owned());
    titles.filter(|title| title.contains(words)).collect()
}

/// A web server that answers each request with the status of now.
fn web(status: &Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let status = Arc::clone(status);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let status = status.load(Ordering::SeqCst);
            let answer =
                format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_container_that_stops_is_told_of_once_and_once_when_it_runs_again() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("alpha");
    start(&containers, "alpha");
    let phone = HttpSink::plain();
    let server = server()
        .policy("admin")
        .settings(&format!(
            "{}[notify.hook]\nkind = \"webhook\"\nurl = \"{}\"\n",
            lxc(&containers),
            phone.url("")
        ))
        .start();
    let client = server.client();
    wait_until("it is observed", IN_TIME, || {
        let state = client.call(
            "state_get",
            json!({ "pointer": "/public/packageData/alpha/status" }),
        );
        state.send().rpc()["result"]["structuredContent"]["value"] == "running"
    });
    let made = create(
        &client,
        json!({ "name": "a", "kind": "container", "container": "alpha", "for_s": 1 }),
    );
    assert_eq!(made["watches"], "container alpha is not running");
    assert_eq!(
        (&made["phase"], &made["seen"]),
        (&json!("clear"), &json!("it is running"))
    );

    let words = "container alpha is not running";
    stop(&containers, "alpha");
    wait_until("it fires", IN_TIME, || phase(&client, "a") == "fired");
    wait_until("it is told", IN_TIME, || {
        messages(&client, words) == [words]
    });
    start(&containers, "alpha");
    let both = [words.to_owned(), format!("over: {words}")];
    wait_until("it recovers", IN_TIME, || messages(&client, words) == both);
    assert_eq!(phase(&client, "a"), "clear");
    wait_until("both reach the channel", IN_TIME, || {
        let sent = phone.requests();
        let titles = sent.iter().filter_map(|one| one.body["title"].as_str());
        titles.filter(|title| title.contains(words)).count() == 2
    });
}

/// The settings of a server for these containers.
fn lxc(containers: &Containers) -> String {
    format!("[lxc]\nlxcpath = \"{}\"\n", containers.lxcpath().display())
}

fn start(containers: &Containers, name: &str) {
    containers.tool("lxc-start", name, &[]);
    containers.until_ready(name);
}

fn stop(containers: &Containers, name: &str) {
    containers.tool("lxc-stop", name, &["-k"]);
}

#[test]
fn a_port_and_a_web_server_are_watched_over_a_restart() {
    let directory = Directory::new();
    let status = Arc::new(AtomicU16::new(200));
    let (listener, http) = (TcpListener::bind("127.0.0.1:0").unwrap(), web(&status));
    let port = listener.local_addr().unwrap().port().to_string();
    let start = || server().policy("admin").directory(&directory.0).start();
    let first = start();
    let client = first.client();
    let url = format!("http://127.0.0.1:{http}/health?key=s3cret");
    for (name, kind, target) in [
        ("p", "port_closed", &port),
        ("o", "port_open", &port),
        ("h", "http", &url),
    ] {
        let arguments =
            json!({ "name": name, "kind": kind, "target": target, "for_s": 0, "every_s": 15 });
        create(&client, arguments);
    }
    wait_until("the open port fires", IN_TIME, || {
        phase(&client, "o") == "fired"
    });
    assert_eq!(
        (phase(&client, "p"), phase(&client, "h")),
        ("clear".into(), "clear".into())
    );
    // The message of `o` was sent before the restart, so it is not sent again.
    drop((client, first, listener));
    status.store(500, Ordering::SeqCst);
    let second = start();
    let client = second.client();
    wait_until("the closed port and the error fire", IN_TIME, || {
        phase(&client, "p") == "fired" && phase(&client, "h") == "fired"
    });
    let closed = format!("TCP port {port} is closed");
    let open = format!("TCP port {port} is open");
    wait_until("all is told", IN_TIME, || {
        messages(&client, &closed) == [closed.clone()]
            && messages(&client, &open) == [open.clone(), format!("over: {open}")]
    });
    let errors = messages(&client, "does not answer");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        !errors[0].contains("s3cret"),
        "the query may be a secret: {errors:?}"
    );
    let seen = watches(&client);
    assert!(
        seen.iter().any(|one| one["seen"] == "it answers 500"),
        "{seen:?}"
    );
    let gone = client
        .call("watch_delete", json!({ "name": "h" }))
        .send()
        .data();
    assert_eq!(gone["name"], "h");
    assert_eq!(watches(&client).len(), 2);
    let absent = client
        .call("watch_delete", json!({ "name": "h" }))
        .send()
        .failure();
    assert!(absent.contains("no watch of the name"), "{absent}");
}

#[test]
fn a_certificate_near_its_end_and_a_full_disk_fire_at_once() {
    let server = server().policy("admin").settings("").start();
    let client = server.client();
    let address = server.address().to_string();
    for (name, arguments) in [
        ("own", json!({ "kind": "certificate", "limit": 365 })),
        (
            "other",
            json!({ "kind": "certificate", "limit": 365, "target": address }),
        ),
        (
            "later",
            json!({ "kind": "certificate", "limit": 1, "target": address }),
        ),
        ("disk", json!({ "kind": "disk", "limit": 1 })),
    ] {
        let mut arguments = arguments;
        arguments["name"] = json!(name);
        arguments["for_s"] = json!(0);
        let answer = client.call("watch_create", arguments).send();
        if name == "disk" && answer.rpc()["result"]["isError"] == true {
            // `/` may be an overlay without a local disk.
            continue;
        }
        let made = answer.data();
        let seen = made["seen"].as_str().unwrap();
        assert!(
            seen.contains("expires in") || seen.contains("% full"),
            "{made}"
        );
    }
    wait_until("both fire", IN_TIME, || {
        phase(&client, "own") == "fired" && phase(&client, "other") == "fired"
    });
    assert_eq!(phase(&client, "later"), "clear");
}

#[test]
fn an_operator_waits_for_the_owner_and_the_approved_watch_is_created() {
    let server = server().policy("operate").settings("").start();
    let client = server.client();
    let listed = client.modern("tools/list").send().names("tools");
    for name in ["watch_create", "watch_list", "watch_delete"] {
        assert!(listed.iter().any(|one| one == name), "{name}: {listed:?}");
    }
    let arguments = json!({ "name": "web", "kind": "port_closed", "target": "9" });
    let proposed = create(&client, arguments.clone());
    assert_eq!(proposed["status"], "pending", "{proposed}");
    assert_eq!(watches(&client), [Value::Null; 0]);
    let change = proposed["change"].as_str().unwrap();
    let shown = tell_by(&server.settings_file(), &["inbox", "show", change]);
    assert!(shown.to_string().contains("port_closed"), "{shown}");
    let plan = shown["watch"].as_str().unwrap();
    assert!(
        plan.starts_with("Check every 30 s whether TCP port 9 is closed."),
        "{plan}"
    );
    tell_by(&server.settings_file(), &["inbox", "approve", change]);
    wait_until("it is created", IN_TIME, || watches(&client).len() == 1);
    let bad = json!({ "name": "x", "kind": "port_closed", "target": "no port" });
    let why = refused(&client, bad);
    assert!(
        why.contains("must be a port"),
        "a proposal is checked too: {why}"
    );
}

/// The resource with a client's own watches.
fn resource(client: &Client) -> Value {
    let read = client.modern("resources/read").uri("gatewren:///watches");
    let result = read.send().result();
    serde_json::from_str(result["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn a_paused_watch_is_not_checked_and_is_shown_as_paused_everywhere() {
    let server = server().policy("admin").settings("").start();
    let (client, other) = (
        server.client(),
        admit(&server, "other", &["--policy", "admin"]),
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let watch =
        json!({ "name": "p", "kind": "port_closed", "target": port, "for_s": 0, "every_s": 15 });
    create(&client, watch);
    let pause = |client: &Client, paused: bool| {
        let arguments = json!({ "name": "p", "paused": paused });
        client.call("watch_pause", arguments).send()
    };
    assert!(
        pause(&other, true)
            .failure()
            .contains("no watch of the name")
    );
    assert_eq!(pause(&client, true).data()["phase"], "paused");
    drop(listener);
    let seen = resource(&client)["watches"].clone();
    assert_eq!(seen, json!(watches(&client)));
    assert_eq!(seen[0]["phase"], "paused");
    assert_eq!(resource(&other)["watches"], json!([]));
    let status = || {
        let said = tell_by(&server.settings_file(), &["status"]);
        said["watches"].clone()
    };
    let expected = json!({ "total": 1, "fired": 0, "unchecked": 0 });
    assert_eq!(status(), expected, "the closed port was not noticed");
    pause(&client, false).data();
    wait_until("it fires at once", IN_TIME, || {
        phase(&client, "p") == "fired"
    });
    let expected = json!({ "total": 1, "fired": 1, "unchecked": 0 });
    wait_until("the status has it", IN_TIME, || status() == expected);
    assert_eq!(messages(&client, "is closed").len(), 1);
}

#[test]
fn a_watch_stays_in_its_space_and_ends_with_its_agent() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    for name in ["alpha", "beta"] {
        containers.make(name);
        start(&containers, name);
    }
    let server = server()
        .policy("admin")
        .settings(&format!(
            "{}[spaces.one]\ncontainers = [\"alpha\"]\n[spaces.two]\ncontainers = [\"beta\"]\n",
            lxc(&containers)
        ))
        .start();
    let one = admit(&server, "one", &["--policy", "admin", "--space", "one"]);
    let two = admit(&server, "two", &["--policy", "admin", "--space", "two"]);
    let of = |container: &str| json!({ "name": "w", "kind": "container", "container": container, "for_s": 0 });
    create(&one, of("alpha"));
    let foreign = refused(&two, of("alpha")).replace("alpha", "X");
    let missing = refused(&two, of("nosuch")).replace("nosuch", "X");
    assert_eq!(foreign, missing);
    assert_eq!(watches(&two), [Value::Null; 0]);
    assert!(
        two.call("watch_delete", json!({ "name": "w" }))
            .send()
            .failure()
            .contains("no watch")
    );
    for host in [
        json!({ "name": "h", "kind": "disk" }),
        json!({ "name": "h", "kind": "port_closed", "target": "22" }),
        json!({ "name": "h", "kind": "http", "target": "http://127.0.0.1/" }),
        json!({ "name": "h", "kind": "certificate" }),
    ] {
        let why = refused(&two, host);
        assert!(why.contains("outside this agent's reach"), "{why}");
    }
    // A port of its own container is read from the list of its sockets.
    let port = json!({ "name": "p", "kind": "port_closed", "container": "beta", "target": "80", "for_s": 0 });
    create(&two, port);
    wait_until("it fires", IN_TIME, || phase(&two, "p") == "fired");
    wait_until("it is told", IN_TIME, || {
        messages(&two, "port 80 of container beta").len() == 1
    });
    assert_eq!(messages(&one, "beta"), [""; 0], "not of this space");

    tell_by(&server.settings_file(), &["agent", "revoke", "two"]);
    stop(&containers, "alpha");
    wait_until("the other's fires", IN_TIME, || phase(&one, "w") == "fired");
    wait_until("the revoked one's are gone", IN_TIME, || {
        let kept = tell_by(&server.settings_file(), &["watch", "list"]);
        kept.as_array().unwrap().len() == 1
    });
}

#[test]
fn a_policy_that_is_narrowed_stops_the_watch_and_addresses_of_links_are_refused() {
    let server = server().policy("admin").settings("").start();
    let narrowed = admit(&server, "narrowed", &["--policy", "admin"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    create(
        &narrowed,
        json!({ "name": "p", "kind": "port_closed", "target": port, "for_s": 0, "every_s": 15 }),
    );
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://0.0.0.0/",
    ] {
        let why = refused(
            &narrowed,
            json!({ "name": "m", "kind": "http", "target": url }),
        );
        assert!(why.contains("not allowed"), "{url}: {why}");
    }
    let plain = refused(
        &narrowed,
        json!({ "name": "m", "kind": "http", "target": "http://user@x/" }),
    );
    assert!(plain.contains("must be a URL"), "{plain}");
    tell_by(
        &server.settings_file(),
        &[
            "agent",
            "edit",
            "narrowed",
            "--tool",
            "network_check_port=deny",
        ],
    );
    drop(listener);
    wait_until("it is stopped", IN_TIME, || {
        phase(&narrowed, "p") == "stopped"
    });
    assert_eq!(messages(&narrowed, &port), [""; 0]);
}
