#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/settings): name, time zone, language and keyboard are set through a gatewren.
One line a check: ok or not ok.

    host_settings.py set    sets them
    host_settings.py kept   looks whether they are what services read that start later
"""

import pathlib
import sys

import bounds
from bounds import GATEWREN, HOME, POLICY, Gatewren, check, expect, run

TOOLS = ["server_set_hostname", "server_set_timezone", "server_set_language", "server_set_keyboard"]


def hosts():
    """The addresses of the box's name, and how often that stands in /etc/hosts."""
    lines = [line.split() for line in pathlib.Path("/etc/hosts").read_text().splitlines()]
    return [line[0] for line in lines if "wren-nas" in line[1:]]


def settings():
    pathlib.Path("/etc/hosts").write_text("127.0.0.1\tlocalhost\n127.0.1.1\tbox\n10.1.1.1\tboxes box-2\n")
    with Gatewren() as gatewren, check("as it is shipped nothing is set"):
        expect(not set(TOOLS) & gatewren.tools(), "they are listed")
    POLICY.write_text('host_settings = "on"\n')
    with Gatewren():
        pass  # makes the agent
    run(GATEWREN, "agent", "edit", "try", "--dir", HOME, *[w for t in TOOLS for w in ("--tool", f"{t}=allow")])
    with Gatewren() as gatewren:
        with check("server_set_hostname names the box, and /etc/hosts has it once"):
            for _ in range(2):
                wrong, said = gatewren.call("server_set_hostname", hostname="wren-nas", pretty_name="Lena's \"box\"")
                expect(not wrong and said["hostname"] == "wren-nas", said)
                expect(said["pretty_hostname"] == "Lena's \"box\"", said)
            expect(run("uname", "-n") == "wren-nas\n" and hosts() == ["127.0.1.1"], hosts())
            expect("10.1.1.1\tboxes box-2" in pathlib.Path("/etc/hosts").read_text(), "a neighbour is renamed")
        with check("server_set_hostname refuses what is no name"):
            for bad in ["--help", "a b", "box\n127.0.0.2 evil", "localhost"]:
                wrong, said = gatewren.call("server_set_hostname", hostname=bad)
                expect(wrong and "host name" in said, said)
            wrong, said = gatewren.call("server_set_hostname", pretty_name="one\ntwo")
            expect(wrong and "one line" in said, said)
            expect(run("uname", "-n") == "wren-nas\n", "it was set")
        with check("server_set_timezone moves the box, and to no place that there is not"):
            wrong, said = gatewren.call("server_set_timezone", timezone="Europe/Vienna")
            expect(not wrong and said["timezone"] == "Europe/Vienna", said)
            expect(run("date", "-d", "@1700000000", "+%Z") == "CET\n", run("date"))
            wrong, said = gatewren.call("server_set_timezone", timezone="Mars/Base")
            expect(wrong and "no time zone" in said, said)
        with check("server_set_language makes a locale and chooses it"):
            expect("de_AT.utf8" not in run("locale", "-a"), "it is there")
            wrong, said = gatewren.call("server_set_language", language="de_AT.UTF-8")
            expect(not wrong and said["language"] == "de_AT.UTF-8", said)
            expect("de_AT.utf8" in run("locale", "-a"), run("locale", "-a"))
            wrong, said = gatewren.call("server_set_language", language="xx_YY.UTF-8")
            expect(wrong and "no locale" in said, said)
        with check("server_set_keyboard keeps what the keys mean"):
            wrong, said = gatewren.call("server_set_keyboard", layout="de", variant="nodeadkeys")
            expect(not wrong and (said["keyboard_layout"], said["keyboard_variant"]) == ("de", "nodeadkeys"), said)
            wrong, said = gatewren.call("server_set_keyboard", layout="us", variant="nodeadkeys")
            expect(wrong and "variant of us" in said, said)


def kept():
    with check("they are what services read that start later"):
        expect(run("uname", "-n") == "wren-nas\n" and hosts() == ["127.0.1.1"], run("uname", "-n"))
        expect(run("date", "-d", "@1700000000", "+%Z") == "CET\n", run("date"))
        expect("LANG=de_AT.UTF-8" in run("localectl"), run("localectl"))


if __name__ == "__main__":
    {"set": settings, "kept": kept}[sys.argv[1]]()
    sys.exit(1 if bounds.failed else 0)
