#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/network): name servers are set, and wireless networks joined, through a gatewren.
One line a check: ok or not ok.

    network.py dns     with systemd-resolved, with NetworkManager, and with a file by hand; all of them real
    network.py wifi    with the real nmcli, and a NetworkManager that is not (wifi_mock.py): there is no radio here
"""

import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

import bounds
from bounds import BOUND, GATEWREN, HOME, POLICY, Gatewren, check, expect, run

RESOLV_CONF = pathlib.Path("/etc/resolv.conf")
PROFILES = pathlib.Path("/etc/NetworkManager/system-connections")
# The network's own name server, one that can be set, one that refuses, and one that is not there.
NEAR, SET, REFUSES, DEAD = "10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4"


def serve(address):
    """A name server: every name has the address 192.0.2.N, where N is the server's last number."""
    own = int(address.rsplit(".", 1)[1])
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.bind((address, 53))

    def answer():
        while True:
            asked, peer = door.recvfrom(4096)
            end = 12
            while asked[end]:
                end += asked[end] + 1
            question = asked[12 : end + 5]
            kind = struct.unpack("!H", asked[end + 1 : end + 3])[0]
            record = b""
            if kind == 1:
                record = struct.pack("!HHHIH4B", 0xC00C, 1, 1, 0, 4, 192, 0, 2, own)
            elif kind == 2:
                record = struct.pack("!HHHIH", 0xC00C, 2, 1, 60, 4) + b"\x02ns\x00"
            flags = 0x8185 if address == REFUSES else 0x8180
            counts = (1, 0, 0, 0) if address == REFUSES else (1, 1 if record else 0, 0, 0)
            record = b"" if address == REFUSES else record
            door.sendto(asked[:2] + struct.pack("!5H", flags, *counts) + question + record, peer)

    threading.Thread(target=answer, daemon=True).start()


def asked():
    """The last number of the name server that answers programs on this box."""
    name = f"n{time.monotonic_ns()}.example"
    found = subprocess.run(["getent", "ahostsv4", name], capture_output=True, text=True, timeout=BOUND)
    return found.stdout.split(" ")[0].rsplit(".", 1)[-1]


def until_there(address):
    end = time.monotonic() + BOUND
    while True:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
                return door.bind((address, 53))
        except OSError:
            expect(time.monotonic() < end, f"{address} does not come")
            time.sleep(0.2)


def until_asked(number):
    end = time.monotonic() + BOUND
    while asked() != number:
        expect(time.monotonic() < end, f"{asked()!r} answers, not {number}")
        time.sleep(0.5)


def agent(tools):
    with Gatewren():
        pass  # makes the agent
    run(GATEWREN, "agent", "edit", "try", "--dir", HOME, *[w for t in tools for w in ("--tool", f"{t}=allow")])


def cycle(gatewren, who):
    """The same for each that may say which name servers are asked."""
    with check(f"dns_set_static through {who}: set, and the network's again"):
        until_asked("1")
        wrong, said = gatewren.call("dns_set_static", servers=[SET])
        expect(not wrong and SET in str(said) and asked() == "2", said)
        wrong, said = gatewren.call("dns_set_static", servers=[DEAD, SET])
        expect(not wrong, said)
        until_asked("2")
        wrong, said = gatewren.call("dns_set_static", servers=None)
        expect(not wrong, said)
        until_asked("1")
        wrong, said = gatewren.call("dns_set_static")
        expect(not wrong, said)
    with check(f"dns_set_static through {who}: servers that do not answer change nothing"):
        before = RESOLV_CONF.read_text()
        for bad in [[DEAD], [REFUSES], [DEAD, REFUSES]]:
            wrong, said = gatewren.call("dns_set_static", servers=bad)
            expect(wrong and "nothing was changed" in said, said)
        for bad in [["--help"], ["127.0.0.53"], [SET, SET], ["0.0.0.0"], [f"{SET}\nnameserver 1.1.1.1"]]:
            expect(gatewren.call("dns_set_static", servers=bad)[0], bad)
        expect(RESOLV_CONF.read_text() == before and asked() == "1", "it was changed")


