"""Beside a booted box on its network: what the checks of an installed package share. One line a check: ok, not ok or
skip."""

import json
import time

from outside import FRONT, HELPER, Box, Client, wait


class Skipped(Exception):
    """A check that can say nothing here, and why."""


class Stage:
    """The box with the package in it, and an agent's client."""

    def __init__(self, part, script, address):
        self.part, self.box, self.address = part, Box(script), address
        self.client, self.ca = None, None

    def install(self, *options):
        """Installs the package, and adds an administrator with these options of `agent add`."""
        self.box.shell("DEBIAN_FRONTEND=noninteractive apt-get install -y /root/gatewren.deb >/root/install.log 2>&1")
        installed = time.monotonic()
        wait("both units are active", lambda: self.box.is_active(FRONT) and self.box.is_active(HELPER))
        seconds = time.monotonic() - installed
        added = json.loads(self.box.run("gatewren", "agent", "add", "outside", "--policy", "admin", "--json", *options))
        self.ca = self.box.read("/var/lib/gatewren/tls/ca.pem")
        client = Client(self.address, 8443, self.ca, added["token"])
        # The certificate is for the address, and the front hears of the agent, in a moment.
        wait("the agent comes in", client.comes_in)
        self.client = client
        return f"both active {seconds:.2f} s after apt"

    def check(self, words, function):
        """Runs one check and prints its line; whether it did not fail."""
        start = time.monotonic()
        try:
            told = function(self)
        except Skipped as why:
            print(f"skip {self.part} {words}: {why}", flush=True)
            return True
        except Exception as error:
            said = " ".join(str(error).split())
            print(f"not ok {self.part} {words}: {type(error).__name__}: {said}", flush=True)
            return False
        seconds = f"{time.monotonic() - start:.1f} s in all"
        print(f"ok {self.part} {words} ({'; '.join([told, seconds] if told else [seconds])})", flush=True)
        return True

    def run(self, checks, wanted):
        """Runs the checks whose words contain one of the wanted ones, or all; the exit status of the program."""
        failed = False
        for words, function in checks:
            if self.client and (not wanted or any(word in words for word in wanted)):
                failed |= not self.check(words, function)
        return int(failed)
