#!/usr/bin/env python3
"""Measures the rows of tests/bench/waiting/run, gatewren and the same work by hand in turn, and prints their medians.

    measure.py GATEWREN FOLDER LXCPATH [--only ROWS] [--rounds N] [--small]
"""

import argparse
import contextlib
import functools
import http.client
import json
import os
import pathlib
import random
import shutil
import ssl
import statistics
import subprocess
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lab"))
from outside import Client, connection_closed, messages, wait  # noqa: E402

CLASSES = ("read", "scan", "write", "disrupt", "execute", "reveal", "persist")
TAR = "--numeric-owner --xattrs --xattrs-include=* --acls"  # What a backup keeps. Its level is zstd's default, 3.
START = 1_790_000_000  # The time of the journal's first entry, in seconds.


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, **more).stdout


def shell(line):
    run("bash", "-o", "pipefail", "-ec", line)


def timed(action):
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1e3


class Report:
    """The rows, printed as they are measured."""

    def __init__(self, rounds):
        self.rounds = rounds
        print(f"{'':44} {'gatewren':>10} {'by hand':>10} {'ratio':>6} {'goal':>6}", flush=True)

    def compare(self, what, ours, theirs, goal, before=lambda: None):
        """Measures two functions in turn, each first in every second round. The first round finds cold caches, and is
        not counted."""
        times = {ours: [], theirs: []}
        for number in range(self.rounds + 1):
            for side in (ours, theirs) if number % 2 else (theirs, ours):
                before()
                ms = timed(side)
                if number > 0:
                    times[side].append(ms)
        self.line(what, *(statistics.median(times[side]) for side in (ours, theirs)), goal)

    def line(self, what, left, right, goal):
        ratio, shown = left / right, "-" if goal is None else f"{goal:.2f}"
        missed = "" if goal is None or ratio <= goal else "  missed"
        print(f"{what:44} {left:7.1f} ms {right:7.1f} ms {ratio:6.2f} {shown:>6}{missed}", flush=True)


