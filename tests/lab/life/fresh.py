#!/usr/bin/env python3
"""Installed, installed again, removed, brought back and purged, on a box that knows neither gatewren nor LXC."""

import contextlib
import grp
import os
import pathlib
import re

from box import *  # noqa: F403

# What is not of the package: kernel file systems, dpkg's and apt's own books, logs, and what systemd keeps of units.
NOT_OURS = re.compile(
    r"^/(proc|sys|dev|tmp|gatewren|var/tmp|var/backups|var/cache|var/log|var/lib/(dpkg|apt|systemd)|root)(/|$)"
    r"|^/run/(?!gatewren)"
    r"|^/etc/(passwd|group|shadow|gshadow|subuid|subgid|\.pwd\.lock|ld\.so\.cache)-?$"
)


def files():
    """Every path but those."""
    found = set()
    for folder, folders, names in os.walk("/"):
        paths = [(name, os.path.join(folder, name)) for name in folders]
        folders[:] = [name for name, path in paths if not NOT_OURS.match(path)]
        found |= {path for path in (os.path.join(folder, name) for name in folders + names) if not NOT_OURS.match(path)}
    return found


def main():
    keep_documentation()
    before = files()
    fresh()
    token = agents_come_in()
    without_lxc(token)
    reinstalled(token)
    removed(token)
    purged(before)
    finish()


def fresh():
    with check("a fresh install runs at once, and both sockets listen") as told:
        expect(not listens(), "something listens on the port before")
        words = install("this")
        wait_until_serving()
        expect(status() == "install ok installed", status())
        for unit in [UNIT, *SOCKETS]:
            expect(is_active(unit), f"{unit}: {show(unit, 'ActiveState')}")
            expect(run("systemctl", "is-enabled", unit).strip() == "enabled", f"{unit} is not enabled")
        expect(listens(), "nobody listens on the port")
        expect(show(UNIT, "NRestarts") == "0", f"{show(UNIT, 'NRestarts')} restarts")
    with check("the install prints the next step, and no token"):
        expect("gatewren init\n" in words, words[-1500:])
        expect("gw_" not in words, "a token was printed")
    with check("no agent was made that nobody asked for, and the journal says how to make one"):
        expect(agents() == {}, agents())
        expect("gatewren agent add" in journal(), journal())
    with check("the user, its folders and its files are private") as told:
        user = pwd.getpwnam("gatewren")
        expect(user.pw_shell == "/usr/sbin/nologin" and 0 < user.pw_uid < 1000, user)
        expect(grp.getgrgid(user.pw_gid).gr_name == "gatewren", user)
        wanted = {
            STATE: ("gatewren", 0o700),
            STATE / "vault.db": ("gatewren", 0o600),
            STATE / "state.db": ("gatewren", 0o660),
            STATE / "tls": ("gatewren", 0o700),
            "/run/gatewren": ("root", 0o750),
            "/run/gatewren/helper.sock": ("root", 0o660),
            "/etc/gatewren": ("root", 0o755),
            SETTINGS: ("root", 0o644),
            HELPER_POLICY: ("root", 0o644),
            "/usr/bin/gatewren": ("root", 0o755),
        }
        found = {str(path): (owner(path), oct(mode(path))) for path in wanted}
        expect(found == {str(path): (who, oct(bits)) for path, (who, bits) in wanted.items()}, found)
        for path in ["/run/gatewren", "/run/gatewren/helper.sock"]:
            group = grp.getgrgid(os.lstat(path).st_gid).gr_name
            expect(group == "gatewren", f"{path} is of the group {group}")
    with check("dpkg finds every file as it was installed"):
        expect(altered_files() == {}, altered_files())


def agents_come_in():
    token = ""
    with check("root makes an agent on the command line, and it calls over TLS"):
        token = add_agent("laptop", "admin")["token"]
        value = call(token, "state_get", pointer="/public/serverInfo")
        expect(value["revision"] >= 1, value)
        expect(is_refused("gw_" + "x" * 49), "any token is let in")
    with check("what root did in the databases belongs to the service all the same"):
        gatewren("audit", "verify")
        others = set()
        for path in STATE.rglob("*"):
            # A file may go meanwhile.
            with contextlib.suppress(FileNotFoundError):
                others |= {str(path)} if owner(path) != "gatewren" else set()
        expect(others == set(), others)
    return token


def without_lxc(token):
    with check("without LXC it serves, says so once, and complains of nothing") as told:
        told.append(f"lxc is {'there' if os.path.exists('/usr/bin/lxc-ls') else 'absent'}")
        expect(not os.path.exists("/usr/bin/lxc-ls"), "LXC is installed, though nothing asks for it")
        errors = run("journalctl", "--no-pager", "-o", "cat", "-p", "err", "-u", "gatewren*")
        expect(errors.strip() in ("", "-- No entries --"), errors)
        said = [line for line in journal().splitlines() if "lxc" in line.lower()]
        expect(len(said) <= 2, said)
    with check("without LXC a tool that needs it says what to install, by way of the helper"):
        said = refusal(token, "container_list")
        expect("apt install lxc" in said, said)
        wait_until_active("gatewren-helper.service")


def reinstalled(token):
    with check("a reinstall loses nothing, and keeps edited settings") as told:
        for path in [SETTINGS, HELPER_POLICY]:
            path.write_text(path.read_text() + "# the owner's own words\n")
        known, newest = agents()["laptop"]["id"], revision()
        install("this", "--reinstall")
        wait_until_serving()
        expect(agents()["laptop"]["id"] == known, agents())
        expect(call(token, "state_get")["revision"] >= newest, "the state began anew")
        gatewren("audit", "verify")
        altered = altered_files()
        expect(altered == {str(SETTINGS): True, str(HELPER_POLICY): True}, altered)
        expect("owner's own words" in SETTINGS.read_text(), "the settings were replaced")


def removed(token):
    with check("a remove ends everything that runs and listens, and keeps state and settings"):
        kept = state_files()
        apt("remove", "gatewren")
        expect(status() == "deinstall ok config-files", status())
        expect(processes() == {}, processes())
        expect(not listens(), "the port is still open")
        expect(not os.path.exists("/run/gatewren/helper.sock"), "the helper's socket is still there")
        for unit in [UNIT, "gatewren-helper.service", *SOCKETS]:
            expect(show(unit, "ActiveState") in ("inactive", "failed"), f"{unit} is {show(unit, 'ActiveState')}")
        expect(state_files() == kept, f"{kept} before, {state_files()} after")
        expect(SETTINGS.exists(), "the settings are gone")
    with check("after an install again the same agents come in"):
        install("this")
        wait_until_serving()
        call(token, "state_get")
        expect(list(agents()) == ["laptop"], agents())
        expect("owner's own words" in SETTINGS.read_text(), "the settings were replaced")


def state_files():
    """Without what SQLite has beside an open database, and files that are being written."""
    names = (path.name for path in STATE.iterdir())
    return sorted(name for name in names if not name.endswith(("-wal", "-shm", ".new")))


def purged(before):
    with check("a purge takes state and settings, leaves the user and nothing else") as told:
        apt("purge", "gatewren")
        expect(status() in ("", "unknown ok not-installed"), status())
        expect(pwd.getpwnam("gatewren"), "the user is gone")
        left = sorted(files() - before)
        gone = sorted(before - files())
        expect(left == [] and gone == [], f"left: {left}; gone: {gone}")
        expect(processes() == {}, processes())
        told.append(f"{len(before)} paths compared")


main()
