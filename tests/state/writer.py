"""A local program that writes the state of a running gatewren, with Python's own sqlite3 and nothing of ours.

writer.py DATABASE NAME COUNT: writes COUNT revisions below /public/writers, whose causes are NAME:0, NAME:1 and so on.
Every fiftieth is one that does not apply.
"""

import json
import sqlite3
import sys
import time

LOCK_BOUND = 900  # seconds for a turn among writers that are all in a hurry, on a slow machine
SHARED = 20  # values that all writers change
REFUSED_EVERY = 50

NEXT = "SELECT 1 + max(coalesce((SELECT max(id) FROM revision), 0), (SELECT max(revision) FROM snapshot))"
INSERT = "INSERT INTO revision (id, at_ms, actor, cause, patch) VALUES (?, ?, ?, ?, ?)"


def patch(name, number):
    """What the revision changes: a value of its own, and now and then one of everybody."""
    own = {"op": "add", "path": f"/public/writers/{name}", "value": {"number": number}}
    if number % REFUSED_EVERY == REFUSED_EVERY - 1:
        return [own, {"op": "test", "path": "/public/writers/nobody", "value": number}]
    if number % 10 == 0:
        return [own, {"op": "add", "path": f"/public/writers/shared/{number % SHARED}", "value": f"{name}:{number}"}]
    return [own]


def main(database, name, count):
    connection = sqlite3.connect(database, timeout=LOCK_BOUND, isolation_level=None)
    # A power cut may take the last revisions with it, which no test here makes; the numbers stay right.
    connection.execute("PRAGMA synchronous = NORMAL")
    for number in range(count):
        connection.execute("BEGIN IMMEDIATE")
        (revision,) = connection.execute(NEXT).fetchone()
        row = (revision, int(time.time() * 1000), f"local:{name}", f"{name}:{number}", json.dumps(patch(name, number)))
        connection.execute(INSERT, row)
        connection.execute("COMMIT")
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
