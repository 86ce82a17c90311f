//! Programs without a token: from the challenge over the owner's approval to a call, and every way that access ends.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::connector::{BACK, Connector, form, given, parameters, registration};
use crate::support::history::connect;
use crate::support::http_sink::{HttpSink, SinkBehavior};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Builder, Directory, Server, server, shared};

const PASSWORD: &str = "four words of mine";

/// Returns the output of a command as JSON, one value per line.
fn told(directory: &Path, words: &[&str], input: &str) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let command = command
        .args(words)
        .arg("--json")
        .arg("--dir")
        .arg(directory);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that needs no input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{words:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Starts a server and sets the owner's password; returns the owner's cookie too.
fn house(home: &Directory, settings: &str) -> (Server, String) {
    settled(home, server().settings(settings))
}

fn settled(home: &Directory, server: Builder) -> (Server, String) {
    let server = server.directory(&home.0).start();
    told(
        &home.0,
        &["owner", "set-password"],
        &format!("{PASSWORD}\n"),
    );
    let cookie = cookie(&server.client());
    (server, cookie)
}

fn cookie(client: &Client) -> String {
    let login = client.request("POST", "/login").without("authorization");
    let login = login.header("content-type", "application/json");
    let body = json!({ "password": PASSWORD }).to_string();
    let answer = login.body(body.as_bytes()).send();
    let set = answer.header("set-cookie").unwrap();
    set.split_once("; ").unwrap().0.to_owned()
}

fn get(client: &Client, path: &str) -> Answer {
    client.request("GET", path).without("authorization").send()
}

#[test]
fn a2_a3_a4_a9_a_challenge_leads_to_the_owner_and_mcp_knows_nothing_of_it() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let origin = format!("https://{}", client.address);
        let metadata = format!("{origin}/.well-known/oauth-protected-resource/connect/mcp");
        let call = client.call("whoami", json!({})).path("/connect/mcp");
        let none = call.clone().without("authorization").send();
        let expected =
            format!("Bearer realm=\"gatewren\", resource_metadata=\"{metadata}\", scope=\"mcp\"");
        assert_eq!(none.status, 401, "{way}");
        assert_eq!(
            none.header("www-authenticate"),
            Some(expected.as_str()),
            "{way}"
        );
        let own = call.send();
        assert_eq!(own.status, 401, "{way}: an agent's own token is for /mcp");
        let expected = format!("{expected}, error=\"invalid_token\"");
        assert_eq!(own.header("www-authenticate"), Some(expected.as_str()));
        let mcp = client.call("whoami", json!({})).without("authorization");
        let mcp = mcp.send();
        assert_eq!(
            mcp.header("www-authenticate"),
            Some("Bearer realm=\"gatewren\"")
        );
        assert!(
            !mcp.body.contains("oauth") && !mcp.body.contains("connect"),
            "{mcp:?}"
        );

        let resource = get(&client, "/.well-known/oauth-protected-resource/connect/mcp").json();
        assert_eq!(resource["resource"], format!("{origin}/connect/mcp"));
        assert_eq!(
            resource["authorization_servers"],
            json!([format!("{origin}/connect")])
        );
        for path in [
            "/.well-known/oauth-authorization-server/connect",
            "/.well-known/openid-configuration/connect",
            "/connect/.well-known/openid-configuration",
        ] {
            let answer = get(&client, path);
            assert_eq!(answer.header("content-type"), Some("application/json"));
            let said = answer.json();
            assert_eq!(said["issuer"], format!("{origin}/connect"), "{path}");
            assert_eq!(said["token_endpoint"], format!("{origin}/connect/token"));
            assert_eq!(said["code_challenge_methods_supported"], json!(["S256"]));
            assert_eq!(said["client_id_metadata_document_supported"], true);
            assert_eq!(said["authorization_response_iss_parameter_supported"], true);
        }
        let named = client.request("GET", "/.well-known/oauth-protected-resource/connect/mcp");
        let named = named.without("authorization").host("LocalHost:443").send();
        assert_eq!(named.json()["resource"], "https://localhost/connect/mcp");
    }
}

