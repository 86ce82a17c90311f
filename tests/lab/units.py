#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/box): does things to units with systemctl and reads in state.db what the
running gatewren made of them. One line a check: ok or not ok.

    units.py UNIT STATE_DB BINARY    the unit that gatewren runs as, its state database, its program

The database is read as any other program may: the newest snapshot, then every patch after it.
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import time

UNITS = "/public/units"
AVAILABLE = "/public/observer/units/available"
# How long anything is waited for. Without signals the observer would look after ten minutes only, so that
# whatever is seen within this was seen by a signal, on a machine however slow.
BOUND = 120
# The observer's rate for one unit: so many changes at once, then one in so many seconds.
BURST, EVERY = 10, 30

failed = False


@contextlib.contextmanager
def check(what):
    global failed
    start, told = time.monotonic(), []
    try:
        yield told
        print(f"ok box {what} ({'; '.join([*told, f'{time.monotonic() - start:.1f} s in all'])})", flush=True)
    except Exception as error:
        failed = True
        print(f"not ok box {what}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


class Document:
    """The state document, followed revision by revision."""

    def __init__(self, path):
        self.connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30, isolation_level=None)
        newest = "SELECT revision, document FROM snapshot ORDER BY revision DESC LIMIT 1"
        row = self.connection.execute(newest).fetchone() or (0, "{}")
        self.revision, self.root = row[0], json.loads(row[1])
        self.log = []  # (revision, milliseconds since 1970, operations)

    def refresh(self):
        rows = self.connection.execute(
            "SELECT id, at_ms, patch FROM revision WHERE id > ? ORDER BY id", (self.revision,)
        ).fetchall()
        for number, at_ms, patch in rows:
            expect(number == self.revision + 1, f"a gap in the log: {number} after {self.revision}")
            operations = json.loads(patch)
            for operation in operations:
                self.apply(operation)
            self.revision = number
            self.log.append((number, at_ms, operations))

    def apply(self, operation):
        *above, last = keys(operation["path"])
        parent = self.root
        for key in above:
            parent = parent[int(key)] if isinstance(parent, list) else parent[key]
        if isinstance(parent, list):
            at = len(parent) if last == "-" else int(last)
            if operation["op"] == "add":
                parent.insert(at, operation["value"])
            elif operation["op"] == "replace":
                parent[at] = operation["value"]
            elif operation["op"] == "remove":
                del parent[at]
        elif operation["op"] in ("add", "replace"):
            parent[last] = operation["value"]
        elif operation["op"] == "remove":
            del parent[last]

    def at(self, pointer):
        node = self.root
        for key in keys(pointer):
            if not isinstance(node, dict) or key not in node:
                return None
            node = node[key]
        return node

    def unit(self, name):
        return self.at(UNITS + "/" + name)

    def touching(self, pointer, since):
        """The patches after `since` that touch what is at or below a pointer, or above it."""
        def touches(operation):
            path = operation["path"]
            return path == pointer or path.startswith(pointer + "/") or pointer.startswith(path + "/")
        return [operations for number, _, operations in self.log if number > since and any(map(touches, operations))]

    def wait(self, what, truth):
        """Waits until `truth()` holds and returns the log's moment of the revision that made it so."""
        end = time.monotonic() + BOUND
        while True:
            self.refresh()
            if truth():
                return self.log[-1][1] if self.log else 0
            expect(time.monotonic() < end, f"not within {BOUND} s: {what}; units: {json.dumps(self.at(UNITS))}")
            time.sleep(0.02)

    def wait_for_unit(self, which, **facts):
        """Waits until a unit has these facts; without any, until it is gone."""
        def truth():
            unit = self.unit(which)
            return unit is None if not facts else unit is not None and facts.items() <= unit.items()
        return self.wait(f"{which} {facts or 'gone'}", truth)


def keys(pointer):
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)
    expect(done.returncode == 0, f"{' '.join(command)}: {done.returncode} {done.stdout}{done.stderr}")
    return done.stdout.strip()


def systemctl(*arguments):
    return run("systemctl", *arguments)


def show(unit, name):
    return systemctl("show", "--value", "--property", name, unit)


def now_ms():
    return time.time_ns() // 1_000_000


def unit_file(name, *service):
    lines = ["[Unit]", f"Description=Test {name}", "StartLimitIntervalSec=0", "[Service]", *service]
    lines += ["[Install]", "WantedBy=multi-user.target", ""]
    pathlib.Path("/etc/systemd/system", name).write_text("\n".join(lines))


def took(told, what, since, seen):
    told.append(f"{what} seen after {max(0, seen - since)} ms")


