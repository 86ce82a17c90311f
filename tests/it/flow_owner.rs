//! The owner's password and cookie, and an agent's token exchanged for one.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::request::{Request, Running};
use crate::support::server::{Directory, Server, server};

const PASSWORD: &str = "four words of mine";

/// Runs `gatewren owner`; returns its output as JSON, or its error.
fn owner(home: &Directory, words: &[&str], input: &str) -> Result<Value, String> {
    tell(&home.0, &[&["owner"], words].concat(), input)
}

fn tell(directory: &Path, words: &[&str], input: &str) -> Result<Value, String> {
    said(directory, words, input).map(|said| serde_json::from_str(&said).unwrap())
}

/// Returns the rows of the audit.
fn audited(directory: &Path) -> Vec<Value> {
    let said = said(directory, &["audit", "list"], "").unwrap();
    let rows = said.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().unwrap()
}

fn said(directory: &Path, words: &[&str], input: &str) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command
        .args(words)
        .arg("--json")
        .arg("--dir")
        .arg(directory);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that needs no input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// Starts a server with more settings, and sets the owner's password.
fn house(home: &Directory, settings: &str) -> Server {
    let server = server().directory(&home.0).settings(settings).start();
    let set = owner(home, &["set-password"], &format!("{PASSWORD}\n")).unwrap();
    assert_eq!(set["password"], "set");
    server
}

fn login(client: &Client, body: &Value) -> Request {
    let request = client.request("POST", "/login").without("authorization");
    let request = request.header("content-type", "application/json");
    request.body(body.to_string().as_bytes())
}

/// Returns the cookie of a response, in the form that a client sends.
fn cookie(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    let set = answer.header("set-cookie").unwrap();
    let (cookie, attributes) = set.split_once("; ").unwrap();
    for attribute in ["Path=/", "HttpOnly", "Secure", "SameSite=Strict"] {
        assert!(attributes.split("; ").any(|one| one == attribute), "{set}");
    }
    assert!(cookie.starts_with("__Host-gatewren=gw_"), "{set}");
    cookie.to_owned()
}

/// Returns a call with a cookie and without a token.
fn call(client: &Client, cookie: &str) -> Request {
    let request = client.call("whoami", json!({})).without("authorization");
    request.header("cookie", cookie)
}

#[test]
fn the_owner_signs_in_and_out_and_is_no_agent() {
    let home = Directory::new();
    let server = house(&home, "");
    for (way, client) in server.clients() {
        let wrong = login(&client, &json!({ "password": "wrong" })).send();
        assert_eq!(
            (wrong.status, &wrong.json()["error"]),
            (401, &json!("wrong_password")),
            "{way}"
        );
        assert_eq!(wrong.header("set-cookie"), None);
        let answer = login(&client, &json!({ "password": PASSWORD })).send();
        assert_eq!(answer.json()["signed_in_as"], "owner");
        assert!(
            !answer.body.contains("gw_"),
            "the cookie is out of reach of scripts"
        );
        let cookie = cookie(&answer);
        let refused = call(&client, &cookie).send();
        assert_eq!(
            (refused.status, &refused.json()["error"]),
            (401, &json!("agent_required"))
        );
        assert!(refused.body.contains("owner_on_mcp"), "{refused:?}");
        assert_eq!(owner(&home, &["sessions"], "").unwrap()[0]["who"], "owner");
        let out = client.request("POST", "/logout").without("authorization");
        let out = out.header("cookie", &cookie).send();
        assert_eq!(out.status, 204);
        assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
        assert_eq!(owner(&home, &["sessions"], ""), Ok(json!([])));
        let over = call(&client, &cookie).send();
        assert!(
            over.status == 401 && over.body.contains("sign in again"),
            "{over:?}"
        );
    }
    assert!(!server.log().contains(PASSWORD) && !server.log().contains("gw_"));
    stands_in_the_audit(&home, server.clients().len());
}

/// Asserts that the audit has what gave lasting access, and no failed guesses.
fn stands_in_the_audit(home: &Directory, logins: usize) {
    let audited = audited(&home.0);
    let listed = |tool: &str| {
        let of_tool = audited.iter().filter(|row| row["tool"] == tool);
        of_tool.collect::<Vec<_>>()
    };
    let rows = listed("login");
    assert_eq!(rows.len(), logins, "{rows:?}");
    for row in rows {
        assert_eq!(
            (&row["agent"], &row["decision"]),
            (&json!("owner"), &json!("owner"))
        );
        assert!(
            row["address"]
                .as_str()
                .unwrap()
                .parse::<std::net::IpAddr>()
                .is_ok(),
            "{row}"
        );
    }
    assert_eq!(listed("owner set-password").len(), 1);
}

