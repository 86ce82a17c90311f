#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/bounds): asks a gatewren for what its owner's helper.toml allows, and for what it
does not. One line a check: ok or not ok.

    bounds.py defaults           with the file as it is shipped
    bounds.py updates            packages of a repository made here, as apt sees them
    bounds.py agent              switches `power` on, and lets the agent do it without asking anybody
    bounds.py plans              the same, then restarts and shutdowns that are planned and called off, or kept from it
    bounds.py server_restart     the box goes down a few seconds after the line
    bounds.py server_shutdown    the same
"""

import contextlib
import fcntl
import hashlib
import json
import pathlib
import subprocess
import sys
import time

GATEWREN = "/usr/local/bin/gatewren"
HOME = "/var/lib/gatewren-try"
POLICY = pathlib.Path("/etc/gatewren/helper.toml")
LOGIND = ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"]
# How long anything is waited for, on a machine however slow.
BOUND = 120

failed = False


@contextlib.contextmanager
def check(what):
    global failed
    try:
        yield
        print(f"ok bounds {what}", flush=True)
    except Exception as error:
        failed = True
        print(f"not ok bounds {what}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


def run(*command, **more):
    done = subprocess.run(command, check=True, capture_output=True, text=True, **more)
    return done.stdout


class Gatewren:
    """A gatewren that serves this program on its standard input and output."""

    META = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "gatewren-tests", "version": "1"},
    }

    def __enter__(self):
        command = [GATEWREN, "try", "--stdio", "--dir", HOME, "--policy", "admin"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # A start does not wait for the helper for ever; with each policy here something is off.
        end = time.monotonic() + BOUND
        while "off_on_this_box" not in self.call("whoami")[1]:
            expect(time.monotonic() < end, "the helper does not say what is off")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(BOUND)

    def ask(self, method, **params):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": self.META}}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def tools(self):
        return {tool["name"] for tool in self.ask("tools/list")["result"]["tools"]}

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        expect("result" in answer, answer)
        result = answer["result"]
        return result.get("isError", False), result.get("structuredContent") or result["content"][0]["text"]


def defaults():
    with Gatewren() as gatewren:
        with check("as it is shipped the file has no restart and no command on the host"):
            tools = gatewren.tools()
            off = {"system_shell", "server_restart", "server_shutdown", "server_cancel_shutdown"}
            off |= {"update_apply", "file_list", "file_search", "file_read", "file_write"}
            off |= {"backup_list", "backup_create", "backup_restore", "backup_target_list"}
            expect(not tools & off, tools & off)
            expect({"container_shell", "container_start", "update_check", "update_history"} <= tools, tools)
            for tool in off:
                answer = gatewren.ask("tools/call", name=tool, arguments={})
                expect(answer["error"]["code"] == -32602, answer)
        with check("whoami says what is off"):
            me = gatewren.call("whoami")[1]
            off = ["host_shell", "lxc_manage", "container_files", "power", "updates = \"apply\"", "units"]
            off += ["host_file_reads", "host_file_writes", "network", "storage", "cleanup", "backup"]
            off += ["backup = \"delete\"", "ssh_keys", "host_settings", "mail_to"]
            expect(me["off_on_this_box"] == off, me)


def package(repository, name, version, postinst="exit 0"):
    """A package with nothing in it but a script; its entry in the index."""
    made = repository / "made"
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@box.example>\nDescription: x\n"
    (made / "DEBIAN").mkdir(parents=True, exist_ok=True)
    (made / "DEBIAN/control").write_text(control)
    script = made / "DEBIAN/postinst"
    script.write_text(f"#!/bin/sh\n{postinst}\n")
    script.chmod(0o755)
    file = repository / f"{name}_{version}.deb"
    run("dpkg-deb", "--build", str(made), str(file))
    data = file.read_bytes()
    return file, f"{control}Filename: ./{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"


def repository(name, label, suite, packages):
    folder = pathlib.Path("/srv", name)
    folder.mkdir(parents=True)
    index = "".join(package(folder, *one)[1] for one in packages).encode()
    (folder / "Packages").write_bytes(index)
    (folder / "Release").write_text(
        f"Origin: Lab\nLabel: {label}\nSuite: {suite}\nVersion: 12\nDate: {run('date', '-uR')}"
        f"SHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
    )
    # copy: apt then has a copy of the list, as of one from the network, and not a link to it.
    return f"deb [trusted=yes] copy:{folder} ./\n"


def updates():
    with check("a repository is made"):
        old = pathlib.Path("/srv/old")
        old.mkdir(parents=True)
        for one in [("wren-one", "1.0"), ("wren-two", "1.0"), ("wren-three", "1.0")]:
            run("dpkg", "--install", str(package(old, *one)[0]))
        sources = repository("main", "Lab", "stable", [("wren-one", "1.1"), ("wren-three", "1.0")])
        sources += repository("security", "Lab-Security", "stable-security", [("wren-two", "1:1.0+deb1")])
        pathlib.Path("/etc/apt/sources.list").write_text(sources)
    with Gatewren() as gatewren:
        with check("update_check knows that no lists were ever fetched"):
            wrong, said = gatewren.call("update_check")
            expect(not wrong and said["total"] == 0 and "lists_refreshed" not in said, said)
        run("apt-get", "update")
        with check("update_check names what apt would upgrade, the security update first"):
            wrong, said = gatewren.call("update_check")
            one = {"name": "wren-one", "architecture": "all", "installed": "1.0", "candidate": "1.1",
                   "origin": "Lab:12/stable", "security": False}
            two = {"name": "wren-two", "architecture": "all", "installed": "1.0", "candidate": "1:1.0+deb1",
                   "origin": "Lab-Security:12/stable-security", "security": True}
            expect(not wrong and said["packages"] == [two, one], said)
            expect((said["total"], said["security"], "next_offset" in said) == (2, 1, False), said)
            expect(said["lists_refreshed"].startswith("2") and not said["reboot_required"], said)
        with check("update_check installs nothing and needs no lock"):
            with open("/var/lib/dpkg/lock-frontend", "w") as lock:
                fcntl.lockf(lock, fcntl.LOCK_EX)
                wrong, said = gatewren.call("update_check")
            expect(not wrong and said["total"] == 2, said)
            expect(run("dpkg-query", "-W", "-f", "${Version}", "wren-one") == "1.0", "it was upgraded")
        with check("update_check tells of a reboot that waits"):
            pathlib.Path("/run/reboot-required").touch()
            pathlib.Path("/run/reboot-required.pkgs").write_text("wren-two\n")
            _, said = gatewren.call("update_check")
            expect(said["reboot_required"] and said["reboot_packages"] == ["wren-two"], said)
    POLICY.write_text('updates = "off"\n')
    with Gatewren() as gatewren, check("update_check is not there when it is off"):
        expect("update_check" not in gatewren.tools(), "it is listed")


def agent():
    POLICY.write_text('power = "on"\n')
    with Gatewren():
        pass  # makes the agent
    allowed = ["server_restart", "server_shutdown", "server_cancel_shutdown"]
    words = [word for tool in allowed for word in ("--tool", f"{tool}=allow")]
    run(GATEWREN, "agent", "edit", "try", "--dir", HOME, *words)


def planned():
    return run("busctl", "get-property", *LOGIND, "ScheduledShutdown").split('"')[1]


def plans():
    agent()
    with Gatewren() as gatewren:
        for tool, word, how in [("server_restart", "restart", "reboot"), ("server_shutdown", "shutdown", "poweroff")]:
            with check(f"{tool} is planned with logind and called off"):
                wrong, said = gatewren.call(tool, delay_s=80_000, reason="--help; $(a \"test\")")
                expect(not wrong and said == {"planned": word, "in_s": 80_000}, said)
                expect(planned() == how, planned())
                wrong, said = gatewren.call("server_cancel_shutdown")
                expect(not wrong and said == {"cancelled": True}, said)
                expect(planned() == "", planned())
        with check("server_cancel_shutdown says when nothing was planned"):
            wrong, said = gatewren.call("server_cancel_shutdown")
            expect(not wrong and said == {"cancelled": False}, said)
        with check("an inhibitor lock keeps the box up"):
            command = ["systemd-inhibit", "--what=shutdown", "--why=a test", "sleep", "infinity"]
            with subprocess.Popen(command) as inhibitor:
                end = time.monotonic() + BOUND
                while "shutdown" not in run("busctl", "get-property", *LOGIND, "BlockInhibited"):
                    expect(time.monotonic() < end, "there is no lock")
                    time.sleep(0.1)
                wrong, said = gatewren.call("server_restart", delay_s=80_000)
                inhibitor.terminate()
            expect(wrong and "systemd-inhibit --list" in said, said)
            expect(planned() == "", planned())
        with check("a reason of two lines is refused"):
            wrong, said = gatewren.call("server_restart", delay_s=80_000, reason="one\ntwo")
            expect(wrong and "one line" in said and planned() == "", said)


def down(tool):
    with Gatewren() as gatewren, check(f"{tool} is answered before the box goes down"):
        wrong, said = gatewren.call(tool, reason="a test")
        expect(not wrong and said["in_s"] == 15, said)


if __name__ == "__main__":
    what = sys.argv[1]
    steps = {"defaults": defaults, "updates": updates, "agent": agent, "plans": plans}
    steps.get(what, lambda: down(what))()
    sys.exit(1 if failed else 0)
