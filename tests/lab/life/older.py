#!/usr/bin/env python3
"""An upgrade over the databases of an earlier gatewren: vault-3.sql and state-1.sql, which say where they are from."""

import contextlib
import os
import pathlib
import sqlite3

from box import *  # noqa: F403

HERE = pathlib.Path(__file__).parent
LAPTOP = "gw_KhN098w_-cfXDl5IqnUP8GY2u4Nsx4QHXPq0HSBTf0MJXdQfN"
PHONE = "gw_FQFGyuQo3Nz6kR9aSrIXTeUE7rv5RYqFV5D3w7THW3IBXQHWk"
LOST = "gw_khswykercfS4xRKSEw7TI9Rvb1KVVJ3SN3TrpE2mf9kSfYSbx"


def main():
    install("older")
    wait_until_serving()
    run("systemctl", "stop", UNIT)
    for path in [*STATE.glob("vault.db*"), *STATE.glob("state.db*")]:
        path.unlink()
    put_back("vault-3.sql", "vault.db", 0o600)
    put_back("state-1.sql", "state.db", 0o660)
    place = cursor()

    with check("an upgrade brings databases of an earlier version forward, and says so"):
        install("this")
        wait_until_serving()
        said = journal_after(place)
        for words in ["the vault is migrated to a newer schema", "the state database is migrated to a newer schema"]:
            expect(words in said, said)
    with check("a private copy of each is kept, as it was"):
        for name, of in [("vault.db.schema-3.*", "vault-3.sql"), ("state.db.schema-1.*", "state-1.sql")]:
            copies = list(STATE.glob(name))
            expect(len(copies) == 1, f"{name}: {copies}")
            expect((owner(copies[0]), mode(copies[0])) == ("gatewren", 0o600), f"{oct(mode(copies[0]))}")
            expect(contents(copies[0]) == contents(as_written(of)), f"{copies[0]} is not as it was")
    with check("its tokens let in, but for the one that was revoked"):
        expect(sorted(agents()) == ["laptop", "lost", "phone"], agents())
        for token in (LAPTOP, PHONE):
            call(token, "state_get")
        expect(is_refused(LOST), "a revoked token is let in")
        expect(refusal(PHONE, "container_start", container="x"), "an observer may start containers now")
    with check("its audit is whole, goes on, and tells of the call that was cut off"):
        gatewren("audit", "verify")
        audit = rows("vault.db", "SELECT kind, tool FROM audit ORDER BY seq")
        expect(len(audit) > 11, f"{len(audit)} rows")
        lines = gatewren("audit", "list", "--json")
        expect("sleep 100" in lines, lines)
    with check("its state goes on with the next revision"):
        expect(call(LAPTOP, "state_get", pointer="/public/note/written")["value"] == 3, "the note is gone")
        expect(rows("state.db", "SELECT value FROM meta WHERE key = 'database'")[0][0].startswith("98c59d1a"), "another")
        log = [number for (number,) in rows("state.db", "SELECT id FROM revision ORDER BY id")]
        expect(log == list(range(log[0], log[0] + len(log))) and log[-1] > 8, log)
    with check("a reinstall makes no further copy"):
        install("this", "--reinstall")
        wait_until_serving()
        expect(len(list(STATE.glob("*.schema-*"))) == 2, list(STATE.iterdir()))
    with check("a copy that is put back in the vault's place is a vault"):
        run("systemctl", "stop", UNIT)
        (copy,) = STATE.glob("vault.db.schema-3.*")
        for path in STATE.glob("vault.db-*"):
            path.unlink()
        copy.rename(STATE / "vault.db")
        run("systemctl", "start", UNIT)
        wait_until_serving()
        call(LAPTOP, "state_get")
        # The journal may have rows that this copy never had.
        gatewren("audit", "verify", "--anchors", "/dev/null")
    finish()


def as_written(name):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript((HERE / name).read_text())
    return connection


def contents(database):
    """Everything in it; a copy may have it in another order."""
    connection = database if isinstance(database, sqlite3.Connection) else sqlite3.connect(database)
    with contextlib.closing(connection):
        return sorted(connection.iterdump())


def put_back(name, database, bits):
    path = STATE / database
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript((HERE / name).read_text())
    user = pwd.getpwnam("gatewren")
    os.chown(path, user.pw_uid, user.pw_gid)
    path.chmod(bits)


main()
