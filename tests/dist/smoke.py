#!/usr/bin/env python3
"""Runs a released binary of gatewren and has it do a little of everything: smoke.py amd64|arm64|armhf BINARY

One line a check: ok, not ok or skip. For ARM as root: the kernel is told in a user namespace of its own which emulator
runs ARM programs, so that the whole of gatewren is emulated, the processes too that it starts itself, and the machine
is left as it was. Kernels before 6.7 cannot be told in a namespace.
"""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import sqlite3
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BOUND = 300  # seconds for whatever must happen: emulation is slow, and the machine may be busy
VERSION = "2026-07-28"
BINFMT = pathlib.Path("/proc/sys/fs/binfmt_misc")
# Set for the run within the namespace, and how that run says that it could not begin.
INSIDE = "GATEWREN_TEST_INSIDE"
NOT_TOLD = 75


class Emulator:
    """What runs the programs of one architecture: by hand, and by the kernel's doing."""

    def __init__(self, program, cpu, elf_class, machine):
        self.program, self.cpu = program, cpu
        # The head of an ELF executable or shared object (a static PIE is one) in little-endian, and what counts of it.
        self.magic = b"\x7fELF" + bytes([elf_class, 1, 1]) + bytes(9) + struct.pack("<HH", 2, machine)
        self.mask = b"\xff" * 7 + b"\x00" + b"\xff" * 8 + b"\xfe\xff\xff\xff"

    def command(self, *command):
        return [self.program, *(["-cpu", self.cpu] if self.cpu else []), *command]

    def registration(self):
        """binfmt_misc(5): P keeps the first argument, O hands the program over open, F opens the emulator now."""
        escaped = ["".join(f"\\x{byte:02x}" for byte in part) for part in (self.magic, self.mask)]
        path = subprocess.run(["which", self.program], check=True, capture_output=True, text=True).stdout.strip()
        return f":gatewren-{self.program}:M::{escaped[0]}:{escaped[1]}:{path}:POF"


# What this machine does not run itself. Debian's armhf has no NEON, nor has this processor, so that an instruction of it is a crash.
EMULATORS = {
    "arm64": Emulator("qemu-aarch64-static", None, 2, 183),
    "armhf": Emulator("qemu-arm-static", "cortex-a9,neon=off", 1, 40),
}

failed = False


@contextlib.contextmanager
def check(arch, what):
    global failed
    try:
        yield
        print(f"ok dist {arch}: {what}", flush=True)
    except Exception as error:
        failed = True
        print(f"not ok dist {arch}: {what}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


def said_by(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOUND)
    expect(done.returncode == 0, f"exit status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def by_hand(arch, binary):
    """What needs one process alone."""
    emulated = EMULATORS[arch].command if arch in EMULATORS else lambda *command: command
    with check(arch, "--version"):
        cargo = (ROOT / "Cargo.toml").read_text()
        version = next(line.split('"')[1] for line in cargo.splitlines() if line.startswith("version = "))
        said = said_by(emulated(binary, "--version"))
        expect(said == f"gatewren {version}", said)
    with check(arch, "gatewren check finds the shipped settings good"):
        said_by(emulated(binary, "check", "--config", ROOT / "etc/gatewren.toml", "--helper", ROOT / "etc/helper.toml"))


def tell_kernel(emulator):
    """Whether the kernel of this namespace now runs programs of that architecture."""
    try:
        subprocess.run(["mount", "-t", "binfmt_misc", "none", BINFMT], check=True, capture_output=True)
        (BINFMT / "register").write_text(emulator.registration())
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


class Server:
    """`gatewren try`, with its first line and what it logs."""

    def __init__(self, arch, binary, folder):
        self.log = folder / "log"
        env = dict(os.environ)
        if arch in EMULATORS and EMULATORS[arch].cpu:
            env["QEMU_CPU"] = EMULATORS[arch].cpu
        command = [binary, "try", "--json", "--listen", "127.0.0.1:0", "--dir", folder / "state", "--policy", "admin"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        line = self.process.stdout.readline()
        expect(line, f"no address: {self.log.read_text()[-2000:]}")
        self.at = json.loads(line)
        self.url = urllib.parse.urlsplit(self.at["url"])
        self.trust = ssl.create_default_context(cafile=self.at["ca"])

    def send(self, method, params, name=None):
        """Sends a request of the stateless revision over a connection of its own."""
        capabilities = {"io.modelcontextprotocol/clientCapabilities": {}}
        meta = {"io.modelcontextprotocol/protocolVersion": VERSION, **capabilities}
        headers = {
            "Authorization": f"Bearer {self.at['token']}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": method,
            **({"Mcp-Name": name} if name else {}),
        }
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}})
        connection = http.client.HTTPSConnection(
            self.url.hostname, self.url.port, context=self.trust, timeout=BOUND
        )
        connection.request("POST", self.url.path, body, headers)
        return connection

    def ask(self, method, params, name=None):
        """The answer to a request, which is still to be read."""
        answer = self.send(method, params, name).getresponse()
        expect(answer.status == 200, f"{method}: HTTP {answer.status}")
        return answer

    def result(self, method, params, name=None):
        last = list(messages(self.ask(method, params, name)))[-1]
        expect("result" in last, last)
        return last["result"]

    def call(self, tool, arguments):
        result = self.result("tools/call", {"name": tool, "arguments": arguments}, tool)
        expect(not result.get("isError"), result)
        return result

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(BOUND)


