//! `gatewren client-config` as a person types it: the configuration on standard output, the steps on standard error.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::command::{add_agent, refused, tell};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

fn config(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.arg("client-config").args(args);
    command.arg("--dir").arg(directory).output().unwrap()
}

/// Returns the client's configuration, and the steps.
fn said(directory: &Path, args: &[&str]) -> (String, String) {
    let output = config(directory, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

fn host(server: &Server) -> String {
    let url = server.text("url");
    url.trim_start_matches("https://")
        .trim_end_matches("/mcp")
        .to_owned()
}

#[test]
fn every_client_is_listed_and_gets_its_steps() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let host = host(&server);
    let (listed, code) = tell(&home.0, &["client-config"]);
    assert_eq!(code, Some(0));
    let clients: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["client"].as_str().unwrap())
        .collect();
    assert!(clients.len() >= 15, "{clients:?}");
    let (table, _) = said(&home.0, &[]);
    let fingerprint = {
        let pem = fs::read_to_string(server.text("ca")).unwrap();
        let (_, fingerprint) = said(&home.0, &["curl", "--host", &host]);
        assert!(pem.contains("BEGIN CERTIFICATE"));
        let at = fingerprint.split_once("it must print ").unwrap().1;
        at.lines().next().unwrap().trim_end_matches(':').to_owned()
    };
    let mut openssl = Command::new("openssl");
    openssl.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]);
    if let Ok(output) = openssl.arg(server.text("ca")).output() {
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.trim().ends_with(&fingerprint), "{shown}");
    }
    for client in clients {
        assert!(table.contains(client), "{client}: {table}");
        let (text, words) = said(&home.0, &[client, "--host", &host]);
        let url = format!("https://{host}/mcp");
        // Clients that cannot connect by address get the host's name, and a line for its hosts file.
        let by_name = ["claude-code", "opencode"].contains(&client);
        assert_eq!(
            text.contains(&format!("https://{host}/")),
            !by_name,
            "{client}: {text}"
        );
        assert_eq!(
            words.contains("\n   127.0.0.1 "),
            by_name,
            "{client}: {words}"
        );
        assert!(!text.contains("gw_"), "{client}: {text}");
        assert!(words.contains("\n1. "), "{client}: {words}");
        let last = words.lines().rfind(|line| line.contains(". "));
        assert!(last.unwrap().contains(". Check: "), "{client}: {words}");
        // The agents of a trial are in its own directory.
        let command = format!("agent add NAME --dir {}`", home.0.display());
        assert!(!words.contains("agent add NAME`"), "{client}: {words}");
        assert_eq!(
            words.contains(&command),
            words.contains("agent add"),
            "{client}: {words}"
        );
        let (json, _) = tell(&home.0, &["client-config", client, "--host", &host]);
        assert_eq!(json["text"], text.trim_end(), "{client}");
        assert_eq!(json["url"], url.as_str());
        assert_eq!(json["steps"][0]["kind"], "prepare", "{client}");
        assert_eq!(json["authority"]["sha256"], fingerprint.as_str());
    }
}

