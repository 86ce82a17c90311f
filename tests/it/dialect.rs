//! The `StartOS` dialect, as a client made for `StartOS` uses it.
//!
//! It signs in, opens its stream, lists the tools, calls them by their `StartOS` names, and is notified of changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::request::Request;
use crate::support::server::{Server, has_sqlite3, server};

/// The methods that such a client finds in this version, with the required parameters that it knows, named as
/// `StartOS` lists them.
const KNOWN: &[(&str, &[&str])] = &[
    ("auth.get-pubkey", &[]),
    ("auth.session.kill", &["ids"]),
    ("auth.session.list", &[]),
    ("db.dump", &[]),
    ("db.put.ui", &["pointer"]),
    ("disk.list", &[]),
    ("net.dns.dump-table", &[]),
    ("net.dns.query", &["fqdn"]),
    ("net.gateway.check-dns", &[]),
    ("net.gateway.check-port", &["gateway", "port"]),
    ("net.gateway.list", &[]),
    ("package.cancel-install", &["id"]),
    ("notification.list", &[]),
    ("notification.mark-seen", &[]),
    ("notification.mark-seen-before", &[]),
    ("notification.mark-unseen", &[]),
    ("notification.remove", &[]),
    ("notification.remove-before", &[]),
    ("package.host.list", &["id"]),
    ("package.installed-version", &["id"]),
    ("package.install", &["id", "template"]),
    ("package.list", &[]),
    ("package.logs", &["id"]),
    ("package.rebuild", &["id"]),
    ("package.restart", &["id"]),
    ("package.shell", &["id"]),
    ("package.start", &["id"]),
    ("package.stats", &[]),
    ("package.stop", &["id"]),
    ("package.uninstall", &["id"]),
    ("server.device-info", &[]),
    ("server.host.address.list", &[]),
    ("server.host.binding.list", &[]),
    ("server.metrics", &[]),
    ("server.time", &[]),
    ("ssh.add", &["key"]),
    ("ssh.list", &[]),
    ("ssh.remove", &["fingerprint"]),
    ("system.shell", &[]),
];

/// A client with a cookie instead of a token, and a session of 2025-03-26.
struct Visitor {
    client: Client,
    cookie: String,
    session: String,
}

impl Visitor {
    fn sign_in(server: &Server) -> Self {
        let client = server.client();
        let token = json!({ "token": client.token });
        let login = client.request("POST", "/login").without("authorization");
        let login = login.header("content-type", "application/json");
        let answer = login.body(token.to_string().as_bytes()).send();
        assert_eq!(answer.status, 200, "{answer:?}");
        let (cookie, _) = answer
            .header("set-cookie")
            .unwrap()
            .split_once(';')
            .unwrap();
        let mut visitor = Self {
            cookie: cookie.to_owned(),
            session: String::new(),
            client,
        };
        let opened = visitor
            .with_cookie(visitor.client.initialize("2025-03-26"))
            .send();
        assert_eq!(opened.result()["protocolVersion"], "2025-03-26");
        opened
            .header("mcp-session-id")
            .unwrap()
            .clone_into(&mut visitor.session);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(visitor.post(ready).send().status, 202);
        visitor
    }

    /// Such a client sends neither a token nor a version.
    fn with_cookie(&self, request: Request) -> Request {
        let request = request
            .without("authorization")
            .header("cookie", &self.cookie);
        if self.session.is_empty() {
            request
        } else {
            request.header("mcp-session-id", &self.session)
        }
    }

    fn post(&self, message: Value) -> Request {
        self.with_cookie(self.client.post(message))
    }

    fn ask(&self, method: &str, params: &Value) -> Answer {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.post(message).send()
    }

    fn call(&self, name: &str, arguments: &Value) -> Value {
        let answer = self.ask(
            "tools/call",
            &json!({ "name": name, "arguments": arguments }),
        );
        let result = answer.result();
        assert_eq!(result["isError"], false, "{name}: {result}");
        // This client expects data as text.
        let text = result["content"][0]["text"].as_str().unwrap();
        serde_json::from_str(text).unwrap_or_else(|_| json!(text))
    }
}

fn house(containers: Option<&Containers>) -> Server {
    let lxc = containers.map(|all| format!("[lxc]\nlxcpath = \"{}\"\n", all.lxcpath().display()));
    let settings = "[tools]\ndialect = \"startos\"\n[limits]\nupdate_interval = \"1ms\"\n";
    let settings = settings.to_owned() + &lxc.unwrap_or_default();
    // Without an account in helper.toml, reading SSH keys is off.
    let bounds = "host_shell = \"full\"\nlxc_manage = \"on\"\ntemplates = [\"busybox\"]\n\
                  ssh_keys = [\"/nonexistent/keys\"]\n";
    let server = server().policy("admin").settings(&settings);
    server.bounds(bounds).start()
}

#[test]
fn a_client_of_startos_finds_the_tools_that_it_knows() {
    let server = house(None);
    let visitor = Visitor::sign_in(&server);
    let result = visitor.ask("tools/list", &json!({})).result();
    let tools = result["tools"].as_array().unwrap();
    for (name, required) in KNOWN {
        let mut found = tools.iter().filter(|tool| tool["name"] == *name);
        let tool = found
            .next()
            .unwrap_or_else(|| panic!("{name} is not listed"));
        let must = tool["inputSchema"]["required"].as_array();
        let must: Vec<&str> = must
            .into_iter()
            .flatten()
            .map(|name| name.as_str().unwrap())
            .collect();
        assert_eq!(must, *required, "{name}");
        let takes = tool["inputSchema"]["properties"].as_object().unwrap();
        assert!(!takes.contains_key("container"), "{name} takes {takes:?}");
    }
    let names: BTreeSet<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), tools.len(), "each once");
    assert!(!names.contains("container_list") && !names.contains("whoami"));
    for tool in tools {
        // A tool with a name in that dialect is called by it; the others keep their own.
        let words = tool["description"].as_str().unwrap();
        let mut quoted = words.split('`').skip(1).step_by(2);
        let other = quoted.find(|word| word.starts_with("container_") && !names.contains(word));
        assert_eq!(other, None, "{words}");
    }
    let uris = visitor
        .ask("resources/list", &json!({}))
        .result()
        .to_string();
    assert!(uris.contains("startos:///public/serverInfo") && !uris.contains("gatewren:///public"));
}

