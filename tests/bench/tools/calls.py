"""What is called of each tool, with what arguments. A new tool is added here.

A group is a number of rounds and calls that are made in turn in each round. A reading tool is a group of its own; calls
that change something are in a group with those that undo them, so that each round finds the same box. An argument that
is a function gets the answers of the round so far, by tool. A tool is called by an agent that may do everything, or by the
agent before the colon; what `operate:TOOL` does waits for the owner, so it is not measured."""


ROUNDS = 30
# For what takes about a second by its nature: scans of a file system, copies of a container, changes whose effect the
# answer waits for.
FEW_ROUNDS = 10

BUSYBOX = {"container": "box-07"}
STOPPED = {"container": "box-08"}
DEBIAN = {"container": "debian"}
UNIT = {"unit": "bench.service"}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bench@example"
PAGE = "".join(f"line {number} of a page\n" for number in range(200))


# Tools of agents with fewer rights.
OTHER_AGENTS = {
    **dict.fromkeys(("context", "propose_change", "read", "search"), "suggest"),
    **dict.fromkeys(("change_get", "change_list", "change_withdraw"), "operate"),
}

# What a box has that is used: made once, before the measurement.
PREPARED = [
    *[("watch_create", {"name": f"watch {n}", "kind": "container", "container": f"box-0{n}"}) for n in range(1, 4)],
    *[("schedule_create", {
        "name": f"night {n}", "tool": "backup_create", "at": "*-*-* 03:00",
        "arguments": {"container": f"box-0{n}", "target": "local", "keep": {"daily": 7}},
    }) for n in range(1, 4)],
    *[("operate:container_stop", {"container": f"box-0{n}"}) for n in range(1, 4)],
    ("container_snapshot_create", {**BUSYBOX, "comment": "before the upgrade"}),
    ("backup_create", {**BUSYBOX, "target": "local"}),
    ("backup_create", {"container": "box-09", "target": "local"}),
    ("job_start", {"command": "seq 200"}),
]


def reading(tool, arguments=None, rounds=ROUNDS):
    return (rounds, [(tool, arguments or {})])


def of(tool, *path):
    """The value at this path of the round's answer of a tool."""
    def value(answers):
        found = answers[tool]
        for key in path:
            found = found[key]
        return found
    return value


READING = [
    reading("whoami"),
    reading("session_list"),
    reading("backup_list"),
    reading("backup_target_list"),
    reading("change_list"),
    reading("container_config_get", BUSYBOX),
    reading("container_diagnose", BUSYBOX),
    reading("container_file_list", {**DEBIAN, "path": "/etc"}),
    reading("container_file_read", {**DEBIAN, "path": "/etc/os-release"}),
    reading("container_history", BUSYBOX),
    reading("container_info", BUSYBOX),
    reading("container_list"),
    reading("container_logs", DEBIAN),
    reading("container_ports", DEBIAN),
    reading("container_snapshot_list", BUSYBOX),
    reading("container_stats"),
    reading("container_storage", BUSYBOX),
    reading("file_list", {"path": "/etc"}),
    reading("file_read", {"path": "/etc/passwd"}),
    reading("file_search", {"path": "/etc", "name": "*.conf"}),
    reading("boot_list"),
    reading("host_uptime_history"),
    reading("kernel_logs"),
    reading("login_list"),
    reading("logs_query"),
    reading("dns_config"),
    reading("firewall_rules"),
    reading("network_addresses"),
    reading("network_check_port", {"host": "127.0.0.1", "port": 8443}),
    reading("network_interfaces"),
    reading("network_listeners"),
    reading("network_neighbors"),
    reading("network_ping", {"host": "127.0.0.1", "count": 1}),
    reading("network_routes"),
    reading("tunnel_list"),
    reading("notification_list"),
    reading("schedule_list"),
    reading("server_history"),
    reading("server_info"),
    reading("server_metrics"),
    reading("server_processes"),
    reading("server_time"),
    reading("ssh_key_list"),
    reading("changes_since"),
    reading("state_blame", {"pointer": "/public/packageData/box-07"}),
    reading("state_get", {"pointer": "/public/serverInfo"}),
    reading("disk_health"),
    reading("disk_list"),
    reading("disk_report", rounds=FEW_ROUNDS),
    reading("disk_usage", {"path": "/var"}, FEW_ROUNDS),
    reading("context"),
    reading("read", {"id": "/public/serverInfo"}),
    reading("search", {"query": "box-07"}),
    reading("unit_list"),
    reading("unit_status", {"unit": "gatewren.service"}),
    reading("firmware_check", rounds=FEW_ROUNDS),
    reading("update_check", rounds=FEW_ROUNDS),
    reading("update_history"),
    reading("update_plan", rounds=FEW_ROUNDS),
    reading("watch_list"),
    reading("job_list"),
    reading("stack_list"),
    # A line that is there already: how long it takes until one comes is not the tool's time.
    (ROUNDS, [("logs_query", {"limit": 2}), ("logs_wait", {"cursor": of("logs_query", "start_cursor")})]),
]