#[test]
fn a_program_comes_in_on_the_owners_yes_and_goes_with_its_agent() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    for (way, client) in server.clients() {
        let chat = Connector::register(&client);
        let page = chat.page(&chat.question()).header("cookie", &cookie).send();
        shows_who_asks(&page);
        let way = way.to_lowercase().replace(['/', ',', ' '], "-");
        let name = format!("chat-{way}");
        let code = chat.approved(&cookie, &name, "operate");
        let tokens = given(&chat.exchange(&code).send());
        let who = chat.call(&tokens.access).send().data();
        assert_eq!(
            (&who["name"], &who["policy"]),
            (&json!(name), &json!("operate"))
        );
        let at_mcp = chat.call(&tokens.access).path("/mcp").send();
        assert_eq!(at_mcp.status, 401, "it is for its own path alone");
        let named = chat.call(&tokens.access);
        let elsewhere = format!("localhost:{}", client.address.port());
        assert_eq!(
            named.host(&elsewhere).send().status,
            401,
            "and for its own host"
        );

        let agents = told(&home.0, &["agent", "list"], "");
        let agent = agents[0]
            .as_array()
            .unwrap()
            .iter()
            .find(|a| a["name"] == name)
            .unwrap();
        assert_eq!(agent["policy"], "operate");
        let listen = client.modern("subscriptions/listen").path("/connect/mcp");
        let listen = listen.header("authorization", &format!("Bearer {}", tokens.access));
        let mut listen = listen.param("notifications", json!({})).open();
        listen.message();
        told(
            &home.0,
            &["agent", "revoke", agent["id"].as_str().unwrap()],
            "",
        );
        assert_eq!(listen.message()["result"]["resultType"], "complete");
        listen.ends();
        assert_eq!(chat.call(&tokens.access).send().status, 401);
        let over = chat.renewal(&tokens.refresh).send();
        assert_eq!(
            (over.status, &over.json()["error"]),
            (400, &json!("invalid_grant"))
        );
        assert!(!server.log().contains(&code) && !server.log().contains(&tokens.refresh));
    }
    stands_in_the_audit(&home, server.clients().len());
}

#[test]
fn a_program_is_let_in_only_on_a_password_typed_within_10_minutes() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    let chat = Connector::register(&server.client());
    let vault = connect(&home.join("vault.db"));
    let older = "UPDATE login SET password_ms = password_ms - 660000";
    assert!(vault.execute(older, []).unwrap() > 0);
    let yes = [
        ("decision", "approve"),
        ("name", "chat"),
        ("policy", "admin"),
        ("space", "*"),
    ];
    let word = |more: &[(&str, &str)]| {
        let said = [&yes, more].concat();
        chat.word(&cookie, &chat.question(), &said).send()
    };
    for more in [&[][..], &[("confirm_password", "not my password")]] {
        let asked = word(more);
        assert_eq!((asked.status, asked.header("location")), (200, None));
        assert!(asked.body.contains("Type your password again"), "{asked:?}");
        let policy = asked.header("content-security-policy").unwrap();
        assert!(
            policy.contains("127.0.0.1:3333"),
            "the answer leads there: {policy}"
        );
    }
    let agents = told(&home.0, &["agent", "list"], "");
    let mut agents = agents[0].as_array().unwrap().iter();
    assert!(agents.all(|agent| agent["name"] != "chat"));
    let code = chat.code(&word(&[
        ("username", "owner"),
        ("confirm_password", PASSWORD),
    ]));
    let tokens = given(&chat.exchange(&code).send());
    assert_eq!(chat.call(&tokens.access).send().data()["policy"], "admin");
    let refuse = [("decision", "refuse")];
    vault.execute(older, []).unwrap();
    let refused = chat.word(&cookie, &chat.question(), &refuse).send();
    assert_eq!(refused.status, 303, "a no needs no password");
}

/// Asserts that the page shows what the owner must know, and that it runs no scripts.
fn shows_who_asks(page: &Answer) {
    assert_eq!(page.status, 200, "{page:?}");
    for words in ["Chat", "127.0.0.1:3333", "any program could use this name"] {
        assert!(page.body.contains(words), "{words}: {page:?}");
    }
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert!(
        policy.contains("form-action 'self' http://127.0.0.1:3333;"),
        "{policy}"
    );
}

/// Asserts that the audit has each approved program.
fn stands_in_the_audit(home: &Directory, programs: usize) {
    let rows = told(&home.0, &["audit", "list"], "");
    for tool in ["agent add", "connect approve"] {
        let of_tool: Vec<_> = rows.iter().filter(|row| row["tool"] == tool).collect();
        assert_eq!(of_tool.len(), programs, "{tool}: {rows:?}");
        for row in of_tool {
            assert_eq!(
                (&row["agent"], &row["decision"]),
                (&json!("owner"), &json!("owner"))
            );
            assert_eq!(row["status"], "ok", "{row}");
        }
    }
}