def dns():
    POLICY.write_text("")
    with Gatewren() as gatewren, check("as it is shipped no name server is set"):
        expect("dns_set_static" not in gatewren.tools(), "it is listed")
    POLICY.write_text('network = "on"\n')
    agent(["dns_set_static"])
    networkd = pathlib.Path("/etc/systemd/network")
    (networkd / "near0.netdev").write_text("[NetDev]\nName=near0\nKind=veth\n[Peer]\nName=far0\n")
    addresses = "".join(f"Address={address}/24\n" for address in (NEAR, SET, REFUSES))
    (networkd / "near0.network").write_text(
        f"[Match]\nName=near0\n[Network]\n{addresses}DNS={NEAR}\nDomains=near.example\n"
    )
    # Its other end, so that somebody is there.
    (networkd / "far0.network").write_text("[Match]\nName=far0\n[Network]\nLinkLocalAddressing=no\n")
    run("systemctl", "stop", "NetworkManager")
    run("systemctl", "start", "systemd-networkd")
    until_there(SET)
    settings = ["ipv4.method", "manual", "ipv4.addresses", f"{NEAR}/24,{SET}/24,{REFUSES}/24", "ipv4.dns", NEAR]
    for address in (NEAR, SET, REFUSES):
        serve(address)
    with Gatewren() as gatewren:
        cycle(gatewren, "systemd-resolved")
        with check("dns_config tells the name servers of one interface"):
            wrong, said = gatewren.call("dns_config", interface="near0")
            expect(not wrong and [link["servers"] for link in said["links"]] == [[NEAR]], said)
            expect(gatewren.call("dns_config", interface="nosuch0")[0], "of one that there is not")
        with check("what is set through systemd-resolved outlives its start, and whoever asks goes on"):
            gatewren.call("dns_set_static", servers=[SET])
            run("systemctl", "restart", "systemd-resolved", "systemd-networkd")
            until_asked("2")
            gatewren.call("dns_set_static", servers=[])
            until_asked("1")
    run("systemctl", "stop", "systemd-networkd.socket", "systemd-networkd")
    # As long as systemd-networkd is said to look after the interface, systemd-resolved hears of it from nobody else.
    run("rm", "-rf", "/run/systemd/netif")
    run("systemctl", "restart", "systemd-resolved")
    run("systemctl", "start", "NetworkManager")
    run("nmcli", "connection", "add", "type", "ethernet", "ifname", "near0", "con-name", "nearby", *settings,
        "ipv4.dns-search", "near.example", "ipv4.gateway", "10.77.0.9", "ipv6.method", "disabled")
    run("nmcli", "--wait", "60", "connection", "up", "nearby")
    with Gatewren() as gatewren:
        cycle(gatewren, "systemd-resolved, told by NetworkManager")
    run("systemctl", "disable", "--now", "systemd-resolved")
    RESOLV_CONF.unlink()
    # systemd-resolved's package has it; NetworkManager would write through it.
    pathlib.Path("/usr/sbin/resolvconf").unlink()
    run("systemctl", "restart", "NetworkManager")
    with Gatewren() as gatewren:
        cycle(gatewren, "NetworkManager")
        with check("through NetworkManager the domains of the network stay"):
            gatewren.call("dns_set_static", servers=[SET])
            expect("search near.example" in RESOLV_CONF.read_text(), RESOLV_CONF.read_text())
            gatewren.call("dns_set_static")
            expect("NetworkManager" in RESOLV_CONF.read_text(), RESOLV_CONF.read_text())
    pathlib.Path("/etc/NetworkManager/conf.d/none.conf").write_text("[main]\ndns=none\n")
    run("systemctl", "restart", "NetworkManager")
    RESOLV_CONF.unlink()
    by_hand = f"# by hand\nnameserver {NEAR}\nsearch near.example\n"
    RESOLV_CONF.write_text(by_hand)
    with Gatewren() as gatewren:
        cycle(gatewren, "a file by hand")
        with check("the file is as it was by hand, but for where the servers stand"):
            expect(sorted(RESOLV_CONF.read_text().splitlines()) == sorted(by_hand.splitlines()), RESOLV_CONF.read_text())
        with check("dns_set_static puts back what answered before"):
            # From here on it answers gatewren once, and then nobody.
            RESOLV_CONF.write_text(f"nameserver {DEAD}\n")
            gatewren.call("dns_set_static", servers=[SET])
            kept = RESOLV_CONF.read_text()
            wrong, said = gatewren.call("dns_set_static", servers=[])
            expect(wrong and "were restored" in said and RESOLV_CONF.read_text() == kept, said)
        with check("dns_set_static leaves a file alone that a program writes"):
            RESOLV_CONF.write_text(f"nameserver {NEAR}\n")
            sleeper = pathlib.Path("/tmp/dhclient")
            sleeper.write_bytes(pathlib.Path("/bin/sleep").read_bytes())
            sleeper.chmod(0o755)
            program = subprocess.Popen([sleeper, "600"])
            wrong, said = gatewren.call("dns_set_static", servers=[SET])
            expect(wrong and "supersede domain-name-servers" in said, said)
            program.kill()
            program.wait()
            RESOLV_CONF.unlink()
            RESOLV_CONF.symlink_to("/run/resolvconf/resolv.conf")
            wrong, said = gatewren.call("dns_set_static", servers=[SET])
            expect(wrong and "dns-nameservers" in said, said)


