"""Starts `gatewren try`, runs each client against it, and changes the box from outside when a client asks.

Started by tests/clients/run, which installs the clients. Environment: GATEWREN_BIN, GATEWREN_LXCPATH (may be empty).
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = {
    "sdk-v1": ["node", "sdk-v1.mjs"],
    "sdk-v2": ["node", "sdk-v2.mjs", "2026-07-28"],
    "sdk-v2-legacy": ["node", "sdk-v2.mjs", "legacy"],
    "sdk-python": ["python", "sdk_python.py", "2026-07-28"],
    "sdk-python-legacy": ["python", "sdk_python.py", "legacy"],
}
CLIENT_BOUND = 90  # seconds; the clients' own bound is shorter and says more
START_BOUND = 20  # seconds until the server has printed its address
STOP_BOUND = 35  # seconds from SIGTERM to the end; the server promises 30

# A row as any local program may write it; the revision is the next one, whatever it is.
ROW = """.timeout 5000
BEGIN IMMEDIATE;
INSERT INTO revision(id, at_ms, actor, patch)
    SELECT max(id) + 1, {now}, 'local:test', '[{{"op":"add","path":"/public/notes","value":{{"a":{now}}}}}]'
    FROM revision;
COMMIT;
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--node-modules", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("clients", nargs="*", default=[])
    args = parser.parse_args()
    lxcpath = os.environ.get("GATEWREN_LXCPATH", "")
    failed = False
    with tempfile.TemporaryDirectory(prefix="gatewren-clients-") as folder:
        folder = pathlib.Path(folder)
        server, address = start_server(folder, lxcpath)
        try:
            box = Box(lxcpath, address["state_db"])
            box.change("row")  # so that the notes exist before anybody subscribes to them
            workplace = scripts_beside(folder, args.node_modules)
            for name in args.clients or CLIENTS:
                command = [args.python if word == "python" else word for word in CLIENTS[name]]
                failed |= drive(name, command, workplace, environment(address, lxcpath), box)
        finally:
            failed |= stop_server(server)
    return int(failed)


def start_server(folder, lxcpath):
    command = [os.environ["GATEWREN_BIN"], "try", "--json", "--listen", "127.0.0.1:0"]
    command += ["--dir", str(folder / "state"), "--policy", "admin"]
    command += ["--lxcpath", lxcpath] if lxcpath else []
    log = open(log_file(), "w")
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
    with bound(START_BOUND, server):
        line = server.stdout.readline()
    if not line.startswith("{"):
        server.kill()
        print(f"not ok clients server starts: {line.strip() or 'nothing on stdout'}; see {log.name}")
        sys.exit(1)
    return server, json.loads(line)


@contextlib.contextmanager
def bound(seconds, process):
    """Kills the process unless the block is left in time; whoever reads its output then reads the end."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def log_file():
    results = HERE.parent.parent / "target" / "test-results"
    results.mkdir(parents=True, exist_ok=True)
    return results / "clients-server.log"


def stop_server(server):
    server.terminate()
    try:
        status = server.wait(STOP_BOUND)
    except subprocess.TimeoutExpired:
        server.kill()
        status = f"still running {STOP_BOUND} s later"
    print("ok clients server ends on SIGTERM" if status == 0 else f"not ok clients server ends on SIGTERM: {status}")
    return status != 0


def scripts_beside(folder, node_modules):
    """Node looks for packages above the script, so the scripts stand beside the packages for the run."""
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, folder)
    (folder / "node_modules").symlink_to(node_modules)
    shutil.copy(HERE / "sdk_python.py", folder)
    return folder


def environment(address, lxcpath):
    return dict(
        os.environ,
        GATEWREN_URL=address["url"],
        GATEWREN_TOKEN=address["token"],
        GATEWREN_CA=address["ca"],
        GATEWREN_CONTAINER="alpha" if lxcpath else "",
        NODE_EXTRA_CA_CERTS=address["ca"],
    )


def drive(name, command, workplace, env, box):
    """Runs one client to its end; true if it failed."""
    pipe = subprocess.PIPE
    client = subprocess.Popen(command, cwd=workplace, env=env, stdin=pipe, stdout=pipe, text=True)
    failed = False
    with bound(CLIENT_BOUND, client):
        for line in client.stdout:
            if line.startswith("change "):
                client.stdin.write(box.change(line.split()[1]) + "\n")
                client.stdin.flush()
            else:
                failed |= line.startswith("not ok")
                print(line, end="", flush=True)
        status = client.wait()
    if status != 0 and not failed:
        print(f"not ok {name} ends: exit status {status}", flush=True)
    return status != 0


class Box:
    """Changes the box behind gatewren's back, as an administrator or another program would."""

    def __init__(self, lxcpath, state_db):
        self.lxcpath, self.state_db = lxcpath, state_db

    def change(self, what):
        try:
            {"container": self.restart_container, "row": self.write_row}[what]()
            return "changed"
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            return f"{error}; {error.stderr}".replace("\n", " ")

    def restart_container(self):
        for command in (["lxc-stop", "-k"], ["lxc-start"]):
            self.run([*command, "-P", self.lxcpath, "-n", "alpha"])

    def write_row(self):
        self.run(["sqlite3", "-bail", self.state_db], input=ROW.format(now=int(time.time() * 1000)))

    @staticmethod
    def run(command, input=""):
        subprocess.run(command, input=input, check=True, timeout=20, capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main())