#[test]
fn a_program_that_comes_again_is_the_same_agent() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    let chat = Connector::register(&server.client());
    let first = given(
        &chat
            .exchange(&chat.approved(&cookie, "chat", "observe"))
            .send(),
    );
    let agent = chat.call(&first.access).send().data()["name"].clone();
    let page = chat.page(&chat.question()).header("cookie", &cookie).send();
    assert!(page.body.contains("the same agent again"), "{page:?}");
    assert!(!page.body.contains("name=\"policy\""), "{page:?}");
    let shown = told(&home.0, &["agent", "show", "chat"], "");
    let id = shown[0]["id"].as_str().unwrap();
    let said = [("decision", "approve"), ("agent", id)];
    let again = chat.word(&cookie, &chat.question(), &said);
    let second = given(&chat.exchange(&chat.code(&again.send())).send());
    assert_eq!(chat.call(&second.access).send().data()["name"], agent);
    assert_eq!(chat.call(&first.access).send().status, 200, "both are good");
    // A form from the old page refers to an agent that has been revoked since.
    told(&home.0, &["agent", "revoke", id], "");
    wait_until("it is over", IN_TIME, || {
        let stale = chat.word(&cookie, &chat.question(), &said).send();
        stale.status == 200 && stale.body.contains("changed in the meantime")
    });
}

#[test]
fn each_program_gets_a_name_that_no_other_agent_has() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    let client = server.client();
    let programs = [Connector::register(&client), Connector::register(&client)];
    let offered = |answer: &Answer| {
        let (_, rest) = answer.body.split_once("name=\"name\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let page = |chat: &Connector| chat.page(&chat.question()).header("cookie", &cookie).send();
    let name = offered(&page(&programs[0]));
    let code = programs[0].approved(&cookie, &name, "observe");
    let first = given(&programs[0].exchange(&code).send());
    assert_eq!(
        programs[0].call(&first.access).send().data()["name"],
        json!(name)
    );
    let second = &programs[1];
    assert_eq!(offered(&page(second)), format!("{name}-2"));
    let yes = |name: &str| {
        let said = [
            ("decision", "approve"),
            ("name", name),
            ("policy", "admin"),
            ("space", "*"),
        ];
        second.word(&cookie, &second.question(), &said).send()
    };
    let refused = yes(&name);
    let taken = format!("there is already an agent &quot;{name}&quot; (observe, last used today)");
    assert_eq!((refused.status, refused.header("location")), (200, None));
    assert!(refused.body.contains(&taken), "{refused:?}");
    assert_eq!(offered(&refused), format!("{name}-2"));
    let unfit = yes("My Chat");
    assert!(unfit.body.contains("for example my-chat"), "{unfit:?}");
    assert_eq!(offered(&unfit), "my-chat");
    let access = given(&second.exchange(&second.code(&yes("my-chat"))).send()).access;
    assert_eq!(second.call(&access).send().data()["name"], "my-chat");
}

#[test]
fn nobody_but_the_owner_on_our_own_page_decides() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    for (way, client) in server.clients() {
        let chat = Connector::register(&client);
        let question = chat.question();
        let page = chat.page(&question);
        let away = page.clone().send();
        assert_eq!(away.status, 303, "{way}");
        let to = away.header("location").unwrap();
        assert!(to.starts_with("/owner/sign-in?then="), "{to}");
        let then = &parameters(to)["then"];
        assert!(
            then.starts_with("/connect/authorize?response_type=code&client_id="),
            "{then}"
        );
        assert_eq!(parameters(then)["state"], "a b&c");

        let sent = page.clone().header("sec-fetch-site", "cross-site");
        let inside = sent.clone().header("cookie", &cookie).send();
        assert!(
            inside.status == 200 && inside.body.contains("http-equiv=\"refresh\""),
            "{inside:?}"
        );
        assert!(!inside.body.contains("Approve"), "{inside:?}");
        let marked = [question.clone(), vec![("from_here", "1".to_owned())]].concat();
        let marked = chat.page(&marked).header("sec-fetch-site", "cross-site");
        assert_eq!(marked.send().status, 303, "it goes on once");

        let yes = [
            ("decision", "approve"),
            ("name", "x"),
            ("policy", "admin"),
            ("space", "*"),
        ];
        let word = chat.word(&cookie, &question, &yes);
        let nobody = word.clone().without("cookie").send();
        assert_eq!(nobody.status, 403, "{way}: no cookie");
        for origin in [
            "https://127.0.0.1:1",
            "https://localhost",
            "http://127.0.0.1:1",
        ] {
            let refused = word.clone().header("origin", origin).send();
            assert_eq!(refused.status, 403, "{way}: {origin}");
        }
        let agent = client.request("GET", "/connect/authorize");
        assert_eq!(agent.send().status, 303, "an agent is nobody here");
        let no = [("decision", "refuse")];
        let no = chat.word(&cookie, &question, &no).send();
        let carried = parameters(no.header("location").unwrap());
        assert_eq!(carried["error"], "access_denied");
        assert_eq!(carried.get("code"), None);
    }
    let agents = told(&home.0, &["agent", "list"], "");
    assert!(
        agents[0]
            .as_array()
            .unwrap()
            .iter()
            .all(|agent| agent["name"] != "x")
    );
}