def life_of_a_service(document):
    sleep = "lab-sleep.service"
    with check("a unit file that is added is in the document after daemon-reload") as told:
        unit_file(sleep, "ExecStart=sleep infinity")
        since = now_ms()
        systemctl("daemon-reload")
        took(told, "it", since, document.wait_for_unit(sleep, active="inactive", enabled="disabled"))
    with check("a start is seen by its signal, with the process") as told:
        since = now_ms()
        systemctl("start", sleep)
        took(told, "it", since, document.wait_for_unit(sleep, active="active", sub="running"))
        pid = int(show(sleep, "MainPID"))
        document.wait_for_unit(sleep, main_pid=pid, description=f"Test {sleep}", result="success")
    with check("a restart is seen as another process") as told:
        since = now_ms()
        systemctl("restart", sleep)
        pid = int(show(sleep, "MainPID"))
        took(told, "it", since, document.wait_for_unit(sleep, active="active", main_pid=pid))
    with check("a crash is seen as a failure, with its result") as told:
        since = now_ms()
        systemctl("kill", "--signal=KILL", sleep)
        took(told, "it", since, document.wait_for_unit(sleep, active="failed", result="signal"))
        expect("main_pid" not in document.unit(sleep), "a dead process is still named")
    with check("a stop is seen") as told:
        systemctl("start", sleep)
        document.wait_for_unit(sleep, active="active")
        since = now_ms()
        systemctl("stop", sleep)
        took(told, "it", since, document.wait_for_unit(sleep, active="inactive"))
    with check("a unit whose file is removed leaves the document after daemon-reload") as told:
        pathlib.Path("/etc/systemd/system", sleep).unlink()
        since = now_ms()
        systemctl("daemon-reload")
        took(told, "it", since, document.wait_for_unit(sleep))


def which_units_matter(document):
    plain = "plain.service"
    with check("a unit that is neither chosen nor enabled is in the document as long as it has failed"):
        unit_file(plain, "ExecStart=sleep infinity")
        systemctl("daemon-reload")
        systemctl("start", plain)
        systemctl("kill", "--signal=KILL", plain)
        document.wait_for_unit(plain, active="failed", enabled="disabled")
        systemctl("reset-failed", plain)
        document.wait_for_unit(plain)
        expect(not document.touching(UNITS + "/" + plain, document.revision), "it came back")
    with check("a unit is in the document as long as it is enabled"):
        systemctl("enable", plain)
        document.wait_for_unit(plain, enabled="enabled", active="inactive")
        systemctl("disable", plain)
        document.wait_for_unit(plain)
    with check("transient units come and go") as told:
        since = now_ms()
        run("systemd-run", "--quiet", "--unit=lab-transient", "sleep", "infinity")
        seen = document.wait_for_unit("lab-transient.service", active="active", enabled="transient")
        took(told, "its coming", since, seen)
        since = now_ms()
        systemctl("stop", "lab-transient.service")
        took(told, "its going", since, document.wait_for_unit("lab-transient.service"))
    with check("a name that is escaped is one name"):
        name = run("systemd-escape", "--template=lab-@.service", "a/b c")
        unit_file("lab-@.service", "ExecStart=sleep infinity")
        systemctl("daemon-reload")
        systemctl("start", name)
        document.wait_for_unit(name, name=name, active="active")
        systemctl("stop", name)
        document.wait_for_unit(name)


def storms(document):
    loop = "lab-loop.service"
    with check(f"a service that restarts every 100 ms changes the document {BURST} times, then every {EVERY} s") as told:
        unit_file(loop, "ExecStart=true", "Restart=always", "RestartSec=100ms")
        systemctl("daemon-reload")
        document.wait_for_unit(loop, active="inactive")
        before, start = document.revision, time.monotonic()
        systemctl("start", "--no-block", loop)
        end = start + BOUND
        while int(show(loop, "NRestarts")) < 40:
            expect(time.monotonic() < end, "the service does not restart")
            time.sleep(0.2)
        restarts = int(show(loop, "NRestarts"))
        document.refresh()
        changes = len(document.touching(UNITS + "/" + loop, before))
        told.append(f"{restarts} restarts in {time.monotonic() - start:.1f} s, {changes} revisions")
        expect(1 <= changes <= BURST + (time.monotonic() - start) / EVERY + 1, told[0])
    with check("when it has stopped for good, so it has in the document"):
        systemctl("stop", loop)
        document.wait_for_unit(loop, active="inactive")
    with check("a storm of daemon-reloads changes nothing but what has changed") as told:
        units, before = list(document.at(UNITS)), document.revision
        for _ in range(20):
            systemctl("daemon-reload")
        unit_file("lab-after.service", "ExecStart=sleep infinity")
        systemctl("daemon-reload")
        document.wait_for_unit("lab-after.service", active="inactive")
        told.append(f"{len(document.touching(UNITS, before))} revision for the one unit that came")
        for name in units:
            touched = document.touching(UNITS + "/" + name, before)
            expect(not touched, f"{name} was touched: {touched}")


