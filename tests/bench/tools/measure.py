#!/usr/bin/env python3
"""Beside a booted box with 50 containers (tests/bench/tools/run): installs the package in it, calls each tool, and prints
the figures: what src/cli/tool_figures.tsv has.

    measure.py SCRIPT ADDRESS --commit HASH --build WORDS [--quick] [--only TOOL,TOOL]
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lab"))
import calls  # noqa: E402
from outside import Client, messages, wait  # noqa: E402
from service_stage import Stage  # noqa: E402

POLICY = """
host_shell = "full"
lxc_manage = "on"
container_files = "on"
templates = ["busybox"]
power = "on"
updates = "apply"
units = "on"
host_file_reads = ["/etc", "/usr", "/srv"]
host_file_writes = ["/srv/files"]
network = "on"
storage = "on"
cleanup = "on"
ssh_keys = ["root"]
host_settings = "on"
backup = "delete"
backup_targets = ["local: /mnt/backup"]
backup_roots = ["/mnt/more"]
"""

PREPARE = """
mkdir -p /mnt/backup /mnt/more /srv/files /root/.ssh
printf '[Unit]\\nStartLimitIntervalSec=0\\n[Service]\\nExecStart=sleep infinity\\nExecReload=true\\n[Install]\\nWantedBy=multi-user.target\\n' \
    >/etc/systemd/system/bench.service
systemctl daemon-reload
"""

# A day of minutes and a month of quarters of an hour, each as the newest minute: what a box has that runs for a month.
FILL_HISTORY = """
import sqlite3, sys
usage = sqlite3.connect("/var/lib/gatewren/usage.db", timeout=60)
# The first sample of a container has no rates.
if usage.execute("SELECT count(*) FROM minutes").fetchone()[0] < 3:
    sys.exit("too few samples yet")
newest = usage.execute("SELECT at_s, samples FROM minutes ORDER BY at_s DESC LIMIT 1").fetchone()
for table, seconds, rows in [("minutes", 60, 1440), ("quarters", 900, 2880)]:
    last = newest[0] // seconds * seconds
    usage.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)",
                      [(last - n * seconds, newest[1]) for n in range(1, rows)])
usage.commit()
"""

ANSWER_LIMIT = 40_000  # bytes
READING_LIMIT = 50  # ms
# What says in an answer that there is more.
CONTINUES = ("cursor", "next_offset", "truncated", "more", "after", "parts", "resync", "omitted")


class WrongAnswer(Exception):
    """A call that failed, with its answer."""


class Measured:
    """The sizes and times of one tool's calls."""

    def __init__(self):
        self.bytes, self.ms = [], []

    def line(self, name):
        p95 = self.p95()
        return f"{name}\t{round(statistics.median(self.bytes))}\t{p95:.{1 if p95 < 10 else 0}f}"

    def p95(self):
        return sorted(self.ms)[math.ceil(0.95 * len(self.ms)) - 1]


class Agent:
    """A client with one connection, which is opened anew for each group: the server closes what is idle for long."""

    def __init__(self, client):
        self.client, self.connection = client, None

    def connect(self):
        if self.connection:
            self.connection.close()
        self.connection = self.client.connect()
        self.connection.connect()

    def call(self, tool, arguments):
        """A call's result, the bytes of its message, and the milliseconds until all of it had come."""
        start = time.perf_counter()
        _, answer = self.client.modern("tools/call", {"name": tool, "arguments": arguments}, self.connection)
        if answer.headers.get_content_type() == "application/json":
            body = answer.read()
        else:
            # A stream: its last message is the response.
            body = json.dumps(list(messages(answer))[-1], separators=(",", ":"), ensure_ascii=False).encode()
        ms = (time.perf_counter() - start) * 1e3
        message = json.loads(body)
        if "result" not in message or message["result"].get("isError"):
            raise WrongAnswer(f"{tool} {json.dumps(arguments)}: {body[:800].decode(errors='replace')}")
        return message["result"], len(body), ms