#[test]
fn the_owner_comes_in_like_an_agent_where_the_settings_say_so() {
    let home = Directory::new();
    let server = house(&home, "[access]\nowner_on_mcp = true\n");
    let client = server.client();
    let cookie = cookie(&login(&client, &json!({ "password": PASSWORD })).send());
    let who = call(&client, &cookie).send().data();
    assert_eq!(
        (&who["name"], &who["policy"]),
        (&json!("owner"), &json!("admin"))
    );
    let listen = client
        .modern("subscriptions/listen")
        .param("notifications", json!({}));
    let mut listen = listen
        .without("authorization")
        .header("cookie", &cookie)
        .open();
    listen.message();
    let ended = owner(&home, &["sign-out", "--all"], "").unwrap();
    assert_eq!(ended["signed_out"], 1);
    assert_eq!(listen.message()["result"]["resultType"], "complete");
    listen.ends();
    assert_eq!(call(&client, &cookie).send().status, 401);
    let rows = audited(&home.0);
    let called = |row: &Value| row["tool"] == "whoami" && row["agent"] == "owner";
    assert!(rows.iter().any(called), "{rows:?}");
}

#[test]
fn an_agent_exchanges_its_token_for_a_cookie_that_ends_with_it() {
    let home = Directory::new();
    let server = house(&home, "");
    let visitor = tell(
        &home.0,
        &["agent", "add", "visitor", "--policy", "observe"],
        "",
    )
    .unwrap();
    let client = server.client();
    let body = json!({ "token": visitor["token"] });
    let mut answer = None;
    wait_until("it comes in", IN_TIME, || {
        let tried = login(&client, &body).send();
        let is_in = tried.status == 200;
        answer = Some(tried);
        is_in
    });
    let answer = answer.unwrap();
    assert_eq!(answer.json()["signed_in_as"], "visitor");
    let cookie = cookie(&answer);
    assert_eq!(call(&client, &cookie).send().data()["name"], "visitor");
    let unknown = login(&client, &json!({ "token": "gw_x" })).send();
    assert_eq!(
        (unknown.status, &unknown.json()["error"]),
        (401, &json!("agent_required"))
    );
    // If a token is sent, the token counts.
    let both = call(&client, &cookie).header("authorization", "Bearer gw_x");
    assert_eq!(both.send().status, 401);
    let session = client.initialize("2025-11-25").without("authorization");
    let session = session.header("cookie", &cookie).send();
    assert_eq!(session.status, 200, "{session:?}");
    let id = visitor["id"].as_str().unwrap();
    tell(&home.0, &["agent", "revoke", id], "").unwrap();
    wait_until("the cookie is over", IN_TIME, || {
        call(&client, &cookie).send().status == 401
    });
}

#[test]
fn a_page_of_another_port_gains_nothing_by_the_cookie() {
    let home = Directory::new();
    let server = house(&home, "[access]\nowner_on_mcp = true\n");
    let address = server.address();
    for (way, client) in server.clients() {
        let cookie = cookie(&login(&client, &json!({ "password": PASSWORD })).send());
        let own = format!("https://{address}");
        for (origin, status) in [
            (own.as_str(), 200),
            ("https://127.0.0.1:1", 403),
            ("https://localhost", 403),
            ("http://127.0.0.1:1", 403),
        ] {
            let with = |request: Request| request.header("origin", origin).send().status;
            assert_eq!(with(call(&client, &cookie)), status, "{way}: {origin}");
            let login = login(&client, &json!({ "password": PASSWORD }));
            assert_eq!(with(login), status, "{way}: {origin}");
            // With a token, the request has no credential that a browser adds by itself.
            assert_eq!(with(client.modern("tools/list")), 200, "{way}: {origin}");
        }
        for site in ["same-site", "cross-site"] {
            let stream = client.request("GET", "/mcp").without("authorization");
            let stream = stream
                .header("cookie", &cookie)
                .header("sec-fetch-site", site);
            assert_eq!(stream.send().status, 403, "{way}: {site}");
        }
        let preflight = client
            .request("OPTIONS", "/login")
            .header("origin", &own)
            .send();
        assert_eq!(preflight.header("access-control-allow-credentials"), None);
    }
}

