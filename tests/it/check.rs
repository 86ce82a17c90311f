//! `gatewren check` as a person or a unit runs it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::server::{Directory, server};

/// A settings file for one test.
struct Settings(PathBuf);

impl Settings {
    fn of(name: &str, text: &str) -> Self {
        let folder = format!("gatewren-check-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("gatewren.toml");
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn check(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_gatewren"))
            .args(["check", "--config"])
            .arg(&self.0)
            .args(arguments)
            .output()
            .unwrap()
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn good_settings_end_with_0() {
    let settings = Settings::of("good", "[log]\nlevel = \"debug\"\n");
    let output = settings.check(&[]);
    assert_eq!(text(&output.stdout), "the settings are valid\n");
    assert_eq!(output.status.code(), Some(0));
    let output = settings.check(&["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["ok"], &json["problems"]), (&json!(true), &json!([])));
    let keys = json["settings"].as_array().unwrap();
    let of = |name: &str| keys.iter().find(|key| key["key"] == name).unwrap();
    let file = settings.0.to_str().unwrap();
    assert_eq!(
        of("log.level"),
        &json!({ "key": "log.level", "value": "debug", "file": file, "line": 2, "needs_restart": false })
    );
    assert_eq!(
        of("listen"),
        &json!({ "key": "listen", "value": ["0.0.0.0:8443"], "file": null, "line": null, "needs_restart": true })
    );
    let output = settings.check(&["--resolved"]);
    let said = text(&output.stdout);
    let line = format!("log.level = \"debug\"  # {file}:2");
    assert!(said.lines().any(|said| said == line), "{said}");
    let default = "limits.drain = \"30s\"  # default";
    assert!(said.lines().any(|said| said == default), "{said}");
}

#[test]
fn the_helpers_policy_is_checked_with_it() {
    let settings = Settings::of("helper", "");
    let policy = settings.0.with_file_name("policy.toml");
    std::fs::write(&policy, "host_shel = \"off\"\n").unwrap();
    std::fs::set_permissions(&policy, Permissions::from_mode(0o644)).unwrap();
    let output = settings.check(&["--helper", policy.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("policy.toml:1: unknown key \"host_shel\""),
        "{said}"
    );
    std::fs::write(&policy, "host_shell = \"off\"\n").unwrap();
    let output = settings.check(&["--helper", policy.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn bad_settings_end_with_2_and_every_problem() {
    let settings = Settings::of("bad", "lisen = []\n[limits]\ndrain = 1\n");
    let path = settings.0.display();
    let output = settings.check(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].starts_with(&format!("{path}:1: unknown key \"lisen\"")),
        "{said}"
    );
    assert!(
        lines[1].starts_with(&format!("{path}:3: limits.drain must be a time")),
        "{said}"
    );

    let output = settings.check(&["--json"]);
    assert_eq!(output.status.code(), Some(2));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"][1]["line"], 3);
    assert_eq!(json["problems"][1]["file"], settings.0.to_str().unwrap());
}

#[test]
fn a_certificate_that_cannot_serve_is_a_problem() {
    let text_of =
        "[tls]\nmode = \"files\"\ncert = \"/nonexistent/c.pem\"\nkey = \"/nonexistent/k.pem\"\n";
    let output = Settings::of("cert", text_of).check(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("the certificate /nonexistent/c.pem does not exist"),
        "{said}"
    );
}

#[test]
fn a_name_that_the_authority_cannot_sign_for_is_a_problem_and_nothing_is_written() {
    let home = Directory::new();
    drop(server().directory(&home.0).start());
    let state = |name: &str| {
        format!(
            "names = [\"{name}\"]\nstate_dir = \"{}\"\n",
            home.0.display()
        )
    };
    let names = || -> BTreeSet<OsString> {
        let entries = std::fs::read_dir(home.join("tls")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = (names(), std::fs::read(home.join("tls/cert.pem")).unwrap());
    let output = Settings::of("foreign-name", &state("box.example.org")).check(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("cannot sign for box.example.org"), "{said}");
    let output = Settings::of("home-name", &state("new.localhost")).check(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let after = (names(), std::fs::read(home.join("tls/cert.pem")).unwrap());
    assert_eq!(before, after);
}

#[test]
fn the_samples_that_are_installed_are_good() {
    let etc = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/etc"));
    let output = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["check", "--config"])
        .arg(etc.join("gatewren.toml"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