class Process(contextlib.AbstractContextManager):
    """A process that is ended with the block that uses it."""

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Trial(Process):
    """`gatewren try`; ready when it has printed its address."""

    def __init__(self, binary, folder, policy, lxcpath):
        command = [binary, "try", "--json", "--listen", "127.0.0.1:0", "--dir", folder, "--policy", policy,
                   "--lxcpath", lxcpath, "--log", "error"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.said = json.loads(self.process.stdout.readline())
        self.port = urllib.parse.urlsplit(self.said["url"]).port
        self.ca = pathlib.Path(self.said["ca"]).read_text()
        self.client = Client("127.0.0.1", self.port, self.ca, self.said["token"])


class Server(Process):
    """A gatewren with an agent that may do everything; its settings and state are below a folder."""

    def __init__(self, binary, folder, lxcpath):
        self.binary, home = binary, folder / "server"
        for place in (home, folder / "kept", folder / "files"):
            place.mkdir()
        policy = home / "helper.toml"
        policy.write_text(
            f'backup = "delete"\nlxc_manage = "on"\ncontainer_files = "on"\nhost_file_reads = ["{folder}/files"]\n'
            f'backup_targets = ["local: {folder}/kept"]\n')
        with Trial(binary, home / "state", "admin", lxcpath) as started:
            pass
        settings = home / "gatewren.toml"
        settings.write_text(
            f'listen = ["127.0.0.1:{started.port}"]\nstate_dir = "{home}/state"\n[lxc]\nlxcpath = "{lxcpath}"\n')
        self.process = subprocess.Popen(
            [binary, "serve", "--config", settings, "--helper-policy", policy],
            stderr=open(home / "log", "w"), stdin=subprocess.DEVNULL)
        modes = [word for name in CLASSES for word in ("--mode", f"{name}=allow")]
        added = json.loads(run(binary, "agent", "add", "bench", "--policy", "admin", *modes, "--json",
                               "--config", settings))
        self.client = Client("127.0.0.1", started.port, started.ca, added["token"])
        wait("the server answers", self.answers)

    def answers(self):
        with contextlib.suppress(ConnectionError):
            names = [tool["name"] for tool in self.client.ask("tools/list")["tools"]]
            return "backup_list" in names and "container_file_read" in names

    def call(self, tool, connection=None, **arguments):
        """The data of a tool's answer, over a connection of its own if none is given."""
        own, answer = self.client.modern("tools/call", {"name": tool, "arguments": arguments}, connection)
        message = list(messages(answer))[-1]
        if connection is None:
            own.close()
        if "result" not in message or message["result"].get("isError"):
            raise SystemExit(f"{tool} {arguments}: {json.dumps(message)[:900]}")
        return message["result"].get("structuredContent")


def backup(report, server, folder, lxcpath, options):
    """A backup is on the disk when it is reported, so `sync` belongs to both sides. They unpack the same archive."""
    root, packed, by_hand = lxcpath / "alpha/rootfs", folder / "by-hand.tar.zst", folder / "by-hand"
    piece = options.bytes(2 << 30) // 128
    # Half of the bytes are random, and half are text that zstd halves.
    shell(f"mkdir {root}/waiting; cd {root}/waiting; for n in {{1..64}}; do head -c {piece} /dev/urandom >random-$n;"
          f" head -c {piece // 3} /dev/urandom | od -An -v -tx1 -w64 >text-$n; done")
    created = []

    def create():
        created.append(server.call("backup_create", target="local", container="alpha", freeze=False)["backup"])

    def pack():
        shell(f"tar --create --format=posix --one-file-system {TAR} -C {root} . | zstd -q -3 -T0 >{packed}"
              f" && sync {packed}")

    def clean():
        for old in created[:-1]:
            shutil.rmtree(folder / "kept" / old)
        del created[:-1]
        packed.unlink(missing_ok=True)
        os.sync()

    report.compare("backup_create, 2 GB", create, pack, 1.15, clean)
    archive = folder / "kept" / created[-1] / "archive.tar.zst"

    def restore():
        server.call("backup_restore", target="local", backup=created[-1], container="restored")

    def unpack():
        by_hand.mkdir()
        shell(f"zstd -q -dc -T0 {archive} | tar --extract --same-owner --same-permissions {TAR} -C {by_hand}")

    def clear():
        for left in (by_hand, lxcpath / "restored"):
            shutil.rmtree(left, ignore_errors=True)
        os.sync()

    report.compare("backup_restore, 2 GB", restore, unpack, 1.15, clear)
    clear()


def file(report, server, folder, lxcpath, options):
    """By hand: the file from `openssl s_server -WWW`, by the same client. Each side opens a connection of its own. A part
    is the most that one call returns."""
    size = options.bytes(10 << 20)
    text = (b"2026-07-28 09:30:00 the wren sings in the hedge, and the hedge listens\n" * (size // 70 + 1))[:size]
    (folder / "files/large").write_bytes(text)
    (lxcpath / "alpha/rootfs/large").write_bytes(text)
    with served_files(folder) as (port, tls):
        def fetch(name):
            with connection_closed(http.client.HTTPSConnection("localhost", port, context=tls)) as connection:
                connection.request("GET", f"/{name}")
                connection.getresponse().read()

        for tool, arguments in [("file_read", {"path": f"{folder}/files/large"}),
                                ("container_file_read", {"container": "alpha", "path": "/large"})]:
            part = server.call(tool, **arguments)["next_offset"]
            (folder / f"files/{tool}").write_bytes(text[:part])
            report.compare(f"{tool}, {part} bytes", functools.partial(server.call, tool, **arguments),
                           functools.partial(fetch, tool), 1.5)
            report.compare(f"{tool}, 10 MB in such parts", functools.partial(whole, server, tool, arguments),
                           functools.partial(fetch, "large"), None)


def whole(server, tool, arguments):
    """Reads a file part by part over one connection."""
    offset = 0
    with connection_closed(server.client.connect()) as connection:
        while offset is not None:
            offset = server.call(tool, connection, offset=offset, **arguments).get("next_offset")


@contextlib.contextmanager
def served_files(folder):
    """Serves a folder over TLS; the port, and a context that trusts the certificate."""
    crt, key = folder / "tls.crt", folder / "tls.key"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
        "-out", crt, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-WWW", "-cert", crt, "-key", key]
    with Process() as server:
        server.process = subprocess.Popen(command, cwd=folder / "files", stdin=subprocess.DEVNULL, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        address = next(line for line in server.process.stdout if line.startswith("ACCEPT"))
        yield int(address.rsplit(":", 1)[1]), ssl.create_default_context(cafile=str(crt))


def journal(report, server, folder, lxcpath, options):
    """By hand: journalctl with the same filters and the same limit. The client's connection is open, as it is between
    the calls of an agent."""
    write_journal(folder, options.bytes(1 << 30))
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + 2000))
    for what, asked, words in [
            ("the newest 50", {}, []),
            ("a unit's 50 newest errors", {"unit": "unit-7.service", "priority": "err"},
             ["--unit=unit-7.service", "--priority=err"]),
            ("50 before a time", {"until": until}, ["--reverse", f"--until=@{START + 2000}"]),
            ("a rare word", {"grep": "needle"}, ["--grep=needle"]),
            ("a word that is not there", {"grep": "haystack"}, ["--grep=haystack"])]:
        by_hand = ["journalctl", "--no-pager", "--quiet", "--lines=50", *words]
        expected = len(subprocess.run(by_hand, stdout=subprocess.PIPE).stdout.splitlines())
        found = len(server.call("logs_query", limit=50, **asked)["lines"])
        if found != expected:
            raise SystemExit(f"logs_query {asked}: {found} lines, journalctl {expected}")
        with connection_closed(server.client.connect()) as connection:
            ours = functools.partial(server.call, "logs_query", connection, limit=50, **asked)
            theirs = functools.partial(subprocess.run, by_hand, stdout=subprocess.PIPE)
            report.compare(f"logs_query, {what}", ours, theirs, 1.3)


def write_journal(folder, size):
    """Entries of services as the export format has them, until the journal's files have so many bytes."""
    machine = pathlib.Path("/etc/machine-id").read_text().strip()
    place = folder / "journal" / machine
    place.mkdir()
    boot, chance, number = "0" * 31 + "1", random.Random(2), 0
    files = lambda: sum(file.stat().st_blocks * 512 for file in place.iterdir())  # noqa: E731
    remote = subprocess.Popen(["/lib/systemd/systemd-journal-remote", f"--output={place}/system.journal", "-"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while files() < size:
        for _ in range(20_000):
            unit = chance.randrange(40)
            word = "needle" if number % 60_000 == 59_999 else "hay"
            us, priority = number * 20_000, 3 if number % 97 == 0 else 6
            remote.stdin.write((
                f"__REALTIME_TIMESTAMP={START * 1_000_000 + us}\n__MONOTONIC_TIMESTAMP={us}\n_BOOT_ID={boot}\n"
                f"_MACHINE_ID={machine}\n_TRANSPORT=stdout\nPRIORITY={priority}\n_UID=0\n_HOSTNAME=bench\n"
                f"_PID={unit + 300}\n_COMM=unit-{unit}\n_SYSTEMD_UNIT=unit-{unit}.service\nSYSLOG_IDENTIFIER=unit-{unit}\n"
                f"MESSAGE=request {number} of {word} returned {chance.randbytes(64).hex()}\n\n").encode())
            number += 1
        remote.stdin.flush()
    remote.stdin.close()
    remote.wait()
    print(f"# a journal of {number} entries, {files() / 2**30:.2f} GiB", flush=True)


def start(report, server, folder, lxcpath, options):
    """From the first byte of a new connection to the last of the list, right after the server has printed its address."""
    for preset in ("observe", "suggest", "operate", "admin"):
        times = []
        for number in range(report.rounds):
            with Trial(server.binary, folder / f"trial-{preset}-{number}", preset, lxcpath) as trial:
                times.append(timed(functools.partial(trial.client.ask, "tools/list")))
        report.line(f"first tools/list, {preset}; beside 25 ms", statistics.median(times), 25, 1)


ROWS = {"backup": backup, "file": file, "journal": journal, "start": start}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("lxcpath", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    options.bytes = lambda count: count // 16 if options.small else count
    if unknown := set(options.only.split(",")) - set(ROWS):
        parser.error(f"no rows are called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    print(f"# {run(options.binary, '--version', text=True).strip()}, {os.cpu_count()} cores, load average"
          f" {os.getloadavg()[0]:.1f}")
    report = Report(options.rounds)
    with Server(options.binary, options.folder, options.lxcpath) as server:
        for name in options.only.split(","):
            ROWS[name](report, server, options.folder, options.lxcpath, options)


if __name__ == "__main__":
    main()
