//! Secrets sent on every path: none of them appears in a file, a log line, or a response about a failure.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::http_sink::{HttpSink, SinkBehavior};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// Each secret has its own name in it, which shows where a found secret was sent.
struct Secrets(Vec<String>);

impl Secrets {
    /// Makes another secret, marked with its name.
    fn make(&mut self, name: &str) -> String {
        let secret = format!("s3cr3t{}x{name}", self.0.len());
        self.0.push(secret.clone());
        secret
    }

    /// Returns the secrets that these bytes contain.
    fn found_in<'s>(&'s self, bytes: &'s [u8]) -> impl Iterator<Item = &'s str> {
        let stands = |secret: &&String| {
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        };
        self.0.iter().filter(stands).map(String::as_str)
    }
}

/// Returns commands with secrets, in the forms that people use.
fn commands(secrets: &mut Secrets) -> Vec<String> {
    let forms: [(&str, &str); 24] = [
        ("option", "true --password HUSH"),
        ("option_is", "true --password=HUSH"),
        ("quoted", "true --password 'HUSH HUSH'"),
        ("token", "true --api-token HUSH"),
        ("variable", "PASSWORD=HUSH true"),
        ("quoted_variable", "DB_PASS=\"HUSH HUSH\" true"),
        ("exported", "export AWS_SECRET_ACCESS_KEY=HUSH; true"),
        ("in_quotes", "bash -c 'MYSQL_PWD=HUSH true'"),
        ("url", "true https://me:HUSH@host/x.git"),
        ("odd_url", "true postgres://me:HUSH@HUSH@host/db"),
        ("query", "true 'https://host/?user=me&access_token=HUSH'"),
        ("bearer", "true -H 'Authorization: Bearer HUSH'"),
        ("basic", "true -H \"Authorization: Basic HUSH\""),
        ("header", "true -H X-Api-Key:HUSH"),
        ("cookie", "true -b 'Cookie: session=HUSH; other=HUSH'"),
        (
            "json",
            "true -d '{\"password\":\"HUSH HUSH\",\"user\":\"me\"}'",
        ),
        ("spaced_json", "true -d '{ \"client_secret\" : \"HUSH\" }'"),
        ("yaml", "printf 'user: me\\npassword: HUSH\\n' > /dev/null"),
        ("ini", "printf '[client]\\npassword = HUSH\\n' > /dev/null"),
        ("curl", "true || curl -u me:HUSH https://host/"),
        ("mysql", "true || mysqldump -pHUSH db"),
        ("sshpass", "true || sshpass -p HUSH ssh host"),
        ("here", "cat > /dev/null <<< 'token: HUSH'"),
        (
            "pem",
            "true '-----BEGIN OPENSSH PRIVATE KEY-----\nHUSH\nHUSH\n-----END OPENSSH PRIVATE KEY-----'",
        ),
    ];
    let filled = forms.map(|(name, form)| form.replace("HUSH", &secrets.make(name)));
    filled.into()
}

/// Returns arguments that are secret by their names, or by their neighbours in a list.
fn structured(secrets: &mut Secrets) -> Vec<Value> {
    vec![
        json!({ "command": "true", "env": { "PGPASSWORD": secrets.make("env") } }),
        json!({ "command": "true", "env": { "GITHUB_TOKEN": secrets.make("env_token") } }),
        json!({ "argv": ["true", "--password", format!("{} with blanks", secrets.make("argv"))] }),
        json!({ "argv": ["true", "-H", format!("Authorization: Bearer {}", secrets.make("argv_header"))] }),
        json!({ "command": "true", "password": secrets.make("unknown_field") }),
        json!({ "command": { "token": secrets.make("wrong_type") } }),
    ]
}

