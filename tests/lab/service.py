#!/usr/bin/env python3
"""Beside the booted box on its network (tests/lab/service): installs the package, and sees front and helper do what
they are for while systemd, and this, do things to them. One line a check: ok or not ok.

    service.py SCRIPT ADDRESS [CHECK...]    the script that booted the box, the box's address, parts of checks' names
"""

import json
import sys
import time

from outside import Box, Client, expect, wait

FRONT, HELPER = "gatewren.service", "gatewren-helper.service"
checks = []


def check(words):
    """A check: what is true when it goes well. It may return what it has measured."""
    def add(function):
        checks.append((words, function))
        return function
    return add


class Stage:
    """The box with the package in it, and an agent's client."""

    def __init__(self, script, address):
        self.box, self.address = Box(script), address
        self.client = None

    def install(self):
        self.box.shell("DEBIAN_FRONTEND=noninteractive apt-get install -y /root/gatewren.deb >/root/install.log 2>&1")
        installed = time.monotonic()
        wait("both units are active", lambda: self.box.is_active(FRONT) and self.box.is_active(HELPER))
        seconds = time.monotonic() - installed
        added = json.loads(self.box.run("gatewren", "agent", "add", "outside", "--policy", "admin", "--json"))
        ca = self.box.read("/var/lib/gatewren/tls/ca.pem")
        self.client = Client(self.address, 8443, ca, added["token"])
        return f"both active {seconds:.2f} s after apt"


@check("a call from outside runs in a container, through front and helper")
def call_through_the_split(stage):
    said = stage.client.call("container_shell", container="alpha", command="hostname; id -u")
    expect(said["structuredContent"]["stdout"] == "alpha\n0\n", f"{said}")


@check("the front is no user with rights")
def front_is_nobody(stage):
    status = stage.box.read(f"/proc/{stage.box.main_pid(FRONT)}/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    expect("0" not in facts["Uid"].split() and "0" not in facts["Gid"].split(), f"{facts['Uid']} {facts['Gid']}")
    expect(int(facts["CapEff"], 16) == 0, f"capabilities {facts['CapEff']}")
    return f"uid {facts['Uid'].split()[0]}"


@check("the helper is root and has no socket of a network")
def helper_has_no_network(stage):
    pid = stage.box.main_pid(HELPER)
    expect(stage.box.shell(f"stat -c %u /proc/{pid}") == "0", "not root")
    own = set(stage.box.shell(f"find /proc/{pid}/fd -lname 'socket:*' -printf '%l\\n'").split())
    tables = "cd /proc/{pid}/net; cat tcp tcp6 udp udp6 raw raw6 | awk '$10 ~ /^[0-9]+$/ {{ print \"socket:[\" $10 \"]\" }}'"
    network = set(stage.box.shell(tables.format(pid=pid)).split())
    expect(own and network, f"nothing to compare: {len(own)} {len(network)}")
    expect(not own & network, f"{own & network}")
    return f"{len(own)} sockets, none of the box's {len(network)} of TCP and UDP"


def main():
    stage = Stage(sys.argv[1], sys.argv[2])
    wanted = sys.argv[3:]
    failed = not run("the package installs", lambda _: stage.install(), stage)
    for words, function in checks:
        if not failed or stage.client:
            if not wanted or any(word in words for word in wanted):
                failed |= not run(words, function, stage)
    return int(failed)


def run(words, function, stage):
    start = time.monotonic()
    try:
        told = function(stage)
    except Exception as error:
        print(f"not ok service {words}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
        return False
    seconds = f"{time.monotonic() - start:.1f} s in all"
    print(f"ok service {words} ({'; '.join([told, seconds] if told else [seconds])})", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
