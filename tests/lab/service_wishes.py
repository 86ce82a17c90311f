#!/usr/bin/env python3
"""Beside the booted box on its network (tests/lab/service_wishes): what an owner asks for in the first week. A client that
knows only what tools/list gives its agent reaches each goal within a number of calls; the owner approves with
`gatewren inbox`. One line a check: ok or not ok. The transcripts are in target/wishes.

    service_wishes.py SCRIPT ADDRESS [CHECK...]    the script that booted the box, the box's address, parts of checks' names
"""

import json
import pathlib
import sys
import time

from outside import Client, check, checks, expect, text_of, wait
from service_stage import Stage

TRANSCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "target/wishes"

# The longest list of tools of an agent with the policy operate, in bytes of JSON.
MAX_LIST = 24_000

# The longest answer of a tool, in bytes of text.
MAX_ANSWER = 40_000

# Containers beside those of the lab: a slow one, one that cannot start, and a Debian. A machine with cgroups of version 1
# has no limit of the CPU for the box.
PREPARE = r"""
set -eu
cd /var/lib/lxc
for name in jellyfin immich; do
    cp -a alpha "$name"
    sed -i "s|/alpha|/$name|g; s|uts.name = alpha|uts.name = $name|" "$name/config"
done
echo 'lxc.cgroup2.cpu.max = 20000 100000' >>jellyfin/config
echo '::respawn:/bin/sh -c "while :; do :; done"' >>jellyfin/rootfs/etc/inittab
echo 'lxc.init.cmd = /srv/immich/server' >>immich/config
lxc-start -n jellyfin -o jellyfin/lxc.log </dev/null 2>/dev/null \
    || { sed -i /cpu.max/d jellyfin/config; lxc-start -n jellyfin -o jellyfin/lxc.log </dev/null; }
lxc-start -n immich -o immich/immich.log </dev/null 2>/dev/null || true

cd nextcloud
rm -rf rootfs/etc/apt/sources.list.d/*
printf '#!/bin/sh\nwhile :; do sleep 1; done\n' >rootfs/srv/init
chmod +x rootfs/srv/init
cat >config <<END
lxc.include = /usr/share/lxc/config/common.conf
lxc.uts.name = nextcloud
lxc.rootfs.path = dir:/var/lib/lxc/nextcloud/rootfs
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.init.cmd = /srv/init
END
lxc-start -n nextcloud </dev/null
cp /gatewren/tests/lab/bounds.py rootfs/srv
"""

# Offers newer versions of two packages, one of them a security update; the first time, older ones are installed.
OFFER = r"""
import pathlib, shutil, sys
sys.dont_write_bytecode = True
sys.path[:0] = ["/gatewren/tests/lab", "/srv"]
from bounds import package, repository, run
old = pathlib.Path("/srv/old")
if not old.exists():
    old.mkdir(parents=True)
    for name in ["wren-one", "wren-two"]:
        run("dpkg", "--install", str(package(old, name, "1.0")[0]))
for name in ["main", "security"]:
    shutil.rmtree(f"/srv/{name}", ignore_errors=True)
sources = repository("main", "Lab", "stable", [("wren-one", sys.argv[1])])
sources += repository("security", "Lab-Security", "stable-security", [("wren-two", sys.argv[1])])
pathlib.Path("/etc/apt/sources.list").write_text(sources)
run("apt-get", "update")
"""

INSIDE = ["lxc-attach", "-n", "nextcloud", "--clear-env", "--"]


def offer(stage, version):
    """Offers a version of the packages to the host and to nextcloud."""
    for inside in ([], INSIDE):
        stage.box.run(*inside, "python3", "-c", OFFER, version)


def version_of(stage, package, inside=()):
    return stage.box.run(*inside, "dpkg-query", "--show", "--showformat", "${Version}", package)


class Refused(Exception):
    """A call of a tool that the agent's policy does not list: what the agent is told."""


