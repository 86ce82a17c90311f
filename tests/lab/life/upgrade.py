#!/usr/bin/env python3
"""From one version to the next while agents are at work, with what an administrator has switched off, interrupted,
and back to an older version."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading

from box import *  # noqa: F403


def main():
    keep_documentation()
    install("older")
    wait_until_serving()
    # So that something runs for long, and is a task at once.
    helper_policy('host_shell = "full"\n')
    settings("[tasks]\nafter = \"0s\"\n")
    at_work()
    switched_off()
    interrupted()
    downgraded()
    with check("after all of it dpkg finds every file as it was installed"):
        expect(altered_files() == {str(HELPER_POLICY): True}, altered_files())
    finish()


class Knocking:
    """Clients that come one after the other, over TLS, for as long as it lasts."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.result = None
        self.thread = threading.Thread(target=self.knock, daemon=True)
        self.thread.start()
        wait_for("the first client came in", lambda: os.path.exists(os.path.join(self.folder, "begun")))
        return self

    def knock(self):
        self.result = visitor.knock(visitor.Door(URL, "-"), self.folder)

    def __exit__(self, *_):
        with open(os.path.join(self.folder, "enough"), "w"):
            pass
        self.thread.join(BOUND)
        shutil.rmtree(self.folder)


def at_work():
    admin, shy = add_agent("laptop", "admin"), add_agent("phone", "suggest")
    token = admin["token"]
    session = visitor.open_session(door(), token, "/public/serverInfo")
    wish = {"tool": "system_shell", "arguments": {"command": "true"}, "reason": "a test"}
    proposed = visitor.call(door(), shy["token"], "propose_change", json.dumps(wish))["change"]
    database = rows("state.db", "SELECT value FROM meta WHERE key = 'database'")
    patch = '[{"op":"add","path":"/public/note","value":1}]'
    gatewren("state", "patch", "--as", "upgrade", input=patch)
    running = visitor.begin(door(), token, "system_shell", '{"command": "echo begun; sleep 86400"}')
    wait_for("the task runs", lambda: run("pgrep", "-f", "^sleep 86400$", ok=False)[0] == 0)
    newest, audited = revision(), last_audited()
    listening, serving = show(SOCKETS[0], "InvocationID"), show(UNIT, "MainPID")

    with check("an upgrade refuses nobody who comes meanwhile") as told:
        with Knocking() as knocking:
            install("newer")
            wait_until_serving()
        came = knocking.result
        told.append(f"{came['came_in']} came in")
        expect(came["times_wrong"] == 0, came)
        expect(show(SOCKETS[0], "InvocationID") == listening, "the port was closed and opened again")
    with check("an upgrade restarts front and helper, which run the new program"):
        expect(version() == version_of("newer"), version())
        expect(show(UNIT, "MainPID") != serving, "the old front still runs")
        wait_for("nothing of the old program runs", lambda: not any("(deleted)" in p for p in processes().values()))
    with check("agents and their tokens stay"):
        ids = {name: agent["id"] for name, agent in agents().items()}
        expect(ids == {"laptop": admin["id"], "phone": shy["id"]}, ids)
        call(admin["token"], "state_get")
        call(shy["token"], "context")
    with check("a session that was open before answers after"):
        visitor.in_session(door(), session, token, "state_get")
    with check("what was proposed still waits, and the owner can decide on it"):
        waiting = json.loads(gatewren("inbox", "list", "--json"))
        expect([change["id"] for change in waiting] == [proposed], waiting)
        gatewren("inbox", "reject", proposed)
    with check("the audit goes on from where it was, and is whole"):
        gatewren("audit", "verify")
        expect(last_audited() > audited, f"row {last_audited()} after row {audited}")
    with check("the state goes on from the revision where it was"):
        expect(rows("state.db", "SELECT value FROM meta WHERE key = 'database'") == database, "another database")
        expect(revision() >= newest, f"revision {revision()} after {newest}")
        expect(call(token, "state_get", pointer="/public/note")["value"] == 1, "the note is gone")
    with check("a task that ran was ended, and says why and what it had printed"):
        ended = visitor.task(door(), token, running)
        outcome = ended.get("result", {}).get("structuredContent", {})
        expect(outcome.get("killed_because") == "shutdown" and outcome["stdout"] == "begun\n", ended)
        code, left = run("pgrep", "-f", "^sleep 86400$", ok=False)
        expect(code == 1, f"it still runs: {left}")


def last_audited():
    return rows("vault.db", "SELECT max(seq) FROM audit")[0][0]


