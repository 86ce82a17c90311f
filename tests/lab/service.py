#!/usr/bin/env python3
"""Beside the booted box on its network (tests/lab/service): installs the package, and sees front and helper do what
they are for while systemd, and this, do things to them. One line a check: ok or not ok.

    service.py SCRIPT ADDRESS [CHECK...]    the script that booted the box, the box's address, parts of checks' names
"""

import difflib
import json
import os
import sys

import service_ends  # noqa: F401 (its checks run after those here)
from outside import FRONT, HELPER, Client, check, checks, expect, wait
from service_stage import Skipped, Stage


@check("a call from outside runs in a container, through front and helper")
def call_through_the_split(stage):
    said = stage.client.call("container_shell", container="alpha", command="hostname; id -u")
    expect(said["structuredContent"]["stdout"] == "alpha\n0\n", f"{said}")


@check("the front is no user with rights")
def front_is_nobody(stage):
    status = stage.box.read(f"/proc/{stage.box.main_pid(FRONT)}/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    expect("0" not in facts["Uid"].split() and "0" not in facts["Gid"].split(), f"{facts['Uid']} {facts['Gid']}")
    expect(int(facts["CapEff"], 16) == 0, f"capabilities {facts['CapEff']}")
    return f"uid {facts['Uid'].split()[0]}"


@check("the helper is root and has no socket of a network")
def helper_has_no_network(stage):
    pid = stage.box.main_pid(HELPER)
    expect(stage.box.shell(f"stat -c %u /proc/{pid}") == "0", "not root")
    own = set(stage.box.shell(f"find /proc/{pid}/fd -lname 'socket:*' -printf '%l\\n'").split())
    tables = "cd /proc/{pid}/net; cat tcp tcp6 udp udp6 raw raw6 | awk '$10 ~ /^[0-9]+$/ {{ print \"socket:[\" $10 \"]\" }}'"
    network = set(stage.box.shell(tables.format(pid=pid)).split())
    expect(own and network, f"nothing to compare: {len(own)} {len(network)}")
    expect(not own & network, f"{own & network}")
    return f"{len(own)} sockets, none of the box's {len(network)} of TCP and UDP"


# What the two may hold at rest, in bytes.
RESTING_BYTES = 14_000_000


@check("front and helper hold little memory at rest")
def resting_is_small(stage):
    if "GATEWREN_DEB" not in os.environ:
        raise Skipped("a debug build was packed for this; GATEWREN_DEB names a release")
    pids = [stage.box.main_pid(unit) for unit in (FRONT, HELPER)]
    seen = []

    def small():
        texts = [stage.box.read(f"/proc/{pid}/status") for pid in pids]
        seen[:] = [1024 * int(text.split("VmRSS:")[1].split()[0]) for text in texts]
        return sum(seen) <= RESTING_BYTES

    # What the start has touched goes within a minute.
    wait(f"no more than {RESTING_BYTES} bytes", small)
    return f"{seen[0]} + {seen[1]} bytes resident"


@check("the journal has a line with fields of each, for the same call")
def journal_has_fields(stage):
    stage.client.call("container_shell", container="alpha", command="true")
    lines = stage.box.journal("GATEWREN_TOOL=container_shell")
    expect(lines, "no line with GATEWREN_TOOL")
    line = lines[-1]
    expect(line["_SYSTEMD_UNIT"] == FRONT and line["_UID"] != "0", f"{line}")
    expect(line["GATEWREN_STATUS"] == "ok" and line["GATEWREN_AGENT"] and line["PRIORITY"] == "6", f"{line}")
    same = stage.box.journal(f"GATEWREN_REFERENCE={line['GATEWREN_REQUEST']}")
    expect(same and same[-1]["_SYSTEMD_UNIT"] == HELPER, f"the helper's: {same}")
    expect(same[-1]["GATEWREN_CONTAINER"] == "alpha" and same[-1]["_UID"] == "0", f"{same[-1]}")


CUT = """
import os, sqlite3
os.makedirs("/root/cut", exist_ok=True)
vault = sqlite3.connect("/root/cut/vault.db")
sqlite3.connect("file:/var/lib/gatewren/vault.db?mode=ro", uri=True).backup(vault)
triggers = vault.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name LIKE 'audit%'").fetchall()
for name, _ in triggers:
    vault.execute(f"DROP TRIGGER {name}")
vault.execute("DELETE FROM audit WHERE seq > 2")
vault.execute("UPDATE sqlite_sequence SET seq = 2 WHERE name = 'audit'")
for _, sql in triggers:
    vault.execute(sql)
vault.commit()
"""


@check("root finds in the helper's journal that the end of the audit was cut off")
def audit_is_anchored(stage):
    stage.client.call("container_shell", container="alpha", command="true")
    whole = json.loads(stage.box.run("gatewren", "audit", "verify", "--json"))["anchors"]
    expect(whole["good"] > 0 and whole["first"] is None, f"{whole}")
    stage.box.run("python3", "-c", CUT)
    stage.box.shell("journalctl -o json -u gatewren-helper >/root/helper.jsonl")
    verify = "gatewren audit verify --json --dir /root/cut --anchors /root/helper.jsonl"
    told = json.loads(stage.box.shell(f"{verify} || [ $? = 4 ]"))
    expect(told["intact"] and told["anchors"]["first"]["fault"] == "cut", f"{told}")
    return f"{whole['good']} rows in the journal"


@check("the helper answers nobody but the front's user")
def helper_answers_the_front_alone(stage):
    line = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/gatewren/helper.sock'); print(s.recv(9))"
    for user in ("root", "daemon"):
        as_user = ["setpriv", f"--reuid={user}", "--regid=gatewren", "--clear-groups", "--", "python3", "-c", line]
        expect(stage.box.run(*as_user) == "b''", f"{user} was not refused")
    outsider = ["setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups", "--", "python3", "-c", f"try: {line}\n"]
    outsider[-1] = f"try:\n  {line}\nexcept PermissionError:\n  print('kept out')"
    expect(stage.box.run(*outsider) == "kept out", "the socket's mode lets everybody in")


@check("the front sees as much of the box from its sandbox as root does without one")
def state_is_complete(stage):
    box = stage.box
    for place in ("/tmp/of-the-test", "/home/of-the-test", "/mnt/of-the-test"):
        box.shell(f"mkdir -p {place}; mount -t tmpfs -o size=8m of-the-test {place}")
    settings = 'listen = ["127.0.0.1:9443"]\nstate_dir = "/root/state"\n[helper]\nsocket = "/root/none.sock"\n'
    box.write("/root/root.toml", settings)
    box.run("systemd-run", "--quiet", "--unit=of-root", "/usr/bin/gatewren", "serve", "--config", "/root/root.toml")
    try:
        def documents():
            both = []
            for directory in ("/var/lib/gatewren", "/root/state"):
                told = box.run("gatewren", "state", "get", "/public", "--dir", directory, "--json", check=False)
                public = json.loads(told)["value"] if told else {}
                both.append({key: public.get(key) for key in ("serverInfo", "packageData")})
            return both

        def same():
            theirs, roots = documents()
            return roots if theirs == roots and (roots["serverInfo"] or {}).get("mounts") else None
        try:
            document = wait("the same document", same)
        except AssertionError:
            theirs, roots = (json.dumps(one, indent=1, sort_keys=True).splitlines() for one in documents())
            apart = [line for line in difflib.unified_diff(theirs, roots, "front", "root", n=0, lineterm="")]
            raise AssertionError(f"it differs: {apart[:40]}") from None
        mounts = document["serverInfo"]["mounts"]
        expect(mounts["/tmp/of-the-test"]["total_bytes"] == 8 << 20, f"{mounts}")
        expect(mounts["/home/of-the-test"]["read_only"] is False, f"{mounts}")
        expect("ntp_synced" in document["serverInfo"]["time"], f"{document['serverInfo']['time']}")
    finally:
        box.shell("systemctl stop of-root; umount /tmp/of-the-test /home/of-the-test /mnt/of-the-test")
    listeners = stage.client.call("network_listeners")["structuredContent"]["listeners"]
    ours = [one for one in listeners if one["port"] == 8443]
    expect(ours and all(one["program"] for one in ours), f"{listeners}")
    return f"{len(mounts)} mounts, {len(document['serverInfo'])} facts"


@check("an address of the settings is served beside systemd's socket, from the moment that it says it is ready")
def ready_is_true(stage):
    stage.box.write("/etc/gatewren/conf.d/test.toml", 'listen = ["0.0.0.0:9444"]\n')
    try:
        for _ in range(5):
            stage.box.run("systemctl", "restart", FRONT)
            # Nobody waits at this port while the front is away: it is there now, or it refuses.
            beside = Client(stage.address, 9444, stage.ca, stage.client.token)
            expect(beside.ask("tools/list")["tools"], "no tools")
        expect(stage.client.ask("tools/list")["tools"], "no tools at the usual port")
    finally:
        stage.box.run("rm", "/etc/gatewren/conf.d/test.toml")
        stage.box.run("systemctl", "restart", FRONT)


@check("each socket that systemd hands over is served")
def sockets_are_served(stage):
    box = stage.box
    box.drop_in("gatewren.socket", "[Socket]\nListenStream=9445\n")
    try:
        box.shell("systemctl stop gatewren.service gatewren.socket 2>&1; systemctl start gatewren.socket gatewren.service")
        for port in (8443, 9445):
            expect(Client(stage.address, port, stage.ca, stage.client.token).ask("tools/list")["tools"], f"{port}")
    finally:
        box.shell("systemctl stop gatewren.service gatewren.socket 2>&1", check=False)
        box.drop_in("gatewren.socket", None)
        box.shell("systemctl start gatewren.socket gatewren.service")


@check("a socket that is none of TCP is refused, and the journal says why")
def unix_socket_is_refused(stage):
    box = stage.box
    box.shell("systemctl stop gatewren.socket gatewren.service 2>&1")
    box.drop_in("gatewren.socket", "[Socket]\nListenStream=/run/of-the-test.sock\n")
    try:
        box.shell("systemctl start gatewren.socket; systemctl start gatewren.service || true", check=False)
        told = wait("it says so", lambda: [
            line["MESSAGE"] for line in box.journal("--unit", FRONT) if "does not accept TCP connections" in line["MESSAGE"]
        ])
        expect("gatewren.socket" in told[-1] and "ListenStream=" in told[-1], told[-1])
    finally:
        box.shell("systemctl stop gatewren.service gatewren.socket 2>&1; rm -f /run/of-the-test.sock", check=False)
        box.drop_in("gatewren.socket", None)
        box.shell("systemctl reset-failed gatewren.service; systemctl start gatewren.socket gatewren.service", check=False)
    expect(stage.client.ask("tools/list")["tools"], "no tools afterwards")


def main():
    stage = Stage("service", sys.argv[1], sys.argv[2])
    failed = not stage.check("the package installs", Stage.install)
    ordered = sorted(checks, key=lambda one: one[1].__module__ == "service_ends")
    return int(failed) or stage.run(ordered, sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
