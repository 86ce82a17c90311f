"""Starts both servers, runs each client against them, and changes the box from outside when a client asks.

Started by tests/clients/run, which installs the clients. Environment: GATEWREN_BIN, GATEWREN_LXCPATH (may be empty).

A client prints a line for each check (`ok`, `not ok`, `skip`), or `ask WORDS` to have something done to the box;
it then reads one line, `done` or what went wrong.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from stage import Fault, Stage, bound

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "target" / "test-results"
CLIENT_BOUND = 600  # seconds; the clients' own bounds are shorter and say more

# By name: the program (`python` and `python-v1` are the environments of the two SDKs) and its arguments.
CLIENTS = {
    "sdk-v1": ["node", "sdk-v1.mjs"],
    "sdk-v2-legacy": ["node", "sdk-v2.mjs", "legacy"],
    "sdk-v2-auto": ["node", "sdk-v2.mjs", "auto"],
    "sdk-v2-pinned": ["node", "sdk-v2.mjs", "2026-07-28"],
    "python-v1": ["python-v1", "python_v1.py"],
    "python-v2-legacy": ["python", "python_v2.py", "legacy"],
    "python-v2-auto": ["python", "python_v2.py", "auto"],
    "python-v2-pinned": ["python", "python_v2.py", "2026-07-28"],
    "fastmcp-legacy": ["python", "fastmcp_library.py", "legacy"],
    "fastmcp-auto": ["python", "fastmcp_library.py", "auto"],
    "fastmcp-cli": ["python", "fastmcp_cli.py"],
    "inspector-legacy": ["python", "inspector.py", "legacy"],
    "inspector-auto": ["python", "inspector.py", "auto"],
    "inspector-modern": ["python", "inspector.py", "modern"],
    "mcporter": ["python", "mcporter.py"],
    "mcp-remote-stateful": ["python", "mcp_remote.py", "2025-11-25"],
    "mcp-remote-stateless": ["python", "mcp_remote.py", "2026-07-28"],
    "rmcp-initialize": ["rmcp", "initialize"],
    "rmcp-discover": ["rmcp", "discover"],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--node-modules", required=True)
    for program in ("python", "python-v1", "rmcp"):
        parser.add_argument(f"--{program}", required=True, metavar="PROGRAM")
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(CLIENTS)}")
    args = parser.parse_args()
    if unknown := set(args.clients) - set(CLIENTS):
        parser.error(f"no client {', '.join(sorted(unknown))}; there are {', '.join(CLIENTS)}")
    programs = {"python": args.python, "python-v1": args.python_v1, "rmcp": args.rmcp}
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gatewren-clients-") as folder:
        return int(drive_all(pathlib.Path(folder), args.clients or CLIENTS, programs, args.node_modules))


def drive_all(folder, names, programs, node_modules):
    """True if anything failed."""
    try:
        stage = Stage(folder, os.environ.get("GATEWREN_LXCPATH", ""), RESULTS)
    except Fault as fault:
        print(f"not ok clients servers start: {fault}")
        return True
    failed = False
    try:
        stage.see_the_box()
        stage.ask_write_row()  # so that the notes exist before anybody subscribes to them
        workplace = scripts_beside(folder, node_modules)
        home = folder / "home"  # where clients keep what they remember, and must not find anything
        home.mkdir()
        environment = {**os.environ, **stage.environment(), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        for name in names:
            program, *arguments = CLIENTS[name]
            command = [programs.get(program, program), *arguments]
            failed |= drive(name, command, workplace, {**environment, "GATEWREN_CLIENT": name}, stage)
    finally:
        for server in stage.servers:
            status = server.stop()
            failed |= status != 0
            what = f"clients {server.name} ends on SIGTERM"
            print(f"ok {what}" if status == 0 else f"not ok {what}: {status}")
    return failed


def scripts_beside(folder, node_modules):
    """Node looks for packages above the script, so the scripts stand beside the packages for the run."""
    for script in [*HERE.glob("*.mjs"), *HERE.glob("*.py")]:
        shutil.copy(script, folder)
    (folder / "node_modules").symlink_to(node_modules)
    return folder


def drive(name, command, workplace, environment, stage):
    """Runs one client to its end; true if it failed."""
    pipe = subprocess.PIPE
    client = subprocess.Popen(command, cwd=workplace, env=environment, stdin=pipe, stdout=pipe, text=True)
    failed = False
    with bound(CLIENT_BOUND, client):
        for line in client.stdout:
            if line.startswith("ask "):
                client.stdin.write(stage.asked(line.removeprefix("ask ")) + "\n")
                client.stdin.flush()
            else:
                failed |= line.startswith("not ok")
                print(line, end="", flush=True)
        status = client.wait()
    if status != 0 and not failed:
        print(f"not ok {name} ends: exit status {status}", flush=True)
    return status != 0


if __name__ == "__main__":
    sys.exit(main())