class Agent:
    """A client of a policy: it calls only listed tools, and each call is counted and written down."""

    def __init__(self, stage, policy):
        self.stage, self.policy = stage, policy
        words = ["agent", "add", f"{policy}-wishes", "--policy", policy, "--json"]
        token = json.loads(stage.box.run("gatewren", *words))["token"]
        self.client = Client(stage.address, 8443, stage.ca, token)
        wait("the agent comes in", self.client.comes_in)
        listed = self.client.ask("tools/list")
        self.tools = {tool["name"]: tool for tool in listed["tools"]}
        self.size = len(json.dumps(listed["tools"], separators=(",", ":")))

    def begin(self, wish):
        self.calls = 0
        TRANSCRIPTS.mkdir(parents=True, exist_ok=True)
        name = "".join(letter if letter.isalnum() else "-" for letter in wish.lower()).strip("-")
        self.transcript = (TRANSCRIPTS / f"{self.policy}-{name}.txt").open("w")
        self.write(f"The owner: {wish}")

    def write(self, text):
        print(text, file=self.transcript, flush=True)

    def call(self, tool, /, **arguments):
        """What a call gives, or gives once the owner has approved it; a failed one is an error."""
        found = self.attempt(tool, **arguments)
        expect(not found["isError"], f"{tool}: {text_of(found)}")
        return found["structuredContent"]

    def attempt(self, tool, /, **arguments):
        self.calls += 1
        self.write(f"\n[{self.calls}] {tool} {json.dumps(arguments)}")
        if tool not in self.tools:
            raise Refused(self.refusal(tool, arguments))
        found = self.client.call(tool, **arguments)
        text = text_of(found)
        self.write(text)
        expect(len(text.encode()) <= MAX_ANSWER, f"{tool}: an answer of {len(text.encode())} bytes")
        change = (found.get("structuredContent") or {}).get("change")
        return self.approved(change) if change else found

    def refusal(self, tool, arguments):
        """What the agent is told about a tool that is not listed for it."""
        connection, answer = self.client.modern("tools/call", {"name": tool, "arguments": arguments})
        said = json.loads(answer.read())
        connection.close()
        words = said.get("error", {}).get("message", "")
        self.write(words)
        expect(tool in words and self.policy in words, f"{tool} is not listed for {self.policy}, and answers: {said}")
        return words

    def approved(self, change):
        """The owner reads the change and approves it; the result is what the agent may read about it afterwards."""
        box = self.stage.box
        shown = box.run("gatewren", "inbox", "show", change)
        said = box.run("gatewren", "inbox", "approve", change, "--wait", check=False)
        self.write(f"\nThe owner is shown:\n{shown}\nThe owner approves:\n{said}")
        result = self.client.call("change_get", change=change)
        self.write(f"\nwhat became of it:\n{text_of(result)}")
        state = result["structuredContent"]
        expect(state["status"] in ("done", "applied"), f"{text_of(result)}")
        return {**result, "structuredContent": state.get("result", state)}

    def end(self, most):
        self.transcript.close()
        expect(self.calls <= most, f"{self.policy}: {self.calls} calls, at most {most} were to be")
        return f"{self.policy} {self.calls}"


def wish(words, most, is_question=False):
    """A check of a wish for the three policies: `function(stage, agent)`. `observe` fulfils what is a question."""
    def add(function):
        @check(words)
        def fulfilled(stage):
            told = []
            for policy in ["operate", "admin", "observe"]:
                agent = stage.agents[policy]
                agent.begin(words)
                try:
                    function(stage, agent)
                    expect(policy != "observe" or is_question, "observe can do what it may not")
                    told.append(agent.end(most))
                except Refused as why:
                    expect(policy == "observe" and not is_question, f"{policy} is refused: {why}")
                    agent.end(most)
                    told.append("observe is refused")
            return f"calls: {', '.join(told)}"
        return fulfilled
    return add


@check("the profile home turns on what the wishes need")
def profile_home(stage):
    said = json.loads(stage.box.run("gatewren", "init", "--yes", "--json", "--profile", "home"))
    stage.box.shell(PREPARE)
    stage.box.shell("echo 'container_stores = [\"big: /srv/big\"]' >>/etc/gatewren/helper.toml")
    stage.box.run("systemctl", "reload", "gatewren-helper.service")
    offer(stage, "1.1")
    wait("the containers are in the state", lambda: "nextcloud" in stage.client.read("/public/packageData"))
    stage.agents = {policy: Agent(stage, policy) for policy in ["operate", "admin", "observe"]}
    return " ".join(said["changed"])


@check("the list of operate names only tools in it, and is short")
def list_is_closed(stage):
    agent = stage.agents["operate"]
    every = set(stage.agents["admin"].tools)
    for name, tool in agent.tools.items():
        for word in set(tool["description"].replace("`", " ").replace(",", " ").replace(".", " ").split()):
            expect(word not in every or word in agent.tools, f"{name} names {word}, which is not listed")
    expect(agent.size <= MAX_LIST, f"{agent.size} bytes")
    return f"{len(agent.tools)} tools, {agent.size} bytes"


@wish("Why is jellyfin slow?", 3, is_question=True)
def why_slow(stage, agent):
    found = agent.call("container_diagnose", container="jellyfin")
    expect("CPU" in json.dumps(found["findings"]), f"{found}")


@wish("Why does immich not start?", 3, is_question=True)
def why_broken(stage, agent):
    found = agent.call("container_diagnose", container="immich")
    expect("/srv/immich/server" in json.dumps(found), f"{found}")


@wish("What takes the disk space?", 3, is_question=True)
def what_takes_space(stage, agent):
    found = agent.call("disk_report")
    expect(any(one["bytes"] > 0 for one in found["directories"]), f"{found}")