CHANGING = [
    (ROUNDS, [("state_put", {"pointer": "/public/ui/bench", "value": {"tick": 1}})]),
    (ROUNDS, [("system_shell", {"command": "uptime"})]),
    (ROUNDS, [("container_shell", {**BUSYBOX, "command": "uptime"})]),
    (FEW_ROUNDS, [("container_autostart", {**BUSYBOX, "enabled": True})]),
    (FEW_ROUNDS, [("container_config_set", {**STOPPED, "start_order": 3})]),
    (ROUNDS, [("container_file_write", {**BUSYBOX, "path": "/root/page", "text": PAGE})]),
    (ROUNDS, [("file_write", {"path": "/srv/files/page", "text": PAGE})]),
    (FEW_ROUNDS, [("container_freeze", BUSYBOX), ("container_unfreeze", BUSYBOX)]),
    (FEW_ROUNDS, [("container_stop", STOPPED), ("container_start", STOPPED)]),
    (FEW_ROUNDS, [("container_restart", STOPPED)]),
    (FEW_ROUNDS, [
        ("container_stop", STOPPED),
        ("container_snapshot_create", STOPPED),
        ("container_snapshot_restore", {**STOPPED, "snapshot": of("container_snapshot_create", "snapshot")}),
        ("container_snapshot_delete", {**STOPPED, "snapshot": of("container_snapshot_create", "snapshot")}),
        ("container_clone", {**STOPPED, "new_container": "clone"}),
        ("container_destroy", {"container": "clone"}),
        ("container_create", {"container": "made", "template": "busybox"}),
        ("container_destroy", {"container": "made"}),
        ("container_start", STOPPED),
    ]),
    (FEW_ROUNDS, [
        ("container_snapshot_create", STOPPED),
        ("container_rebuild", STOPPED),
        ("container_snapshot_delete", {**STOPPED, "snapshot": of("container_snapshot_create", "snapshot")}),
    ]),
    (FEW_ROUNDS, [
        ("backup_create", {**BUSYBOX, "target": "local"}),
        ("backup_verify", {"target": "local", "backup": of("backup_create", "backup")}),
        ("backup_restore", {
            "target": "local", "backup": of("backup_create", "backup"), "container": "restored",
        }),
        ("container_destroy", {"container": "restored"}),
        ("backup_delete", {"target": "local", "backup": of("backup_create", "backup")}),
    ]),
    (ROUNDS, [("backup_target_add", {"target": "more", "root": "/mnt/more"}), ("backup_target_remove", {"target": "more"})]),
    (ROUNDS, [
        ("job_start", {"command": "seq 200"}),
        ("job_wait", {"job": of("job_start", "job")}),
        ("job_get", {"job": of("job_start", "job")}),
        ("job_output", {"job": of("job_start", "job")}),
        ("job_cancel", {"job": of("job_start", "job")}),
    ]),
    (ROUNDS, [
        ("watch_create", {"name": "bench", "kind": "container", **BUSYBOX}),
        ("watch_pause", {"name": "bench"}),
        ("watch_pause", {"name": "bench"}),
        ("watch_delete", {"name": "bench"}),
    ]),
    (ROUNDS, [
        ("schedule_create", {"name": "bench", "tool": "container_list", "at": "*-*-* 03:00"}),
        ("schedule_pause", {"schedule": "bench"}),
        ("schedule_delete", {"schedule": "bench"}),
    ]),
    (ROUNDS, [("propose_change", {
        "tool": "container_stop", "arguments": BUSYBOX, "reason": "It is not needed until tomorrow.",
    })]),
    (ROUNDS, [
        ("operate:container_stop", BUSYBOX),
        ("change_get", {"change": of("operate:container_stop", "change")}),
        ("change_withdraw", {"change": of("operate:container_stop", "change")}),
    ]),
    (FEW_ROUNDS, [("unit_start", UNIT), ("unit_reload", UNIT), ("unit_reset_failed", UNIT), ("unit_stop", UNIT)]),
    (FEW_ROUNDS, [("unit_restart", UNIT)]),
    (FEW_ROUNDS, [("unit_enable", UNIT), ("unit_disable", UNIT)]),
    (ROUNDS, [("notification_mark", {"up_to": 1_000_000_000})]),
    (ROUNDS, [("ssh_key_add", {"key": KEY, "account": "root"}), (
        "ssh_key_remove", {"fingerprint": of("ssh_key_add", "fingerprint"), "account": "root"})]),
    (FEW_ROUNDS, [("server_set_hostname", {"pretty_name": "The box"})]),
    (FEW_ROUNDS, [("server_set_timezone", {"timezone": "Europe/Berlin"})]),
    (ROUNDS, [("server_restart", {"delay_s": 300}), ("server_cancel_shutdown", {})]),
    (ROUNDS, [("server_shutdown", {"delay_s": 300}), ("server_cancel_shutdown", {})]),
]