def switched_off():
    units = [UNIT, *SOCKETS]
    with check("what the administrator has disabled stays so over an upgrade"):
        run("systemctl", "disable", "--now", *units)
        install("this", "--allow-downgrades")
        install("newer")
        for unit in units:
            expect(run("systemctl", "is-enabled", unit, ok=False)[1].strip() == "disabled", f"{unit} was enabled")
            expect(not is_active(unit), f"{unit} was started")
        expect(not listens(), "the port is open")
        run("systemctl", "enable", "--now", *units)
        wait_until_serving()
    with check("what the administrator has masked stays so over an upgrade"):
        run("systemctl", "mask", "--now", *units)
        install("this", "--allow-downgrades")
        install("newer")
        for unit in units:
            expect(run("systemctl", "is-enabled", unit, ok=False)[1].strip() == "masked", f"{unit} was unmasked")
            expect(not is_active(unit), f"{unit} was started")
        run("systemctl", "unmask", *units)
        run("systemctl", "start", *units)
        wait_until_serving()


PAUSED, GO = "/run/test-paused", "/run/test-go"
IN_THE_WAY = pathlib.Path("/usr/local/bin/deb-systemd-helper")


def interrupted():
    """Stands in the way of the first program that the package's script runs, and kills everything there."""
    IN_THE_WAY.write_text(
        f'#!/bin/sh\n: >{PAUSED}\nwhile [ ! -e {GO} ]; do sleep 0.1; done\nexec /usr/bin/deb-systemd-helper "$@"\n'
    )
    IN_THE_WAY.chmod(0o755)
    try:
        with check("an upgrade that is killed while it configures leaves a server that serves"):
            # Without apt, which has its own idea of where programs are.
            command = ["dpkg", "--install", deb("this")]
            upgrade = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            wait_for("the package is being configured", lambda: os.path.exists(PAUSED))
            kill_session(upgrade.pid)
            upgrade.wait()
            expect(status() == "install ok half-configured", status())
            expect(health() == 200, "nobody serves")
    finally:
        IN_THE_WAY.unlink()
    with check("dpkg --configure -a completes it, and nothing is lost"):
        run("dpkg", "--configure", "-a")
        wait_until_serving()
        expect(status() == "install ok installed", status())
        wait_for("nothing of the old program runs", lambda: not any("(deleted)" in p for p in processes().values()))
        expect(sorted(agents()) == ["laptop", "phone"], agents())
        gatewren("audit", "verify")


def kill_session(leader):
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            # Behind the name, which may hold anything: state, parent, group, session.
            fields = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
            if int(fields[3]) == leader:
                os.kill(int(entry.name), signal.SIGKILL)


def downgraded():
    newer_databases = [
        ("vault.db", "PRAGMA user_version = 99", f"PRAGMA user_version = {rows('vault.db', 'PRAGMA user_version')[0][0]}"),
        (
            "state.db",
            "UPDATE meta SET value = '99' WHERE key = 'schema'",
            f"UPDATE meta SET value = '{rows('state.db', schema)[0][0]}' WHERE key = 'schema'",
        ),
    ]
    for database, forward, back in newer_databases:
        refused_and_back(database, forward, back)


schema = "SELECT value FROM meta WHERE key = 'schema'"


def refused_and_back(database, forward, back):
    """A database as a newer version would leave it, for there is no newer version: marked with a later schema."""
    install("newer")
    wait_until_serving()
    run("systemctl", "stop", UNIT, *SOCKETS)
    change(database, "PRAGMA journal_mode = DELETE", forward)
    run("systemctl", "start", *SOCKETS)
    bytes_before, place = (STATE / database).read_bytes(), cursor()
    with check(f"a downgrade refuses a {database} of a newer version with the remedy, and leaves it as it is"):
        install("older", "--allow-downgrades")
        expect(status() == "install ok installed", status())
        wait_for("the service has failed", lambda: show(UNIT, "ActiveState") == "failed")
        said = journal_after(place)
        expect("was written by a newer gatewren" in said and "nstall that version" in said, said)
        expect((STATE / database).read_bytes() == bytes_before, "it was changed")
    with check(f"it is not started over and over, neither by itself nor by who knocks ({database})") as told:
        for _ in range(3):
            with contextlib.suppress(OSError):
                health()
            wait_for("it has failed again", lambda: show(UNIT, "ActiveState") == "failed")
        expect(show(UNIT, "NRestarts") == "0", show(UNIT, "NRestarts"))
        expect(show(UNIT, "ExecMainStatus") == "2", show(UNIT, "ExecMainStatus"))
        starts = journal_after(place).count("was written by a newer gatewren")
        told.append(f"{starts} starts for 1 install and 3 who knocked")
        expect(starts <= 8, f"{starts} starts")
    with check(f"the newer version goes on with its {database}"):
        change(database, back)
        install("newer")
        wait_until_serving()
        expect(sorted(agents()) == ["laptop", "phone"], agents())
        gatewren("audit", "verify")


main()