def messages(answer):
    """The JSON-RPC messages of an answer, one object or a stream of events."""
    if answer.headers.get_content_type() == "application/json":
        yield json.loads(answer.read())
        return
    for line in answer:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


def write_state(path, patch):
    """A revision written by another program, as gatewren-state(5) says."""
    state = sqlite3.connect(path, timeout=BOUND, isolation_level=None)
    state.execute("BEGIN IMMEDIATE")
    state.execute(
        "INSERT INTO revision (id, at_ms, actor, patch) SELECT 1 + max(coalesce((SELECT max(id) FROM revision), 0),"
        " (SELECT max(revision) FROM snapshot)), ?, 'local:test', ?",
        (int(time.time() * 1000), json.dumps(patch)),
    )
    state.execute("COMMIT")
    state.close()


def cut_short(server, pid_file):
    command = f"setsid sleep 100000 & echo $! > {pid_file}.new; mv {pid_file}.new {pid_file}; wait"
    connection = server.send("tools/call", *shell(command))
    wait_until(pid_file.exists, "the command runs")
    pid = int(pid_file.read_text())
    expect(alive(pid), "what it started has gone by itself")
    connection.close()
    wait_until(lambda: not alive(pid), "what it started is gone")


def alive(pid):
    """A process that ended and was not waited for is not alive."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(true, what):
    deadline = time.monotonic() + BOUND
    while not true():
        expect(time.monotonic() < deadline, f"not within {BOUND} s: {what}")
        time.sleep(0.1)


def serving(arch, binary):
    with tempfile.TemporaryDirectory(prefix="gatewren-smoke-") as folder:
        folder, server = pathlib.Path(folder), None
        with check(arch, "serves over TLS"):
            server = Server(arch, binary, folder)
        if server:
            try:
                calls(arch, server, folder)
            finally:
                with check(arch, "SIGTERM ends it in order"):
                    status = server.stop()
                    expect(status == 0, f"exit status {status}")
        if failed:
            print((folder / "log").read_text()[-4000:], flush=True)


def calls(arch, server, folder):
    with check(arch, "server/discover"):
        discovered = server.result("server/discover", {})
        expect(VERSION in discovered["supportedVersions"], discovered)
    with check(arch, "tools/call"):
        expect("admin" in json.dumps(server.call("whoami", {})), "another policy than asked for")
    result = server.result("tools/call", *shell("echo out; echo err >&2; exit 3"))
    if result.get("isError") and arch in EMULATORS:
        # Older emulators have no child subreaper; without one no command is run, and that is said.
        with check(arch, "where orphans cannot be adopted no command is run"):
            expect("adopt orphans" in json.dumps(result), result)
    else:
        commands(arch, server, folder, result)
    with check(arch, "a subscription tells of a revision that another program writes"):
        told_of_a_change(server)


def commands(arch, server, folder, result):
    with check(arch, "tools/call that starts a command through the helper"):
        expect(result["structuredContent"]["exit_code"] == 3, result)
        expect(result["structuredContent"]["stdout"] == "out\n", result)
    if arch not in EMULATORS:
        with check(arch, "the allocator has no huge pages, and a command may have them"):
            own = pathlib.Path(f"/proc/{server.at['pid']}/status").read_text()
            result = server.result("tools/call", *shell("cat /proc/self/status"))
            theirs = result["structuredContent"]["stdout"]
            expect("THP_enabled:\t0" in own and "THP_enabled:\t1" in theirs, own + theirs)
    with check(arch, "a call whose client goes is killed, with what it started"):
        cut_short(server, folder / "pid")


def shell(command):
    return {"name": "system_shell", "arguments": {"command": command, "timeout_s": 300}}, "system_shell"


def told_of_a_change(server):
    wanted = {"notifications": {"resourceSubscriptions": ["gatewren:///public/other"]}}
    told = messages(server.ask("subscriptions/listen", wanted))
    first = next(told)
    expect("acknowledged" in first["method"], first)
    write_state(server.at["state_db"], [{"op": "add", "path": "/public/other", "value": {"says": "hello"}}])
    update = next(message for message in told if message.get("method") == "notifications/resources/updated")
    expect(update["params"]["uri"] == "gatewren:///public/other", update)


def serving_emulated(arch, binary):
    """Whatever is started dies with the namespace of processes."""
    namespace = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = [*namespace, sys.executable, __file__, arch, binary]
    status = subprocess.run(command, env={**os.environ, INSIDE: "1"}).returncode
    if status == NOT_TOLD:
        print(f"skip dist {arch}: serving: this kernel cannot be told in a namespace how to run ARM programs")
        return False
    return status != 0


def main(arch, binary):
    if os.environ.get(INSIDE):
        if not tell_kernel(EMULATORS[arch]):
            return NOT_TOLD
        serving(arch, binary)
        return int(failed)
    by_hand(arch, binary)
    if arch in EMULATORS:
        return int(serving_emulated(arch, binary) or failed)
    serving(arch, binary)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())))
