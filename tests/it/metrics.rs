//! `/metrics`: who may read it, its content and format, and a dashboard that queries only existing metrics.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::command::{refused, tell, tell_by};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

const LOOPBACK: &str = "[metrics]\nloopback = true\n";

fn scrape(server: &Server, token: &str) -> Answer {
    let client = server.client().with_token(token);
    client.request("GET", "/metrics").send()
}

/// Returns the value of a series, by everything before the value.
fn value(page: &str, series: &str) -> Option<f64> {
    let found = page.lines().find_map(|line| line.strip_prefix(series));
    found.map(|value| value.trim().parse().unwrap())
}

#[test]
fn the_token_of_the_metrics_is_good_for_nothing_else_and_ends_when_it_is_said() {
    let home = Directory::new();
    let server = server().policy("observe").directory(&home.0).start();
    let own = server.client().request("GET", "/metrics").send();
    assert_eq!(own.status, 403, "an agent that may not see everything");
    assert_eq!(own.json()["error"], "admin_required");

    let first = tell(&home.0, &["metrics", "token"]).0["token"].clone();
    let first = first.as_str().unwrap();
    let answer = scrape(&server, first);
    assert_eq!(answer.status, 200, "{answer:?}");
    let media = answer.header("content-type").unwrap();
    assert!(media.starts_with("text/plain; version=0.0.4"), "{media}");
    let client = server.client().with_token(first);
    assert_eq!(client.modern("tools/list").send().status, 401);
    for (verb, path) in [("GET", "/mcp"), ("POST", "/login"), ("GET", "/owner")] {
        let status = client.request(verb, path).send().status;
        assert!([303, 401, 415].contains(&status), "{verb} {path}: {status}");
    }

    let second = tell(&home.0, &["metrics", "token"]).0["token"].clone();
    assert_eq!(scrape(&server, first).status, 401, "another took its place");
    let second = second.as_str().unwrap();
    assert_eq!(scrape(&server, second).status, 200);
    assert_eq!(tell(&home.0, &["metrics", "show"]).0["token"], true);
    assert_eq!(tell(&home.0, &["metrics", "revoke"]).0["revoked"], true);
    assert_eq!(scrape(&server, second).status, 401);
    assert!(refused(&home.0, &["metrics", "revoke"]).contains("no metrics token"));
    let deeds = ["metrics token", "metrics revoke"];
    for deed in deeds {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.args(["audit", "list", "--tool", deed, "--dir"]);
        let output = command.arg(&home.0).output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        assert!(listed.contains(" ok"), "{deed}: {listed}");
        assert!(!listed.contains("gw_"), "{listed}");
    }
}

#[test]
fn whoever_is_on_the_box_looks_without_a_token_only_where_the_owner_wants_it() {
    let server = server().settings("").start();
    let bare = |client: &crate::support::client::Client| {
        client.request("GET", "/metrics").without("authorization")
    };
    assert_eq!(bare(&server.client()).send().status, 401);
    server.reload_with(LOOPBACK);
    for (way, client) in server.clients() {
        assert_eq!(bare(&client).send().status, 200, "{way}");
        for (name, value) in [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-real-ip", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1"),
            ("via", "1.1 proxy"),
        ] {
            let through = bare(&client).header(name, value).send();
            assert_eq!(through.status, 401, "{way}: {name}");
        }
        let named = tell_by(&server.settings_file(), &["metrics", "show"]);
        assert_eq!(named["loopback"], true);
        let wrong = client.clone().with_token("gw_x").request("GET", "/metrics");
        assert_eq!(wrong.send().status, 401, "{way}: a wrong token is no token");
    }
    let hosts = "[access]\nallowed_hosts = [\"box.example\"]\n";
    server.reload_with(&format!("{LOOPBACK}{hosts}"));
    let through = bare(&server.client()).host("box.example").send();
    assert_eq!(
        through.status, 401,
        "a tunnel on the server, under the server's public name"
    );
    assert_eq!(bare(&server.client()).host("localhost").send().status, 200);
    server.reload_with("");
    assert_eq!(bare(&server.client()).send().status, 401);
}

#[test]
fn what_happens_is_on_the_page_and_the_dashboard_asks_for_nothing_else() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let client = server.client();
    assert_eq!(client.call("whoami", json!({})).send().status, 200);
    let unknown = client.clone().with_token(&format!("gw_{}", "x".repeat(49)));
    assert_eq!(unknown.modern("tools/list").send().status, 401);
    let session = client.session("2025-11-25");
    let uri = json!({ "uri": "gatewren://state/public/ui" });
    let _ = session
        .request("resources/subscribe")
        .param("uri", uri["uri"].clone())
        .send();
    let mut page = String::new();
    wait_until("the audit was looked at", IN_TIME, || {
        page = client.request("GET", "/metrics").send().body;
        page.contains("gatewren_audit_chain_ok")
    });
    let agent = tell(&home.0, &["agent", "list"]).0[0]["id"].clone();
    let agent = agent.as_str().unwrap();
    let called =
        format!("gatewren_tool_calls_total{{tool=\"whoami\",agent=\"{agent}\",outcome=\"ok\"}}");
    assert_eq!(value(&page, &called), Some(1.0), "{page}");
    assert_eq!(
        value(&page, "gatewren_tool_seconds_count{tool=\"whoami\"}"),
        Some(1.0)
    );
    assert_eq!(value(&page, "gatewren_audit_chain_ok "), Some(1.0));
    assert_eq!(value(&page, "gatewren_inbox_pending "), Some(0.0));
    assert_eq!(value(&page, "gatewren_jobs_running "), Some(0.0));
    assert!(
        value(&page, "gatewren_auth_failures_total ") >= Some(1.0),
        "{page}"
    );
    assert!(
        value(&page, "gatewren_state_revision ") >= Some(1.0),
        "{page}"
    );
    let day = 86_400.0;
    assert!(
        value(&page, "gatewren_tls_cert_expiry_seconds ") > Some(day),
        "{page}"
    );
    let named = format!("gatewren_agent_info{{agent=\"{agent}\",name=\"try\"}}");
    assert_eq!(value(&page, &named), Some(1.0), "{page}");

    asks_for_what_is_there(&page);
}

/// Asserts that each sample has its family, and that the dashboard queries only existing metrics.
fn asks_for_what_is_there(page: &str) {
    let families: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(families.contains(family(name)), "{line}");
    }
    let board = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/packaging/grafana/gatewren.json"
    );
    let board: Value = serde_json::from_slice(&fs::read(board).unwrap()).unwrap();
    let mut asked = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            names(target["expr"].as_str().unwrap(), &mut asked);
        }
    }
    assert!(asked.len() > 15, "{asked:?}");
    for name in &asked {
        assert!(
            families.contains(family(name)),
            "{name} is on no page: {families:?}"
        );
    }
}

/// Returns the family of a sample.
fn family(name: &str) -> &str {
    let parts = ["_bucket", "_sum", "_count"];
    let bare = parts.iter().find_map(|part| name.strip_suffix(part));
    bare.filter(|bare| bare.ends_with("_seconds"))
        .unwrap_or(name)
}

/// Collects the metrics in an expression.
fn names(expression: &str, found: &mut BTreeSet<String>) {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    found.extend(
        words
            .filter(|word| word.starts_with("gatewren_"))
            .map(str::to_owned),
    );
}
