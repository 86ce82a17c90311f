"""The part of tests/lab/service.py about ends: what is killed, stopped, restarted and reloaded, and what becomes of
those who are connected."""

import http.client
import os
import ssl
import threading
import time

from outside import (
    BOUND, FRONT, HELPER, Session, check, connection_closed, expect, marks, messages, result_of, text_of, wait,
)

# Restarts in a row under load.
RESTARTS = int(os.environ.get("GATEWREN_RESTARTS", "20"))  # the long run has 100


class Doing(threading.Thread):
    """Something that goes on beside the check; `done()` waits for it and returns what it returned."""

    def __init__(self, function):
        super().__init__(daemon=True)
        self.function, self.outcome, self.error = function, None, None
        self.start()

    def run(self):
        try:
            self.outcome = self.function()
        except Exception as error:
            self.error = error

    def done(self):
        self.join(BOUND)
        expect(not self.is_alive(), "it does not end")
        if self.error:
            raise self.error
        return self.outcome


def begin(stage, tool, mark, **arguments):
    """A call that runs until it is killed, begun; its command leaves children that want to stay."""
    command = f"for i in 1 2; do sh -c 'while :; do sleep 1; done' {mark} & done; wait; : {mark}"
    call = Doing(lambda: stage.client.call(tool, command=command, timeout_s=250, **arguments))
    wait(f"{tool} runs", lambda: len(stage.box.processes(mark)) >= 2 or call.error)
    return call


def nothing_is_left(stage, mark):
    wait("nothing is left", lambda: not stage.box.processes(mark))
    wait("no cgroup is left", lambda: stage.box.shell("find /sys/fs/cgroup -name 'gatewren-exec-*'") == "")


def next_call_works(stage):
    """How long it takes until a call works. On a machine with much else to do the first may be told to come again."""
    start = time.monotonic()

    def answered():
        said = stage.client.call("container_shell", container="alpha", command="echo again")
        expect(not said["isError"] or "does not answer" in text_of(said), f"{said}")
        return not said["isError"]
    wait("the next call works", answered)
    return time.monotonic() - start


@check("a helper that is killed during a call: a clear error, nothing is left, and the next call works")
def helper_is_killed(stage):
    slowest = 0.0
    # More often than systemd lets a unit fail in a row unless it is told otherwise.
    for _ in range(7):
        mark = next(marks)
        call = begin(stage, "container_shell", mark, container="alpha")
        pid = stage.box.main_pid(HELPER)
        stage.box.run("kill", "-KILL", str(pid))
        outcome = call.done()
        expect(outcome["isError"] and "the helper stopped while this ran" in text_of(outcome), f"{outcome}")
        slowest = max(slowest, next_call_works(stage))
        expect(stage.box.main_pid(HELPER) not in (0, pid), "it is the same helper")
        nothing_is_left(stage, mark)
    return f"the next call took {slowest:.1f} s at most"


@check("the same with a command on the host, whose cgroup is below the helper's own")
def helper_is_killed_on_host(stage):
    stage.box.shell("cp /etc/gatewren/helper.toml /root/; echo 'host_shell = \"full\"' >/etc/gatewren/helper.toml")
    try:
        stage.box.run("systemctl", "restart", HELPER, FRONT)
        tools = lambda: [tool["name"] for tool in stage.client.ask("tools/list")["tools"]]
        wait("the tool is offered", lambda: "system_shell" in tools())
        mark = next(marks)
        call = begin(stage, "system_shell", mark)
        pid = int(stage.box.processes(mark)[0].split()[0])
        group = stage.box.read(f"/proc/{pid}/cgroup")
        expect(f"/system.slice/{HELPER}/gatewren-exec-" in group, group)
        stage.box.run("kill", "-KILL", str(stage.box.main_pid(HELPER)))
        outcome = call.done()
        expect(outcome["isError"] and "the helper stopped while this ran" in text_of(outcome), f"{outcome}")
        nothing_is_left(stage, mark)
        said = stage.client.call("system_shell", command="id -u")
        expect(said["structuredContent"]["stdout"] == "0\n", f"{said}")
    finally:
        stage.box.shell("cp /root/helper.toml /etc/gatewren/; systemctl restart gatewren-helper gatewren")


@check("a front that stands still is started again by systemd's watchdog, and its sessions go on")
def watchdog_restarts(stage):
    stage.box.drop_in(FRONT, "[Service]\nWatchdogSec=10\n")
    try:
        stage.box.run("systemctl", "restart", FRONT)
        session = Session(stage.client)
        restarts = int(stage.box.property(FRONT, "NRestarts"))
        start = time.monotonic()
        stage.box.run("kill", "-STOP", str(stage.box.main_pid(FRONT)))
        wait("it is started again", lambda: int(stage.box.property(FRONT, "NRestarts")) > restarts)
        expect(session.ask("tools/list")["tools"], "the session has no tools")
        seconds = time.monotonic() - start
        told = [line["MESSAGE"] for line in stage.box.journal("--unit", FRONT)]
        expect(any("watchdog" in line.lower() for line in told), "systemd does not speak of its watchdog")
    finally:
        stage.box.drop_in(FRONT, None)
        stage.box.run("systemctl", "restart", FRONT)
    return f"answered {seconds:.0f} s after it stood still, with WatchdogSec=10"


