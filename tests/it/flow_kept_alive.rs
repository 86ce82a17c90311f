//! A connection that stays open: each of its requests is judged anew, though its headers are those of the last one.

use serde_json::{Value, json};

use crate::support::client::{Client, Connection};
use crate::support::command::{add_agent, tell, tell_by};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// Agents beside a server, and one open connection over which they call.
struct KeptAlive {
    home: Directory,
    server: Server,
    open: Connection,
}

impl KeptAlive {
    fn new(server_policy: &str, http2: bool) -> Self {
        let home = Directory::new();
        let server = server().policy(server_policy).directory(&home.0).start();
        let client = server.client();
        let client = if http2 { client.http2() } else { client };
        let open = client.connection();
        Self { home, server, open }
    }

    fn add(&mut self, name: &str, options: &[&str]) -> Client {
        let added = add_agent(&self.home.0, name, options);
        let client = self.client(&added);
        wait_until("it comes in", IN_TIME, || self.status(&client) == 200);
        client
    }

    fn client(&self, added: &Value) -> Client {
        let token = added["token"].as_str().unwrap();
        self.server.client().with_token(token)
    }

    /// Calls over the open connection.
    fn status(&mut self, client: &Client) -> u16 {
        let list = client.modern("tools/list");
        let status = list.send_over(&mut self.open).status;
        assert!(!self.open.is_closed(), "the connection stays open");
        status
    }

    fn is_served(&mut self, client: &Client, times: usize) {
        for _ in 0..times {
            assert_eq!(self.status(client), 200);
        }
    }

