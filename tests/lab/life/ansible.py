#!/usr/bin/env python3
"""Ansible on a box without a network, with the role of packaging/ansible: from a package, and from the repository."""

import re
import tempfile

from box import *  # noqa: F403
from site_of_packages import FILES, listen, only_this_source, serve

ROLES = "/gatewren/packaging/ansible/roles"
EXAMPLE = "/gatewren/packaging/ansible/example.yml"
SETTINGS_OF_ROLE = SETTINGS.parent / "conf.d/ansible.toml"
REPOSITORY = {
    "gatewren_repository": "http://127.0.0.1:8000",
    "gatewren_repository_key": str(FILES / "one/gatewren-archive-keyring.asc"),
}


def main():
    only_this_source()
    listen()
    from_package()
    settings_change()
    wrong()
    half_right()
    apt("purge", "gatewren")
    from_repository()
    finish()


def play(book=None, ok=True, **variables):
    """Runs a playbook here; how many tasks changed something, or what it said."""
    if book is None:
        book = tempfile.mkstemp(suffix=".yml")[1]
        pathlib.Path(book).write_text("- hosts: all\n  roles: [gatewren]\n")
    environment = {**os.environ, "ANSIBLE_ROLES_PATH": ROLES, "ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_NOCOLOR": "1",
                   "LC_ALL": "C.UTF-8"}
    command = ["ansible-playbook", "-i", "localhost,", "-c", "local", "-e", "ansible_python_interpreter=/usr/bin/python3",
               "-e", "ansible_become=false", "-e", json.dumps(variables), book]
    code, said = run(*command, ok=False, env=environment)
    expect((code == 0) == ok, f"exit status {code}: {said[-2500:]}")
    return int(re.search(r"changed=(\d+)", said)[1]) if ok else said


def from_package():
    package = {"gatewren_deb": deb("older")}
    with check("the example playbook installs the package, writes the settings and starts the server") as told:
        changed = play(EXAMPLE, **package)
        told.append(f"changed={changed}")
        expect(changed > 0 and version() == version_of("older"), changed)
        wait_until_serving()
        expect('\nupdates = "apply"\nruntimes = ["lxc"]\n' in HELPER_POLICY.read_text(), HELPER_POLICY.read_text())
        expect("\n[limits]\nagent_calls = 8\n" in SETTINGS_OF_ROLE.read_text(), SETTINGS_OF_ROLE.read_text())
        said = gatewren("check", "--resolved")
        expect(re.search(r"agent_calls.*8.*ansible\.toml", said), said)
    with check("a second run of it changes nothing"):
        expect(play(EXAMPLE, **package) == 0, "something changed")


def settings_change():
    wanted = {
        "gatewren_deb": deb("older"),
        "gatewren_settings": {
            "names": ["box.lan"],
            "log": {"level": "debug"},
            "notify": {"phone": {"kind": "ntfy", "url": "http://127.0.0.1:8000", "topic": "box", "on": ["error"]}},
        },
        "gatewren_helper": {"units": "on", "containers": ["docker:arr-*"], "lxc_writes": False},
    }
    with check("changed variables change the files, and the server runs with them"):
        serving = show(UNIT, "MainPID")
        expect(play(**wanted) > 0, "nothing changed")
        wait_until_serving()
        expect(show(UNIT, "MainPID") != serving, "it was not restarted")
        said = gatewren("check", "--resolved")
        expect(re.search(r"names.*box\.lan.*ansible\.toml", said), said)
        expect(re.search(r"level.*debug.*ansible\.toml", said), said)
        expect("[notify.phone]" in SETTINGS_OF_ROLE.read_text(), SETTINGS_OF_ROLE.read_text())
        expect("lxc_writes = false" in HELPER_POLICY.read_text(), HELPER_POLICY.read_text())
        expect(play(**wanted) == 0, "a second run changed something")
    with check("a unit that was stopped and disabled is brought back"):
        run("systemctl", "disable", "--now", UNIT, *SOCKETS)
        expect(play(**wanted) > 0, "nothing changed")
        wait_until_serving()
        expect(run("systemctl", "is-enabled", UNIT).strip() == "enabled", "it is not enabled")


def wrong():
    before = HELPER_POLICY.read_bytes(), SETTINGS_OF_ROLE.read_bytes()
    with check("wrong values fail the run with gatewren's own words, and change nothing"):
        for variables, words in [
            ({"gatewren_helper": {"units": True}}, "units"),
            ({"gatewren_settings": {"limits": {"agent_call": 1}}}, "agent_call"),
            ({"gatewren_repository": "http://127.0.0.1:8000"}, "either gatewren_deb or gatewren_repository"),
        ]:
            said = play(ok=False, gatewren_deb=deb("older"), **variables)
            expect(words in said, said[-1500:])
        expect(before == (HELPER_POLICY.read_bytes(), SETTINGS_OF_ROLE.read_bytes()), "a file changed")
        expect(health() == 200, "nobody serves")


def half_right():
    with check("limits of the helper that are right come into force, though the settings are wrong"):
        play(gatewren_deb=deb("older"), gatewren_helper={"units": "on"})
        run("systemctl", "start", "gatewren-helper.service")
        place = cursor()
        play(ok=False, gatewren_deb=deb("older"), gatewren_helper={"units": "off"}, gatewren_settings={"limit": {"x": 1}})
        expect('units = "off"' in HELPER_POLICY.read_text(), HELPER_POLICY.read_text())
        said = journal_after(place, unit="gatewren-helper.service")
        expect("eload" in said, f"the helper did not read them: {said}")


def from_repository():
    serve("one")
    with check("it installs from the apt repository, and a second run changes nothing"):
        expect(play(**REPOSITORY) > 0, "nothing changed")
        expect(version() == version_of("older"), version())
        wait_until_serving()
        expect(play(**REPOSITORY) == 0, "something changed")
    serve("two")
    with check("it upgrades only when told to"):
        expect(play(**REPOSITORY) == 0 and version() == version_of("older"), version())
        expect(play(gatewren_upgrade=True, **REPOSITORY) > 0, "nothing changed")
        expect(version() == version_of("newer"), version())
        wait_until_serving()
        expect(play(gatewren_upgrade=True, **REPOSITORY) == 0, "something changed")


main()
