//! `systemctl reload`: the settings are read again and apply from the next request on, and nothing is disconnected.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::barrier::Barrier;
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::notify_socket::NotifySocket;
use crate::support::server::{Directory, Server, server};
use crate::support::tasks;

fn status(client: &Client) -> u16 {
    client.modern("tools/list").send().status
}

#[test]
fn who_may_come_in_is_looked_up_for_each_request() {
    let server = server().settings("").start();
    for (way, client) in server.clients() {
        let list = client.modern("tools/list");
        let by_name = list.clone().host("box.example");
        let by_page = list.clone().header("origin", "https://chat.example");
        let marked = list.clone().header("x-edge", "1");
        let statuses = || [&by_name, &by_page, &marked, &list].map(|request| request.send().status);
        server.reload_with("");
        assert_eq!(statuses(), [421, 403, 200, 200], "{way}");
        server.reload_with(
            "[access]\nallowed_hosts = [\"box.example\"]\nallowed_origins = [\"https://chat.example\"]\n",
        );
        assert_eq!(statuses(), [200, 200, 200, 200], "{way}");
        server.reload_with("[access]\nrequired_header = \"X-Edge\"\n");
        assert_eq!(statuses(), [421, 403, 200, 403], "{way}");
        let edge = "[edge_jwt]\nheader = \"x-edge\"\njwks = \"/nonexistent/keys.json\"\n\
                    audience = \"a\"\nissuer = \"i\"\n";
        server.reload_with(edge);
        assert_eq!(statuses(), [421, 403, 401, 401], "{way}");
    }
}

#[test]
fn limits_are_those_of_the_last_reload() {
    let server = server().policy("admin").settings("").start();
    let client = server.client();
    let long = client.call("whoami", json!({})).padded(8 << 10);
    assert_eq!(long.send().status, 200);
    server.reload_with("[limits]\nbody_limit = \"4KiB\"\n");
    assert_eq!(long.send().status, 413);
    server.reload_with("[limits]\nmax_streams_per_agent = 1\nmax_streams = 1\n");
    assert_eq!(long.send().status, 200);
    let session = client.session("2025-11-25");
    let first = session.stream();
    assert_eq!(client.session("2025-11-25").get().send().status, 503);
    server.reload_with("");
    let second = client.session("2025-11-25").stream();
    drop((first, second));
    server.reload_with("[limits]\nagent_rate = 1\n");
    let list = client.modern("tools/list");
    let refused = || list.send_once().status == 429;
    wait_until("it is refused", IN_TIME, refused);
}

#[test]
fn how_long_commands_and_proposals_are_kept_is_that_of_the_last_reload() {
    const LATE: &str = "[tasks]\nafter = \"5m\"\n";
    let server = server().policy("suggest").settings(LATE).start();
    let client = server.client();
    let propose = |line: &str| {
        let arguments = json!({ "command": line });
        let change =
            json!({ "tool": "system_shell", "arguments": arguments, "reason": "it hangs" });
        client.call("propose_change", change).send().result()
    };
    // A second proposal of the same call is the first one.
    assert_ne!(propose("echo 1")["isError"], true);
    server.reload_with("[inbox]\nper_agent = 1\n");
    assert_eq!(propose("echo 2")["isError"], true);
    server.reload_with(LATE);
    assert_ne!(propose("echo 3")["isError"], true);

    let agent = visitor(&server, "*");
    let call = tasks::call(&agent, "system_shell", json!({ "command": "echo here" }));
    assert_eq!(call.send().data()["stdout"], "here\n");
    server.reload_with("[tasks]\nafter = \"0s\"\n");
    let id = tasks::made(&call.send());
    tasks::until(&agent, &id, "completed");
    server.reload_with(LATE);
    assert_eq!(call.send().data()["stdout"], "here\n");
}

#[test]
fn the_deprecated_transport_is_turned_on_and_off() {
    let server = server().settings("").start();
    let client = server.client();
    let get = || client.request("GET", "/sse").accept("text/event-stream");
    assert_eq!(get().send().status, 404);
    server.reload_with("[access]\nhttp_sse = true\n");
    let mut stream = get().open();
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.event().kind, "endpoint");
    server.reload_with("[log]\nlevel = \"info\"\n");
    stream.ends();
    assert_eq!(get().send().status, 404);
}

