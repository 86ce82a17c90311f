"""Drives the session clients of the SDKs through nginx and HAProxy to two fronts, of which one is killed meanwhile.

Started by tests/clients/balancers, which installs clients and balancers. Environment: GATEWREN_BIN.
"""

import argparse
import os
import pathlib
import sys
import tempfile

from drive import CLIENTS, RESULTS, drive, scripts_beside
from fronts import Balancer, Fronts, has_program
from stage import Fault

BALANCERS = ["nginx", "haproxy"]
# Those with sessions: without them each request is whole by itself.
WITH_SESSIONS = ["sdk-v1", "sdk-v2-legacy", "python-v1", "python-v2-legacy"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--node-modules", required=True)
    for program in ("python", "python-v1"):
        parser.add_argument(f"--{program}", required=True, metavar="PROGRAM")
    args = parser.parse_args()
    programs = {"python": args.python, "python-v1": args.python_v1}
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gatewren-balancers-") as folder:
        return int(drive_all(pathlib.Path(folder), programs, args.node_modules))


def drive_all(folder, programs, node_modules):
    """True if anything failed."""
    try:
        fronts = Fronts(folder, RESULTS)
    except Fault as fault:
        print(f"not ok balancers fronts start: {fault}")
        return True
    failed = False
    try:
        fronts.ask_write_row()  # so that the notes exist before a client subscribes to them
        workplace = scripts_beside(folder, node_modules)
        home = folder / "home"
        home.mkdir()
        environment = {**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        for balancer in BALANCERS:
            if has_program(balancer):
                failed |= drive_through(balancer, fronts, workplace, programs, environment)
            else:
                print(f"skip balancers {balancer}: there is no program {balancer}")
    finally:
        for name, status in fronts.stop().items():
            failed |= status != 0
            what = f"balancers {name} ends on SIGTERM"
            print(f"ok {what}" if status == 0 else f"not ok {what}: {status}")
    return failed


def drive_through(program, fronts, workplace, programs, environment):
    """Runs each client through one balancer; true if one failed."""
    failed = False
    try:
        balancer = Balancer(program, workplace, fronts.fronts, RESULTS)
    except Fault as fault:
        print(f"not ok balancers {program} starts: {fault}")
        return True
    try:
        for client in WITH_SESSIONS:
            name = f"{program}-{client}"
            interpreter, *arguments = CLIENTS[client]
            command = [programs.get(interpreter, interpreter), *arguments]
            own = {**environment, **fronts.environment(balancer), "GATEWREN_CLIENT": name}
            failed |= drive(name, command, workplace, own, fronts)
            if fronts.killed:  # by a client that failed in between
                fronts.ask_start_front()
    finally:
        balancer.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main())