class Bench:
    def __init__(self, stage, options):
        self.stage, self.options = stage, options
        self.measured, self.large, self.loads, self.wrong = {}, {}, [], []
        self.agents = {"": Agent(stage.client)}
        for policy in ("operate", "suggest"):
            added = json.loads(stage.box.run("gatewren", "agent", "add", policy, "--policy", policy, "--json"))
            client = Client(stage.address, 8443, stage.ca, added["token"])
            wait("the other agent comes in", client.comes_in)
            self.agents[policy] = Agent(client)
        tools = json.loads(stage.box.run("gatewren", "describe", "tools", "--json"))
        self.classes = {tool["name"]: tool["class"] for tool in tools}

    def call(self, called, arguments, answers):
        """Makes a call and keeps its answer; its size and time."""
        agent, colon, tool = called.rpartition(":")
        agent = agent if colon else calls.OTHER_AGENTS.get(tool, "")
        arguments = {name: value(answers) if callable(value) else value for name, value in arguments.items()}
        result, size, ms = self.agents[agent].call(tool, arguments)
        answers[called] = result.get("structuredContent") or {}
        if size > ANSWER_LIMIT:
            said = json.dumps(result)
            continues = [word for word in CONTINUES if f'"{word}' in said or f'_{word}"' in said]
            self.large[f"{tool} {json.dumps(arguments)}"] = f"{size} bytes, {', '.join(continues) or 'NO CURSOR'}"
        return size, ms

    def connect(self):
        for agent in self.agents.values():
            agent.connect()

    def wanted(self, group):
        only = self.options.only
        return not only or any(tool in only.split(",") for tool, _ in group)

    def prepare(self):
        self.connect()
        for tool, arguments in calls.PREPARED:
            self.call(tool, arguments, {})

    def run(self):
        """Makes all calls; false if one failed."""
        offered = self.offered()
        for rounds, group in calls.GROUPS:
            if not self.wanted(group) or any(":" not in tool and tool not in offered for tool, _ in group):
                continue
            try:
                self.run_group(3 if self.options.quick else rounds, group)
            except WrongAnswer as wrong:
                self.wrong.append(str(wrong))
                print(wrong, file=sys.stderr, flush=True)
        self.connect()
        for tool, arguments in calls.LARGEST:
            if self.wanted([(tool, {})]):
                try:
                    self.call(tool, arguments, {})
                except WrongAnswer as wrong:
                    self.wrong.append(str(wrong))
        return not self.wrong

    def run_group(self, rounds, group):
        self.connect()
        # The first round finds cold caches, and is not counted.
        for number in range(rounds + 1):
            answers = {}
            for tool, arguments in group:
                size, ms = self.call(tool, arguments, answers)
                if number > 0 and ":" not in tool:
                    measured = self.measured.setdefault(tool, Measured())
                    measured.bytes.append(size)
                    measured.ms.append(ms)
        self.loads.append(os.getloadavg()[0])
        for tool in (tool for tool, _ in group if tool in self.measured):
            print(self.measured[tool].line(tool), file=sys.stderr, flush=True)

    def offered(self):
        """The tools that the agents may call on this box: not those of programs and devices that it lacks."""
        names, cursor = set(calls.OTHER_AGENTS), {}
        while True:
            page = self.stage.client.ask("tools/list", cursor)
            names |= {tool["name"] for tool in page["tools"]}
            if "nextCursor" not in page:
                return names
            cursor = {"cursor": page["nextCursor"]}

    def head(self):
        box = self.stage.box
        units = len(box.shell("systemctl list-units --all --plain --no-legend").splitlines())
        containers = len(box.shell("lxc-ls --running -1").splitlines())
        model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
        gigabytes = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
        model = model[1] if model else platform.machine()
        version, options = box.run("gatewren", "--version"), self.options
        return (
            f"# Measured on {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d} with {version} ({options.commit},"
            f" {options.build}) on {os.cpu_count()} cores of {model}, {gigabytes} GB, load average {min(self.loads):.1f} to"
            f" {max(self.loads):.1f}: a Debian 12 with {containers} containers of LXC and {units} units, {calls.ROUNDS} calls"
            f" of each tool ({calls.FEW_ROUNDS} of slow ones), one at a time over TLS."
        )

    def print_figures(self):
        print(self.head())
        for name in sorted(self.classes):
            print(self.measured[name].line(name) if name in self.measured else f"{name}\t-\t-")
        slow = [name for name, class_ in self.classes.items() if class_ in ("read", "scan", "reveal")
                and name in self.measured and self.measured[name].p95() > READING_LIMIT]
        missing = [" ".join(name for name in sorted(self.classes) if name not in self.measured)]
        for title, found in [(f"above {ANSWER_LIMIT} bytes", [": ".join(one) for one in self.large.items()]), ("not measured", missing), (
                f"reading tools above {READING_LIMIT} ms", [self.measured[name].line(name) for name in slow])]:
            print(f"\n{title}:", *(found or ["none"]), sep="\n  ", file=sys.stderr)


def install(stage):
    """The package, what the owner allows, an agent that may do everything, and a month of usage."""
    classes = ("write", "disrupt", "execute", "reveal", "persist")
    stage.install(*(word for class_ in classes for word in ("--mode", f"{class_}=allow")))
    stage.box.shell(PREPARE)
    stage.box.write("/etc/gatewren/helper.toml", POLICY)
    stage.box.shell("systemctl reload gatewren-helper")
    print("waiting for three minutes of usage", file=sys.stderr)
    fill = ["runuser", "-u", "gatewren", "--", "python3", "-c", FILL_HISTORY + "print('filled')"]
    wait("a sample", lambda: stage.box.run(*fill, check=False))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("address")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--build", default="release build")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    stage = Stage("tools", options.script, options.address)
    install(stage)
    bench = Bench(stage, options)
    wait("the tools of the policy are there", lambda: "system_shell" in bench.offered())
    bench.prepare()
    if not bench.run():
        sys.exit("\n".join(["wrong answers:", *bench.wrong]))
    bench.print_figures()


if __name__ == "__main__":
    main()
