#!/usr/bin/env python3
"""Updates of a real Debian container, planned, run, checked and undone through a gatewren. One line a check: ok or not ok.

    update_run.py ROOT FOLDER    the root file system that the container gets a copy of; a folder for everything else

Run by tests/lab/update-run, where /sys/fs/cgroup is version 2: the container can be frozen.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import bounds  # noqa: E402
from bounds import BOUND, check, expect, package, run  # noqa: E402
from updates import Busy, until  # noqa: E402

NAME = "wren"
HERE = {"container": NAME}
PORT = 8088
# What the service is: a program that its package installs, and that something starts again whenever it ends.
SERVICE = f"""import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", {PORT}))
s.listen()
time.sleep(1e9)
"""
GOOD = f"cat >/srv/web.py <<'PY'\n{SERVICE}PY\npkill -f /srv/web.py; exit 0"
BROKEN = "echo 'raise SystemExit(1)' >/srv/web.py; pkill -f /srv/web.py; exit 0"
INIT = "#!/bin/sh\nwhile :; do [ ! -e /srv/web.py ] || python3 /srv/web.py 2>/dev/null; sleep .2; done\n"


class Lab(Busy):
    """A gatewren on the containers of this lab."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.answers, self.number = {}, 100
        command = [os.environ["GATEWREN_BIN"], "try", "--stdio", "--dir", str(self.folder / "home"), "--policy", "admin",
                   "--lxcpath", str(self.folder / "lxc"), "--log", "warn"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=(self.folder / "log").open("a"))
        until("it knows the container", lambda: not self.call("container_info", **HERE)[0])
        return self

    def allow(self):
        words = [word for tool in ("update_run", "update_apply", "container_rebuild") for word in ("--tool", f"{tool}=allow")]
        run(os.environ["GATEWREN_BIN"], "agent", "edit", "try", "--dir", str(self.folder / "home"), *words)

    def long(self, tool, **arguments):
        """What came of a long call. A failure is its text."""
        wrong, said = self.receive(self.send(tool, **arguments))
        job = said.get("job") if isinstance(said, dict) else None
        while job and said.get("state", "running") == "running":
            wrong, said = self.beside("job_wait", job=job)
        if job:
            # A run that became a job has its reports in the job's output, a line each.
            _, output = self.beside("job_output", job=job)
            reports = [line for line in output["output"].splitlines() if line.startswith('{"container"')]
            return said["state"] != "done", {"targets": [json.loads(line) for line in reports]}
        return wrong, said

    def plan(self):
        wrong, said = self.call("update_plan", containers=[NAME])
        expect(not wrong, said)
        return said


class Container:
    def __init__(self, root, folder):
        self.lxc, self.repo = folder / "lxc", folder / "lxc" / NAME / "rootfs/srv"
        home = self.lxc / NAME
        home.mkdir(parents=True)
        run("cp", "-a", "--reflink=auto", f"{root}/.", str(home / "rootfs"))
        self.rootfs = home / "rootfs"
        (self.rootfs / "srv/init").write_text(INIT)
        (self.rootfs / "srv/init").chmod(0o755)
        (home / "config").write_text("\n".join([
            "lxc.include = /usr/share/lxc/config/common.conf", f"lxc.uts.name = {NAME}",
            f"lxc.rootfs.path = dir:{home}/rootfs", "lxc.net.0.type = empty", "lxc.apparmor.profile = unconfined",
            "lxc.init.cmd = /srv/init", f"lxc.console.logfile = {home}/console.log", ""]))
        run("lxc-start", "-P", str(self.lxc), "-n", NAME, stdin=subprocess.DEVNULL)

    def run(self, *command):
        return run("lxc-attach", "-P", str(self.lxc), "-n", NAME, "--clear-env", "--", *command, stdin=subprocess.DEVNULL)

    def state(self):
        return run("lxc-info", "-P", str(self.lxc), "-n", NAME, "-sH").strip()

    def frozen(self):
        pid = run("lxc-info", "-P", str(self.lxc), "-n", NAME, "-pH").strip()
        [path] = [line[3:] for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line[:3] == "0::"]
        return "frozen 1" in pathlib.Path(f"/sys/fs/cgroup{path}/cgroup.events").read_text()

    def version(self):
        return self.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Version}", "wren-web").replace(" ", "")

    def listens(self):
        return f":{PORT:04X} " in self.run("cat", "/proc/net/tcp")

    def offer(self, *packages):
        """Makes a repository of these, in the container, and fetches its list there."""
        import shutil
        for folder in ("main", "security"):
            shutil.rmtree(self.repo / folder, ignore_errors=True)
        sources = ""
        for folder, label, suite, which in (("main", "Lab", "stable", packages),
                                            ("security", "Lab-Security", "stable-security",
                                             [("wren-safe", "1:1.1")])):
            place = self.repo / folder
            place.mkdir()
            index = "".join(package(place, *one)[1] for one in which).encode()
            (place / "Packages").write_bytes(index)
            (place / "Release").write_text(
                f"Origin: Lab\nLabel: {label}\nSuite: {suite}\nVersion: 12\nDate: {run('date', '-uR')}"
                f"SHA256:\n {bounds.hashlib.sha256(index).hexdigest()} {len(index)} Packages\n")
            sources += f"deb [trusted=yes] copy:/srv/{folder} ./\n"
        (self.rootfs / "etc/apt/sources.list").write_text(sources)
        self.run("apt-get", "update")


def only(result):
    [target] = result["targets"]
    return target


