//! The owner's pages over HTTP: first password, forms and proofs, owner-only actions; `tests/browser` adds the
//! layout.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::history::connect;
use crate::support::request::Request;
use crate::support::server::{Directory, Server, server};

pub const PASSWORD: &str = "four words of mine";

/// Returns the output of an owner's command as JSON, or its error.
pub fn tell(home: &Directory, words: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(words)
        .args(["--json", "--dir"])
        .arg(&home.0)
        .output()
        .unwrap();
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

pub fn code(home: &Directory) -> String {
    let said = tell(home, &["owner", "setup"]).unwrap();
    said["code"].as_str().unwrap().to_owned()
}

pub fn get(client: &Client, path: &str, cookie: &str) -> Answer {
    let request = client.request("GET", path).without("authorization");
    request.header("cookie", cookie).send()
}

pub fn form(client: &Client, path: &str, fields: &[(&str, &str)]) -> Request {
    let encoded: Vec<String> = fields
        .iter()
        .map(|(name, value)| {
            let bytes = value.bytes().map(|byte| format!("%{byte:02X}"));
            format!("{name}={}", bytes.collect::<String>())
        })
        .collect();
    client
        .request("POST", path)
        .without("authorization")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(encoded.join("&").as_bytes())
}

/// Sets the owner's password with the code, and returns the cookie.
pub fn set_up(client: &Client, code: &str) -> String {
    let fields = [("code", code), ("password", PASSWORD), ("again", PASSWORD)];
    let answer = form(client, "/owner/set-up", &fields).send();
    assert_eq!(answer.status, 303, "{answer:?}");
    assert_eq!(answer.header("location"), Some("/owner"));
    let set = answer.header("set-cookie").unwrap();
    for attribute in ["Path=/", "HttpOnly", "Secure", "SameSite=Strict"] {
        assert!(set.split("; ").any(|one| one == attribute), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

/// Returns the proof in a page's forms.
pub fn proof(page: &Answer) -> String {
    let (_, rest) = page.body.split_once("name=\"proof\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

pub fn house(home: &Directory) -> Server {
    server().directory(&home.0).start()
}

#[test]
fn the_code_sets_the_first_password_once() {
    let home = Directory::new();
    let server = house(&home);
    let client = server.client();
    let first = code(&home);
    let second = code(&home);
    let set = |code: &str, password: &str, again: &str| {
        let fields = [("code", code), ("password", password), ("again", again)];
        form(&client.elsewhere(), "/owner/set-up", &fields).send()
    };
    for (code, password, again, words) in [
        (first.as_str(), PASSWORD, PASSWORD, "the code is wrong"),
        ("", PASSWORD, PASSWORD, "the code is wrong"),
        (&second, PASSWORD, "other", "two passwords differ"),
        (&second, "short", "short", "fewer than 10 characters"),
    ] {
        let answer = set(code, password, again);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.contains(words), "{words}: {}", answer.body);
        assert_eq!(answer.header("set-cookie"), None);
    }
    let cookie = set_up(&client, &second);
    assert!(
        get(&client, "/owner/inbox", &cookie)
            .body
            .contains("No changes are pending")
    );
    assert_eq!(set(&second, PASSWORD, PASSWORD).status, 400, "once");
    let words = tell(&home, &["owner", "setup"]).unwrap_err();
    assert!(words.contains("already set"), "{words}");
    for secret in [PASSWORD, &second, "gw_"] {
        assert!(!server.log().contains(secret), "{secret} is in the log");
    }
    assert_eq!(done(&home, "owner set-password"), ["ok"]);
    assert_eq!(done(&home, "owner setup"), ["ok", "ok"]);
}

/// Returns the log of the service's first start, up to the code.
fn first_words(home: &Directory) -> String {
    let file = home.0.join("mine.toml");
    let state = home.0.join("own");
    let state = state.display();
    let text = format!("listen = [\"127.0.0.1:0\"]\nstate_dir = \"{state}\"\n");
    std::fs::write(&file, text).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["serve", "--config"])
        .arg(&file)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(serve.stderr.take().unwrap()).lines();
    let mut said = String::new();
    for line in lines.map_while(Result::ok) {
        said.push_str(&line);
        if line.contains("one-time code") {
            break;
        }
    }
    serve.kill().unwrap();
    serve.wait().unwrap();
    said
}

#[test]
fn a_first_start_says_the_code_in_its_log() {
    let home = Directory::new();
    let said = first_words(&home);
    let (_, rest) = said.split_once("one-time code ").unwrap();
    let (code, _) = rest.split_once(',').unwrap();
    assert_eq!((code.len(), code.find('-')), (11, Some(5)), "{said}");
}

/// Returns how each deed of this name ended, the newest first.
fn done(home: &Directory, deed: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["audit", "list", "--json", "--tool", deed, "--dir"])
        .arg(&home.0)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| row["status"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_page_is_for_the_owner_alone_and_for_no_frame() {
    let home = Directory::new();
    let server = house(&home);
    for (way, client) in server.clients() {
        let asked = get(&client, "/owner/agents?a=b", "");
        let to = asked.header("location").unwrap();
        let back = "/owner/sign-in?then=%2Fowner%2Fagents%3Fa%3Db";
        assert_eq!((asked.status, to), (303, back), "{way}");
    }
    let client = server.client();
    let cookie = set_up(&client, &code(&home));
    let page = get(&client, "/owner/agents", &cookie);
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[test]
fn a_form_is_for_the_page_that_it_came_with() {
    let home = Directory::new();
    let server = house(&home);
    let client = server.client();
    let cookie = set_up(&client, &code(&home));
    let send =
        |fields: &[(&str, &str)]| form(&client, "/owner/agents", fields).header("cookie", &cookie);
    let refused = |request: &Request, why: &str| {
        let answer = request.send();
        let is_refused = matches!(answer.status, 403 | 413 | 415);
        assert!(is_refused, "{why}: {answer:?}");
        assert!(answer.body.contains("That did not work"), "{answer:?}");
    };
    let fields = [("name", "claude"), ("policy", "observe"), ("space", "*")];
    refused(&send(&fields), "no proof");
    let proof = proof(&get(&client, "/owner/agents", &cookie));
    let whole = [fields.as_slice(), &[("proof", proof.as_str())]].concat();
    let port = format!("https://localhost:{}", client.address.port() ^ 1);
    let good = send(&whole);
    refused(&good.clone().header("origin", &port), "another port's");
    refused(
        &good.clone().header("sec-fetch-site", "cross-site"),
        "another site's",
    );
    refused(
        &good.clone().header("content-type", "application/json"),
        "no form",
    );
    let long = "x".repeat(70_000);
    refused(
        &send(&[whole.as_slice(), &[("more", long.as_str())]].concat()),
        "too long",
    );
    assert_eq!(done(&home, "agent add").len(), 0);
    let added = good.send_once();
    assert_eq!(added.status, 200, "{added:?}");
    let at = added.body.find("gw_").unwrap();
    let token = &added.body[at..at + 52];
    let whoami = client.with_token(token).call("whoami", json!({})).send();
    assert_eq!(whoami.data()["name"], "claude");
    assert_eq!(done(&home, "agent add"), ["ok"]);
    let again = get(&server.client(), "/owner/agents", &cookie);
    assert!(!again.body.contains(token), "it is shown once");
}

/// Makes every time of the owner's login 11 minutes older, also when the password was typed.
pub fn let_confirmation_expire(home: &Directory) {
    let vault = connect(&home.join("vault.db"));
    let mut times = vault
        .prepare("SELECT name FROM pragma_table_info('login') WHERE name LIKE '%\\_ms' ESCAPE '\\'")
        .unwrap();
    let times = times.query_map([], |row| row.get(0)).unwrap();
    // All of them first: while a read is open, SQLite does not wait for the server's write but fails.
    let times: Vec<String> = times.map(Result::unwrap).collect();
    for time in times {
        let older = format!("UPDATE login SET {time} = {time} - 660000");
        assert!(vault.execute(&older, []).unwrap() > 0);
    }
}

/// The page's text when it needs the password again.
pub const ASKED: &str = "Type your password again";

/// The signed-in owner on the page.
struct Owner {
    client: Client,
    cookie: String,
    proof: String,
}

impl Owner {
    fn of(home: &Directory, client: Client) -> Self {
        let cookie = set_up(&client, &code(home));
        let proof = proof(&get(&client, "/owner/agents", &cookie));
        Self {
            client,
            cookie,
            proof,
        }
    }

    fn send(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let whole = [fields, &[("proof", self.proof.as_str())]].concat();
        let form = form(&self.client, path, &whole);
        form.header("cookie", &self.cookie).send_once()
    }

    /// Submits the form with the password, as the page that asks for it does.
    fn confirm(&self, path: &str, fields: &[(&str, &str)], password: &str) -> Answer {
        let more = [("username", "owner"), ("confirm_password", password)];
        self.send(path, &[fields, &more].concat())
    }
}

#[test]
fn a_new_agent_needs_the_password_again_after_10_minutes() {
    let home = Directory::new();
    let server = house(&home);
    let owner = Owner::of(&home, server.client());
    let new = [
        ("name", "claude"),
        ("policy", "admin"),
        ("space", "*"),
        ("expires", "30d"),
        ("toolsets", "<b>"),
    ];
    let_confirmation_expire(&home);
    let asked = owner.send("/owner/agents", &new);
    assert_eq!(asked.status, 200);
    assert!(
        asked.body.contains(ASKED) && !asked.body.contains("gw_"),
        "{asked:?}"
    );
    assert!(asked.body.contains("&lt;b&gt;"), "{asked:?}");
    let wrong = owner.confirm("/owner/agents", &new, "not my password");
    assert!(wrong.body.contains(ASKED), "{wrong:?}");
    assert!(!wrong.body.contains("not my password"), "{wrong:?}");
    assert!(done(&home, "agent add").is_empty());
    let added = owner.confirm("/owner/agents", &new, PASSWORD);
    assert!(added.body.contains("gw_"), "{added:?}");
    assert!(!server.log().contains(PASSWORD));
}

#[test]
fn a_name_that_another_agent_has_is_refused_in_the_form() {
    let home = Directory::new();
    let server = house(&home);
    let owner = Owner::of(&home, server.client());
    let new = |name| [("name", name), ("policy", "observe"), ("space", "*")];
    let added = owner.send("/owner/agents", &new("claude"));
    assert!(added.body.contains("gw_"), "{added:?}");
    let again = owner.send("/owner/agents", &new("claude"));
    let taken = "there is already an agent &quot;claude&quot; (observe, never used). New token for it: gatewren agent \
                 rotate claude";
    let is_form = |answer: &Answer, name: &str| {
        let field = format!("value=\"{name}\"");
        answer.status == 200 && answer.body.contains(&field) && !answer.body.contains("gw_")
    };
    assert!(is_form(&again, "claude"), "the typed name stays: {again:?}");
    assert!(again.body.contains(taken), "{again:?}");
    let unfit = owner.send("/owner/agents", &new("Claude Code"));
    assert!(is_form(&unfit, "Claude Code"), "{unfit:?}");
    assert!(unfit.body.contains("for example claude-code"), "{unfit:?}");

    let other = tell(&home, &["agent", "add", "other"]).unwrap();
    let path = format!("/owner/agents/{}", other["id"].as_str().unwrap());
    let save = |name| [&[("do", "save")], &new(name)[..]].concat();
    let renamed = owner.send(&path, &save("claude"));
    assert!(is_form(&renamed, "claude"), "{renamed:?}");
    assert!(renamed.body.contains(taken), "{renamed:?}");
    // An agent of an older version keeps a name that would be refused now.
    let older = "UPDATE agent SET name = 'claude <b>' WHERE name = 'other'";
    connect(&home.join("vault.db")).execute(older, []).unwrap();
    let kept = [&save("claude <b>")[..], &[("expires", "30d")]].concat();
    assert_eq!(owner.send(&path, &kept).status, 303);
    let page = get(&server.client(), &path, &owner.cookie);
    assert!(page.body.contains("claude &lt;b&gt;"), "{page:?}");
}

#[test]
fn what_widens_access_needs_the_password_again_after_10_minutes() {
    let home = Directory::new();
    let server = house(&home);
    let owner = Owner::of(&home, server.client());
    let added = tell(&home, &["agent", "add", "claude", "--policy", "admin"]).unwrap();
    let path = format!("/owner/agents/{}", added["id"].as_str().unwrap());
    let edit = |policy| {
        [
            ("do", "save"),
            ("name", "claude"),
            ("policy", policy),
            ("space", "*"),
            ("expires", ""),
        ]
    };
    let_confirmation_expire(&home);
    let less = owner.send(&path, &edit("observe"));
    assert_eq!(less.status, 303, "it does less: {less:?}");
    for fields in [&edit("operate")[..], &[("do", "rotate")]] {
        let asked = owner.send(&path, fields);
        assert!(asked.body.contains(ASKED), "{fields:?}: {asked:?}");
    }
    assert!(done(&home, "agent rotate").is_empty());
    let more = owner.confirm(&path, &edit("operate"), PASSWORD);
    assert_eq!(more.status, 303, "{more:?}");
    let rotated = owner.send(&path, &[("do", "rotate")]);
    assert!(rotated.body.contains("gw_"), "it counts for 10 minutes");
    let_confirmation_expire(&home);
    let asked = owner.send(&path, &[("do", "revoke")]);
    assert!(asked.body.contains("cannot come back"), "{asked:?}");
    let sure = [("do", "revoke"), ("sure", "yes")];
    assert_eq!(owner.send(&path, &sure).status, 303);
}

#[test]
fn each_answer_has_browsers_use_the_host_name_over_tls_alone() {
    let home = Directory::new();
    let server = house(&home);
    let header = |client: &Client, path: &str, host: &str| {
        let request = client.request("GET", path).without("authorization");
        let answer = request.host(host).send();
        let value = answer.header("strict-transport-security");
        value.map(str::to_owned)
    };
    let name = tell(&home, &["cert", "show"]).unwrap()["holds_for"].clone();
    let names = name.as_array().unwrap().iter().filter_map(Value::as_str);
    let mut names = names.filter(|name| name.contains(".local"));
    let name = names.next().unwrap();
    for (way, client) in server.clients() {
        for path in [
            "/owner",
            "/owner/sign-in",
            "/owner/style.css",
            "/owner/none",
        ] {
            let value = header(&client, path, name);
            assert_eq!(value.as_deref(), Some("max-age=2592000"), "{way} {path}");
        }
        assert_eq!(header(&client, "/owner", "localhost"), None);
        assert_eq!(header(&client, "/owner", "127.0.0.1"), None);
        assert_eq!(header(&client, "/health", name), None);
    }
}

#[test]
fn a_page_asks_for_the_script_and_style_of_its_own_version() {
    let home = Directory::new();
    let server = house(&home);
    let client = server.client();
    let cookie = set_up(&client, &code(&home));
    let page = get(&client, "/owner/agents", &cookie).body;
    for (file, media) in [("style.css", "text/css"), ("page.js", "text/javascript")] {
        let path = format!("/owner/{file}?v={}", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&format!("\"{path}\"")), "{path}: {page}");
        let asset = get(&client, &path, &cookie);
        let kind = asset.header("content-type").unwrap();
        assert!(
            asset.status == 200 && kind.starts_with(media),
            "{path}: {kind}"
        );
    }
}

#[test]
fn browsers_are_led_to_the_page_and_others_find_nothing() {
    let home = Directory::new();
    let server = house(&home);
    let client = server.client();
    let home_page = |accept: &str| {
        let request = client.request("GET", "/").without("authorization");
        request.header("accept", accept).send()
    };
    let browser = home_page("text/html,application/xhtml+xml");
    assert_eq!(
        (browser.status, browser.header("location")),
        (303, Some("/owner"))
    );
    let program = home_page("application/json, text/event-stream");
    assert_eq!(
        (program.status, &program.json()["error"]),
        (404, &json!("not_found"))
    );
    for path in ["/owner/nothing", "/ownerx", "/owner/../mcp"] {
        let status = get(&client, path, "").status;
        assert!(matches!(status, 303 | 404), "{path}: {status}");
    }
    let ca = get(&client, "/owner/connect/authority/pem", "");
    assert!(ca.body.starts_with("-----BEGIN CERTIFICATE-----"), "{ca:?}");
    assert_eq!(get(&client, "/owner/connect/authority/key", "").status, 404);
}

#[test]
fn guessing_codes_and_passwords_is_slowed_down_together() {
    let home = Directory::new();
    let server = house(&home);
    let client = server.client();
    code(&home);
    let guess = |code: &str| {
        let fields = [("code", code), ("password", PASSWORD), ("again", PASSWORD)];
        form(&client, "/owner/set-up", &fields).send_once()
    };
    for number in 0..5 {
        assert_eq!(guess(&format!("guess-{number}")).status, 400);
    }
    let slowed = guess("AAAAA-AAAAA");
    assert_eq!(slowed.status, 429);
    assert!(slowed.header("retry-after").is_some());
    let password = form(&client, "/owner/sign-in", &[("password", PASSWORD)]).send_once();
    assert_eq!(password.status, 429, "the same lock");
}