#[test]
fn a_listed_page_uses_the_cookie_of_an_agent_and_never_the_owners() {
    const LISTED: &str = "https://127.0.0.1:8000";
    let home = Directory::new();
    let access = "[access]\nowner_on_mcp = true\nrequired_header = \"x-proxy\"\n";
    let server = house(
        &home,
        &format!("{access}allowed_origins = [\"{LISTED}\"]\n"),
    );
    let visitor = ["agent", "add", "visitor", "--policy", "observe"];
    let visitor = tell(&home.0, &visitor, "").unwrap();
    let client = server.client();
    let from = |request: Request, origin: &str| {
        let request = request.header("x-proxy", "1").header("origin", origin);
        request.header("sec-fetch-site", "same-site").send()
    };
    let body = json!({ "token": visitor["token"] });
    let mut signed_in = None;
    wait_until("the agent is known", IN_TIME, || {
        let answer = from(login(&client, &body), LISTED);
        let is_in = answer.status == 200;
        signed_in = Some(answer);
        is_in
    });
    let signed_in = signed_in.unwrap();
    let credentials = "access-control-allow-credentials";
    assert_eq!(signed_in.header(credentials), Some("true"));
    let of_agent = cookie(&signed_in);
    let called = from(call(&client, &of_agent), LISTED);
    assert_eq!(called.data()["name"], "visitor");
    assert_eq!(called.header(credentials), Some("true"));
    let preflight = client.request("OPTIONS", "/mcp").without("authorization");
    let preflight = preflight.header("access-control-request-headers", "content-type,X-Proxy");
    let preflight = from(preflight, LISTED);
    let allowed = preflight.header("access-control-allow-headers").unwrap();
    assert!(allowed.contains("x-proxy"), "{allowed}");
    assert_eq!(preflight.header(credentials), Some("true"));
    // Another port of the same host is another program.
    let other = from(call(&client, &of_agent), "https://127.0.0.1:8001");
    assert_eq!((other.status, other.header(credentials)), (403, None));
    let password = json!({ "password": PASSWORD });
    assert_eq!(from(login(&client, &password), LISTED).status, 403);
    let of_owner = cookie(&login(&client, &password).send());
    assert_eq!(
        call(&client, &of_owner)
            .header("x-proxy", "1")
            .send()
            .status,
        200
    );
    assert_eq!(from(call(&client, &of_owner), LISTED).status, 403);
    let page = client
        .request("GET", "/owner/home")
        .without("authorization");
    let page = from(page.header("cookie", &of_owner), LISTED);
    // A browser shows a linked page, and lets no script of another page read it.
    assert_eq!((page.status, page.header(credentials)), (200, None));
}

#[test]
fn the_owner_is_let_in_and_shut_out_by_a_reload() {
    let home = Directory::new();
    let server = house(&home, "");
    let client = server.client();
    let cookie = cookie(&login(&client, &json!({ "password": PASSWORD })).send());
    assert_eq!(call(&client, &cookie).send().status, 401);
    server.reload_with("[access]\nowner_on_mcp = true\n");
    assert_eq!(call(&client, &cookie).send().status, 200);
    let listen = client
        .modern("subscriptions/listen")
        .without("authorization");
    let filter = json!({ "resourceSubscriptions": [] });
    let listen = listen
        .header("cookie", &cookie)
        .param("notifications", filter);
    let mut listen = listen.open();
    listen.message();
    server.reload_with("");
    listen.until_it_ends();
    assert_eq!(call(&client, &cookie).send().status, 401);
}

#[test]
fn whoever_guesses_waits() {
    let home = Directory::new();
    let server = house(&home, "");
    let (guesser, neighbour) = (server.client(), server.client());
    let wrong = login(&guesser, &json!({ "password": "wrong" }));
    // The first wait is half a minute, so that it is also reached on a slow machine.
    let answers = (0..20).map(|_| wrong.send_once());
    let locked = answers.into_iter().find(|answer| answer.status == 429);
    let locked = locked.expect("twenty guesses are too many");
    assert_eq!(locked.json()["error"], "login_locked");
    let after: u32 = locked.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&after), "{after}");
    let right = login(&neighbour, &json!({ "password": PASSWORD })).send_once();
    assert_eq!(right.status, 200, "{right:?}");
}

