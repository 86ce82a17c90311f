#!/usr/bin/env python3
"""Runs a released bridge against a released gatewren on this machine: bridge.py NAME GATEWREN COMMAND...

COMMAND starts the bridge: the file itself, or an emulator and the file. It pairs, initializes a session, lists the
tools and calls one; then it starts again with the token that it stored. One line a check: ok or not ok.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

BOUND = 120  # seconds


class Bridge:
    """A bridge on pipes, as a client starts it."""

    def __init__(self, command, code, env):
        self.process = subprocess.Popen(
            [*command, "--pair", code], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.id = 0

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def result(self, method, params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.id:
                return answer["result"]
        raise AssertionError(f"no answer to {method}; the bridge ended with {self.process.wait(BOUND)}")

    def session(self):
        """What a client does first; the name of the agent that it is."""
        client = {"name": "test", "version": "1"}
        self.result("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})
        tools = [tool["name"] for tool in self.result("tools/list", {})["tools"]]
        assert "whoami" in tools, tools
        called = self.result("tools/call", {"name": "whoami", "arguments": {}})
        self.process.stdin.close()
        status = self.process.wait(BOUND)
        assert status == 0, f"exit status {status}"
        return json.loads(called["content"][0]["text"])["name"]


def check(gatewren, command, folder):
    env = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder), "WINEDEBUG": "-all"}
    state = folder / "state"
    server = subprocess.Popen(
        [gatewren, "try", "--json", "--listen", "127.0.0.1:0", "--dir", state, "--policy", "admin"],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        host = json.loads(server.stdout.readline())["url"].split("/")[2]
        pair = [gatewren, "pair", "bridged", "--policy", "observe", "--dir", state, "--host", host, "--json"]
        code = json.loads(subprocess.run(pair, env=env, check=True, capture_output=True, text=True).stdout)["code"]
        for _ in range(2):
            name = Bridge(command, code, env).session()
            assert name == "bridged", name
    finally:
        server.terminate()
        server.wait(BOUND)


def main(name, gatewren, *command):
    what = f"dist bridge {name}: pairs, lists the tools and calls one, and finds its token again"
    with tempfile.TemporaryDirectory(prefix="gatewren-bridge-", ignore_cleanup_errors=True) as folder:
        try:
            check(str(pathlib.Path(gatewren).resolve()), command, pathlib.Path(folder))
            print(f"ok {what}", flush=True)
        except Exception as error:
            print(f"not ok {what}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
