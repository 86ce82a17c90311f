#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/units): a container that boots a whole Debian with a systemd of its own, and its
units and journal, looked at and changed through gatewren's tools. One line a check: ok or not ok.

    inside.py ROOT    the root file system to boot it from, which is only read
"""

import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import unit_tools  # noqa: E402
from bounds import BOUND, GATEWREN, HOME, POLICY, Gatewren, expect, run  # noqa: E402
from unit_tools import check  # noqa: E402

NAME = "debian"
HOME_OF_IT = pathlib.Path("/var/lib/lxc", NAME)
HERE = {"container": NAME}
ENTER = ["lxc-attach", "-n", NAME, "--clear-env", "--"]
# Units of the box that would get into its way in there.
MASKED = ["lxc.service", "lxc-net.service", "lxc-monitord.service", "modprobe@.service"]


def inside(*command):
    return run(*ENTER, *command, stdin=subprocess.DEVNULL)


def boot(root, systemd=True):
    """An overlay over the root file system; its upper half in memory, since the box's own files are an overlay already.
    Once more it has what was written in it; without systemd nothing runs in it."""
    units = HOME_OF_IT / "delta/etc/systemd/system"
    if not units.exists():
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/var/lib/lxc")
        units.mkdir(parents=True)
        for unit in MASKED:
            (units / unit).symlink_to("/dev/null")
    (units / "lab-inner.service").write_text(
        "[Service]\nExecStart=sh -c 'echo the inner wren sings; exec sleep infinity'\n"
        "[Install]\nWantedBy=multi-user.target\n")
    (HOME_OF_IT / "config").write_text("\n".join([
        "lxc.include = /usr/share/lxc/config/common.conf", f"lxc.uts.name = {NAME}",
        f"lxc.rootfs.path = overlay:{root}:{HOME_OF_IT}/delta", "lxc.net.0.type = empty",
        "lxc.mount.entry = /gatewren gatewren none bind,ro,create=dir 0 0",
        "lxc.apparmor.profile = unconfined", f"lxc.console.logfile = {HOME_OF_IT}/console.log",
        "" if systemd else "lxc.init.cmd = /bin/sleep infinity", ""]))
    run("lxc-start", "-n", NAME, stdin=subprocess.DEVNULL)
    if not systemd:
        return
    end = time.monotonic() + BOUND
    while True:
        command = ["lxc-attach", "-n", NAME, "--", "systemctl", "is-system-running"]
        said = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if said.stdout.strip() in ("running", "degraded"):
            return
        expect(time.monotonic() < end, f"it does not boot: {said.stdout}{said.stderr}")
        time.sleep(0.1)


def units(gatewren):
    inner = {"unit": "lab-inner.service", **HERE}
    with check("unit_list tells of a container's units, and not of the host's"):
        wrong, said = gatewren.call("unit_list", name="lab-*", **HERE)
        expect(not wrong and [unit["name"] for unit in said["units"]] == [], said)
        wrong, said = gatewren.call("unit_list", name="systemd-journald.*", **HERE)
        expect(not wrong and "systemd-journald.service" in [unit["name"] for unit in said["units"]], said)
    with check("unit_start and unit_stop change a container's unit and wait for it"):
        wrong, said = gatewren.call("unit_start", **inner)
        expect(not wrong and (said["outcome"], said["active"]) == ("done", "active"), said)
        expect(inside("systemctl", "is-active", "lab-inner.service").strip() == "active", said)
        wrong, said = gatewren.call("unit_status", **inner)
        pid = int(inside("systemctl", "show", "--value", "--property", "MainPID", "lab-inner.service"))
        expect(not wrong and (said["active"], said["main_pid"]) == ("active", pid), said)
        wrong, said = gatewren.call("unit_restart", **inner)
        expect(not wrong and said["main_pid"] not in (0, pid), said)
        wrong, said = gatewren.call("unit_stop", **inner)
        expect(not wrong and (said["outcome"], said["active"]) == ("done", "inactive"), said)
    with check("unit_enable changes what the container starts at boot"):
        wrong, said = gatewren.call("unit_enable", **inner)
        expect(not wrong and said["enabled"] == "enabled", said)
        expect(inside("systemctl", "is-enabled", "lab-inner.service").strip() == "enabled", said)
    with check("a unit that a container does not have is said so"):
        wrong, said = gatewren.call("unit_start", unit="lab-wren.service", **HERE)
        expect(wrong and "not found" in said, said)


def journal(gatewren):
    inside("journalctl", "--sync")
    with check("logs_query reads the container's own journal, and the host's has nothing of it"):
        wrong, page = gatewren.call("logs_query", unit="lab-inner.service", grep="inner wren", **HERE)
        expect(not wrong and page["lines"], page)
        line = page["lines"][-1]
        expect((line["message"], line["unit"]) == ("the inner wren sings", "lab-inner.service"), line)
        wrong, page = gatewren.call("logs_query", grep="inner wren sings")
        expect(not wrong and page["lines"] == [], page)
    with check("container_logs shows the journal of a container that has one"):
        wrong, said = gatewren.call("container_logs", lines=1000, **HERE)
        expect(not wrong and said["source"] == "journal" and "the inner wren sings" in str(said), said)
    with check("boot_list knows the container's boot"):
        wrong, said = gatewren.call("boot_list", **HERE)
        expect(not wrong and said["boots"][0]["boot"] == 0, said)
    with check("server_processes names the container that a process belongs to"):
        wrong, said = gatewren.call("server_processes", order="memory", limit=50)
        here = {one.get("container") for one in said["processes"]}
        expect(not wrong and NAME in here, said)
    with check("container_shell runs beside a systemd, and leaves nothing"):
        wrong, said = gatewren.call("container_shell", command="systemctl is-system-running; sleep 987 & echo $!", **HERE)
        expect(not wrong and said["stdout"].split()[0] in ("running", "degraded"), said)
        left = subprocess.run(["pgrep", "-f", "^sleep 987"], capture_output=True)
        expect(left.returncode == 1, left.stdout)


def hides(gatewren):
    def left(seconds):
        return subprocess.run(["pgrep", "-f", f"^sleep {seconds}"], capture_output=True, text=True).stdout.split()

    with check("what systemd-run moved into a scope is killed, though its command has killed the reaper"):
        line = "systemd-run --quiet --scope sh -c 'setsid sleep 986 >/dev/null 2>&1 &'; kill -9 $PPID; sleep 986"
        _, said = gatewren.call("container_shell", command=line, **HERE)
        expect(said["killed_because"] == "reaper lost" and left(986) == [], (said, left(986)))
    with check("what a user's session took along is killed"):
        line = "su - nobody -s /bin/sh -c 'setsid sleep 985 >/dev/null 2>&1 &'; kill -9 $PPID; sleep 985"
        _, said = gatewren.call("container_shell", command=line, **HERE)
        expect(said["killed_because"] == "reaper lost" and left(985) == [], (said, left(985)))
    with check("a service that a command started lives on, though the command has killed the reaper"):
        line = "systemctl start lab-inner.service; kill -9 $PPID; sleep 984"
        _, said = gatewren.call("container_shell", command=line, **HERE)
        expect(said["killed_because"] == "reaper lost" and left(984) == [], (said, left(984)))
        expect(inside("systemctl", "is-active", "lab-inner.service").strip() == "active", said)


def traps(gatewren):
    """Programs of the container that leave a mark when they are run."""
    trap = 'printf "#!/bin/bash\\necho \\$0 >>/was-run\\n" >/trap; chmod 755 /trap'
    with check("no tool that looks at units or the journal runs a program of the container"):
        inside("bash", "-ec", f'{trap}; for name; do mv /usr/bin/$name /usr/bin/$name.kept; cp /trap /usr/bin/$name; done',
               "traps", "journalctl", "systemctl", "busctl")
        expect(inside("bash", "-c", "journalctl; cat /was-run; rm /was-run").strip().endswith("journalctl"), "no trap")
        inner = {"unit": "lab-inner.service", **HERE}
        for tool, more in [("unit_list", HERE), ("unit_status", inner), ("logs_query", HERE), ("container_logs", HERE),
                           ("boot_list", HERE), ("unit_start", inner), ("unit_stop", inner)]:
            wrong, said = gatewren.call(tool, **more)
            expect(not wrong, f"{tool}: {said}")
        expect(inside("bash", "-c", "[ ! -e /was-run ] || cat /was-run") == "", "one was run")


def main(root):
    boot(root)
    POLICY.write_text('units = "on"\npower = "off"\n')
    words = [word for tool in ("unit_start", "unit_stop", "unit_restart", "unit_enable", "container_shell")
             for word in ("--tool", f"{tool}=allow")]
    with Gatewren():
        pass  # makes the agent
    run(GATEWREN, "agent", "edit", "try", "--dir", HOME, *words)
    with Gatewren() as gatewren:
        units(gatewren)
        journal(gatewren)
        hides(gatewren)
        traps(gatewren)
    sys.exit(unit_tools.failed)


if __name__ == "__main__":
    main(sys.argv[1])