def tools(binary):
    """The reading tools, asked over standard input and output of a gatewren of their own."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "gatewren-tests", "version": "1"},
    }
    command = [binary, "try", "--stdio", "--dir", "/var/lib/gatewren-try", "--policy", "observe"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        def call(tool, **arguments):
            params = {"name": tool, "arguments": arguments, "_meta": meta}
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            print(json.dumps(request), file=server.stdin, flush=True)
            result = json.loads(server.stdout.readline())["result"]
            return result.get("isError", False), result.get("structuredContent") or result

        with check("unit_list lists what is asked for, sorted"):
            wrong, listed = call("unit_list", name="*.timer")
            names = [unit["name"] for unit in listed["units"]]
            expect(not wrong and names == sorted(names) and "dpkg-db-backup.timer" in names, listed)
            expect(listed["total"] == len(names) and not listed["truncated"], listed)
            wrong, listed = call("unit_list", state="active")
            expect({unit["active"] for unit in listed["units"]} == {"active"}, listed)
            wrong, rest = call("unit_list", state="active", offset=listed["total"] - 2)
            expect(not wrong and len(rest["units"]) == 2 and not rest["truncated"], rest)
        with check("unit_status tells of a service and of a timer"):
            wrong, dbus = call("unit_status", unit="dbus.service")
            expect(not wrong and dbus["main_pid"] == int(show("dbus.service", "MainPID")), dbus)
            expect(dbus["sub"] == "running" and dbus["restarts"] == 0 and dbus["enabled"] == "static", dbus)
            wrong, timer = call("unit_status", unit="dpkg-db-backup.timer")
            expect(not wrong and timer["next"].startswith("2") and timer["file"].startswith("/"), timer)
            expect(timer["triggers"] == ["dpkg-db-backup.service"], timer)
        with check("unit_status of a unit that does not exist says so"):
            wrong, words = call("unit_status", unit="nobody.service")
            expect(wrong and "no unit 'nobody.service'" in json.dumps(words), words)
        server.stdin.close()


def bus(document, service):
    pid = show(service, "MainPID")
    open_files = len(os.listdir(f"/proc/{pid}/fd"))
    with check("a restart of the bus is survived, and so are five more; no unit leaves the document for the first") as told:
        before, names, start = document.revision, set(document.at(UNITS)), time.monotonic()
        systemctl("restart", "dbus.service")
        quick = time.monotonic() - start < 1.5  # or it was away for so long that it may well be told
        systemctl("start", "lab-after.service")
        document.wait_for_unit("lab-after.service", active="active")
        expect(names <= set(document.at(UNITS)), f"gone: {names - set(document.at(UNITS))}")
        expect(not quick or not document.touching(AVAILABLE, before), "the units were unavailable meanwhile")
        for _ in range(5):
            systemctl("reset-failed", "dbus.service")  # or systemd finds that it starts too often
            systemctl("restart", "dbus.service")
        systemctl("reset-failed", "dbus.service")
    with check("without a bus the document says that no units can be seen, and why"):
        systemctl("stop", "dbus.socket", "dbus.service")
        document.wait("not available", lambda: document.at(AVAILABLE) is False)
        expect(document.at(UNITS) == {}, "units are left")
        expect("bus" in document.at("/public/observer/units/why"), "no reason")
    with check("when the bus is back, so are the units") as told:
        systemctl("stop", "lab-after.service")
        since = now_ms()
        systemctl("start", "dbus.socket", "dbus.service")
        took(told, "they", since, document.wait("available", lambda: document.at(AVAILABLE) is True))
        document.wait_for_unit("lab-after.service", active="inactive")
        expect(names <= set(document.at(UNITS)), f"not back: {names - set(document.at(UNITS))}")
    with check("it was one gatewren all the time"):
        expect(show(service, "MainPID") == pid != "0", f"process {pid} became {show(service, 'MainPID')}")
        names = os.listdir(f"/proc/{pid}/fd")
        expect(len(names) < open_files + 8, f"{open_files} open files have become {len(names)}")


def main(service, database, binary):
    document = Document(database)
    with check("the enabled units of the box are in the document, with what they trigger"):
        document.wait("available", lambda: document.at(AVAILABLE) is True)
        backup = "dpkg-db-backup.timer"
        document.wait_for_unit(backup, active="active", enabled="enabled", triggers=["dpkg-db-backup.service"])
        expect("sub" not in document.unit(backup), "what moves with every use is told")
        expect(document.unit("dbus.service") is None, "a unit that does not matter is told")
    life_of_a_service(document)
    which_units_matter(document)
    storms(document)
    tools(binary)
    bus(document, service)
    sys.exit(failed)


main(*sys.argv[1:])