@check("a front that ends in a fault of its own, as a panic ends it, is started again, its sessions go on, and no core is left")
def fault_restarts(stage):
    session = Session(stage.client)
    restarts = int(stage.box.property(FRONT, "NRestarts"))
    pid = stage.box.main_pid(FRONT)
    limits = stage.box.read(f"/proc/{pid}/limits").splitlines()
    core = next(line for line in limits if line.startswith("Max core file size"))
    expect(core.split()[4:6] == ["0", "0"], core)
    start = time.monotonic()
    stage.box.run("kill", "-ABRT", str(pid))
    wait("it is started again", lambda: int(stage.box.property(FRONT, "NRestarts")) > restarts)
    expect(session.ask("tools/list")["tools"], "the session has no tools")
    return f"answered {time.monotonic() - start:.1f} s after its end"


@check("a job goes on while the front is killed and started again, and ends with all that it started when it is cancelled")
def job_goes_on(stage):
    mark = next(marks)
    command = f"for i in 1 2; do sh -c 'while :; do sleep 1; done' {mark} & done; echo begun; wait; : {mark}"
    said = stage.client.call("job_start", container="alpha", command=command)
    expect(not said["isError"], text_of(said))
    job = said["structuredContent"]["job"]
    wait("it runs", lambda: len(stage.box.processes(mark)) >= 2)
    before = stage.box.processes(mark)
    restarts = int(stage.box.property(FRONT, "NRestarts"))
    stage.box.run("kill", "-KILL", str(stage.box.main_pid(FRONT)))
    wait("the front is started again", lambda: int(stage.box.property(FRONT, "NRestarts")) > restarts)

    def told(tool):
        answer = stage.client.call(tool, job=job)
        return {} if answer["isError"] else answer["structuredContent"]
    wait("the job is known", lambda: told("job_get").get("state") == "running")
    left = [line.split()[0] for line in stage.box.processes(mark)]
    expect(all(line.split()[0] in left for line in before), f"{before} became {left}")
    expect(told("job_output")["output"] == "begun\n", "what it printed is gone")
    expect(told("job_cancel"), "it is not cancelled")
    nothing_is_left(stage, mark)


@check("a helper that stands still is started again too, and what it ran is gone")
def watchdog_restarts_the_helper(stage):
    stage.box.drop_in(HELPER, "[Service]\nWatchdogSec=10\n")
    try:
        stage.box.run("systemctl", "restart", HELPER)
        mark = next(marks)
        call = begin(stage, "container_shell", mark, container="alpha")
        stage.box.run("kill", "-STOP", str(stage.box.main_pid(HELPER)))
        outcome = call.done()
        expect(outcome["isError"] and "the helper stopped while this ran" in text_of(outcome), f"{outcome}")
        next_call_works(stage)
        nothing_is_left(stage, mark)
    finally:
        stage.box.drop_in(HELPER, None)
        stage.box.run("systemctl", "restart", HELPER)


@check("a stop ends each stream as it should, finishes short calls, kills long ones, and takes less than 30 s")
def stop_drains(stage):
    connection, answer = stage.client.modern("subscriptions/listen", {"notifications": {"resourceSubscriptions": []}})
    stream = messages(answer)
    expect(next(stream)["method"].endswith("acknowledged"), "no acknowledgement")
    mark = next(marks)
    long = begin(stage, "container_shell", mark, container="alpha")
    begun = f"touch /begun-{mark}; until [ -e /go-{mark} ]; do sleep 0.05; done; sleep 0.5; echo done"
    shell = {"name": "container_shell", "arguments": {"container": "alpha", "command": begun}}
    kept = stage.client.connect()
    short = Doing(lambda: stage.client.modern("tools/call", shell, kept)[1])
    root = "/var/lib/lxc/alpha/rootfs"
    wait("the short one runs", lambda: stage.box.run("ls", f"{root}/begun-{mark}", check=False))
    start = time.monotonic()
    # The short one goes on once the stop is under way, so that it ends neither before nor late.
    is_active = f"systemctl is-active --quiet {FRONT}"
    stage.box.shell(f"systemctl stop {FRONT} & while {is_active}; do sleep 0.05; done; touch {root}/go-{mark}; wait")
    seconds = time.monotonic() - start
    ends = [message for message in stream if "result" in message]
    connection.close()
    expect(len(ends) == 1 and ends[0]["result"]["resultType"] == "complete", f"the stream ended with {ends}")
    answer = short.done()
    expect(answer.headers["Connection"] == "close", f"its client is not told that it ends: {answer.headers}")
    said = result_of(answer)["structuredContent"]
    kept.close()
    expect(said["stdout"] == "done\n", f"{said}")
    killed = long.done()["structuredContent"]
    expect(killed["killed_because"] == "shutdown", f"{killed}")
    expect(stage.box.property(FRONT, "Result") == "success", stage.box.property(FRONT, "Result"))
    nothing_is_left(stage, mark)
    expect(seconds < 30, f"{seconds:.1f} s")
    return f"{seconds:.1f} s"