#[test]
fn an_answer_goes_only_to_where_the_program_said_before() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    let chat = Connector::register(&server.client());
    for (name, value) in [
        ("redirect_uri", ""),
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:3333/other"),
        ("redirect_uri", "http://localhost:3333/callback"),
        ("client_id", ""),
        ("client_id", "client_00000000000000000000000000000000"),
        ("client_id", "https://127.0.0.1/client.json"),
    ] {
        let answer = chat.page(&chat.question_with(name, value));
        let answer = answer.header("cookie", &cookie).send();
        assert_eq!(answer.status, 400, "{name}={value}: {answer:?}");
        assert_eq!(answer.header("location"), None);
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .starts_with("text/html")
        );
    }
    let other_port = "http://127.0.0.1:4444/callback";
    let answer = chat.page(&chat.question_with("redirect_uri", other_port));
    assert_eq!(answer.header("cookie", &cookie).send().status, 200);
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
    ] {
        let answer = chat.page(&chat.question_with(name, value));
        let answer = answer.header("cookie", &cookie).send();
        let to = answer.header("location").unwrap();
        assert!(to.starts_with(BACK), "{to}");
        assert_eq!(parameters(to)["error"], error, "{name}={value}");
        assert_eq!(parameters(to)["state"], "a b&c");
    }
}

#[test]
fn a_code_or_a_refresh_token_that_comes_twice_ends_what_it_gave() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    let chat = Connector::register(&server.client());
    let code = chat.approved(&cookie, "chat", "observe");
    let tokens = given(&chat.exchange(&code).send());
    assert_eq!(chat.call(&tokens.access).send().status, 200);
    let twice = chat.exchange(&code).send();
    assert_eq!(
        (twice.status, &twice.json()["error"]),
        (400, &json!("invalid_grant"))
    );
    assert_eq!(chat.call(&tokens.access).send().status, 401);

    let shown = told(&home.0, &["agent", "show", "chat"], "");
    let said = [
        ("decision", "approve"),
        ("agent", shown[0]["id"].as_str().unwrap()),
    ];
    let word = || chat.word(&cookie, &chat.question(), &said).send();
    let first = given(&chat.exchange(&chat.code(&word())).send());
    let second = given(&chat.renewal(&first.refresh).send());
    assert_ne!(first.refresh, second.refresh);
    assert_eq!(chat.call(&second.access).send().status, 200);
    let twice = chat.renewal(&first.refresh).send();
    assert_eq!(
        (twice.status, &twice.json()["error"]),
        (400, &json!("invalid_grant"))
    );
    assert_eq!(chat.call(&second.access).send().status, 401);
    assert_eq!(chat.renewal(&second.refresh).send().status, 400);

    let third = given(&chat.exchange(&chat.code(&word())).send());
    let give_back = form(&[("token", &third.access), ("client_id", &chat.id)]);
    assert_eq!(chat.post("/connect/revoke", &give_back).send().status, 200);
    assert_eq!(
        chat.post("/connect/revoke", &give_back).send().status,
        200,
        "nothing is told"
    );
    assert_eq!(chat.call(&third.access).send().status, 401);
    assert!(
        server.log().contains("used a second time"),
        "{}",
        server.log()
    );
}

#[test]
fn what_is_wrong_at_an_endpoint_is_told_as_oauth_tells_it() {
    let server = shared("observe");
    let client = server.client();
    let chat = Connector::register(&client);
    for (body, error) in [
        ("", "invalid_request"),
        ("grant_type=password&client_id=x", "unsupported_grant_type"),
        (
            "grant_type=authorization_code&client_id=x",
            "invalid_request",
        ),
        (
            "grant_type=refresh_token&client_id=x&refresh_token=gw_x",
            "invalid_grant",
        ),
        (
            "grant_type=refresh_token&refresh_token=gw_x",
            "invalid_request",
        ),
        (
            "grant_type=refresh_token&grant_type=refresh_token",
            "invalid_request",
        ),
        (
            "grant_type=refresh_token&client_id=x&refresh_token=y&resource=https%3A%2F%2Fx%2F",
            "invalid_target",
        ),
    ] {
        let answer = chat.post("/connect/token", body).send();
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (400, &json!(error)),
            "{body}"
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{body}");
    }
    let json = chat
        .post("/connect/token", "{}")
        .header("content-type", "application/json");
    assert_eq!(json.send().json()["error"], "invalid_request");
    for uris in [
        json!([]),
        json!(["http://evil.example/"]),
        json!(["javascript:alert(1)"]),
    ] {
        let answer = registration(&client, &json!({ "redirect_uris": uris })).send();
        assert_eq!(answer.json()["error"], "invalid_redirect_uri", "{uris}");
    }
    let large = json!({ "redirect_uris": [BACK], "client_name": "x".repeat(40_000) });
    assert_eq!(registration(&client, &large).send().status, 413);
    assert_eq!(get(&client, "/connect/token").status, 405);
    let stranger = server.client().elsewhere();
    let body = json!({ "redirect_uris": [BACK] });
    let refused = |_| registration(&stranger, &body).send_once().status == 429;
    assert!(
        (0..20).any(refused),
        "an address registers ten programs a minute"
    );
}

