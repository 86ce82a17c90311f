//! What the command line says about a trial works in that trial: hints, addresses, and who may read it.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::owner_page::{code, get, set_up};
use crate::support::machine::{is_root, skip};
use crate::support::pipe::Pipe;
use crate::support::server::{Directory, server};

/// The user and group "nobody".
const NOBODY: u32 = 65_534;

fn gatewren(words: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(words).arg("--dir").arg(directory);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn said(words: &[&str], directory: &Path) -> String {
    text(&gatewren(words, directory).output().unwrap())
}

#[test]
fn a_hint_names_the_directory_and_works_as_it_is() {
    let home = Directory::new();
    let _server = server().directory(&home.0).start();
    let status = said(&["status"], &home.0);
    let hint = status
        .lines()
        .find_map(|line| line.split_once("gatewren owner setup"));
    let (_, options) = hint.unwrap_or_else(|| panic!("no hint: {status}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let done = command
        .args(["owner", "setup"])
        .args(options.split_whitespace());
    let done = done.output().unwrap();
    assert!(done.status.success(), "{options}: {}", text(&done));
}

#[test]
fn a_trial_is_named_as_its_clients_reach_it() {
    let home = Directory::new();
    let server = server().directory(&home.0).listen("localhost:0").start();
    let port = server.address().port();
    let near = format!("https://localhost:{port}/mcp");
    let claude = said(&["client-config", "claude-code"], &home.0);
    assert!(claude.contains(&near), "{claude}");
    assert!(!claude.contains("cannot connect by address"), "{claude}");
    let metrics = said(&["metrics", "show"], &home.0);
    assert!(metrics.contains(&format!("127.0.0.1:{port}")), "{metrics}");
}

#[test]
fn a_code_names_what_clients_reach_or_says_why_they_reach_nothing() {
    let home = Directory::new();
    let near = server().directory(&home.0).start();
    let port = near.address().port();
    let json = gatewren(&["pair", "laptop", "--json"], &home.0).output();
    let json: Value = serde_json::from_slice(&json.unwrap().stdout).unwrap();
    assert_eq!(json["only_this_box"], true, "{json}");
    let code = json["code"].as_str().unwrap();
    assert!(code.ends_with(&format!("@localhost:{port}")), "{json}");
    let mut pipe = Pipe::start(&["bridge", "--pair", code]);
    pipe.ask_modern(
        1,
        "tools/call",
        json!({ "name": "whoami", "arguments": {} }),
    );
    let who = pipe.answer(1);
    assert_eq!(
        who["result"]["structuredContent"]["name"], "laptop",
        "the code works on this machine: {who}"
    );
    let said = said(&["pair", "phone"], &home.0);
    let remedy = format!(
        "gatewren try --listen 0.0.0.0:{port} --dir {}",
        home.0.display()
    );
    assert!(said.contains("On this machine"), "{said}");
    assert!(said.contains(&remedy), "{said}");
    assert!(!said.contains('\u{2580}'), "no QR code for a phone: {said}");
    let proxied = self::said(&["pair", "phone", "--host", "box.lan:443"], &home.0);
    assert!(proxied.contains("@box.lan:443"), "{proxied}");
    assert!(!proxied.contains("--listen"), "{proxied}");

    drop((pipe, near));
    // The advice is followed: the code has the name by which other machines reach this one.
    let far = server().directory(&home.0).listen("0.0.0.0:0").start();
    let port = far.address().port();
    let said = self::said(&["pair", "phone"], &home.0);
    assert!(!said.contains("--listen"), "{said}");
    assert!(!said.contains(&format!("@localhost:{port}")), "{said}");
    assert!(said.contains(&format!(":{port}")), "{said}");
    let claude = self::said(&["client-config", "claude-code"], &home.0);
    let near = format!("https://localhost:{port}/mcp");
    assert!(claude.contains(&near), "{claude}");
}

#[test]
fn the_page_of_a_trial_names_the_certificate_that_the_trial_has() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let client = server.client();
    let cookie = set_up(&client, &code(&home));
    let page = get(&client, "/owner/connect", &cookie).body;
    let (_, rest) = page.split_once("prints:</p>").unwrap();
    let (_, command) = rest.split_once("<pre>").unwrap();
    let (command, _) = command.split_once("</pre>").unwrap();
    // Tests run as root or as a person, as a trial does.
    let authority = home.join("tls/ca.pem");
    let expected = format!(
        "openssl x509 -in {} -noout -fingerprint -sha256",
        authority.display()
    );
    assert_eq!(command, expected);
    let printed = Command::new("sh").args(["-c", command]).output().unwrap();
    let printed = text(&printed);
    let fingerprint = printed.trim().split_once('=').expect(&printed).1;
    assert!(page.contains(fingerprint), "{printed}");
}

#[test]
fn who_may_not_read_the_vault_is_told_so_and_what_to_type() {
    if !is_root() {
        return skip("another user needs root");
    }
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    // A copy: this user may not reach the folder of the build either.
    let program = std::env::temp_dir().join(format!("gatewren-it-copy-{}", server.pid()));
    crate::support::machine::install_program(Path::new(env!("CARGO_BIN_EXE_gatewren")), &program);
    let mut command = Command::new(&program);
    command.args(["agent", "list", "--dir"]).arg(&home.0);
    let output = command.uid(NOBODY).gid(NOBODY).output();
    std::fs::remove_file(&program).unwrap();
    let said = text(&output.unwrap());
    let vault = home.join("vault.db");
    let expected = [
        format!("cannot read {}: Permission denied", vault.display()),
        format!("sudo gatewren agent list --dir {}", home.0.display()),
    ];
    for words in expected {
        assert!(said.contains(&words), "{said}");
    }
    let absent = Directory::new();
    let said = self::said(&["agent", "list"], &absent.0);
    assert!(said.contains("start gatewren once"), "{said}");
}