/// Sends secrets as names, paths and methods.
fn send_astray(client: &Client, secrets: &mut Secrets) {
    // gatewren's own tokens have a form that is recognised in any place.
    let token = |secrets: &mut Secrets, name: &str| {
        let secret = secrets.make(name);
        format!("gw_{secret:A<49}")
    };
    let name = token(secrets, "container");
    client
        .call("container_start", json!({ "container": name }))
        .send();
    let name = token(secrets, "stopped");
    client
        .call(
            "container_shell",
            json!({ "container": name, "command": "true" }),
        )
        .send();
    let place = format!("/public/{}", token(secrets, "pointer"));
    client.call("state_get", json!({ "pointer": place })).send();
    client.call(&token(secrets, "tool"), json!({})).send();
    client.modern(&token(secrets, "method")).send();
    let uri = format!("gatewren:///{}", token(secrets, "uri"));
    client
        .modern("resources/read")
        .name(&uri)
        .param("uri", json!(uri))
        .send();
    let user = token(secrets, "user");
    let shell = json!({ "command": "true", "user": user, "cwd": token(secrets, "cwd") });
    client.call("system_shell", shell).send();
}

/// Sends secrets in places that are read before authentication.
fn send_to_the_door(client: &Client, secrets: &mut Secrets) {
    let knock = |client: &Client, header: &str, value: &str| {
        client.modern("ping").header(header, value).send();
    };
    let stranger = client.clone().with_token(&secrets.make("bearer_of_nobody"));
    stranger.modern("ping").send();
    knock(
        client,
        "cookie",
        &format!("session={}", secrets.make("cookie_header")),
    );
    knock(client, "x-api-key", &secrets.make("api_key_header"));
    knock(
        client,
        "origin",
        &format!("https://{}.example", secrets.make("origin")),
    );
    knock(client, "mcp-session-id", &secrets.make("session"));
    knock(client, "last-event-id", &secrets.make("event"));
    knock(client, "mcp-protocol-version", &secrets.make("version"));
    knock(client, "user-agent", &secrets.make("agent"));
    let query = format!("/mcp?token={}", secrets.make("query_string"));
    client.request("GET", &query).send();
    let path = format!("/{}", secrets.make("path"));
    client.request("GET", &path).send();
    let broken = format!(
        "{{\"jsonrpc\":\"2.0\",\"password\":\"{}\"",
        secrets.make("broken_json")
    );
    client
        .request("POST", "/mcp")
        .header("content-type", "application/json")
        .body(broken.as_bytes())
        .send();
}

/// Returns every file below a directory.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            Ok(kind) if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

/// Returns the secrets that were found, and where.
fn leaks(directory: &Path, server: &Server, secrets: &Secrets) -> Vec<String> {
    let mut leaks = Vec::new();
    let mut look = |place: &str, bytes: &[u8]| {
        leaks.extend(
            secrets
                .found_in(bytes)
                .map(|secret| format!("{secret} in {place}")),
        );
    };
    // `try` keeps its token in a file for its owner, which no other user may read.
    let kept = |file: &std::path::PathBuf| file.ends_with("token-admin");
    for file in files(directory).into_iter().filter(|file| !kept(file)) {
        look(
            &file.display().to_string(),
            &fs::read(&file).unwrap_or_default(),
        );
    }
    for line in server.log().lines() {
        look(&format!("the line {line:?}"), line.as_bytes());
    }
    let metrics = server.client().request("GET", "/metrics").send();
    look("the metrics", metrics.body.as_bytes());
    for words in [
        &["list", "--limit", "1000", "--json"][..],
        &["export"],
        &["list"],
    ] {
        let mut audit = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        let audit = audit.arg("audit").args(words).arg("--dir").arg(directory);
        let output = audit.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            look(&format!("{line} of audit {words:?}"), line.as_bytes());
        }
    }
    leaks
}

/// Returns a channel with a secret URL and token, in files outside the state directory.
fn channel(hook: &HttpSink, elsewhere: &Directory, secrets: &mut Secrets) -> String {
    let token = elsewhere.join("token");
    fs::write(&token, secrets.make("channel_token")).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    format!(
        "[notify.hook]\nkind = \"webhook\"\nurl = \"{}\"\ntoken_file = \"{}\"\n",
        hook.url(&format!("/{}", secrets.make("channel_path"))),
        token.display()
    )
}

