//! What an agent's policy lets it see and do, and how arguments are checked.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::machine::is_root;
use crate::support::server::shared;

const READING: [&str; 25] = [
    "changes_since",
    "container_info",
    "container_list",
    "container_ports",
    "container_stats",
    "disk_list",
    "disk_usage",
    "dns_config",
    "dns_query",
    "file_list",
    "file_search",
    "network_addresses",
    "network_check_port",
    "network_interfaces",
    "network_listeners",
    "network_neighbors",
    "network_ping",
    "network_routes",
    "server_info",
    "server_metrics",
    "server_processes",
    "server_time",
    "state_blame",
    "state_get",
    "whoami",
];

const CHANGING: [&str; 3] = ["container_restart", "container_start", "container_stop"];

/// What looks at jobs, and what begins and ends them.
const LOOKING_AT_JOBS: [&str; 4] = ["job_get", "job_list", "job_output", "job_wait"];
const JOBS: [&str; 2] = ["job_cancel", "job_start"];

const ASKING_AFTER: [&str; 3] = ["change_get", "change_list", "change_withdraw"];

const RUNNING: [&str; 2] = ["container_shell", "system_shell"];

const SUGGESTING: [&str; 4] = ["context", "propose_change", "read", "search"];

/// Only where systemd runs the machine.
const LOOKING_AT_UNITS: [&str; 2] = ["unit_list", "unit_status"];

/// The same.
const CHANGING_UNITS: [&str; 7] = [
    "unit_disable",
    "unit_enable",
    "unit_reload",
    "unit_reset_failed",
    "unit_restart",
    "unit_start",
    "unit_stop",
];

/// The same.
const GOING_DOWN: [&str; 3] = [
    "server_cancel_shutdown",
    "server_restart",
    "server_shutdown",
];

/// Only where there is a journal to read.
const LOOKING_AT_LOGS: [&str; 4] = ["boot_list", "kernel_logs", "logs_query", "logs_wait"];

/// Only where there is nft.
const LOOKING_AT_THE_FIREWALL: [&str; 1] = ["firewall_rules"];

/// What shows secrets or lets somebody in: for `admin` alone.
const FILES: [&str; 2] = ["file_read", "file_write"];

/// Only where there is apt.
const LOOKING_AT_UPDATES: [&str; 1] = ["update_check"];

/// What looks on this machine, and what else there is on it.
fn here() -> (Vec<&'static str>, Vec<&'static str>) {
    let is_booted = Path::new("/run/systemd/system").is_dir();
    let has_apt = Path::new("/usr/bin/apt-get").exists();
    let units: &[&str] = if is_booted { &LOOKING_AT_UNITS } else { &[] };
    let updates: &[&str] = if has_apt { &LOOKING_AT_UPDATES } else { &[] };
    let firewall: &[&str] = if Path::new("/usr/sbin/nft").exists() {
        &LOOKING_AT_THE_FIREWALL
    } else {
        &[]
    };
    let logs: &[&str] = if Path::new("/usr/bin/journalctl").exists() {
        &LOOKING_AT_LOGS
    } else {
        &[]
    };
    let changing: [&[&str]; 2] = if is_booted {
        [&GOING_DOWN, &CHANGING_UNITS]
    } else {
        [&[], &[]]
    };
    (
        [
            &READING[..],
            &LOOKING_AT_JOBS,
            units,
            logs,
            firewall,
            updates,
        ]
        .concat(),
        changing.concat(),
    )
}

fn seen(policy: &'static str) -> Vec<String> {
    let server = shared(policy);
    let mut names = server.client().modern("tools/list").send().names("tools");
    let session = server.client().session("2025-06-18");
    assert_eq!(
        session.request("tools/list").send().names("tools"),
        names,
        "both eras alike"
    );
    assert_eq!(
        server
            .client()
            .http2()
            .modern("tools/list")
            .send()
            .names("tools"),
        names
    );
    names.sort();
    names
}

#[test]
fn t2_each_policy_sees_its_tools() {
    let all = |groups: &[&[&str]]| {
        let mut names: Vec<String> = groups
            .concat()
            .iter()
            .map(|&name| name.to_owned())
            .collect();
        names.sort();
        names
    };
    let (reading, changing) = here();
    assert_eq!(seen("observe"), all(&[&reading]));
    assert_eq!(
        seen("operate"),
        all(&[
            &reading,
            &changing,
            &CHANGING,
            &RUNNING,
            &JOBS,
            &ASKING_AFTER
        ])
    );
    assert_eq!(
        seen("admin"),
        all(&[&reading, &changing, &CHANGING, &RUNNING, &JOBS, &FILES])
    );
    assert_eq!(seen("suggest"), SUGGESTING);
}

#[test]
fn t10_what_a_policy_denies_is_answered_as_what_does_not_exist() {
    let words = |policy: &'static str, tool: &str| {
        let answer = shared(policy)
            .client()
            .call(tool, json!({ "command": "true" }))
            .send();
        assert_eq!(answer.verdict(), (200, -32_602), "{policy}: {tool}");
        answer.message().replace(tool, "TOOL")
    };
    let unknown = words("observe", "nothing");
    for tool in CHANGING.iter().chain(&RUNNING).chain(&JOBS).chain(&[
        "package.shell",
        "system.shell",
        "package.stop",
    ]) {
        assert_eq!(words("observe", tool), unknown, "{tool}");
    }
    for tool in READING {
        assert_eq!(words("suggest", tool), unknown, "{tool}");
    }
    let session = shared("observe").client().session("2025-06-18");
    let answer = session
        .call("system_shell", json!({ "command": "true" }))
        .send();
    assert_eq!(answer.verdict(), (200, -32_602));
}

