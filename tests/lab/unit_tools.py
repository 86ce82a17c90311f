#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/units): units, journal and processes of a real systemd, through gatewren's tools.
One line a check: ok or not ok."""

import contextlib
import pathlib
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from bounds import BOUND, GATEWREN, HOME, POLICY, Gatewren, expect, run  # noqa: E402

CHANGING = ["start", "stop", "restart", "reload", "reset_failed", "enable", "disable"]

failed = False


@contextlib.contextmanager
def check(what):
    global failed
    try:
        yield
        print(f"ok units {what}", flush=True)
    except Exception as error:
        failed = True
        print(f"not ok units {what}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)


def unit_file(name, text):
    pathlib.Path("/etc/systemd/system", name).write_text(text)


def show(unit, what):
    return run("systemctl", "show", "--value", "--property", what, unit).strip()


def prepare():
    """Units to play with, and an agent that nobody has to be asked about."""
    unit_file("lab-wren.service", "[Service]\nExecStart=sleep infinity\nExecReload=true\n"
              "[Install]\nWantedBy=multi-user.target\n")
    unit_file("lab-bad.service", "[Service]\nType=oneshot\nExecStart=false\n")
    unit_file("lab-slow.service", "[Service]\nType=oneshot\nExecStart=sleep infinity\nTimeoutStartSec=1\n")
    run("systemctl", "daemon-reload")
    # Something is off, which is what is waited for.
    POLICY.write_text('units = "on"\npower = "off"\n')
    with Gatewren():
        pass  # makes the agent
    words = [word for verb in CHANGING for word in ("--tool", f"unit_{verb}=allow")]
    run(GATEWREN, "agent", "edit", "try", "--dir", HOME, *words)


def units(gatewren):
    wren = {"unit": "lab-wren.service"}
    with check("unit_start starts a unit and tells how it stands"):
        wrong, said = gatewren.call("unit_start", **wren)
        expect(not wrong and said["outcome"] == "done", said)
        expect((said["active"], said["sub"]) == ("active", "running"), said)
        expect(said["main_pid"] == int(show("lab-wren.service", "MainPID")), said)
    with check("unit_restart makes another process of it, unit_reload does not"):
        before = show("lab-wren.service", "MainPID")
        wrong, said = gatewren.call("unit_restart", **wren)
        expect(not wrong and str(said["main_pid"]) != before, said)
        wrong, again = gatewren.call("unit_reload", **wren)
        expect(not wrong and again["main_pid"] == said["main_pid"], again)
    with check("unit_stop stops it"):
        wrong, said = gatewren.call("unit_stop", **wren)
        expect(not wrong and (said["outcome"], said["active"]) == ("done", "inactive"), said)
        expect(show("lab-wren.service", "ActiveState") == "inactive", said)
    with check("unit_enable and unit_disable change what is started at boot, and nothing now"):
        for verb, state in [("enable", "enabled"), ("disable", "disabled")]:
            wrong, said = gatewren.call(f"unit_{verb}", **wren)
            expect(not wrong and said["enabled"] == state and said["active"] == "inactive", said)
            expect(show("lab-wren.service", "UnitFileState") == state, said)
    with check("a unit without an [Install] section cannot be enabled, and it is said why"):
        wrong, said = gatewren.call("unit_enable", unit="lab-bad.service")
        expect(wrong and "[Install]" in said, said)
    with check("a unit that fails is told with the job's result, and unit_reset_failed forgets it"):
        wrong, said = gatewren.call("unit_start", unit="lab-bad.service")
        expect(wrong and "'failed'" in said and "logs_query" in said, said)
        expect(show("lab-bad.service", "ActiveState") == "failed", said)
        wrong, said = gatewren.call("unit_reset_failed", unit="lab-bad.service")
        expect(not wrong and said["active"] == "inactive", said)
    with check("a unit that takes too long is told with systemd's own word for it"):
        wrong, said = gatewren.call("unit_start", unit="lab-slow.service")
        expect(wrong and ("'failed'" in said or "'timeout'" in said), said)
    with check("a unit that does not exist, or cannot be reloaded, is said so"):
        wrong, said = gatewren.call("unit_start", unit="nobody.service")
        expect(wrong and "not found" in said and "unit_list" in said, said)
        wrong, said = gatewren.call("unit_reload", unit="lab-bad.service")
        expect(wrong, said)
    with check("gatewren's own units, and those that take the box down, are refused"):
        for unit, words in [
            ("gatewren.service", "gatewren itself"),
            ("gatewren-helper.socket", "gatewren itself"),
            ("reboot.target", "the whole server"),
            ("systemd-poweroff.service", "the whole server"),
            ("rescue.target", "the whole server"),
        ]:
            for verb in CHANGING:
                wrong, said = gatewren.call(f"unit_{verb}", unit=unit)
                expect(wrong and words in said, f"{verb} {unit}: {said}")
    with check("no name is an option"):
        wrong, said = gatewren.call("unit_start", unit="--help.service")
        expect(wrong and "not found" in said, said)


def say(identifier, *lines, priority="info"):
    text = "".join(f"{line}\n" for line in lines)
    run("systemd-cat", "--identifier", identifier, "--priority", priority, "cat", input=text)
    run("journalctl", "--sync")


def messages(page):
    return [line["message"] for line in page["lines"]]


def logs(gatewren):
    say("lab-log", *(f"wren number {number}" for number in range(10)))
    say("lab-log", "a warning of the wren", priority="warning")
    with check("logs_query returns the newest lines that fit, the oldest of them first"):
        wrong, page = gatewren.call("logs_query", grep="wren number", limit=3)
        expect(not wrong and messages(page) == [f"wren number {number}" for number in (7, 8, 9)], page)
        line = page["lines"][0]
        expect(line["identifier"] == "lab-log" and line["priority"] == "info", line)
        expect(line["time"].endswith("Z") and line["pid"] > 1 and page["truncated"], page)
    with check("its cursors lead to older lines and to newer ones"):
        wrong, older = gatewren.call("logs_query", grep="wren number", limit=3, cursor=page["start_cursor"], before=True)
        expect(not wrong and messages(older) == [f"wren number {number}" for number in (4, 5, 6)], older)
        wrong, newer = gatewren.call("logs_query", grep="wren number", limit=2, cursor=older["start_cursor"])
        expect(messages(newer) == [f"wren number {number}" for number in (5, 6)] and newer["truncated"], newer)
        wrong, rest = gatewren.call("logs_query", grep="wren number", cursor=newer["end_cursor"])
        expect(messages(rest) == [f"wren number {number}" for number in (7, 8, 9)] and not rest["truncated"], rest)
        wrong, none = gatewren.call("logs_query", grep="wren number", cursor=rest["end_cursor"])
        expect(not wrong and none["lines"] == [] and "end_cursor" not in none, none)
    with check("it looks for units, priorities, times and boots"):
        wrong, page = gatewren.call("logs_query", unit="lab-bad.service")
        expect(not wrong and page["lines"] and {line["unit"] for line in page["lines"]} == {"lab-bad.service"}, page)
        wrong, page = gatewren.call("logs_query", priority="warning", grep="of the wren")
        expect(messages(page) == ["a warning of the wren"], page)
        wrong, page = gatewren.call("logs_query", priority="err", grep="of the wren")
        expect(messages(page) == [], page)
        wrong, page = gatewren.call("logs_query", grep="of the wren", since="1d", boot="0")
        expect(messages(page) == ["a warning of the wren"], page)
        wrong, page = gatewren.call("logs_query", grep="of the wren", until="2001-01-01")
        expect(messages(page) == [], page)
        wrong, page = gatewren.call("logs_query", since="2099-01-01T00:00:00Z")
        expect(not wrong and messages(page) == [], page)
    with check("secrets and what would steer a terminal are not told"):
        say("lab-log", "wren says password=hunter2hunter2 \x1b[2J done")
        wrong, page = gatewren.call("logs_query", grep="wren says")
        expect(len(page["lines"]) == 1, page)
        text = messages(page)[0]
        expect("hunter2" not in text and "\x1b" not in text and "^[[2J" in text, text)
    with check("a pattern that is none is said so"):
        wrong, said = gatewren.call("logs_query", grep="(")
        expect(wrong and "pattern" in said.lower(), said)
    with check("boot_list knows this boot"):
        wrong, said = gatewren.call("boot_list")
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        expect(not wrong and said["total"] >= 1 and said["boots"][0]["boot"] == 0, said)
        expect(len(said["boots"][0]["id"]) == len(boot), said)
        wrong, page = gatewren.call("logs_query", grep="of the wren", boot=said["boots"][0]["id"])
        expect(messages(page) == ["a warning of the wren"], page)
    with check("host_uptime_history shows this boot as running"):
        wrong, said = gatewren.call("host_uptime_history")
        expect(not wrong and said["boots"][0]["end"] == "running" and said["up_percent"] <= 100, said)
    with check("kernel_logs tells of the kernel alone"):
        wrong, page = gatewren.call("kernel_logs")
        expect(not wrong and {line.get("identifier") for line in page["lines"]} <= {"kernel"}, page)


def waits(gatewren):
    with check("logs_wait returns the line that comes, and with a cursor none is missed"):
        say("lab-log", "before the wait")
        _, page = gatewren.call("logs_query", grep="before the wait", limit=1)
        say("lab-log", "heron one")
        wrong, said = gatewren.call("logs_wait", grep="heron", cursor=page["end_cursor"], timeout_s=45)
        expect(not wrong and said["found"] and said["line"]["message"] == "heron one", said)
        stop = threading.Event()

        def keep_saying():
            while not stop.wait(0.2):
                say("lab-log", "heron two")

        saying = threading.Thread(target=keep_saying)
        saying.start()
        wrong, said = gatewren.call("logs_wait", grep="heron two", timeout_s=45)
        stop.set()
        saying.join()
        expect(not wrong and said["found"] and said["line"]["message"] == "heron two", said)
    with check("logs_wait says when nothing came"):
        wrong, said = gatewren.call("logs_wait", grep="never said by anybody", cursor=page["end_cursor"], timeout_s=1)
        expect(not wrong and said == {"found": False, "end_cursor": page["end_cursor"]}, said)
    with check("no journalctl is left"):
        # One whose line has come is told to end, and not waited for.
        end = time.monotonic() + BOUND
        while subprocess.run(["pgrep", "-x", "journalctl"], capture_output=True).returncode == 0:
            expect(time.monotonic() < end, "there is one")
            time.sleep(0.1)


def processes(gatewren):
    with check("server_processes shows what uses most, with its unit"):
        unit_file("lab-busy.service", "[Service]\nExecStart=sh -c 'while :; do :; done' lab-busy --password hunter2hunter2\n")
        run("systemctl", "daemon-reload")
        run("systemctl", "start", "lab-busy.service")
        try:
            wrong, said = gatewren.call("server_processes", limit=50)
            busy = [one for one in said["processes"] if one.get("unit") == "lab-busy.service"]
            expect(not wrong and len(busy) == 1, said)
            expect(busy[0]["pid"] == int(show("lab-busy.service", "MainPID")), busy)
            expect(busy[0]["user"] == "root" and "hunter2" not in busy[0]["command"], busy)
            expect("lab-busy" in busy[0]["command"] and said["total"] > len(said["processes"]) - 1, said)
        finally:
            run("systemctl", "stop", "lab-busy.service")
        wrong, said = gatewren.call("server_processes", order="memory", limit=5)
        sizes = [one["memory_bytes"] for one in said["processes"]]
        expect(not wrong and len(sizes) == 5 and sizes[0] > 0, said)


def elsewhere():
    """Of containers that the owner's file leaves out nothing is told, whose line or process it may be."""
    unit_file("lxc@.service", "[Service]\nType=oneshot\nExecStart=echo egret of a unit\n")
    unit_file("lxc.payload.vault.service", "[Service]\nType=oneshot\nExecStart=echo egret of a group\n")
    for name in ("web", "vault"):
        monitor = f"exec -a '[lxc monitor] /var/lib/lxc {name}' sleep infinity"
        unit_file(f"lab-{name}.service", f"[Service]\nExecStart=/bin/bash -c \"{monitor}\"\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "lxc@web.service", "lxc@vault.service", "lxc.payload.vault.service")
    run("systemctl", "start", "lab-web.service", "lab-vault.service")
    say("lab-log", "egret at the door of the vault", "egret oom_memcg=/lxc.payload.vault,task=sh",
        "egret lxc-web_</var/lib/lxc>", "egret lxc-vault_</var/lib/lxc>")
    say("lxc-start", "egret that does not say where")

    def seen(gatewren):
        wrong, page = gatewren.call("logs_query", grep="egret", limit=50)
        expect(not wrong, page)
        units = sorted(line["unit"] for line in page["lines"] if line["message"] == "egret of a unit")
        rest = {text for text in messages(page) if text.startswith("egret") and text != "egret of a unit"}
        wrong, said = gatewren.call("server_processes", order="memory", limit=50)
        expect(not wrong, said)
        monitors = {one["command"] for one in said["processes"] if "lxc monitor" in one["command"]}
        return units, rest, monitors

    here = {"egret at the door of the vault", "egret lxc-web_</var/lib/lxc>"}
    hidden = {"egret oom_memcg=/lxc.payload.vault,task=sh", "egret lxc-vault_</var/lib/lxc>",
              "egret that does not say where", "egret of a group"}
    try:
        POLICY.write_text('power = "off"\n')
        with Gatewren() as gatewren, check("what the journal and the processes have of containers is told"):
            units, rest, monitors = seen(gatewren)
            expect(units == ["lxc@vault.service", "lxc@web.service"] and rest == here | hidden, (units, rest))
            expect(len(monitors) == 2, monitors)
        POLICY.write_text('containers = ["web"]\n')
        with Gatewren() as gatewren:
            with check("but of a container that the owner's file leaves out nothing is"):
                units, rest, monitors = seen(gatewren)
                expect(units == ["lxc@web.service"] and rest == here, (units, rest))
                expect(["/lxc web" in one for one in monitors] == [True], monitors)
            with check("and its unit has no lines"):
                wrong, page = gatewren.call("logs_query", unit="lxc@vault.service")
                expect(not wrong and page["lines"] == [], page)
    finally:
        run("systemctl", "stop", "lab-web.service", "lab-vault.service")


def main():
    prepare()
    with Gatewren() as gatewren:
        units(gatewren)
        logs(gatewren)
        waits(gatewren)
        processes(gatewren)
    elsewhere()
    POLICY.write_text("host_logs = false\n")
    with Gatewren() as gatewren:
        with check("what is off is not there, or refused in the owner's name"):
            tools = gatewren.tools()
            expect(not tools & {"kernel_logs"} and {"unit_list", "logs_query", "unit_stop"} <= tools, tools)
            wrong, said = gatewren.call("unit_stop", unit="dbus.service")
            expect(wrong and "units is off" in said, said)
            wrong, said = gatewren.call("logs_query")
            expect(wrong and "host_logs is off" in said, said)
            expect(show("dbus.service", "ActiveState") == "active", "it was stopped")
    sys.exit(failed)


if __name__ == "__main__":
    main()
