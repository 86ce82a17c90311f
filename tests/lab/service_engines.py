#!/usr/bin/env python3
"""Beside the booted box on its network (tests/lab/service_engines): containers of Docker and Podman with systemd's cgroup
driver, through the installed package, while calls, daemons and the helper end. One line a check: ok or not ok.

    service_engines.py SCRIPT ADDRESS [CHECK...]    the script that booted the box, the box's address, parts of checks' names
"""

import json
import re
import sys
import time

import service_compose  # noqa: F401 (its checks run after those here)
from outside import FRONT, HELPER, check, checks, connection_closed, expect, marks, result_of, text_of, wait
from service_stage import Stage

ENGINES = ["docker", "podman"]

# The containers by engine and OCI runtime.
CONTAINERS = {"docker and runc": "docker:alpha", "podman and crun": "podman:alpha", "podman and runc": "podman:rho"}

# The variable by which the processes of a call are found.
MARK = "GATEWREN_TEST_MARK"

# What the program `processes` starts, and how many processes that are at least, with the command itself.
KINDS = {
    "foreground": (["fg"], 1),
    "background": (["bg", "hold"], 2),
    "session of its own": (["setsid", "hold"], 2),
    "double fork": (["double", "hold"], 2),
    "storm of 200": (["storm", "hold"], 201),
    "program in memory": (["memory", "hold"], 2),
    "name of a kernel thread": (["renamed", "hold"], 2),
    # The process of the chain itself, which lives 2 ms, is missed by nearly every look.
    "fork chain": (["chain", "hold"], 1),
}

# Counts the live processes with each mark, in the box and its containers, in one look.
COUNT = """
import collections, os, sys
found = collections.Counter()
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        variables = open(f"/proc/{pid}/environ", "rb").read().split(b"\\0")
        state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        continue
    if state != "Z":
        found.update(one.decode().partition("=")[2] for one in variables if one.startswith(b"%s="))
print(*(found[mark] for mark in sys.argv[1:]))
""" % MARK.encode().decode()

# The timeout in seconds of a call that ends by something else.
LONG = 250

# No process may be found this many times in a row. That the chain has ended is known from its cgroup, which could not be
# removed before.
LOOKS = 3


def count(stage, each):
    """The numbers of live processes with these marks."""
    return [int(number) for number in stage.box.run("python3", "-c", COUNT, *each).split()]


class Calls:
    """One call for each kind of processes in a container, at once; all of its processes run."""

    def __init__(self, stage, container, timeout_s=LONG, kinds=tuple(KINDS)):
        self.stage, self.container, self.all_run = stage, container, False
        self.marks = [next(marks) for _ in kinds]
        self.connections = [self.begin(kind, mark, timeout_s) for kind, mark in zip(kinds, self.marks)]
        end, found = time.monotonic() + timeout_s, []
        while time.monotonic() < end and not self.all_run:
            found = count(stage, self.marks)
            self.all_run = all(one >= KINDS[kind][1] for one, kind in zip(found, kinds))
        expect(self.all_run or timeout_s < LONG, f"they do not all run: {dict(zip(kinds, found))}")

    def begin(self, kind, mark, timeout_s):
        arguments = {"container": self.container, "argv": ["/bin/processes", *KINDS[kind][0]],
                     "env": {MARK: mark}, "timeout_s": timeout_s}
        return self.stage.client.begin("tools/call", {"name": "container_shell", "arguments": arguments})

    def answers(self):
        """What came of the calls."""
        found = []
        for connection in self.connections:
            with connection_closed(connection):
                found.append(result_of(connection.getresponse()))
        return found

    def hang_up(self):
        for connection in self.connections:
            connection.close()

    def nothing_is_left(self):
        looks = 0
        start = time.monotonic()
        while looks < LOOKS:
            found = count(self.stage, self.marks)
            looks = looks + 1 if sum(found) == 0 else 0
            expect(time.monotonic() < start + 60, f"these are left: {found}")
        wait("no cgroup is left", lambda: self.stage.box.shell("find /sys/fs/cgroup -name 'gatewren-exec-*'") == "")