#[test]
fn a_token_comes_from_a_file_or_anew_and_never_from_the_arguments() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let host = host(&server);
    add_agent(&home.0, "claude", &["--policy", "operate"]);
    let with = |more: &[&str]| said(&home.0, &[&["cursor", "--host", &host], more].concat());
    let (text, words) = with(&["--agent", "claude"]);
    assert!(text.contains("${env:GATEWREN_TOKEN}"), "{text}");
    assert!(words.contains("agent rotate claude"), "{words}");

    let (text, words) = with(&["--agent", "claude", "--new-token"]);
    assert!(words.contains("old token is revoked"), "{words}");
    let config: Value = serde_json::from_str(&text).unwrap();
    let header = &config["mcpServers"]["gatewren"]["headers"]["Authorization"];
    let token = header.as_str().unwrap().strip_prefix("Bearer ").unwrap();
    let client = server.client().with_token(token);
    wait_until("it comes in", IN_TIME, || {
        client.modern("tools/list").send().status == 200
    });
    let rotated = tell(&home.0, &["audit", "list", "--tool", "agent rotate"]).0;
    assert_eq!(rotated["ended"]["outcome"], "ok", "{rotated}");

    let file = home.join("token");
    fs::write(&file, format!("{token}\n")).unwrap();
    assert_eq!(with(&["--token-file", file.to_str().unwrap()]).0, text);
    let (text, _) = said(&home.0, &["vscode", "--host", &host, "--agent", "claude"]);
    assert!(text.contains("Token of gatewren, claude"), "{text}");

    fs::write(&file, "hunter2 is no token").unwrap();
    let file = file.to_str().unwrap();
    let words = refused(&home.0, &["client-config", "cursor", "--token-file", file]);
    assert!(
        words.contains("does not contain an agent's token") && !words.contains("hunter2"),
        "{words}"
    );
}

#[test]
fn what_would_not_work_is_said() {
    let home = Directory::new();
    drop(server().directory(&home.0).start());
    add_agent(&home.0, "gone", &[]);
    tell(&home.0, &["agent", "revoke", "gone"]);
    for (args, words) in [
        (&["cursor", "--agent", "nobody"][..], "gatewren agent list"),
        (&["cursor", "--agent", "gone"], "was revoked"),
        (&["cursor", "--new-token"], "--agent"),
        (
            &[
                "cursor",
                "--agent",
                "gone",
                "--new-token",
                "--token-file",
                "x",
            ],
            "cannot be used",
        ),
        (&["--agent", "gone"], "<CLIENT>"),
        (&["cursr"], "cursor"),
        (&["cursor", "--host", "a b"], "is not a host"),
        (&["cursor", "--host", "me@box.lan"], "is not a host"),
        (
            &["cursor", "--token-file", "/nowhere/at/all"],
            "cannot read",
        ),
    ] {
        let output = config(&home.0, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{args:?}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn the_address_is_the_one_of_the_settings() {
    let home = Directory::new();
    let file = home.join("gatewren.toml");
    let told = |toml: &str, more: &[&str]| -> Value {
        fs::write(
            &file,
            format!("state_dir = \"{}\"\n{toml}", home.0.display()),
        )
        .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.args(["client-config", "fastmcp", "--json", "--config"]);
        let output = command.arg(&file).args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let named = "names = [\"box.lan\", \"box\"]\nlisten = [\"0.0.0.0:9443\"]\n";
    let json = told(named, &[]);
    assert_eq!(json["url"], "https://box.lan:9443/mcp");
    assert_eq!(
        json["authority"]["sha256"],
        Value::Null,
        "it is not there yet"
    );
    assert_eq!(
        told(named, &["--host", "tail.net"])["url"],
        "https://tail.net:9443/mcp"
    );
    assert_eq!(
        told(named, &["--host", "[fd00::5]:1"])["url"],
        "https://[fd00::5]:1/mcp"
    );
    let one = told("listen = [\"192.168.1.5:8443\"]\n", &[]);
    assert_eq!(one["url"], "https://192.168.1.5:8443/mcp");
    let files = "[tls]\nmode = \"files\"\ncert = \"/c.pem\"\nkey = \"/k.pem\"\n";
    let vouched = told(files, &[]);
    assert_eq!(vouched["authority"], Value::Null);
    assert!(!vouched.to_string().contains("SSL_CERT_FILE"), "{vouched}");
    let private = told(files, &["--authority", "/etc/our ca.pem"]);
    let steps = private["steps"].to_string();
    assert!(
        steps.contains("cat /etc/ssl/certs/ca-certificates.crt '/etc/our ca.pem' >"),
        "{steps}"
    );
    assert!(
        steps.contains("export SSL_CERT_FILE=\\\"$HOME/gatewren-bundle.pem"),
        "{steps}"
    );
}
