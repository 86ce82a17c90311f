"""What the clients meet: `gatewren try` and `gatewren everything` over TLS, and the box, which changes when asked."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import threading
import time
import urllib.parse

START_BOUND = 120  # seconds until a server has printed its address
STOP_BOUND = 60  # seconds from SIGTERM to the end; the server promises 30
CHANGE_BOUND = 60  # seconds for a change of the box, or for a process to come or go
POLL = 0.05  # seconds between two looks at the processes

FIXTURES_TOKEN = "a-token-for-the-fixtures"

# A row as any local program may write it; the revision is the next one, whatever it is.
ROW = """.timeout 30000
BEGIN IMMEDIATE;
INSERT INTO revision(id, at_ms, actor, patch)
    SELECT max(id) + 1, {now}, 'local:test', '[{{"op":"add","path":"/public/notes","value":{{"a":{now}}}}}]'
    FROM revision;
COMMIT;
"""


def kept_port():
    """A free port that the system gives to nobody who asks for any, not even while its server is being restarted."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(max(1024, lowest - 16384), lowest), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    return 0


class Fault(Exception):
    """What went wrong, in words for the line of a check."""


class Server:
    """A gatewren that printed its address as one JSON object: started, killed and started again, stopped."""

    def __init__(self, name, arguments, log):
        self.name, self.arguments, self.log = name, arguments, log
        self.start(f"127.0.0.1:{kept_port()}")

    def start(self, listen):
        command = [os.environ["GATEWREN_BIN"], *self.arguments, "--json", "--listen", listen]
        with open(self.log, "a") as log:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=log, text=True)
        with bound(START_BOUND, self.process):
            line = self.process.stdout.readline()
        if not line.startswith("{"):
            self.process.kill()
            raise Fault(f"{line.strip() or 'nothing on stdout'}; see {self.log}")
        self.address = json.loads(line)

    def kill_and_start(self):
        """As after a power cut: no goodbye, then the same port and the same directory."""
        self.process.kill()
        self.process.wait()
        self.start_again()

    def start_again(self):
        self.start(urllib.parse.urlsplit(self.address["url"]).netloc)

    def stop(self):
        """The exit status after SIGTERM, or words."""
        self.process.terminate()
        try:
            return self.process.wait(STOP_BOUND)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return f"still running {STOP_BOUND} s later"


@contextlib.contextmanager
def bound(seconds, process):
    """Kills the process unless the block is left in time; whoever reads its output then reads the end."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Requests:
    """What clients ask for: each request is a method whose name begins with `ask_`."""

    def asked(self, words):
        """Does what a client asked for: "done", or one line that says why not."""
        name, *arguments = words.split()
        try:
            getattr(self, "ask_" + name.replace("-", "_"))(*arguments)
            return "done"
        except (Fault, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            return " ".join(f"{error}; {getattr(error, 'stderr', '')}".split())

    def ask_see_sleep(self, seconds):
        wait_for(lambda: sleeps(seconds), f"no process `sleep {seconds}` on the box")

    def ask_see_no_sleep(self, seconds):
        wait_for(lambda: not sleeps(seconds), f"`sleep {seconds}` still runs on the box")


class Stage(Requests):
    """Both servers and the box. What a client may ask for is a method whose name begins with `ask_`."""

    def __init__(self, folder, lxcpath, results):
        self.lxcpath = lxcpath
        self.state = str(folder / "state")
        on_box = ["try", "--dir", self.state, "--policy", "admin"]
        on_box += ["--lxcpath", lxcpath] if lxcpath else []
        fixtures = ["everything", "streamableHttp", "--tls", "--token", FIXTURES_TOKEN, "--dir", str(folder / "fixtures")]
        self.servers = []
        for name, arguments in {"server": on_box, "fixtures": fixtures}.items():
            log = results / f"clients-{name}.log"
            log.write_text("")
            self.servers.append(Server(name, arguments, log))
        self.box, self.fixtures = self.servers
        self.authorities = folder / "authorities.pem"
        certificates = [pathlib.Path(server.address["ca"]).read_text() for server in self.servers]
        self.authorities.write_text("".join(certificates))

    def see_the_box(self):
        """Waits until the server has looked at the box for the first time, so that there is something to read."""
        command = [os.environ["GATEWREN_BIN"], "state", "get", "/public/packageData", "--dir", self.state]
        end = time.monotonic() + START_BOUND
        while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            if time.monotonic() > end:
                raise Fault(f"no containers in the state within {START_BOUND} s")
            time.sleep(POLL)

    def environment(self):
        """What a client is told: where, with what token, whom to trust, and which container it may try."""
        return {
            "GATEWREN_URL": self.box.address["url"],
            "GATEWREN_TOKEN": self.box.address["token"],
            "GATEWREN_FIXTURES_URL": self.fixtures.address["url"],
            "GATEWREN_FIXTURES_TOKEN": FIXTURES_TOKEN,
            "GATEWREN_CA": str(self.authorities),
            "GATEWREN_CONTAINER": "alpha" if self.lxcpath else "",
            "NODE_EXTRA_CA_CERTS": str(self.authorities),
        }

    def ask_restart_container(self):
        for command in (["lxc-stop", "-k"], ["lxc-start"]):
            run([*command, "-P", self.lxcpath, "-n", "alpha"])

    def ask_write_row(self):
        write_row(self.box.address["state_db"])

    def ask_restart_server(self):
        self.box.kill_and_start()

    def ask_stop_server_for(self, seconds):
        """As at a restart that takes long: an orderly stop, and nobody listens for a while."""
        status = self.box.stop()
        if status != 0:
            raise Fault(f"the server ended with {status}")
        time.sleep(float(seconds))
        self.box.start_again()


def run(command, input=""):
    subprocess.run(command, input=input, check=True, timeout=CHANGE_BOUND, capture_output=True, text=True)


def write_row(state_db):
    run(["sqlite3", "-bail", state_db], input=ROW.format(now=int(time.time() * 1000)))


def wait_for(truth, otherwise):
    end = time.monotonic() + CHANGE_BOUND
    while not truth():
        if time.monotonic() > end:
            raise Fault(f"{otherwise}, {CHANGE_BOUND} s on")
        time.sleep(POLL)


def sleeps(seconds):
    """Whether a `sleep SECONDS` runs on this machine, in a container or out of one."""
    wanted = f"sleep\0{seconds}\0".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            if (process / "cmdline").read_bytes() == wanted:
                return True
    return False
