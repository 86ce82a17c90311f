#!/usr/bin/env python3
"""Packages of a repository that is made here are upgraded through a gatewren. One line a check: ok or not ok.

    updates.py prepare         makes the repository, and installs older versions of what is in it
    updates.py host            upgrades on the host, through a unit of systemd's (inside the booted box)
    updates.py container ROOT  upgrades in a container that boots from a root file system, with and without systemd
"""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import inside
from bounds import BOUND, GATEWREN, HOME, POLICY, Gatewren, check, expect, package, repository, run

TOOLS = ["update_check", "update_apply", "update_history"]
# A script that says where it is, and waits until it may go on.
WAITS = "[ \"$1\" = configure ] || exit 0; >/srv/{0}-began; until [ -e /srv/{0}-go ]; do sleep .1; done"


def prepare():
    old = pathlib.Path("/srv/old")
    old.mkdir(parents=True)
    for name in ["wren-one", "wren-two", "wren-slow", "wren-apart", "wren-bad"]:
        run("dpkg", "--install", str(package(old, name, "1.0")[0]))
    run("apt-mark", "auto", "wren-two")
    sources = repository("main", "Lab", "stable", [
        ("wren-one", "1.1"),
        ("wren-slow", "2.0", WAITS.format("slow")),
        ("wren-apart", "2.0", WAITS.format("apart")),
        ("wren-bad", "2.0", "echo this is bad; exit 1"),
    ])
    sources += repository("security", "Lab-Security", "stable-security", [("wren-two", "1:1.0+deb1")])
    pathlib.Path("/etc/apt/sources.list").write_text(sources)


def until(what, truth):
    end = time.monotonic() + BOUND
    while not truth():
        expect(time.monotonic() < end, f"not in time: {what}")
        time.sleep(0.1)


class Busy(Gatewren):
    """One that is asked for something else while it works."""

    def __enter__(self):
        self.answers, self.number = {}, 100
        return super().__enter__()

    def send(self, tool, **arguments):
        self.number += 1
        params = {"name": tool, "arguments": arguments, "_meta": self.META}
        request = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.number

    def receive(self, number):
        """Its answer, whatever else is answered before it."""
        while number not in self.answers:
            message = json.loads(self.process.stdout.readline())
            self.answers[message.get("id")] = message
        result = self.answers.pop(number)["result"]
        return result.get("isError", False), result.get("structuredContent") or result["content"][0]["text"]

    def beside(self, tool, **arguments):
        return self.receive(self.send(tool, **arguments))

    def running(self):
        """The jobs that run."""
        jobs = self.beside("job_list")[1]["jobs"]
        return [job["job"] for job in jobs if job["state"] == "running"]

    def done(self, number):
        """What came of a call. A call that takes 45 seconds, as on a busy machine, answers with a job: that is awaited."""
        wrong, said = self.receive(number)
        while not wrong and said.get("state", "running" if "job" in said else "") == "running":
            said = self.beside("job_wait", job=said["job"])[1]
        return wrong, said

    def fails(self, number):
        """Expects a call, or the job that it became, to end with an error."""
        wrong, said = self.done(number)
        expect(wrong or said.get("state") in ("failed", "killed", "lost"), said)


class Place:
    """Where packages are upgraded: the host, or a container that is entered by these words."""

    def __init__(self, enter=(), where=None):
        self.enter, self.where = enter, where or {}

    def run(self, *command):
        return run(*self.enter, *command)

    def has(self, path):
        return self.run("sh", "-c", f"[ ! -e {path} ] || echo yes") == "yes\n"

    def version(self, name):
        return self.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Version}", name).replace(" ", "")


def names(packages):
    return [one["name"] for one in packages]


def apply(place):
    where = place.where
    with Busy() as gatewren:
        with check("update_check refreshes apt's lists where that is allowed, and never a container's"):
            wrong, said = gatewren.call("update_check", **where)
            expect(not wrong and said["total"] == 0 and "lists_refreshed" not in said, said)
            wrong, said = gatewren.call("update_check", refresh=True, **where)
            if where:
                expect(wrong and "update_apply" in said, said)
                place.run("apt-get", "update")
                wrong, said = gatewren.call("update_check", **where)
            expect(not wrong and "refresh_problems" not in said, said)
            expect(names(said["packages"]) == ["wren-two", "wren-apart", "wren-bad", "wren-one", "wren-slow"], said)
            expect(said["security"] == 1 and said["lists_refreshed"].startswith("2"), said)
        with check("update_apply installs security updates alone, and nothing becomes wanted by it"):
            wrong, said = gatewren.call("update_apply", security_only=True, **where)
            two = {"name": "wren-two", "architecture": "all", "from": "1.0", "to": "1:1.0+deb1"}
            expect(not wrong and said["completed"] and said["upgraded"] == [two] and said["total"] == 1, said)
            expect(place.version("wren-one") == "ii1.0" and place.version("wren-two") == "ii1:1.0+deb1", said)
            expect(place.run("apt-mark", "showauto", "wren-two") == "wren-two\n", "it is marked as wanted")
        with check("update_apply upgrades what is named, and then has nothing to do"):
            wrong, said = gatewren.call("update_apply", packages=["wren-one"], **where)
            expect(not wrong and names(said["upgraded"]) == ["wren-one"], said)
            wrong, said = gatewren.call("update_apply", packages=["wren-one"], **where)
            expect(not wrong and said["completed"] and said["total"] == 0 and not said["reboot_required"], said)
        with check("update_apply says what is wrong with a name"):
            wrong, said = gatewren.call("update_apply", packages=["wren-none"], **where)
            expect(wrong and "wren-none" in said, said)
            wrong, said = gatewren.call("update_apply", packages=["--help"], **where)
            expect(wrong and "package" in said, said)
        with check("update_apply tells of a package whose script fails"):
            wrong, said = gatewren.call("update_apply", packages=["wren-bad"], **where)
            expect(not wrong and not said["completed"] and said["unfinished"] == ["wren-bad"], said)
            expect("this is bad" in said["output_tail"], said)
            place.run("dpkg", "--purge", "wren-bad")
        with check("a cancel is not heard in the middle of an installation"):
            call = gatewren.send("update_apply", packages=["wren-slow"], **where)
            until("the script runs", lambda: place.has("/srv/slow-began"))
            [job] = gatewren.running()
            cancel = gatewren.send("job_cancel", job=job)
            expect(gatewren.running() == [job], "it has ended")
            place.run("touch", "/srv/slow-go")
            wrong, said = gatewren.done(call)
            expect(not wrong and said.get("state", "done") == "done" and said.get("completed", True), said)
            gatewren.receive(cancel)
            expect(place.version("wren-slow") == "ii2.0", place.version("wren-slow"))
        with check("update_history tells of it"):
            wrong, said = gatewren.call("update_history", limit=2, **where)
            expect(not wrong and len(said["runs"]) == 2 and said["next_offset"] == 2, said)
            wren = [run for run in said["runs"] if run["changes"] and run["changes"][0]["name"] == "wren-slow"]
            [change] = wren[0]["changes"]
            expect((change["action"], change["from"], change["to"]) == ("upgrade", "1.0", "2.0"), said)
            expect(wren[0]["agent"], said)