#[test]
fn where_it_is_off_there_is_nothing_of_it() {
    let home = Directory::new();
    let (server, cookie) = house(&home, "");
    let chat = Connector::register(&server.client());
    let tokens = given(
        &chat
            .exchange(&chat.approved(&cookie, "chat", "observe"))
            .send(),
    );
    let client = server.client();
    let listen = client.modern("subscriptions/listen").path("/connect/mcp");
    let listen = listen.header("authorization", &format!("Bearer {}", tokens.access));
    let mut listen = listen.param("notifications", json!({})).open();
    listen.message();
    server.reload_with("[oauth]\nenabled = false\n");
    assert_eq!(listen.message()["result"]["resultType"], "complete");
    for path in [
        "/connect/mcp",
        "/connect/authorize",
        "/connect/token",
        "/connect/register",
        "/connect/revoke",
        "/.well-known/oauth-protected-resource/connect/mcp",
        "/.well-known/oauth-authorization-server/connect",
        "/.well-known/openid-configuration/connect",
        "/connect/.well-known/openid-configuration",
    ] {
        assert_eq!(get(&client, path).status, 404, "{path}");
    }
}

#[test]
fn a_program_may_be_vouched_for_by_a_document_that_only_the_owner_has_us_fetch() {
    let home = Directory::new();
    let authority = home.join("authority.pem");
    let sink = HttpSink::secure(&authority);
    let settings = "[oauth]\nlocal_clients = true\n";
    let house = server()
        .settings(settings)
        .env("SSL_CERT_FILE", authority.to_str().unwrap());
    let (server, cookie) = settled(&home, house);
    let id = sink.url("/client.json");
    let document = json!({ "client_id": id, "client_name": "Chat", "redirect_uris": [BACK] });
    sink.behave(SinkBehavior::Gives(document.to_string()));
    let chat = Connector {
        client: server.client(),
        id: id.clone(),
    };
    assert_eq!(chat.page(&chat.question()).send().status, 303);
    assert_eq!(sink.requests().len(), 0, "a stranger sends us nowhere");
    let page = chat.page(&chat.question()).header("cookie", &cookie).send();
    assert!(page.status == 200 && page.body.contains(&id), "{page:?}");
    let tokens = given(
        &chat
            .exchange(&chat.approved(&cookie, "chat", "observe"))
            .send(),
    );
    assert_eq!(chat.call(&tokens.access).send().data()["name"], "chat");
    assert_eq!(
        sink.requests().len(),
        1,
        "what the owner was shown is what was approved"
    );
    let again = chat.page(&chat.question()).header("cookie", &cookie).send();
    assert!(again.body.contains("the same agent again"), "{again:?}");

    for (path, manner) in [
        ("/1", SinkBehavior::Gives(document.to_string())),
        ("/2", SinkBehavior::Says(302, format!("location: {id}\r\n"))),
        ("/3", SinkBehavior::Gives(" ".repeat(20_000))),
        ("/4", SinkBehavior::Babbles),
    ] {
        sink.behave(manner);
        let question = chat.question_with("client_id", &sink.url(path));
        let answer = chat.page(&question).header("cookie", &cookie).send();
        assert_eq!(
            (answer.status, answer.header("location")),
            (400, None),
            "{path}: {answer:?}"
        );
    }
    let before = sink.requests().len();
    server.reload_with("[oauth]\nlocal_clients = false\n");
    let question = chat.question_with("client_id", &sink.url("/5"));
    let answer = chat.page(&question).header("cookie", &cookie).send();
    assert!(answer.body.contains("public Internet"), "{answer:?}");
    assert_eq!(sink.requests().len(), before);
}
