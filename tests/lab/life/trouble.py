#!/usr/bin/env python3
"""A box that is not as it should be: the port is taken, /etc cannot be written, the disk is full."""

import contextlib
import os
import pathlib

from box import *  # noqa: F403

DROP_IN = pathlib.Path("/etc/systemd/system/gatewren.socket.d/port.conf")
LISTENER = """
import socket, time
taken = socket.create_server(("", 8443), family=socket.AF_INET6, dualstack_ipv6=True)
open("/run/foreign-listens", "w").close()
time.sleep(86400)
"""


def main():
    keep_documentation()
    port_taken()
    etc_read_only()
    settings_broken()
    disk_full()
    with check("after all of this dpkg finds every file as it was installed"):
        expect(altered_files() == {}, altered_files())
    finish()


def port_taken():
    run("systemd-run", "--unit", "foreign", "/usr/bin/python3", "-c", LISTENER)
    wait_for("somebody else listens", lambda: os.path.exists("/run/foreign-listens"))
    with check("with another service on the port the package is installed all the same, and says what to do"):
        words = install("this")
        expect(status() == "install ok installed", status())
        expect("the port 8443 is taken" in words and "systemctl edit gatewren.socket" in words, words[-2000:])
        expect(show(UNIT, "ActiveState") != "active", "it serves, though not on the port")
        expect("gatewren.socket" in journal(unit="gatewren.socket"), "the journal has nothing of it")
    with check("a reinstall and an upgrade go through as well"):
        install("this", "--reinstall")
        install("newer")
        expect(status() == "install ok installed", status())
    with check("with another port in gatewren.socket it serves there, and an upgrade keeps it"):
        DROP_IN.parent.mkdir(parents=True)
        DROP_IN.write_text("[Socket]\nListenStream=\nListenStream=9443\n")
        run("systemctl", "daemon-reload")
        run("systemctl", "restart", "gatewren.socket")
        run("systemctl", "restart", UNIT)
        install("this", "--allow-downgrades")
        wait_until_active()
        expect(listens(9443), "nobody listens on the other port")
    with check("when the port is free it serves there"):
        run("systemctl", "stop", "foreign")
        DROP_IN.unlink()
        DROP_IN.parent.rmdir()
        run("systemctl", "daemon-reload")
        run("systemctl", "stop", UNIT)
        run("systemctl", "restart", "gatewren.socket")
        run("systemctl", "start", UNIT)
        wait_until_serving()


@contextlib.contextmanager
def read_only_etc():
    run("mount", "--bind", "/etc", "/etc")
    run("mount", "-o", "remount,bind,ro", "/etc")
    try:
        yield
    finally:
        run("umount", "--lazy", "/etc")


def etc_read_only():
    with check("with a read-only /etc it restarts, its commands work, and agents are made"):
        with read_only_etc():
            expect(not os.access("/etc", os.W_OK), "/etc can be written")
            run("systemctl", "restart", UNIT, *SOCKETS)
            wait_until_serving()
            gatewren("check")
            token = add_agent("tablet", "observe")["token"]
            call(token, "state_get")
    with check("an upgrade into a read-only /etc is refused, and the old version serves on") as told:
        with read_only_etc():
            code, words = install("newer", ok=False)
            expect(code != 0 and "/etc is read-only" in words, words[-2000:])
            told.append(status())
            wait_until_serving()
            call(token, "state_get")
    with check("it goes through when /etc can be written again"):
        run("dpkg", "--configure", "-a")
        install("newer")
        expect((status(), version()) == ("install ok installed", version_of("newer")), status())
        wait_until_serving()
        call(token, "state_get")
    with check("an install into a read-only /etc is refused, leaves nothing, and works later"):
        apt("purge", "gatewren")
        with read_only_etc():
            code, words = install("this", ok=False)
            expect(code != 0 and "/etc is read-only" in words, words[-2000:])
        expect(status() == "" or status().endswith(" not-installed"), status())
        expect(not os.path.exists("/usr/bin/gatewren"), "the program is there")
        install("this")
        wait_until_serving()