def waits(place):
    with Busy() as gatewren:
        with check("update_apply waits for another apt, and says who it is"):
            with open("/var/lib/dpkg/lock-frontend", "w") as lock:
                fcntl.lockf(lock, fcntl.LOCK_EX)
                call = gatewren.send("update_apply", packages=["wren-apart"])
                until("there is a job", gatewren.running)
                [job] = gatewren.running()

                def who():
                    return f"held by process {os.getpid()}" in str(gatewren.beside("job_output", job=job)[1])

                until("it says who", who)
                # It begins as soon as it may.
            until("the script runs", lambda: place.has("/srv/apart-began"))
        with check("an installation outlives the helper"):
            [helper] = pathlib.Path(f"/proc/{gatewren.process.pid}/task/{gatewren.process.pid}/children").read_text().split()
            os.kill(int(helper), signal.SIGKILL)
            gatewren.fails(call)
            expect(place.version("wren-apart") == "iF2.0", place.version("wren-apart"))
            place.run("touch", "/srv/apart-go")
            until("it is installed", lambda: place.version("wren-apart") == "ii2.0")


def allow(*options):
    with Gatewren(*options):
        pass  # makes the agent
    words = [word for tool in TOOLS for word in ("--tool", f"{tool}=allow")]
    # What ran in this box before may have allowed it already.
    edit = subprocess.run([GATEWREN, "agent", "edit", "try", "--dir", HOME, *words], capture_output=True, text=True)
    expect(edit.returncode == 0 or "already has these values" in edit.stderr, edit.stderr)


def host():
    prepare()
    with Gatewren() as gatewren, check("as it is shipped nothing is fetched or installed"):
        expect("update_apply" not in gatewren.tools(), "it is listed")
        wrong, said = gatewren.call("update_check", refresh=True)
        expect(wrong and "only the owner" in said, said)
    POLICY.write_text('updates = "apply"\n')
    allow()
    place = Place()
    apply(place)
    waits(place)


def container(root):
    inside.boot(root)
    place = Place(inside.ENTER, inside.HERE)
    place.run("python3", "/gatewren/tests/lab/updates.py", "prepare")
    POLICY.write_text('updates = "apply"\n')
    allow()
    apply(place)
    breaks_off(place, False)
    # The same without a systemd in it.
    run("lxc-stop", "-k", "-n", inside.NAME)
    inside.boot(root, systemd=False)
    place.run("rm", "-f", "/srv/apart-go", "/srv/apart-began")
    breaks_off(place, True)


def breaks_off(place, dies):
    """Whether an installation in a container dies with the helper: without a systemd, nobody in it goes on with it."""
    where = place.where
    # As it was before, for the second time.
    place.run("dpkg", "--install", "/srv/old/wren-apart_1.0.deb")
    with Busy() as gatewren, check(f"the helper ends in the middle of an installation{' without systemd' if dies else ''}"):
        call = gatewren.send("update_apply", packages=["wren-apart"], **where)
        until("the script runs", lambda: place.has("/srv/apart-began"))
        [helper] = pathlib.Path(f"/proc/{gatewren.process.pid}/task/{gatewren.process.pid}/children").read_text().split()
        os.kill(int(helper), signal.SIGKILL)
        gatewren.fails(call)
        time.sleep(3)
        expect(place.version("wren-apart") == "iF2.0", place.version("wren-apart"))
        place.run("touch", "/srv/apart-go")
        if dies:
            time.sleep(3)
            expect(place.version("wren-apart") == "iF2.0", "it went on")
        else:
            until("it is installed", lambda: place.version("wren-apart") == "ii2.0")
    if dies:
        with Busy() as gatewren, check("the next update_apply finishes what was broken off"):
            wrong, said = gatewren.done(gatewren.send("update_apply", packages=["wren-one"], **where))
            expect(not wrong and said.get("completed", True), said)
            expect(place.version("wren-apart") == "ii2.0", place.version("wren-apart"))


if __name__ == "__main__":
    if sys.argv[1] == "container":
        container(sys.argv[2])
    else:
        {"prepare": prepare, "host": host}[sys.argv[1]]()
    import bounds

    sys.exit(1 if bounds.failed else 0)