GROUPS = READING + CHANGING

# The largest answers that the arguments allow: each is looked at for its size, not for its time.
LARGEST = [
    ("changes_since", {"revision": 0}),
    ("changes_since", {"since": "30d"}),
    ("container_file_list", {**DEBIAN, "path": "/usr/bin", "limit": 500}),
    ("container_file_read", {**DEBIAN, "path": "/usr/bin/bash", "bytes": 32_768}),
    ("container_history", {**BUSYBOX, "since": "30d", "limit": 120, "metrics": [
        "cpu_percent", "memory_bytes", "io_read_bytes_s", "network_received_bytes_s"]}),
    ("container_logs", {**DEBIAN, "lines": 1000}),
    ("container_shell", {**DEBIAN, "command": "seq 1000000"}),
    ("file_list", {"path": "/usr/bin", "limit": 200}),
    ("file_read", {"path": "/usr/bin/bash"}),
    ("file_search", {"path": "/usr", "name": "*", "limit": 200}),
    ("kernel_logs", {"limit": 200}),
    ("login_list", {"since": "30d", "failed": "with", "limit": 200}),
    ("logs_query", {"limit": 200}),
    ("notification_list", {"limit": 100}),
    ("search", {"query": "a", "limit": 50}),
    ("read", {"id": "/public"}),
    ("server_history", {"since": "30d", "limit": 120}),
    ("server_processes", {"limit": 50}),
    ("state_get", {}),
    ("state_get", {"pointer": "/public/packageData"}),
    ("state_blame", {"pointer": "/public"}),
    ("system_shell", {"command": "seq 1000000"}),
    ("unit_list", {}),
    ("update_check", {"limit": 100}),
    ("update_history", {"limit": 50}),
    ("disk_usage", {"path": "/usr", "depth": 8, "limit": 200}),
]