def main(root, folder):
    folder = pathlib.Path(folder)
    container = Container(root, folder)
    for kept in (container.rootfs / "etc/apt/sources.list.d").glob("*"):
        kept.unlink()
    old = container.repo / "old"
    old.mkdir()
    for name, script in (("wren-web", GOOD), ("wren-safe", "exit 0")):
        file = package(old, name, "1.0", script)[0]
        container.run("dpkg", "--install", f"/srv/old/{file.name}")
    until("the service listens", container.listens)
    with Lab(folder) as gatewren:
        gatewren.allow()
    with Lab(folder) as gatewren:
        plans(gatewren, container)
        runs(gatewren, container)
        offline(gatewren, container)
    interrupted(folder, container)


def plans(gatewren, container):
    run("rm", "-rf", *map(str, (container.rootfs / "var/lib/apt/lists").glob("*Release")))
    with check("update_plan says that nothing is known without lists"):
        said = gatewren.plan()
        expect(said["run"] == [] and said["up_to_date"] == [], said)
        expect("never fetched" in only(said)["problem"], said)
    container.offer(("wren-web", "1.1", GOOD))
    with check("update_plan counts the updates, names security's, and says what protects the container"):
        said = gatewren.plan()
        expect((said["total"], said["security"]) == (2, 1), said)
        [approved] = said["run"]
        expect((approved["container"], approved["updates"], approved["security"]) == (NAME, 2, ["wren-safe"]), said)
        target = only(said)
        expect("snapshot" in target["protection"] and target["free_bytes"] > 0 and target["space"], said)
        expect(target["packages"] == ["wren-web 1.0 1.1"], said)
    with check("update_run refuses what is not the plan, and changes nothing"):
        for lie in ({"updates": 1}, {"security": []}, {"digest": "0" * 32}):
            wrong, said = gatewren.long("update_run", targets=[{**approved, **lie}])
            expect(wrong and "update_plan again" in said, said)
        container.offer(("wren-web", "1.2", GOOD))
        wrong, said = gatewren.long("update_run", targets=[approved])
        expect(wrong and "update_plan again" in said, said)
        expect(container.version() == "ii1.0" and not (container.lxc / NAME / "snaps").exists(), container.version())


def runs(gatewren, container):
    with check("update_run makes a snapshot of the running container, installs the plan, and finds all well"):
        wrong, said = gatewren.long("update_run", targets=gatewren.plan()["run"])
        expect(not wrong and said["completed"], said)
        target = only(said)
        expect((target["state"], target["changed"]) == ("updated", 2), said)
        expect(target["protected_by"] == "snapshot snap0 (frozen meanwhile)", said)
        expect(container.version() == "ii1.2" and container.listens(), container.version())
        expect(container.state() == "RUNNING", container.state())
        auto = container.run("apt-mark", "showauto")
        expect("wren" not in auto, auto)
    container.offer(("wren-web", "1.3", BROKEN))
    with check("a service that is broken by its update is found, with the call that undoes it"):
        wrong, said = gatewren.long("update_run", targets=gatewren.plan()["run"])
        target = only(said)
        expect(not wrong and target["unhealthy"] == [f"TCP port {PORT} is no longer open"], said)
        expect(container.version() == "ii1.3", container.version())
        [undo] = target["undo"]
        tool, arguments = undo.split(" ", 1)
        wrong, said = gatewren.beside(tool, **json.loads(arguments))
        expect(not wrong, said)
        until("the service is back", container.listens)
        expect(container.version() == "ii1.2", container.version())
    with check("undo_on_failure restores the old version by itself"):
        wrong, said = gatewren.long("update_run", targets=gatewren.plan()["run"], undo_on_failure=True)
        expect(not wrong and only(said)["undone"] and only(said)["undo"] == [], said)
        until("the service is back", container.listens)
        expect(container.version() == "ii1.2" and container.state() == "RUNNING", container.version())


def offline(gatewren, container):
    with check("lists that cannot be fetched are a failure of update_apply and of update_run"):
        source = "deb [trusted=yes] http://127.0.0.1:9/debian bookworm main\n"
        plan = gatewren.plan()["run"]
        (container.rootfs / "etc/apt/sources.list").write_text(source)
        wrong, said = gatewren.long("update_apply", **HERE)
        expect(wrong and "package lists could not be fetched" in said and "127.0.0.1" in said, said)
        wrong, said = gatewren.long("update_run", targets=plan, refresh=True)
        expect(wrong and "only names its container" in said, said)
        wrong, said = gatewren.long("update_run", targets=[HERE], refresh=True)
        target = only(said)
        expect(not wrong and not said["completed"] and target["state"] == "unchanged", said)
        expect("package lists could not be fetched" in target["problem"], said)
        expect(container.version() == "ii1.2", container.version())


def interrupted(folder, container):
    with check("a helper that is killed in the middle of a snapshot leaves no container frozen, and no snapshot"):
        container.offer(("wren-web", "1.4", GOOD))
        before = sorted((container.lxc / NAME / "snaps").iterdir())
        with Lab(folder) as gatewren:
            call = gatewren.send("update_run", targets=gatewren.plan()["run"])
            until("it is frozen", container.frozen)
            [helper] = pathlib.Path(f"/proc/{gatewren.process.pid}/task/{gatewren.process.pid}/children").read_text().split()
            os.kill(int(helper), signal.SIGKILL)
            gatewren.fails(call)
            until("it runs again", lambda: not container.frozen())
        whole = [place for place in (container.lxc / NAME / "snaps").iterdir() if (place / "ts").exists()]
        expect(sorted(whole) == [place for place in before if (place / "ts").exists()], whole)
        expect(container.version() == "ii1.2", container.version())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.exit(1 if bounds.failed else 0)