def settings_broken():
    broken = SETTINGS.parent / "conf.d" / "broken.toml"
    with check("settings that cannot be used end the start with their line, and it is not tried again"):
        broken.write_text("lisen = []\n")
        place = cursor()
        code, _ = run("systemctl", "restart", UNIT, ok=False)
        expect(code != 0, "it was started")
        wait_for("the service has failed", lambda: show(UNIT, "ActiveState") == "failed")
        expect(f'{broken}:1: unknown key "lisen"' in journal_after(place), journal_after(place))
        expect((show(UNIT, "NRestarts"), show(UNIT, "ExecMainStatus")) == ("0", "2"), show(UNIT, "NRestarts"))
        broken.unlink()
        run("systemctl", "start", UNIT)
        wait_until_serving()
    token = add_agent("clock", "admin")["token"]
    with check("a policy of the helper's that cannot be used ends it with its line, not over and over"):
        kept = HELPER_POLICY.read_text()
        HELPER_POLICY.write_text('lxc_reads = "maybe"\n')
        helper, place = "gatewren-helper.service", cursor()
        run("systemctl", "restart", helper, ok=False)
        for _ in range(3):
            expect("gatewren-helper" in refusal(token, "container_list"), refusal(token, "container_list"))
            wait_for("the helper has failed", lambda: show(helper, "ActiveState") == "failed")
        expect(f"{HELPER_POLICY}:1" in journal_after(place, unit=helper), journal_after(place, unit=helper))
        expect((show(helper, "NRestarts"), show(helper, "ExecMainStatus")) == ("0", "2"), show(helper, "NRestarts"))
        expect(is_active(UNIT) and is_active("gatewren-helper.socket"), "the front or the socket has ended too")
        HELPER_POLICY.write_text(kept)
    with check("it works with the next call once it is mended"):
        wait_for("it answers", lambda: "apt install lxc" in refusal(token, "container_list"))


def disk_full():
    """On a small file system of its own, where the state is: /var or a disk for it."""
    run("systemctl", "stop", UNIT)
    user = pwd.getpwnam("gatewren")
    kept = pathlib.Path("/root/kept")
    run("cp", "-a", str(STATE), str(kept))
    run("mount", "-t", "tmpfs", "-o", f"size=3m,mode=700,uid={user.pw_uid},gid={user.pw_gid}", "tmpfs", str(STATE))
    with full_disk():
        with check("a first start on a full disk says so, and is tried again"):
            place = cursor()
            run("systemctl", "start", "--no-block", UNIT)
            wait_for("it says why", lambda: "No space left" in journal_after(place) or "full" in journal_after(place))
            wait_for("it was tried again", lambda: int(show(UNIT, "NRestarts")) >= 2)
    with check("it serves by itself when there is room"):
        wait_until_serving()
        expect(agents() == {}, agents())
    token = add_agent("laptop", "observe")["token"]
    with full_disk():
        with check("on a disk that fills up it goes on serving what needs no writing"):
            wait_until_serving()
            newest, serving = revision(), show(UNIT, "MainPID")
            run("systemctl", "--no-block", "restart", UNIT)
            # Whether it starts there depends on the room that is left inside its files.
            def again():
                return is_active(UNIT) and show(UNIT, "MainPID") not in (serving, "0")

            wait_for("it was started or has failed", lambda: again() or int(show(UNIT, "NRestarts")) >= 1)
    with check("a restart on a full disk serves by itself when there is room, and has lost nothing"):
        wait_until_serving()
        call(token, "state_get")
        expect(list(agents()) == ["laptop"], agents())
        expect(revision() >= newest, f"revision {revision()} after {newest}")
        gatewren("audit", "verify")
    run("systemctl", "stop", UNIT)
    run("umount", str(STATE))
    run("systemctl", "start", UNIT)
    wait_until_serving()


@contextlib.contextmanager
def full_disk():
    filling = STATE / "filling"
    with contextlib.suppress(OSError), open(filling, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    try:
        yield
    finally:
        filling.unlink()


main()