#[test]
fn a_client_of_startos_calls_tools_by_its_own_names_and_parameters() {
    let mut containers = Containers::new();
    if let Some(containers) = &mut containers {
        containers.make("hello-world");
    }
    let server = house(containers.as_ref());
    let visitor = Visitor::sign_in(&server);
    assert!(visitor.call("server.time", &json!({}))["time"].is_string());
    assert!(visitor.call("db.dump", &json!({ "pointer": "/public" }))["revision"].is_u64());
    let said = visitor.call(
        "system.shell",
        &json!({ "command": "echo hi", "timeout": 20 }),
    );
    assert!(said.as_str().unwrap().contains("hi\n"), "{said}");
    // It may also leave `arguments` out.
    let none = visitor.ask("tools/call", &json!({ "name": "server.device-info" }));
    assert_eq!(none.result()["isError"], false);
    // Another tool's parameter is rejected here as well.
    let wrong = visitor.ask(
        "tools/call",
        &json!({ "name": "server.time", "arguments": { "id": "x" } }),
    );
    assert_eq!(wrong.result()["isError"], true);
    // gatewren's own names still work.
    assert!(visitor.call("server_time", &json!({}))["time"].is_string());
    let Some(containers) = &containers else {
        return;
    };
    assert_eq!(
        visitor.call("package.list", &json!({}))["containers"][0]["name"],
        "hello-world"
    );
    let started = visitor.call("package.start", &json!({ "id": "hello-world" }));
    assert_eq!(started["state"], "running", "{started}");
    containers.until_ready("hello-world");
    let inside = json!({ "id": "hello-world", "command": "echo from within", "timeout": 20 });
    let inside = visitor.call("package.shell", &inside);
    assert!(inside.as_str().unwrap().contains("from within"), "{inside}");
    // A command for a container inside it does not run beside that container.
    for (parameter, value) in [
        ("subcontainer", json!("db")),
        ("name", json!("db")),
        ("name", json!(5)),
    ] {
        let mut beside = json!({ "id": "hello-world", "command": "touch /beside", "timeout": 20 });
        beside[parameter] = value;
        let call = json!({ "name": "package.shell", "arguments": beside });
        let refused = visitor.ask("tools/call", &call).result();
        let words = refused["content"][0]["text"].as_str().unwrap();
        assert!(
            refused["isError"] == true && words.contains("'hello-world' has no containers inside"),
            "{refused}"
        );
    }
    let look = json!({ "id": "hello-world", "subcontainer": "", "name": null, "command": "test ! -e /beside && echo clean" });
    let look = visitor.call("package.shell", &look);
    assert!(look.as_str().unwrap().contains("clean"), "{look}");
}

#[test]
fn a_client_of_startos_hears_on_its_stream_of_what_it_subscribed_to() {
    if !has_sqlite3() {
        return;
    }
    let server = house(None);
    let visitor = Visitor::sign_in(&server);
    let get = visitor
        .client
        .request("GET", "/mcp")
        .accept("text/event-stream");
    let mut stream = visitor.with_cookie(get).open();
    assert_eq!(stream.status(), 200);
    let uri = "startos:///public/ui";
    let subscribed = visitor.ask("resources/subscribe", &json!({ "uri": uri }));
    assert_eq!(subscribed.result(), json!({}));
    server.put("ui", &json!({ "theme": "dark" }));
    let told = stream.message();
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri))
    );
    let read = visitor
        .ask("resources/read", &json!({ "uri": uri }))
        .result();
    assert_eq!(read["contents"][0]["uri"], uri);
    assert!(
        read["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("dark")
    );
    assert_eq!(
        visitor
            .client
            .request("GET", "/.well-known/mcp")
            .send()
            .json()["mcp_endpoint"],
        "/mcp"
    );
}

#[test]
fn a_command_that_fails_is_a_call_that_fails_and_its_text_is_theirs() {
    let server = house(None);
    let visitor = Visitor::sign_in(&server);
    let run = |command: &str, timeout: u64| {
        let arguments = json!({ "command": command, "timeout": timeout });
        let call = json!({ "name": "system.shell", "arguments": arguments });
        let result = visitor.ask("tools/call", &call).result();
        let text = result["content"][0]["text"].as_str().unwrap();
        (result["isError"] == true, text.to_owned())
    };
    let line = "echo out; echo err >&2; exit";
    let expected = |code: u8| format!("out\n\n[stderr]\nerr\n\n[exit code: {code}]");
    assert_eq!(run(&format!("{line} 0"), 30), (false, expected(0)));
    assert_eq!(run(&format!("{line} 7"), 30), (true, expected(7)));
    let killed = "(no output)\n[exit code: -1]".to_owned();
    assert_eq!(run("kill -9 $$", 30), (true, killed));
    let late = "begun\n\nCommand timed out after 1 seconds".to_owned();
    assert_eq!(run("echo begun; sleep 100", 1), (true, late));
    // Under our own name it is as ever.
    let call = json!({ "name": "system_shell", "arguments": { "command": "exit 7" } });
    let result = visitor.ask("tools/call", &call).result();
    assert_eq!(result["isError"], false);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("exit code 7 after"), "{text}");
}