#[test]
fn guesses_from_many_addresses_do_not_lock_the_owner_out_of_a_new_one() {
    let home = Directory::new();
    let server = house(&home, "");
    let stranger = server.client();
    let guesses: Vec<_> = (0..120)
        .map(|_| login(&stranger.elsewhere(), &json!({ "password": "wrong" })).begin())
        .collect();
    let answers: Vec<Answer> = guesses.into_iter().map(Running::finish).collect();
    let count = |status| answers.iter().filter(|one| one.status == status).count();
    assert_eq!(
        count(401) + count(503),
        120,
        "hashed, or too many wait: none is locked"
    );
    let right = login(&server.client(), &json!({ "password": PASSWORD })).send_once();
    assert_eq!(right.status, 200, "{right:?}");
}

#[test]
fn a_browser_that_the_owner_used_before_is_let_in_from_an_address_that_guessed() {
    let home = Directory::new();
    let server = house(&home, "");
    let client = server.client();
    let answer = login(&client, &json!({ "password": PASSWORD })).send();
    let set = answer.headers.get_all("set-cookie").iter();
    let mut set = set.map(|value| value.to_str().unwrap());
    let device = set.find(|set| set.starts_with("__Host-gatewren-device="));
    let (device, attributes) = device.unwrap().split_once("; ").unwrap();
    for attribute in [
        "Path=/",
        "HttpOnly",
        "Secure",
        "SameSite=Strict",
        "Max-Age=34560000",
    ] {
        assert!(
            attributes.split("; ").any(|one| one == attribute),
            "{attributes}"
        );
    }
    owner(&home, &["sign-out", "--all"], "").unwrap();
    let wrong = login(&client, &json!({ "password": "wrong" }));
    let locked = (0..20).any(|_| wrong.send_once().status == 429);
    assert!(locked, "twenty guesses are too many");
    let right = login(&client, &json!({ "password": PASSWORD }));
    assert_eq!(right.send_once().status, 429);
    let known = right.header("cookie", device);
    assert_eq!(known.send_once().status, 200);
}

#[test]
fn what_is_no_login_is_refused_in_the_chains_order() {
    let home = Directory::new();
    let server = house(&home, "");
    let client = server.client();
    let good = login(&client, &json!({ "password": PASSWORD }));
    let body = |body: &[u8]| good.clone().body(body);
    for (request, status, error) in [
        (good.clone().host("evil.example"), 421, "unknown_host"),
        (good.clone().verb("GET"), 405, "method_not_allowed"),
        (
            good.clone().header("content-type", "text/plain"),
            415,
            "content_type",
        ),
        (good.clone().padded(4096), 413, "body_too_large"),
        (body(b""), 400, "bad_login"),
        (body(b"[]"), 400, "bad_login"),
        (body(b"{}"), 400, "bad_login"),
        (body(br#"{"password":"a","token":"b"}"#), 400, "bad_login"),
        (
            body(br#"{"password":"a","password":"b"}"#),
            400,
            "bad_login",
        ),
        (body(br#"{"password":1}"#), 400, "bad_login"),
        (body(br#"{"password":"a","more":1}"#), 400, "bad_login"),
    ] {
        let answer = request.send();
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.json()["error"], error, "{answer:?}");
    }
    assert_eq!(good.send().status, 200, "none of these was a guess");
}

#[test]
fn a_password_that_is_easily_guessed_is_not_set_and_a_new_one_signs_out() {
    let home = Directory::new();
    let server = house(&home, "[access]\nowner_on_mcp = true\n");
    let client = server.client();
    let cookie = cookie(&login(&client, &json!({ "password": PASSWORD })).send());
    let refused = owner(&home, &["set-password"], "short\n").unwrap_err();
    assert!(refused.contains("characters"), "{refused}");
    assert_eq!(call(&client, &cookie).send().status, 200);
    owner(&home, &["set-password"], "another one of mine\n").unwrap();
    assert_eq!(call(&client, &cookie).send().status, 401);
    let old = login(&client, &json!({ "password": PASSWORD })).send();
    assert_eq!(old.status, 401);
    let unknown = owner(&home, &["sign-out", "login_0"], "").unwrap_err();
    assert!(unknown.contains("owner sessions"), "{unknown}");
}

#[test]
fn a_login_that_rests_is_over() {
    let home = Directory::new();
    let settings = "[access]\nowner_on_mcp = true\nlogin_idle = \"1s\"\n";
    let server = house(&home, settings);
    let client = server.client();
    let cookie = cookie(&login(&client, &json!({ "password": PASSWORD })).send());
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    assert_eq!(call(&client, &cookie).send().status, 401);
}