TOOLS = ["wifi_status", "wifi_scan", "wifi_connect", "wifi_forget", "wifi_enable", "wifi_country"]
HOME_NET = "Home:Net\\5"


def wifi():
    POLICY.write_text('network = "on"\n')
    with Gatewren() as gatewren, check("without a radio there is no tool for one"):
        expect(not set(TOOLS) & gatewren.tools(), "they are listed")
    run("mount", "-t", "tmpfs", "tmpfs", "/sys/class/net")
    pathlib.Path("/sys/class/net/wlan0/wireless").mkdir(parents=True)
    run("systemctl", "stop", "NetworkManager")
    policy = '<busconfig><policy user="root"><allow own="*"/><allow send_destination="*"/></policy></busconfig>'
    pathlib.Path("/etc/dbus-1/system.d/mock.conf").write_text(policy)
    run("systemctl", "reload", "dbus")
    for path in PROFILES.iterdir():
        path.unlink()
    mock = subprocess.Popen(["python3", "-m", "dbusmock", "--system", "--template", "/gatewren/tests/lab/wifi_mock.py"],
                            stdout=open("/root/mock.log", "w"), stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + BOUND
        while subprocess.run(["nmcli", "-t", "radio"], capture_output=True).returncode:
            expect(time.monotonic() < end and mock.poll() is None, pathlib.Path("/root/mock.log").read_text()[-900:])
            time.sleep(0.2)
        joined(passwords())
    finally:
        mock.kill()
        run("umount", "/sys/class/net")


def passwords():
    words = pathlib.Path("/root/words")
    words.mkdir(mode=0o700, exist_ok=True)
    for name, word in (("right", "rightpass"), ("wrong", "wrongpass"), ("open", "rightpass")):
        (words / name).write_text(f"{word}\n")
        (words / name).chmod(0o644 if name == "open" else 0o600)
    agent(TOOLS)
    return words


def networks(*entries):
    # TOML's own quotes: a name with a backslash is none for the owner's file.
    listed = ", ".join(f'"{entry}"' for entry in entries)
    POLICY.write_text(f'network = "on"\nwifi_networks = [{listed}]\n')


def profiles():
    return {path.name: path.read_text() for path in PROFILES.iterdir()}


def now(said):
    [interface] = said["interfaces"]
    return interface.get("network", {}).get("ssid")


def joined(words):
    cafe = "Caf\u00e9 Z\u00fcrich"
    networks(f"{cafe}: {words}/wrong", f"Office: {words}/right", f"--help: {words}/right")
    with Gatewren() as gatewren:
        with check("wifi_scan tells what is heard, whatever it is called"):
            wrong, said = gatewren.call("wifi_scan")
            expect(not wrong, said)
            names = [network["ssid"] for network in said["networks"]]
            expect(names[:3] == [HOME_NET, cafe, "--help"] and len(names) == 5, names)
            expect("\x1b" not in "".join(names) and said["networks"][3]["ssid_hex"].startswith("1b5b"), said)
            expect(said["networks"][0]["access_points"] == 2, said)
        with check("wifi_status tells the radio, and whose passwords there are"):
            wrong, said = gatewren.call("wifi_status")
            expect(not wrong and said["enabled"] and now(said) is None, said)
            expect(said["with_password"] == [cafe, "Office", "--help"] and said["saved"] == [], said)
        with check("wifi_connect refuses what it has no way into, and leaves nothing"):
            for name, why in [
                (HOME_NET, "needs a password"), ("Nowhere", "is in range"), ("Office", "802.1X"),
                ("--help", "may be a fake"), ("a\x00b", "control"), ("x" * 33, "32 bytes"), (cafe, "Secrets were required"),
            ]:
                wrong, said = gatewren.call("wifi_connect", ssid=name)
                expect(wrong and why in said, (name, said))
                expect("pass\n" not in said and "wrongpass" not in said, said)
            expect(profiles() == {}, profiles())
    networks(f"{cafe}: {words}/open")
    with Gatewren() as gatewren, check("a file with a password that others can read is not used"):
        wrong, said = gatewren.call("wifi_connect", ssid=cafe)
        expect(wrong and "chmod 600" in said, said)
    networks(f"{cafe}: {words}/right")
    with Gatewren() as gatewren:
        with check("wifi_connect joins with a password that is in no program's arguments"):
            seen = watch_arguments()
            wrong, said = gatewren.call("wifi_connect", ssid=cafe)
            arguments = seen()
            expect(not wrong and now(said) == cafe and said["saved"] == [cafe], said)
            expect(any("nmcli" in line for line in arguments), "nmcli was not seen")
            expect(not any("rightpass" in line for line in arguments), "the password is an argument")
            expect("rightpass" not in str(said), said)
            [(name, text)] = profiles().items()
            expect("psk=rightpass" in text and (PROFILES / name).stat().st_mode & 0o777 == 0o600, text)
        with check("wifi_connect joins an open network whose name looks like an option"):
            wrong, said = gatewren.call("wifi_connect", ssid="--help")
            expect(not wrong and now(said) == "--help", said)
        with check("wifi_connect joins one that is saved"):
            wrong, said = gatewren.call("wifi_connect", ssid=cafe)
            expect(not wrong and now(said) == cafe, said)
        with check("the last way to the host is not cut"):
            for tool, arguments in [("wifi_forget", {"ssid": cafe}), ("wifi_enable", {"enabled": False})]:
                wrong, said = gatewren.call(tool, **arguments)
                expect(wrong and "no network cable" in said, said)
    networks(f"{cafe}: {words}/wrong")
    with Gatewren() as gatewren, check("a network that fails leaves what was joined and what was saved as it was"):
        before = profiles()
        (words / "wrong").write_text("otherwrong\n")
        run("nmcli", "connection", "up", "uuid", open_one())
        wrong, said = gatewren.call("wifi_connect", ssid=cafe)
        expect(wrong and "back in its previous network" in said, said)
        expect(profiles() == before and now(gatewren.call("wifi_status")[1]) == "--help", profiles())
    cable = pathlib.Path("/sys/class/net/eth0")
    (cable / "device").mkdir(parents=True)
    (cable / "carrier").write_text("1\n")
    networks()
    with Gatewren() as gatewren:
        with check("wifi_forget takes away what is saved, its password with it"):
            for name in (cafe, "--help"):
                wrong, said = gatewren.call("wifi_forget", ssid=name)
                expect(not wrong and name not in said["saved"], said)
            wrong, said = gatewren.call("wifi_forget", ssid=cafe)
            expect(wrong and "saved" in said, said)
        with check("wifi_country says so where the kernel has no radio"):
            wrong, said = gatewren.call("wifi_country", country="AT")
            expect(wrong and "rejected AT" in said, said)
            expect(not pathlib.Path("/etc/modprobe.d/gatewren-wifi.conf").exists(), "it is kept")
            for bad in ("at", "--", "AUT", "A\n"):
                expect(gatewren.call("wifi_country", country=bad)[0], bad)


def open_one():
    for line in run("nmcli", "-t", "-f", "UUID", "connection", "show").split():
        if "802-11-wireless.ssid:--help" in run("nmcli", "-t", "-f", "802-11-wireless.ssid", "connection", "show", "uuid", line):
            return line
    raise AssertionError("the open network is not saved")


def watch_arguments():
    """Collects the arguments of every process until it is told to stop."""
    found, stop = set(), threading.Event()

    def look():
        while not stop.is_set():
            for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    found.add(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:
                    pass

    thread = threading.Thread(target=look)
    thread.start()

    def end():
        stop.set()
        thread.join()
        return found

    return end


if __name__ == "__main__":
    {"dns": dns, "wifi": wifi}[sys.argv[1]]()
    sys.exit(1 if bounds.failed else 0)
