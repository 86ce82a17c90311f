"""The part `limits` of tests/lab/kernel: what the cgroup of a call limits, on a kernel with all controllers. The helper
runs as its unit has it run, alone in a cgroup that is its own."""

import errno
import json
import os
import pathlib
import socket
import struct
import subprocess
import time

from bounds import BOUND, GATEWREN, POLICY, check, expect

MOUNT = pathlib.Path("/sys/fs/cgroup")
UNIT = MOUNT / "gatewren-helper.service"
SOCKET = "/run/limits.sock"
CONTROLLERS = {"cpu", "memory", "pids"}
# Numbers of the frames: request, standard output, standard error, end.
REQUEST, OUTPUT, ERROR, END = 1, 3, 4, 5


def words(file):
    return set(file.read_text().split())


def remove_when_empty(group):
    """Removes a cgroup. The kernel kills the helper's other process when the helper has ended, which takes a moment."""
    until = time.monotonic() + BOUND
    while True:
        try:
            return group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


class Helper:
    """A helper that was started into its own cgroup."""

    def __enter__(self):
        UNIT.mkdir()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(SOCKET)
        listener.listen()
        line = f"echo $$ >{UNIT}/cgroup.procs; exec {GATEWREN} helper --trial --lxcpath /nonexistent --socket-fd $0"
        command = ["/bin/sh", "-c", line, str(listener.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL)
        self.listener = listener
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(BOUND)
        self.listener.close()
        os.unlink(SOCKET)

    def run(self, line, processes=100):
        """How a command on the host ended, and what it printed."""
        request = {
            "operation": {"do": "host_command", "command": {"program": {"shell": line}}},
            "limits": {"timeout_ms": BOUND * 1000, "output_bytes": 1 << 20, "processes": processes},
            "reference": "limits",
        }
        payload = json.dumps(request).encode()
        printed = {OUTPUT: b"", ERROR: b""}
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(SOCKET)
            stream.sendall(struct.pack(">BI", REQUEST, len(payload)) + payload)
            with stream.makefile("rb") as frames:
                while True:
                    kind, length = struct.unpack(">BI", frames.read(5))
                    payload = frames.read(length)
                    if kind == END:
                        return json.loads(payload), printed[OUTPUT].decode(), printed[ERROR].decode()
                    if kind in printed:
                        printed[kind] += payload


def limits():
    (MOUNT / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in sorted(CONTROLLERS)))
    total = next(int(line.split()[1]) << 10 for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    own = f"$(sed -n 's,^0::,{MOUNT},p' /proc/self/cgroup)"
    POLICY.write_text('host_shell = "full"\n')
    with Helper() as helper:
        with check("the helper moves into a group of its own and gives its controllers to those of calls"):
            ending, _, _ = helper.run("true")
            expect(ending == {"exited": {"code": 0}}, ending)
            expect(CONTROLLERS <= words(UNIT / "cgroup.subtree_control"), words(UNIT / "cgroup.subtree_control"))
            here = words(UNIT / "helper/cgroup.procs")
            names = sorted(pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in here)
            expect(str(helper.process.pid) in here and names == ["gatewren", "gatewren-fork"], (here, names))
            expect(words(UNIT / "cgroup.procs") == set(), "a process is in a group that gives its controllers")
        with check("each call has its processes, memory and processor time limited"):
            ending, printed, _ = helper.run(f"cd {own}; cat pids.max memory.max cpu.weight", processes=77)
            memory = max(total // 2, 256 << 20) & ~4095
            expect(printed.split() == ["77", str(memory), "50"], (ending, printed, memory))
        with check("a command that takes all memory is killed for it, and the helper goes on"):
            ending, _, _ = helper.run("head -c 450000000 /dev/zero | tail")
            expect(ending == {"killed": {"why": "memory"}}, ending)
            ending, printed, _ = helper.run("echo well")
            expect(printed == "well\n", (ending, printed))
        with check("a command that forks without end gets no more processes, and the helper goes on"):
            line = "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo forked"
            ending, printed, wrong = helper.run(line, processes=40)
            expect("forked" not in printed and "fork" in wrong.lower(), (ending, printed, wrong[:200]))
            ending, printed, _ = helper.run("echo well")
            expect(printed == "well\n", (ending, printed))
        with check("no group of a call is left"):
            left = [path.name for path in UNIT.iterdir() if path.name.startswith("gatewren-exec-")]
            expect(left == [], left)
    remove_when_empty(UNIT / "helper")
    remove_when_empty(UNIT)