#[test]
fn from_which_severity_on_is_logged_changes_at_once() {
    let server = server().settings("").start();
    let stranger = server.client().modern("tools/list").host("evil.example");
    let refused = |server: &Server| {
        let before = server.log().len();
        assert_eq!(stranger.send().status, 421);
        let told = server.reload();
        assert!(told.contains("reloaded"));
        server.log().split_off(before).contains("421")
    };
    assert!(!refused(&server));
    server.reload_with("[log]\nlevel = \"debug\"\n");
    assert!(refused(&server));
    server.reload_with("");
    assert!(!refused(&server));
}

/// Open streams, sessions and calls survive a reload.
#[test]
fn streams_sessions_and_calls_go_on_while_the_certificate_is_another_one() {
    let server = server()
        .policy("admin")
        .settings("names = [\"first.localhost\"]\n")
        .start();
    for client in [server.client(), server.client().http2()] {
        server.reload_with("names = [\"first.localhost\"]\n");
        let session = client.session("2025-11-25");
        let mut get = session.stream();
        let filter = json!({ "resourceSubscriptions": [], "toolsListChanged": true });
        let mut listen = client
            .modern("subscriptions/listen")
            .param("notifications", filter)
            .open();
        listen.message();
        let mut kept = client.connection();
        assert_eq!(client.modern("tools/list").send_over(&mut kept).status, 200);
        let barrier = Barrier::new();
        let command = format!("{}; echo through", barrier.line());
        let call = client
            .call("system_shell", json!({ "command": command }))
            .begin();
        barrier.until_reached();
        let shown = client.certificate();
        assert!(holds(&shown, "first.localhost") && !holds(&shown, "second.localhost"));

        let said = server.reload_with("names = [\"second.localhost\"]\n");
        assert!(said.contains("names"), "{said}");
        let shown = client.certificate();
        assert!(holds(&shown, "second.localhost") && !holds(&shown, "first.localhost"));
        assert_eq!(
            client
                .modern("tools/list")
                .host("second.localhost")
                .send()
                .status,
            200
        );
        assert_eq!(client.modern("tools/list").send_over(&mut kept).status, 200);
        assert!(!kept.is_closed());
        barrier.open();
        assert_eq!(call.finish().data()["stdout"], "through\n");
        assert_eq!(session.request("ping").send().status, 200);
        get.stays_quiet(Duration::from_millis(100));
        listen.stays_quiet(Duration::from_millis(100));
        session.delete();
        get.ends();
    }
}

/// Returns whether the certificate has this name; names are plain text in it.
fn holds(certificate: &[u8], name: &str) -> bool {
    certificate
        .windows(name.len())
        .any(|bytes| bytes == name.as_bytes())
}

#[test]
fn settings_that_are_wrong_change_nothing_and_are_named() {
    let notify = NotifySocket::new();
    let server = server()
        .settings("[access]\nallowed_hosts = [\"box.example\"]\n")
        .env("NOTIFY_SOCKET", notify.path())
        .env("WATCHDOG_USEC", "900000")
        .start();
    notify.expect("READY=1");
    let by_name = server.client().modern("tools/list").host("box.example");
    assert_eq!(by_name.send().status, 200);
    let said_of = |name: &str, toml: &str, problem: &str| {
        server.write_settings(toml);
        let said = server.reload();
        let wrong: Vec<&str> = said.lines().filter(|l| l.contains("ERROR")).collect();
        assert_eq!(wrong.len(), 1, "{name}: one line: {said}");
        assert!(wrong[0].contains("not reloaded"), "{name}: {said}");
        assert!(wrong[0].contains(problem), "{name}: {said}");
        notify.expect_line("how it goes", |line| {
            line.starts_with("STATUS=serving") && line.contains(problem)
        });
        assert_eq!(by_name.send().status, 200, "{name}: as before");
    };
    let file = server.settings_file();
    let at_4 = format!(
        "{}:4: unknown key \"alowed_hosts\" in [access]; did you mean \"allowed_hosts\"?",
        file.display()
    );
    said_of("a key", "[access]\nalowed_hosts = []\n", &at_4);
    let more = "[access]\nalowed_hosts = []\n[limits]\ndrain = 1\n";
    said_of("two keys", more, "one of 2 problems");
    said_of("no TOML", "[access\n", "the file is not valid TOML");
    let tls =
        "[tls]\nmode = \"files\"\ncert = \"/nonexistent/c.pem\"\nkey = \"/nonexistent/k.pem\"\n";
    said_of("no certificate", tls, "/nonexistent/c.pem does not exist");
    // A watchdog notification does not replace it.
    notify.expect("WATCHDOG=1");
    notify.expect_line("it still says so", |line| {
        line.starts_with("STATUS=serving") && line.contains("/nonexistent/c.pem")
    });
    server.reload_with("");
    assert_eq!(by_name.send().status, 421);
    notify.expect_line("all is well", |line| {
        line.starts_with("STATUS=serving") && !line.contains("reloaded")
    });
}

