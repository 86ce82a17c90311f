#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/settings): the firmware of a webcam that is not there, which fwupd's own plugin
for tests makes up, is renewed through a gatewren. One line a check: ok or not ok.
"""

import pathlib
import sys

import bounds
from bounds import GATEWREN, HOME, POLICY, Gatewren, check, expect, run

WEBCAM = "08d460be0f1f9f128413f816022a6439e0078018"
CABINETS = pathlib.Path("/srv/cabinets")
COMPONENT = """<?xml version="1.0" encoding="UTF-8"?>
<component type="firmware">
  <id>com.acme.lab.firmware</id><name>Integrated Webcam</name><summary>It sings {0}</summary>
  <description><p>For tests.</p></description>
  <provides><firmware type="flashed">b585990a-003e-5270-89d5-3705a17f9a43</firmware></provides>
  <metadata_license>CC0-1.0</metadata_license><project_license>LicenseRef-proprietary</project_license>
  <developer_name>ACME Corp.</developer_name>
  <releases><release urgency="high" version="{0}" date="2026-01-02">
    <checksum filename="firmware.bin" target="content"/><description><p>Louder.</p></description>
  </release></releases>
  <custom><value key="LVFS::UpdateProtocol">com.acme.test</value><value key="LVFS::VersionFormat">triplet</value></custom>
</component>
"""


def prepare():
    """fwupd with its devices for tests and a folder as its only source. It does not start in a container, which this box
    is, and filters system calls that the box filters no more."""
    unit = pathlib.Path("/etc/systemd/system/fwupd.service.d/lab.conf")
    unit.parent.mkdir(parents=True)
    unit.write_text("[Unit]\nConditionVirtualization=\n"
                    "[Service]\nSystemCallFilter=\nUnsetEnvironment=FWUPD_SYSCALL_FILTER\n")
    pathlib.Path("/etc/fwupd/fwupd.conf").write_text("[fwupd]\nDisabledPlugins=\nTestDevices=true\nOnlyTrusted=false\n")
    pathlib.Path("/etc/fwupd/remotes.d/lab.conf").write_text(
        f"[fwupd Remote]\nEnabled=true\nTitle=Lab\nMetadataURI=file://{CABINETS}\nApprovalRequired=false\n")
    CABINETS.mkdir()
    # So gatewren takes it for the machine that it plays.
    pathlib.Path("/run/systemd/container").unlink()
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "fwupd")


def publish(version):
    """The maker of the webcam has new firmware, and no other."""
    made = pathlib.Path("/srv/firmware", version)
    made.mkdir(parents=True)
    (made / "firmware.bin").write_text(f"it sings {version}\n")
    (made / "lab.metainfo.xml").write_text(COMPONENT.format(version))
    for old in CABINETS.iterdir():
        old.unlink()
    run("fwupdtool", "build-cabinet", f"{CABINETS}/{version}.cab", "firmware.bin", "lab.metainfo.xml", cwd=made)
    run("systemctl", "restart", "fwupd")


def webcam(said):
    [one] = [one for one in said["devices"] if one["device"] == WEBCAM]
    return one


def main():
    with Gatewren() as gatewren, check("firmware is not listed in a container"):
        expect(not {"firmware_check", "firmware_update"} & gatewren.tools(), "it is listed")
    prepare()
    with Gatewren() as gatewren:
        with check("as it is shipped firmware is looked at, and not installed"):
            tools = gatewren.tools()
            expect("firmware_check" in tools and "firmware_update" not in tools, tools)
            wrong, said = gatewren.call("firmware_check")
            one = webcam(said)
            expect(not wrong and said["updates"] == 0 and not said["restart_required"], said)
            expect((one["name"], one["version"], one.get("candidate")) == ("Integrated Webcam\u2122", "1.2.2", None), one)
            wrong, said = gatewren.call("firmware_check", refresh=True)
            expect(wrong and "only the owner" in said, said)
    POLICY.write_text('updates = "apply"\n')
    with Gatewren():
        pass  # makes the agent
    run(GATEWREN, "agent", "edit", "try", "--dir", HOME, "--tool", "firmware_update=allow", "--tool", "firmware_check=allow")
    publish("1.2.3")
    with Gatewren() as gatewren:
        with check("firmware_check names newer firmware, and says why its lists could not be refreshed"):
            wrong, said = gatewren.call("firmware_check", refresh=True)
            one = webcam(said)
            expect(not wrong and said["updates"] == 1 and said["devices"][0] == one, said)
            expect((one["candidate"], one["about"]) == ("1.2.3", "It sings 1.2.3"), one)
            expect("download" in said["refresh_problem"], said)
        with check("firmware_update renews one device, and then has nothing for it"):
            wrong, said = gatewren.call("firmware_update", device="0" * 40)
            expect(wrong and "no newer firmware" in said, said)
            wrong, said = gatewren.call("firmware_update", device=WEBCAM)
            expect(not wrong and said["completed"] and not said["restart_required"], said)
            [change] = said["updated"]
            expect((change["device"], change["from"], change["to"]) == (WEBCAM, "1.2.2", "1.2.3"), said)
            expect("1.2.3" in run("fwupdmgr", "get-devices", "--json"), "fwupd has another")
            wrong, said = gatewren.call("firmware_update", device=WEBCAM)
            expect(wrong and "no newer firmware" in said, said)
            wrong, said = gatewren.call("firmware_update")
            expect(not wrong and said["completed"] and said["updated"] == [], said)
        # Which the webcam does not take: fwupd's plugin knows of no such version.
        publish("1.2.4")
        with check("firmware_update says of a device that it has what it had"):
            before = webcam(gatewren.call("firmware_check")[1])["version"]
            wrong, said = gatewren.call("firmware_update")
            expect(not wrong and not said["completed"] and said["updated"] == [], said)
            [change] = said["failed"]
            expect((change["device"], change["from"], change["to"]) == (WEBCAM, before, "1.2.4"), said)


if __name__ == "__main__":
    main()
    sys.exit(1 if bounds.failed else 0)