#[test]
fn what_needs_approval_is_not_done() {
    let server = shared("operate");
    let file = std::env::temp_dir().join(format!("gatewren-it-approval-{}", std::process::id()));
    let command = format!("touch {}", file.display());
    let call = |arguments: Value| server.client().call("system_shell", arguments).send();
    // Nothing that a model writes into its call is consent.
    let consent = json!({ "command": command, "confirm": true });
    let failure = call(consent).failure();
    assert!(failure.contains("confirm"), "{failure}");
    let data = call(json!({ "command": command })).data();
    assert_eq!(
        (&data["applied"], &data["status"]),
        (&json!(false), &json!("pending"))
    );
    assert!(!file.exists());
}

#[test]
fn whoami_says_the_policy() {
    for policy in ["observe", "operate", "admin"] {
        let answer = shared(policy).client().call("whoami", json!({})).send();
        let data = answer.data();
        assert_eq!(
            (&data["policy"], &data["name"]),
            (&json!(policy), &json!("try"))
        );
    }
}

#[test]
#[rustfmt::skip]
fn t10_an_argument_error_names_the_field_and_the_rule_and_does_nothing() {
    let server = shared("admin");
    let rows: [(&str, Value, &[&str]); 11] = [
        ("system_shell", json!({ "command": "true", "timeout_s": 0 }), &["timeout_s", "1 to 300"]),
        ("system_shell", json!({ "command": "true", "timeout_s": 301 }), &["timeout_s", "1 to 300"]),
        ("system_shell", json!({ "command": "true", "timeout_s": "5" }), &["timeout_s"]),
        ("system_shell", json!({ "command": "true", "timeout_s": 1.5 }), &["timeout_s"]),
        ("system_shell", json!({ "comand": "true" }), &["comand", "command"]),
        ("system_shell", json!({}), &["command", "argv"]),
        ("system_shell", json!({ "command": "true", "argv": ["true"] }), &["command", "argv"]),
        ("system_shell", json!({ "command": 5 }), &["command", "string"]),
        ("container_info", json!({}), &["container"]),
        ("container_info", json!({ "container": "../etc" }), &["container"]),
        ("changes_since", json!({ "revision": -1 }), &["revision"]),
    ];
    for (tool, arguments, words) in rows {
        for failure in [
            server.client().call(tool, arguments.clone()).send().failure(),
            server.client().session("2025-06-18").call(tool, arguments.clone()).send().failure(),
        ] {
            for word in words {
                assert!(failure.contains(word), "{tool} {arguments}: {failure}");
            }
        }
    }
}

#[test]
fn no_arguments_at_all_are_none() {
    let server = shared("observe");
    let modern = |field: Value| {
        let request = server.client().modern("tools/call").name("whoami");
        request.param("arguments", field).send().data()["policy"].clone()
    };
    assert_eq!(modern(json!({})), "observe");
    assert_eq!(modern(Value::Null), "observe");
    let request = server.client().modern("tools/call").name("whoami");
    assert_eq!(request.send().data()["policy"], "observe");
    let session = server.client().session("2025-03-26");
    let answer = session.request("tools/call").name("whoami").send();
    assert_eq!(answer.verdict(), (200, 0));
    let needing = server
        .client()
        .modern("tools/call")
        .name("container_info")
        .send();
    assert!(needing.failure().contains("container"));
}

#[test]
fn a_call_without_a_name_is_refused() {
    let server = shared("observe");
    let session = server.client().session("2025-06-18");
    assert_eq!(
        session.request("tools/call").send().verdict(),
        (200, -32_602)
    );
    let number = session.request("tools/call").param("name", json!(5));
    assert_eq!(number.send().verdict(), (200, -32_602));
}

#[test]
fn the_names_of_the_startos_dialect_are_understood() {
    let server = shared("admin");
    let shell = |tool: &str, arguments: Value| server.client().call(tool, arguments).send();
    let host = shell(
        "system.shell",
        json!({ "command": "echo hi", "timeout": 5 }),
    );
    assert_eq!(host.data()["stdout"], "hi\n");
    let inside = shell(
        "package.shell",
        json!({ "id": "no-such-box", "command": "true" }),
    )
    .failure();
    let refused = if is_root() {
        "no-such-box"
    } else {
        "need root"
    };
    assert!(inside.contains(refused), "{inside}");
    assert!(shell("auth.get-pubkey", json!({})).data()["policy"] == "admin");
    let state = shell("db.dump", json!({ "pointer": "/public" })).data();
    assert!(state["revision"].is_u64());
    // Ours keep their own parameter names.
    let ours = shell("container_shell", json!({ "id": "x", "command": "true" })).failure();
    assert!(ours.contains("id") && ours.contains("container"), "{ours}");
    let listed = server.client().modern("tools/list").send().names("tools");
    assert!(!listed.iter().any(|name| name.contains('.')), "{listed:?}");
}

#[test]
fn a_dialect_call_in_2026_names_what_it_calls_in_its_header() {
    let server = shared("observe");
    let call = server.client().call("auth.get-pubkey", json!({}));
    assert_eq!(call.clone().send().status, 200);
    assert_eq!(
        call.header("mcp-name", "whoami").send().verdict(),
        (400, -32_020)
    );
}

#[test]
fn the_list_is_the_same_each_time_and_its_schemas_are_closed() {
    let server = shared("admin");
    let first = server.client().modern("tools/list").send().result();
    assert_eq!(
        first["tools"],
        server.client().modern("tools/list").send().result()["tools"]
    );
    for tool in first["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 64 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
        let reads = here().0.contains(&name) || name == "file_read";
        assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{name}");
    }
}