@check("whoever connects starts front and helper again")
def sockets_start_them(stage):
    stage.box.shell("systemctl stop gatewren gatewren-helper 2>&1")
    expect(not stage.box.is_active(FRONT) and not stage.box.is_active(HELPER), "they did not stop")
    said = stage.client.call("container_shell", container="alpha", command="echo there")
    expect(said["structuredContent"]["stdout"] == "there\n", f"{said}")
    expect(stage.box.is_active(FRONT) and stage.box.is_active(HELPER), "they are not active")


@check("a reload takes the settings and a certificate for them, refuses wrong ones, and cuts no stream")
def reload_cuts_nothing(stage):
    box, mine = stage.box, "gatewren:///public/ofTheTest"
    filters = {"notifications": {"resourceSubscriptions": [mine]}}
    connection, answer = stage.client.modern("subscriptions/listen", filters)
    stream = messages(answer)
    expect(next(stream)["method"].endswith("acknowledged"), "no acknowledgement")
    pid = box.main_pid(FRONT)
    box.write("/etc/gatewren/conf.d/test.toml", 'names = ["swapped.localhost"]\n')
    try:
        before = stage.client.certificate()
        box.run("systemctl", "reload", FRONT)
        after = wait("another certificate", lambda: (now := stage.client.certificate()) != before and now)
        names = [name for kind, name in after["subjectAltName"] if kind == "DNS"]
        expect("swapped.localhost" in names, f"{names}")
        box.write("/etc/gatewren/conf.d/test.toml", 'nmaes = ["swapped.localhost"]\n')
        told = box.shell("systemctl reload gatewren 2>&1 || echo refused")
        expect("refused" in told, f"wrong settings were taken: {told}")
        expect(stage.client.certificate() == after, "wrong settings changed the certificate")
        patch = '[{"op": "add", "path": "/public/ofTheTest", "value": 1}]'
        box.run("gatewren", "state", "patch", "--dir", "/var/lib/gatewren", given=patch)
        heard = next(stream)
        expect(heard["method"] == "notifications/resources/updated" and heard["params"]["uri"] == mine, f"{heard}")
        expect(box.main_pid(FRONT) == pid and box.is_active(FRONT), "it was started again")
    finally:
        connection.close()
        box.run("rm", "-f", "/etc/gatewren/conf.d/test.toml")
        box.run("systemctl", "reload", FRONT)


class Load:
    """Requests without a pause until `end()`; the counts, and whatever went wrong."""

    def __init__(self, stage):
        self.client, self.over, self.wrong = stage.client, threading.Event(), []
        self.fresh = self.kept = self.told = self.closed = 0
        ways = [self.freshly, self.freshly, self.over_one]
        self.threads = [threading.Thread(target=self.run, args=(way,), daemon=True) for way in ways]
        for thread in self.threads:
            thread.start()

    def run(self, way):
        while not self.over.is_set():
            try:
                way()
            except Exception as error:
                self.wrong.append(f"{way.__name__}: {type(error).__name__}: {error}")

    def freshly(self):
        expect(self.client.ask("server/discover"), "no result")
        self.fresh += 1

    def over_one(self):
        """One connection for as long as it lasts. What the server closes between two requests is opened again."""
        connection, used = self.client.connect(), False
        with connection_closed(connection):
            while not self.over.is_set():
                try:
                    _, answer = self.client.modern("server/discover", connection=connection)
                except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
                    if not used:
                        raise
                    self.closed += 1
                    return
                expect(result_of(answer), "no result")
                self.kept += 1
                used = True
                if (answer.headers.get("Connection") or "").lower() == "close":
                    self.told += 1
                    return

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(BOUND)


@check(f"{RESTARTS} restarts under load refuse nobody, and lose no request over a fresh connection")
def restarts_under_load(stage):
    # A client here may be slow, for the machine has much else to do.
    stage.box.write("/etc/gatewren/conf.d/test.toml", '[limits]\nheader_timeout = "25s"\n')
    stage.box.run("systemctl", "restart", FRONT)
    load, start = Load(stage), time.monotonic()
    try:
        for _ in range(RESTARTS):
            stage.box.run("systemctl", "restart", FRONT)
            if len(load.wrong) > 10:
                break
    finally:
        load.end()
        stage.box.run("rm", "/etc/gatewren/conf.d/test.toml")
        stage.box.run("systemctl", "restart", FRONT)
    each = (time.monotonic() - start) / RESTARTS
    expect(not load.wrong, f"{len(load.wrong)} went wrong: {load.wrong[:5]}")
    expect(load.fresh > 0 and load.kept > 0, "there was no load")
    return (
        f"{each:.2f} s each; {load.fresh} requests over fresh connections, {load.kept} over kept ones, of which "
        f"{load.told} were told of the end and {load.closed} closed between two requests"
    )