@wish("Free up disk space", 3)
def free_space(stage, agent):
    archive = "/var/cache/apt/archives/old_1.0_all.deb"
    stage.box.shell(f"dd if=/dev/urandom of={archive} bs=1M count=8 status=none")
    items = agent.call("disk_report")["items"]
    chosen = [{"id": one["id"], "bytes": one["bytes"]} for one in items if "apt" in one["id"]]
    expect(chosen, f"{items}")
    agent.call("disk_cleanup", items=chosen)
    expect(stage.box.shell(f"test -e {archive} || echo gone") == "gone", "the archive is still there")


@wish("Back up alpha every night", 2)
def nightly_backup(stage, agent):
    targets = agent.call("backup_target_list")["targets"] if "backup_target_list" in agent.tools else [{"target": "local"}]
    arguments = {"target": targets[0]["target"], "container": "alpha", "keep": {"daily": 7, "weekly": 4}}
    name = f"alpha nightly {agent.policy}"
    agent.call("schedule_create", name=name, tool="backup_create", arguments=arguments, at="*-*-* 03:00")
    listed = json.loads(stage.box.run("gatewren", "schedule", "list", "--json"))
    expect(name in json.dumps(listed), f"{listed}")


@wish("Tell me when alpha goes down", 2)
def tell_me(stage, agent):
    watch = agent.call("watch_create", name="alpha is down", kind="container", container="alpha", for_s=0, every_s=15)

    def notified(title):
        found = stage.client.call("notification_list")["structuredContent"]["notifications"]
        return [one for one in found if one["title"] == title]
    try:
        for line, title in [("lxc-stop -k -n alpha", "container alpha is not running"),
                            ("lxc-start -n alpha </dev/null", "over: container alpha is not running")]:
            seen = len(notified(title))
            stage.box.shell(line)
            wait("the owner is notified", lambda: len(notified(title)) > seen)
            agent.write(f"\n{line}; the owner is notified:\n{json.dumps(notified(title)[0], indent=2)}")
    finally:
        stage.box.shell("lxc-start -n alpha </dev/null || true")
        stage.box.run("gatewren", "watch", "delete", watch["id"])


@wish("Move alpha to the bigger disk", 3)
def move(stage, agent):
    stores = agent.call("container_storage", container="alpha")["stores"]
    [to] = [one["name"] for one in stores if one["fits"]]
    agent.call("container_move", container="alpha", to=to)
    config = stage.box.read("/var/lib/lxc/alpha/config")
    expect(("/srv/big/" in config) == (to == "big"), f"to {to}: {config}")
    expect(stage.box.run("lxc-info", "-n", "alpha", "-sH") == "RUNNING", "alpha does not run")
    agent.call("container_move", container="alpha", remove_old=True)


@wish("Who logged in last night, and from where?", 1, is_question=True)
def who_logged_in(stage, agent):
    found = agent.call("login_list", since="24h")
    expect(agent.policy in json.dumps(found), f"{found}")


@wish("What changed since yesterday?", 1, is_question=True)
def what_changed(stage, agent):
    found = agent.attempt("changes_since", since="24h")
    text = text_of(found)
    expect(not found["isError"] and len(text.encode()) <= 8_000, f"{len(text)} bytes: {text[:500]}")
    for word in ["wren-one", "alpha"]:
        expect(word in text, f"{word} is not in it: {text}")


@wish("What can be updated?", 3, is_question=True)
def what_can_be_updated(stage, agent):
    found = agent.call("update_plan")
    expect("wren-two" in json.dumps(found) and "nextcloud" in json.dumps(found["run"]), f"{found}")


@wish("Update everything, safely", 4)
def update_everything(stage, agent):
    version = {"operate": "1.2", "admin": "1.3", "observe": "1.4"}[agent.policy]
    offer(stage, version)
    plan = agent.call("update_plan")
    protection = "backup" if agent.policy == "admin" else "snapshot"
    chosen = {"protect": "backup", "backup_target": plan["backup_targets"][0]} if protection == "backup" else {}
    found = agent.call("update_run", targets=plan["run"], **chosen)
    expect(protection in json.dumps(found["targets"]), f"not protected by a {protection}: {found}")
    for inside in ([], INSIDE):
        for package in ("wren-one", "wren-two"):
            found = version_of(stage, package, inside)
            expect(found == version, f"{package} {found} in {inside}")


def main():
    stage = Stage("wishes", sys.argv[1], sys.argv[2])
    failed = not stage.check("the package installs", Stage.install)
    begun = time.monotonic()
    status = int(failed) or stage.run(checks, sys.argv[3:])
    print(f"wishes took {time.monotonic() - begun:.0f} s; the transcripts are in {TRANSCRIPTS}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