    fn tell(&self, args: &[&str]) -> Value {
        let (said, code) = tell(&self.home.0, args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        said
    }
}

/// The same test over HTTP/1.1 and over HTTP/2, where a connection carries several requests at once.
fn over_each(test: impl Fn(KeptAlive)) {
    for http2 in [false, true] {
        test(KeptAlive::new("admin", http2));
    }
}

#[test]
fn a_token_that_is_revoked_is_refused_on_the_same_connection() {
    over_each(|mut kept| {
        let visitor = kept.add("visitor", &["--policy", "observe"]);
        kept.is_served(&visitor, 3);
        kept.tell(&["agent", "revoke", "visitor"]);
        wait_until("it is refused", IN_TIME, || kept.status(&visitor) == 401);
        assert_eq!(kept.status(&visitor), 401, "and stays so");
    });
}

#[test]
fn a_token_that_is_replaced_is_refused_on_the_same_connection() {
    over_each(|mut kept| {
        let before = kept.add("visitor", &["--policy", "observe"]);
        kept.is_served(&before, 3);
        let rotated = kept.tell(&["agent", "rotate", "visitor"]);
        let after = kept.client(&rotated);
        wait_until("the old one is refused", IN_TIME, || {
            kept.status(&before) == 401
        });
        kept.is_served(&after, 2);
        assert_eq!(kept.status(&before), 401);
    });
}

#[test]
fn a_token_ends_at_its_time_on_the_same_connection() {
    over_each(|mut kept| {
        let visitor = kept.add("visitor", &["--policy", "observe", "--expires", "4s"]);
        kept.is_served(&visitor, 2);
        wait_until("it has expired", IN_TIME, || kept.status(&visitor) == 401);
        assert_eq!(kept.status(&visitor), 401, "and stays so");
    });
}

#[test]
fn another_policy_and_other_networks_hold_for_the_next_call_of_the_same_connection() {
    over_each(|mut kept| {
        let visitor = kept.add("visitor", &["--policy", "admin"]);
        let shell = visitor.call("system_shell", json!({ "command": "true" }));
        let verdict = |kept: &mut KeptAlive| shell.send_over(&mut kept.open).verdict();
        assert_eq!([verdict(&mut kept), verdict(&mut kept)], [(200, 0); 2]);
        kept.tell(&["agent", "edit", "visitor", "--mode", "execute=deny"]);
        wait_until("it has no shell", IN_TIME, || {
            verdict(&mut kept) == (200, -32_602)
        });
        kept.tell(&["agent", "edit", "visitor", "--network", "192.0.2.0/24"]);
        wait_until("its address is refused", IN_TIME, || {
            kept.status(&visitor) == 403
        });
    });
}

#[test]
fn a_token_that_differs_in_one_byte_is_unknown_and_another_agents_is_the_other_agents() {
    over_each(|mut kept| {
        let one = add_agent(&kept.home.0, "one", &["--policy", "observe"]);
        let two = kept.add("two", &["--policy", "observe"]);
        let token = one["token"].as_str().unwrap();
        let one = kept.client(&one);
        kept.is_served(&one, 2);
        let name = |kept: &mut KeptAlive, client: &Client| {
            let call = client.call("whoami", json!({}));
            call.send_over(&mut kept.open).data()["name"].clone()
        };
        for at in [0, 2, 3, 25, 45, 46, token.len() - 1] {
            let mut other = token.as_bytes().to_vec();
            other[at] = if other[at] == b'x' { b'y' } else { b'x' };
            let other = String::from_utf8(other).unwrap();
            let other = kept.server.client().with_token(&other);
            assert_eq!(kept.status(&other), 401, "byte {at}");
            assert_eq!(name(&mut kept, &one), "one");
        }
        for _ in 0..2 {
            assert_eq!(name(&mut kept, &two), "two");
            assert_eq!(name(&mut kept, &one), "one");
        }
        let list = one.modern("tools/list");
        let authorization = format!("Bearer {token}");
        let statuses = [
            list.clone().without("authorization"),
            list.clone().header("authorization", token),
            list.clone()
                .header("authorization", &format!("Basic {token}")),
            list.clone().also("authorization", authorization.as_bytes()),
        ];
        let statuses = statuses.map(|request| request.send_over(&mut kept.open).status);
        assert_eq!(
            statuses, [401; 4],
            "none, without its scheme, of another, and twice"
        );
        kept.is_served(&one, 1);
    });
}

#[test]
fn settings_that_change_hold_for_the_next_call_of_the_same_connection() {
    let server = server().policy("admin").settings("").start();
    for (way, client) in server.clients() {
        server.reload_with("[spaces.den]\nhost = true\n");
        let name = way.to_lowercase().replace(['/', ',', ' '], "-");
        let args = ["agent", "add", &name, "--policy", "admin", "--space", "den"];
        let added = tell_by(&server.settings_file(), &args);
        let visitor = client.with_token(added["token"].as_str().unwrap());
        let mut open = visitor.connection();
        let list = visitor.modern("tools/list").header("x-edge", "1");
        let plain = visitor.modern("tools/list");
        let by_name = list.clone().host("box.example");
        let mut statuses =
            || [&list, &plain, &by_name].map(|request| request.send_over(&mut open).status);
        wait_until("it comes in", IN_TIME, || statuses() == [200, 200, 421]);
        server.reload_with(
            "[spaces.den]\nhost = true\n[access]\nallowed_hosts = [\"box.example\"]\n",
        );
        assert_eq!(statuses(), [200, 200, 200], "{way}");
        server.reload_with("[spaces.den]\nhost = true\n[access]\nrequired_header = \"X-Edge\"\n");
        assert_eq!(statuses(), [200, 403, 421], "{way}");
        server.reload_with("");
        assert_eq!(
            statuses(),
            [403, 403, 421],
            "{way}: its space is no longer there"
        );
        server.reload_with("[spaces.den]\nhost = true\n[limits]\nagent_rate = 1\n");
        wait_until("its rate is used up", IN_TIME, || {
            statuses()[..2] == [429, 429]
        });
    }
}

#[test]
fn failures_count_on_a_connection_that_has_served_a_valid_token() {
    let server = server()
        .policy("observe")
        .settings("[limits]\naddress_rate = 1\naddress_burst = 5\n")
        .start();
    for (way, client) in server.clients() {
        let client = client.elsewhere();
        let mut open = client.connection();
        let list = client.modern("tools/list");
        let wrong = list.clone().header("authorization", "Bearer gw_wrong");
        assert_eq!(list.send_over(&mut open).status, 200);
        let statuses: Vec<u16> = (0..8).map(|_| wrong.send_over(&mut open).status).collect();
        assert_eq!(statuses[0], 401, "{way}");
        assert!(statuses.contains(&429), "{way}: {statuses:?}");
        assert_eq!(
            list.send_over(&mut open).status,
            200,
            "{way}: its own is good"
        );
    }
}
