//! Tests that each tool's class fits what the tool makes possible: an agent that may only read and write runs no
//! code of its choice.

use std::collections::BTreeMap;

use super::tables::tables;
use gatewren_base::config::{Mode, Policy, Preset, Risk};
use gatewren_gate::policy::mode;

/// Why no tool of class read, scan or write makes the host or a container run code that the caller chose. A tool
/// that places bytes which a root process executes is of class persist. A tool that starts any program is of
/// class disrupt or execute. `tests/it/container_reading.rs` calls each of these tools about a container in which
/// every program is a trap.
#[rustfmt::skip]
const NO_CODE: &[(&str, &[&str])] = &[
    ("returns what gatewren keeps in its own databases", &[
        "change_get", "change_list", "changes_since", "container_history", "context", "job_get", "job_list",
        "job_output", "job_wait",
        "notification_list", "read", "schedule_list", "search", "server_history", "session_list",
        "state_blame", "state_get", "watch_list", "whoami",
    ]),
    ("changes records of gatewren's own, which are data and never executed", &[
        "change_withdraw", "notification_mark", "notification_remove", "session_kill", "state_put", "watch_delete",
        "watch_pause",
    ]),
    ("leaves a proposal: nothing runs before the owner approves it", &["propose_change"]),
    ("ends processes that a call of class execute started", &["job_cancel"]),
    ("reads the kernel, LXC's definitions or files, and executes none of them", &[
        "container_config_get", "container_file_list", "container_list", "container_ports",
        "container_snapshot_list", "container_stats", "disk_list", "dns_config", "file_list", "file_search",
        "network_addresses", "network_interfaces", "network_listeners", "network_neighbors", "network_routes",
        "server_info", "server_metrics", "server_processes", "server_time", "ssh_key_list",
    ]),
    ("starts fixed programs of the host; no tool of class read or write can replace them", &[
        "backup_list", "backup_target_list", "backup_verify", "container_info", "container_storage", "disk_health", "disk_report", "disk_usage",
        "firewall_rules", "firmware_check", "host_uptime_history", "kernel_logs", "tunnel_list", "wifi_scan", "wifi_status",
    ]),
    ("starts programs of the host, also for a container; they read its files in a jail", &[
        "boot_list", "container_diagnose", "container_logs", "login_list", "logs_query", "logs_wait",
        "update_check", "update_history", "update_plan",
    ]),
    ("asks a systemd about units, at its socket, and starts no program for it", &["unit_list", "unit_status"]),
    ("sends packets that gatewren makes itself", &["dns_query", "network_check_port", "network_ping"]),
    ("has the server repeat what a tool of class read or scan does, with that tool's permission", &["watch_create"]),
    ("changes the state of a loaded unit and starts none; what a reload runs is in the unit's file, which only tools \
      of other classes can write", &["unit_reload", "unit_reset_failed"]),
    ("makes containers run their own programs; only tools of other classes can change those", &[
        "container_autostart", "container_start", "container_unfreeze", "stack_start",
    ]),
    ("asks the daemons of Docker and Podman for facts, and starts no program", &["stack_info", "stack_list"]),
    ("copies files as they are; the caller chooses no byte of a program", &[
        "backup_create", "container_clone", "container_snapshot_create",
    ]),
    ("mounts what the owner named, with nosuid, nodev and noexec", &["backup_target_mount", "backup_target_umount"]),
    ("sets a value from a fixed list, or a name without any character that a shell or a parser obeys", &[
        "server_governor", "server_set_hostname", "server_set_keyboard", "server_set_language",
        "server_set_timezone", "server_zram", "wifi_country",
    ]),
    ("cancels a planned restart or shutdown", &["server_cancel_shutdown"]),
    ("sends a text to the owner's channels", &["notify_send"]),
];

/// Tools that lead to code, with the class that each has for that reason.
#[rustfmt::skip]
const CODE: &[(Risk, &[&str])] = &[
    // A command of the caller's.
    (Risk::Execute, &["container_shell", "job_start", "system_shell"]),
    // Bytes that root executes, or the right to log in.
    (Risk::Persist, &[
        "backup_target_add", "container_config_set", "container_file_write", "file_write", "ssh_key_add",
        "ssh_key_remove", "unit_enable",
    ]),
    // Programs that others made; the caller chooses one of them.
    (Risk::Disrupt, &[
        "backup_restore", "disk_cleanup", "container_create", "container_move", "container_rebuild", "container_restart",
        "container_snapshot_restore", "firmware_update", "stack_restart", "tunnel_up", "unit_restart", "unit_start",
        "update_apply", "update_run",
    ]),
];

/// Each tool with its class.
fn classes() -> BTreeMap<String, Risk> {
    let catalog = tables().unwrap();
    let tools = catalog.tools();
    tools
        .map(|tool| (tool.name().to_owned(), tool.risk()))
        .collect()
}

#[test]
fn each_tool_that_only_reads_or_writes_has_a_reason_why_it_leads_to_no_code() {
    let mut unexplained = classes();
    unexplained.retain(|_, risk| matches!(risk, Risk::Read | Risk::Scan | Risk::Write));
    let mut others: Vec<&&str> = Vec::new();
    for (why, names) in NO_CODE {
        assert!(names.is_sorted(), "{why}: {names:?}");
        others.extend(
            names
                .iter()
                .filter(|name| unexplained.remove(**name).is_none()),
        );
    }
    assert!(
        unexplained.is_empty(),
        "no line in NO_CODE for {unexplained:?}: explain why the tool cannot lead to code, or choose another class"
    );
    assert_eq!(others, [&""; 0], "named twice, or of another class");
}

#[test]
fn a_tool_that_sends_packets_where_its_caller_wants_is_a_scan() {
    let mut scans = classes();
    scans.retain(|_, risk| *risk == Risk::Scan);
    let names: Vec<&String> = scans.keys().collect();
    assert_eq!(names, ["dns_query", "network_check_port", "network_ping"]);
}

#[test]
fn a_tool_that_leads_to_code_has_a_class_that_an_operator_needs_approval_for() {
    let classes = classes();
    let catalog = tables().unwrap();
    let operate = Policy::from(Preset::Operate);
    for (risk, names) in CODE {
        for name in *names {
            assert_eq!(classes.get(*name), Some(risk), "{name}");
            let tool = catalog.tool(name).unwrap();
            let mode = mode(&operate, &**tool);
            assert!(matches!(mode, Mode::Deny | Mode::Propose), "{name}: {mode}");
        }
    }
}