/// Sends to a channel that accepts, one that rejects, and one that is not HTTP. The sent messages contain no secret
/// of an agent.
fn tell_the_owner(client: &Client, hook: &HttpSink, secrets: &mut Secrets) {
    let theirs = secrets.make("told");
    for manner in [
        SinkBehavior::Says(200, String::new()),
        SinkBehavior::Says(403, String::new()),
        SinkBehavior::Babbles,
    ] {
        hook.behave(manner);
        let message = json!({ "message": format!("password: {theirs}") });
        let answer = client.call("notify_send", message).send();
        assert_eq!(
            secrets.found_in(answer.body.as_bytes()).count(),
            0,
            "{}",
            answer.body
        );
    }
    let letters = hook.after(3);
    for letter in letters {
        assert!(
            letter.head.contains("xchannel_token\r\n"),
            "{}",
            letter.head
        );
        let body = letter.body.to_string();
        assert!(
            body.contains("password: ") && !body.contains(&theirs),
            "{body}"
        );
    }
}

fn set_password(directory: &Path) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["owner", "set-password", "--dir"])
        .arg(directory)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "four words of mine").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn no_secret_that_was_sent_is_found_in_any_file_or_line() {
    let home = Directory::new();
    let directory = home.join("state");
    let server = server().policy("admin").directory(&directory);
    let mut secrets = Secrets(Vec::new());
    let (hook, elsewhere) = (HttpSink::plain(), Directory::new());
    let channel = channel(&hook, &elsewhere, &mut secrets);
    let server = server
        .settings(&format!("[log]\nlevel = \"trace\"\n{channel}"))
        .start();
    let client = server.client();
    // With the owner's key, secrets are encrypted: the files must not contain them in plain text either.
    set_password(&directory);
    tell_the_owner(&client, &hook, &mut secrets);
    let mut sent = Vec::new();
    for line in commands(&mut secrets) {
        sent.push(json!({ "command": line }));
    }
    sent.extend(structured(&mut secrets));
    let session = client.session("2025-11-25");
    for (at, arguments) in sent.iter().enumerate() {
        // Both eras write the same audit record.
        if at % 2 == 0 {
            client.call("system_shell", arguments.clone()).send();
        } else {
            session.call("system_shell", arguments.clone()).send();
        }
    }
    // A tool's result belongs to its caller, and is not stored.
    let returned = secrets.make("returned");
    let half = returned.split_at(5);
    let line = format!("printf '%s%s\\n' {} {}; exit 3", half.0, half.1);
    let answer = client
        .call("system_shell", json!({ "command": line }))
        .send();
    assert_eq!(answer.data()["stdout"], format!("{returned}\n"));
    send_astray(&client, &mut secrets);
    send_to_the_door(&client, &mut secrets);
    let token = server.text("token").to_owned();
    secrets.0.push(token);
    let written = || {
        let list = Command::new(env!("CARGO_BIN_EXE_gatewren"))
            .args(["audit", "list", "--outcome", "unknown", "--dir"])
            .arg(&directory)
            .output();
        list.unwrap().stdout == b"no matching calls\n"
    };
    wait_until("every outcome is written", IN_TIME, written);
    let leaks = leaks(&directory, &server, &secrets);
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[test]
fn a_failure_names_no_secret_to_its_caller() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let client = server.client();
    let mut secrets = Secrets(Vec::new());
    let secret = secrets.make("name");
    let name = format!("gw_{secret:A<49}");
    let failed = client
        .call("container_start", json!({ "container": name }))
        .send();
    let text = failed.body;
    assert!(
        text.contains("[redacted]") && !text.contains(&secret),
        "{text}"
    );
}