#[test]
fn the_service_manager_hears_when_it_begins_how_it_went_and_when_it_is_done() {
    let notify = NotifySocket::new();
    let server = server()
        .settings("")
        .env("NOTIFY_SOCKET", notify.path())
        .start();
    notify.expect("READY=1");
    server.signal(Signal::SIGHUP);
    notify.expect("RELOADING=1");
    notify.expect_line("how it went", |line| line.starts_with("STATUS=serving"));
    notify.expect("READY=1");
}

#[test]
fn what_waits_for_a_restart_is_named_and_the_rest_counts() {
    let notify = NotifySocket::new();
    let server = server()
        .settings("")
        .env("NOTIFY_SOCKET", notify.path())
        .start();
    notify.expect("READY=1");
    let file = server.settings_file();
    fs::write(
        &file,
        "listen = [\"127.0.0.1:1\"]\nstate_dir = \"/nonexistent\"\n\
         [access]\nallowed_hosts = [\"box.example\"]\n[lxc]\nlxcpath = \"/nonexistent\"\n",
    )
    .unwrap();
    let said = server.reload();
    let words =
        "listen, state_dir, lxc.lxcpath: a new value takes effect after systemctl restart gatewren";
    assert!(said.contains(words), "{said}");
    assert!(said.contains("changed=\"access.allowed_hosts\""), "{said}");
    notify.expect_line("what waits", |line| {
        line.starts_with("STATUS=serving") && line.contains(words)
    });
    let by_name = server.client().modern("tools/list").host("box.example");
    assert_eq!(by_name.send().status, 200);
}

/// Returns an agent on the server, with this space.
fn visitor(server: &Server, space: &str) -> Client {
    let args = [
        "agent", "add", "visitor", "--policy", "admin", "--space", space,
    ];
    let said = tell_by(&server.settings_file(), &args);
    let token = said["token"].as_str().unwrap();
    let client = server.client().elsewhere().with_token(token);
    wait_until("it comes in", IN_TIME, || status(&client) == 200);
    client
}

fn tools(client: &Client) -> Vec<String> {
    client.modern("tools/list").send().names("tools")
}

#[test]
fn a_space_that_is_defined_otherwise_is_another_one_at_once() {
    let narrow = "[spaces.den]\ncontainers = [\"web\"]\n";
    let server = server().policy("admin").settings(narrow).start();
    let client = visitor(&server, "den");
    assert!(!tools(&client).contains(&"system_shell".to_owned()));
    let session = client.session("2025-11-25");
    let mut get = session.stream();
    let owner = server.client().session("2025-11-25");
    let mut owners = owner.stream();

    server.reload_with("[spaces.den]\ncontainers = [\"web\"]\nhost = true\n");
    assert!(tools(&client).contains(&"system_shell".to_owned()));
    // Its reach has changed, so its stream ends and the client opens a new one.
    get.until_it_ends();
    let mut get = session.stream();
    server.reload_with("[spaces.other]\nhost = true\n");
    assert_eq!(status(&client), 403, "its space is no longer there");
    get.until_it_ends();
    server.reload_with(narrow);
    assert_eq!(status(&client), 200);
    assert!(!tools(&client).contains(&"system_shell".to_owned()));
    // An agent whose reach is unchanged is not notified.
    owners.stays_quiet(Duration::from_millis(100));
    assert_eq!(owner.request("ping").send().status, 200);
}

#[test]
fn a_trial_has_no_file_to_read_and_looks_at_its_certificate() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let said = server.reload();
    assert!(said.contains("changed=\"nothing\""), "{said}");
    assert!(said.contains("the certificate is in use"), "{said}");
}