def serves(stage, container):
    """Waits until a command runs in the container; the helper or the front may be starting."""
    said = {}

    def answered():
        said.update(stage.client.call("container_shell", container=container, command="echo out; exit 5"))
        return not said["isError"] or (said.get("structuredContent") or {}).get("exit_code") == 5
    try:
        wait("a command runs", answered)
    except AssertionError:
        raise AssertionError(f"no command runs: {text_of(said)}") from None
    expect(said["structuredContent"]["stdout"] == "out\n", f"{said}")


def state_of(stage, engine):
    return stage.client.read(f"/public/packageData/{engine}:alpha")["status"]


def is_running(stage, engine):
    return stage.box.run(engine, "inspect", "--format", "{{.State.Running}}", "alpha") == "true"


def expect_killed(answers, why):
    for said in answers:
        expect((said.get("structuredContent") or {}).get("killed_because") == why, f"not killed by {why}: {said}")


@check("init serves both engines, and the state has their containers")
def engines_are_served(stage):
    words = [word for runtime in ["lxc", *ENGINES] for word in ("--runtime", runtime)]
    said = stage.box.run("gatewren", "init", "--yes", "--json", *words)
    for engine in ENGINES:
        wait(f"the container of {engine} is in the state", lambda: f"{engine}:alpha" in stage.client.read("/public/packageData"))
        expect(state_of(stage, engine) == "running", f"{stage.client.read('/public/packageData')}")
        serves(stage, f"{engine}:alpha")
    return " ".join(json.loads(said).get("changed", []))


@check("doctor and status name both engines and their cgroup driver")
def doctor_names_them(stage):
    said = json.loads(stage.box.shell("gatewren doctor --json || [ $? = 1 ]"))
    found = {}
    for one in said["findings"]:
        found.setdefault(one["check"], []).append(one)
    for engine in ENGINES:
        expect([one["state"] for one in found[engine]] == ["ok"], f"{found[engine]}")
        expect("systemd" in found[engine][0]["seen"], f"{found[engine]}")
    tests = [one for one in said["findings"] if one["check"] == "kill test"]
    expect(len(tests) == 2 and all(one["state"] == "ok" for one in tests), f"{tests}")
    problems = [one for one in said["findings"] if one["state"] == "problem"]
    expect(not problems, f"{problems}")
    status = stage.box.run("gatewren", "status")
    for engine, number in (("docker", 1), ("podman", 2)):
        expect(re.search(f"{engine} +{number} of {number} containers run", status), status)


def end_by_timeout(stage, container):
    seconds = 6
    while True:
        calls = Calls(stage, container, timeout_s=seconds)
        answers = calls.answers()
        expect_killed(answers, "timeout")
        if calls.all_run:
            return calls
        expect(seconds < 100, "they do not all run in time")
        seconds *= 2


def end_by_client(stage, container):
    calls = Calls(stage, container)
    calls.hang_up()
    return calls


def end_by_restart(stage, container):
    calls = Calls(stage, container)
    stage.box.run("systemctl", "restart", HELPER)
    expect_killed(calls.answers(), "shutdown")
    return calls


def end_by_kill(stage, container):
    calls = Calls(stage, container)
    stage.box.run("kill", "-KILL", str(stage.box.main_pid(HELPER)))
    for said in calls.answers():
        expect(said["isError"] and "the helper stopped while this ran" in text_of(said), f"{said}")
    return calls


ENDS = {
    "a timeout": end_by_timeout,
    "its client's end": end_by_client,
    "a restart of the helper's unit": end_by_restart,
    "SIGKILL of the helper": end_by_kill,
}


