#!/usr/bin/env python3
"""From one version to the next while agents are at work, with what an administrator has switched off, interrupted,
and back to an older version."""

import os
import shutil
import tempfile
import threading

from box import *  # noqa: F403


def main():
    keep_documentation()
    install("older")
    wait_until_serving()
    at_work()
    switched_off()
    interrupted()
    downgraded()
    with check("after all of it dpkg finds every file as it was installed"):
        expect(altered_files() == {}, altered_files())
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
    proposed = call(shy["token"], "propose_change", tool="system_shell", arguments={"command": "true"}, reason="test")
    database = rows("state.db", "SELECT value FROM meta WHERE key = 'database'")
    run("gatewren", "state", "patch", "--as", "upgrade", input_patch='[{"op":"add","path":"/public/note","value":1}]')
    newest, audited = revision(), rows("vault.db", "SELECT max(seq) FROM audit")[0][0]
    listening, serving = show(SOCKETS[0], "InvocationID"), show(UNIT, "MainPID")
    running = Running(token)

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
        old = {pid: path for pid, path in processes().items() if path.endswith("(deleted)")}
        expect(old == {}, old)
    with check("agents and their tokens stay"):
        expect({name: agent["id"] for name, agent in agents().items()} == {"laptop": admin["id"], "phone": shy["id"]}, agents())
        for agent in (admin, shy):
            call(agent["token"], "state_get")
    with check("a session that was open before answers after"):
        visitor.in_session(door(), session, token, "state_get")
    with check("what was proposed still waits, and the owner can decide on it") as told:
        waiting = json.loads(gatewren("inbox", "list", "--json"))
        expect([entry["id"] for entry in waiting] == [proposed["change"]["id"]], waiting)
        gatewren("inbox", "reject", waiting[0]["id"])
    with check("the audit goes on from where it was, and verifies"):
        gatewren("audit", "verify")
        now = rows("vault.db", "SELECT max(seq) FROM audit")[0][0]
        expect(now > audited, f"row {now} after row {audited}")
    with check("the state goes on from the revision where it was"):
        expect(rows("state.db", "SELECT value FROM meta WHERE key = 'database'") == database, "another database")
        expect(revision() >= newest, f"revision {revision()} after {newest}")
        expect(call(token, "state_get", pointer="/public/note")["value"] == 1, "the note is gone")
    with check("a call that ran is ended, and says so in clear words") as told:
        told.append(running.outcome())


class Running:
    """A call that lasts longer than the upgrade."""
