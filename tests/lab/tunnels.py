#!/usr/bin/env python3
"""Runs inside the booted box (tests/lab/settings): a WireGuard tunnel between two ends is listed, brought up and taken
down through a gatewren, and its keys stay where they are. One line a check: ok or not ok.

Not every kernel that tests run on has WireGuard. wg-quick(8) takes wireguard-go then, as a service of its own here, which
the box has no reason to end with the call.
"""

import pathlib
import subprocess
import sys
import time

import bounds
from bounds import GATEWREN, HOME, POLICY, Gatewren, check, expect, run

PROFILE = pathlib.Path("/etc/wireguard/home.conf")
SERVICE = """#!/bin/sh
exec systemd-run --quiet --collect --property=Type=forking --unit="wireguard-$1" /usr/bin/wireguard-go.real "$1"
"""
FAR = """
wireguard-go.real far
wg setconf far /root/far.conf
ip link set far up
ip address add 10.77.0.2/24 dev far
exec sleep infinity
"""


def prepare():
    """Two ends, one of them in a network namespace of its own; the keys of both."""
    program = pathlib.Path("/usr/bin/wireguard-go")
    program.rename("/usr/bin/wireguard-go.real")
    program.write_text(SERVICE)
    program.chmod(0o755)
    ours, theirs, shared = run("wg", "genkey").strip(), run("wg", "genkey").strip(), run("wg", "genpsk").strip()
    public = {key: run("wg", "pubkey", input=key).strip() for key in (ours, theirs)}
    # The two ends reach each other over a cable between the namespaces.
    run("ip", "netns", "add", "away")
    run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", "away")
    run("ip", "address", "add", "10.78.0.1/24", "dev", "cable")
    run("ip", "link", "set", "cable", "up")
    run("ip", "-n", "away", "address", "add", "10.78.0.2/24", "dev", "cable")
    run("ip", "-n", "away", "link", "set", "cable", "up")
    PROFILE.write_text(
        f"[Interface]\nPrivateKey = {ours}\nAddress = 10.77.0.1/24\nListenPort = 51820\n"
        f"[Peer]\nPublicKey = {public[theirs]}\nPresharedKey = {shared}\nAllowedIPs = 10.77.0.2/32\n"
        "Endpoint = 10.78.0.2:51821\nPersistentKeepalive = 1\n"
    )
    PROFILE.chmod(0o600)
    far = f"[Interface]\nPrivateKey = {theirs}\nListenPort = 51821\n"
    far += f"[Peer]\nPublicKey = {public[ours]}\nPresharedKey = {shared}\nAllowedIPs = 10.77.0.1/32\n"
    pathlib.Path("/root/far.conf").write_text(far)
    # Its socket is in a folder of its own, or it would be a tunnel of the box.
    unit = ["systemd-run", "--quiet", "--unit=wireguard-far", "--property=NetworkNamespacePath=/run/netns/away"]
    run(*unit, "--property=TemporaryFileSystem=/run/wireguard", "sh", "-ec", FAR)
    end = time.monotonic() + bounds.BOUND
    while "10.77.0.2/24" not in run("ip", "-n", "away", "-brief", "address"):
        expect(time.monotonic() < end, run("journalctl", "-u", "wireguard-far", "-n", "20"))
        time.sleep(0.2)
    return [ours, theirs, shared, *public.values()]


def up_and_down(keys):
    def hides_keys(said):
        expect(not any(key in str(said) for key in keys), "a key is told")

    def home(gatewren):
        wrong, said = gatewren.call("tunnel_list")
        expect(not wrong and [tunnel["name"] for tunnel in said["tunnels"]] == ["home"], said)
        hides_keys(said)
        return said["tunnels"][0]

    with Gatewren() as gatewren:
        with check("a tunnel with a profile is listed before it is up"):
            tunnel = home(gatewren)
            expect(tunnel["has_profile"] and not tunnel["up"], tunnel)
        with check("tunnel_up brings it up, and what is sent through it arrives"):
            wrong, said = gatewren.call("tunnel_up", tunnel="home")
            expect(not wrong and said == {"tunnel": "home", "up": True}, said)
            hides_keys(said)
            expect("10.77.0.1/24" in run("ip", "-brief", "address", "show", "dev", "home"), "it has no address")
            # Twice at least, until both ends have shaken hands.
            ping = subprocess.run(["ping", "-c", "20", "-i", "0.5", "-w", "60", "10.77.0.2"], capture_output=True)
            expect(b" 0 received" not in ping.stdout and ping.returncode in (0, 1), ping.stdout + ping.stderr)
        with check("tunnel_list tells of the other end, and no key"):
            tunnel = home(gatewren)
            expect(tunnel["up"] and tunnel["listen_port"] == 51820, tunnel)
            (peer,) = tunnel["peers"]
            expect(peer["endpoint"] == "10.78.0.2:51821" and "10.77.0.2/32" in str(peer), peer)
            expect(peer["received_bytes"] > 0 and peer["sent_bytes"] > 0, peer)
        with check("one that is up is not brought up again"):
            wrong, said = gatewren.call("tunnel_up", tunnel="home")
            expect(wrong, said)
            hides_keys(said)
        with check("tunnel_down takes it down"):
            wrong, said = gatewren.call("tunnel_down", tunnel="home")
            expect(not wrong and said == {"tunnel": "home", "up": False}, said)
            expect("home" not in run("ip", "-brief", "link"), "it is still there")
            expect(not home(gatewren)["up"], "it is listed as up")
        with check("what has no profile is not brought up"):
            for name in ["nosuch", "../home", "--help", "home.conf", "/etc/wireguard/home.conf"]:
                wrong, said = gatewren.call("tunnel_up", tunnel=name)
                expect(wrong and "tunnel_list" in said, said)


if __name__ == "__main__":
    POLICY.write_text('network = "on"\n')
    with Gatewren():
        pass  # makes the agent
    allowed = [word for tool in ("tunnel_up", "tunnel_down") for word in ("--tool", f"{tool}=allow")]
    run(GATEWREN, "agent", "edit", "try", "--dir", HOME, *allowed)
    with check("two ends of a tunnel are made"):
        up_and_down(prepare())
    sys.exit(1 if bounds.failed else 0)