def add_end(which, container, how, end):
    @check(f"in a container of {which}, {how} leaves no process of {len(KINDS)} kinds and no cgroup")
    def ends(stage):
        end(stage, container).nothing_is_left()
        serves(stage, container)


for which, container in CONTAINERS.items():
    for how, end in ENDS.items():
        add_end(which, container, how, end)


@check("a restart of docker.service ends a call with its container, which container_start starts again")
def docker_restarts(stage):
    calls = Calls(stage, "docker:alpha", kinds=["background", "double fork"])
    stage.box.run("systemctl", "restart", "docker.service")
    answers = calls.answers()
    calls.nothing_is_left()
    starts_again(stage)
    return "; ".join(text_of(said).splitlines()[0][:80] for said in answers)


@check("SIGKILL of docker.service ends a call no later than its container, which container_start starts again")
def docker_is_killed(stage):
    calls = Calls(stage, "docker:alpha", kinds=["background", "double fork"])
    before = stage.box.main_pid("docker.service")
    stage.box.run("systemctl", "kill", "--signal", "KILL", "docker.service")
    wait("systemd starts it again", lambda: stage.box.main_pid("docker.service") not in (0, before)
         and stage.box.is_active("docker.service"))
    calls.answers()
    calls.nothing_is_left()
    starts_again(stage)


def starts_again(stage):
    expect(not is_running(stage, "docker"), "the container runs")
    wait("the state has its end", lambda: state_of(stage, "docker") == "stopped")
    said = stage.client.call("container_start", container="docker:alpha")
    expect(not said["isError"] and said["structuredContent"]["state"] == "running", text_of(said))
    serves(stage, "docker:alpha")


@check("a restart and SIGKILL of podman.service cut no call, and its end leaves nothing")
def podman_restarts(stage):
    calls = Calls(stage, "podman:alpha", kinds=["background", "double fork"])
    stage.box.run("systemctl", "restart", "podman.service")
    expect(sum(count(stage, calls.marks)) == 4, "the restart ended processes")
    stage.box.run("systemctl", "kill", "--signal", "KILL", "podman.service", check=False)
    expect(sum(count(stage, calls.marks)) == 4, "SIGKILL ended processes")
    calls.hang_up()
    calls.nothing_is_left()
    serves(stage, "podman:alpha")


@check("container_stop, container_start and container_restart do what the engines' own clients then show")
def containers_change(stage):
    for engine in ENGINES:
        container = {"container": f"{engine}:alpha"}
        said = stage.client.call("container_stop", grace_s=5, **container)
        expect(not said["isError"] and said["structuredContent"]["state"] == "stopped", text_of(said))
        expect(not is_running(stage, engine), "it runs")
        wait("the state has it", lambda: state_of(stage, engine) == "stopped")
        said = stage.client.call("container_shell", command="true", **container)
        expect(said["isError"] and "is stopped" in text_of(said), text_of(said))
        said = stage.client.call("container_start", **container)
        expect(not said["isError"] and is_running(stage, engine), text_of(said))
        wait("the state has it", lambda: state_of(stage, engine) == "running")
        started = "{{.State.StartedAt}}"
        before = stage.box.run(engine, "inspect", "--format", started, "alpha")
        said = stage.client.call("container_restart", grace_s=5, **container)
        expect(not said["isError"] and is_running(stage, engine), text_of(said))
        expect(stage.box.run(engine, "inspect", "--format", started, "alpha") != before, "it was not restarted")
        said = stage.client.call("container_logs", **container)
        expect(not said["isError"] and said["structuredContent"]["text"].count("alpha starts") >= 3, text_of(said))
        serves(stage, f"{engine}:alpha")


def main():
    stage = Stage("engines", sys.argv[1], sys.argv[2])
    failed = not stage.check("the package installs", lambda stage: stage.install("--mode", "disrupt=allow"))
    ordered = sorted(checks, key=lambda one: one[1].__module__ == "service_compose")
    return int(failed) or stage.run(ordered, sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
