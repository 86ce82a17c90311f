"""What the checks of the package share: they run inside a booted box, as root, and print one line each.

The packages are in the folder $PACKAGES: `this.deb` is the one under test, `older.deb` and `newer.deb` are the same
files with another version.
"""

import contextlib
import json
import os
import pathlib
import pwd
import socket
import sqlite3
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import visitor

# Seconds that anything is waited for, on a machine however slow.
BOUND = 240
# The part of tests/run that its lines belong to.
PART = os.environ.get("PART", "lifecycle")
STATE = pathlib.Path("/var/lib/gatewren")
SETTINGS = pathlib.Path("/etc/gatewren/gatewren.toml")
HELPER_POLICY = pathlib.Path("/etc/gatewren/helper.toml")
UNIT = "gatewren.service"
SOCKETS = ["gatewren.socket", "gatewren-helper.socket"]
PORT = 8443
URL = f"https://127.0.0.1:{PORT}/mcp"
CA = str(STATE / "tls/ca.pem")

failed = False


@contextlib.contextmanager
def check(what):
    """One line; what is appended to the list that it gives is told with it."""
    global failed
    told = []
    try:
        yield told
        print(f"ok {PART} {what}" + (f" ({'; '.join(told)})" if told else ""), flush=True)
    except Exception as error:  # whatever it is, the next check is made all the same
        failed = True
        line = traceback.extract_tb(error.__traceback__)[-1]
        for frame in traceback.extract_tb(error.__traceback__):
            if "/life/" in frame.filename and "box.py" not in frame.filename:
                line = frame
        words = " ".join(str(error).split())
        print(f"not ok {PART} {what}: {type(error).__name__} (line {line.lineno}): {words}", flush=True)


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


def run(*command, ok=True, **more):
    """What a command printed, both streams together; it must end well unless told otherwise."""
    if "input" not in more:
        more["stdin"] = subprocess.DEVNULL
    more.setdefault("stderr", subprocess.STDOUT)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    if ok and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout if ok else (done.returncode, done.stdout)


def wait_for(what, condition, every=0.1):
    """Until the condition is true; its value. An exception of it is no yet."""
    end, last = time.monotonic() + BOUND, None
    while time.monotonic() < end:
        try:
            value = condition()
            if value:
                return value
        except Exception as error:
            last = error
        time.sleep(every)
    raise AssertionError(f"not within {BOUND} s: {what}" + (f" ({last})" if last else ""))


# The package


def deb(name):
    return os.path.join(os.environ["PACKAGES"], f"{name}.deb")


def apt(*words, ok=True):
    quiet = ["-y", "-q", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none"}
    return run("apt-get", *quiet, *words, ok=ok, env=environment)


def keep_documentation():
    """dpkg leaves it out in the box, which is small; then `dpkg -V` misses it."""
    for file in pathlib.Path("/etc/dpkg/dpkg.cfg.d").glob("*"):
        if "path-exclude" in file.read_text():
            file.unlink()


def install(name, *words, ok=True):
    return apt("install", "-o", "Dpkg::Options::=--force-confold", *words, deb(name), ok=ok)


def version():
    return run("dpkg-query", "-W", "-f", "${Version}", "gatewren")


def version_of(name):
    return run("dpkg-deb", "-f", deb(name), "Version").strip()


def status():
    """Such as `install ok installed`; empty where dpkg knows nothing of it."""
    code, words = run("dpkg-query", "-W", "-f", "${Status}", "gatewren", ok=False)
    return words if code == 0 else ""


def altered_files():
    """What `dpkg -V` finds, as {path: whether it is a conffile}."""
    _, words = run("dpkg", "-V", "gatewren", ok=False)
    lines = [line.split() for line in words.splitlines() if line.strip()]
    return {line[-1]: "c" in line[1:-1] for line in lines}


# The service


def show(unit, what):
    return run("systemctl", "show", "-P", what, unit).strip()


def is_active(unit):
    return show(unit, "ActiveState") == "active"


def wait_until_active(unit=UNIT):
    wait_for(f"{unit} is active", lambda: is_active(unit))


def wait_until_serving():
    wait_until_active()
    wait_for("it answers", lambda: health() == 200)


def health():
    return visitor.Door(URL, "-").ask("GET", "/health", None)[0]


def listens(port=PORT):
    with contextlib.closing(socket.socket()) as knocking:
        knocking.settimeout(BOUND)
        return knocking.connect_ex(("127.0.0.1", port)) == 0


def journal(*more, unit=UNIT):
    run("journalctl", "--sync")
    return run("journalctl", "--no-pager", "-o", "cat", "-u", unit, *more)


def cursor():
    """A place in the journal, for what comes after it."""
    run("journalctl", "--sync")
    words = run("journalctl", "--no-pager", "-n", "1", "-o", "cat", "--show-cursor")
    return words.rsplit("-- cursor: ", 1)[1].strip()


def journal_after(place, *more, unit=UNIT):
    return journal("--after-cursor", place, *more, unit=unit)


def processes():
    """Every process that runs the program, by its number."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                program = os.readlink(entry / "exe")
                if program.split(" ")[0].endswith("/gatewren"):
                    found[int(entry.name)] = program
    return found


def settings(text):
    """Settings of the owner's, in a file of their own, and a server that has read them."""
    folder = SETTINGS.parent / "conf.d"
    folder.mkdir(exist_ok=True)
    (folder / "test.toml").write_text(text)
    run("systemctl", "restart", UNIT)
    wait_until_serving()


def helper_policy(text):
    HELPER_POLICY.write_text(text)
    run("systemctl", "try-restart", "gatewren-helper.service")


# What is in it


def gatewren(*words, **more):
    return run("gatewren", *words, **more)


def add_agent(name, policy):
    """An agent that the server, which hears of it within a second, lets in."""
    agent = json.loads(gatewren("agent", "add", name, "--policy", policy, "--json"))
    time.sleep(1)
    wait_for("the new token is let in", lambda: not is_refused(agent["token"]), every=1)
    return agent


def agents():
    return {agent["name"]: agent for agent in json.loads(gatewren("agent", "list", "--json"))}


def door(ca=CA):
    return visitor.Door(URL, ca)


def call(token, tool, **arguments):
    return visitor.call(door(), token, tool, json.dumps(arguments))


def rows(database, sql, *values):
    """Reads beside the server. Made anew each time: the server may replace the file."""
    with contextlib.closing(sqlite3.connect(f"file:{STATE / database}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql, values).fetchall()


def change(database, *statements):
    """Writes where no server runs, as the file's owner."""
    owner = (STATE / database).stat()
    with contextlib.closing(sqlite3.connect(STATE / database, timeout=30, isolation_level=None)) as connection:
        for sql in statements:
            connection.execute(sql)
    for file in STATE.glob(f"{database}*"):
        os.chown(file, owner.st_uid, owner.st_gid)


def revision():
    return rows("state.db", "SELECT max(id) FROM revision")[0][0]


def mode(path):
    return pathlib.Path(path).lstat().st_mode & 0o7777


def owner(path):
    facts = pathlib.Path(path).lstat()
    return pwd.getpwuid(facts.st_uid).pw_name


def refusal(token, tool, **arguments):
    """Why a call was refused; empty if it was not."""
    try:
        call(token, tool, **arguments)
    except visitor.Refused as words:
        return str(words)
    return ""


def is_refused(token):
    return "HTTP 401" in refusal(token, "state_get")


def finish():
    sys.exit(1 if failed else 0)


__all__ = [name for name in dir() if not name.startswith("_")]
