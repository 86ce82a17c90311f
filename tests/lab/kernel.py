#!/usr/bin/env python3
"""Process 1 of a kernel of its own (tests/lab/kernel): what the lab's other machines have no kernel for, through a
gatewren. One line a check: ok or not ok.

    kernel.py boot [PART...]    mounts what a box has, runs the parts, and halts: md, gone, cifs, zfs and limits, or those
                                named
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import bounds
import kernel_limits
from bounds import BOUND, GATEWREN, HOME, POLICY, Gatewren, check, expect, run

MD = pathlib.Path("/sys/block/md0/md")
TOOLS = ["disk_repair", "backup_create", "backup_restore", "backup_target_mount", "backup_target_umount"]
SHARE = pathlib.Path("/run/share")
NAS = "//127.0.0.1/backups"
SLOW = "//127.0.0.1/slow"
CREDENTIALS = pathlib.Path("/run/nas")
PASSWORD = "a-wren-sings-at-4"
# What the helper's programs were started with, and all that a gatewren wrote to its log.
STARTED = pathlib.Path("/run/started")
LOG = pathlib.Path("/run/log")


def boot():
    """What an init does first. What is said here goes to whoever booted it, the rest to the console."""
    for kind, place in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"),
                        ("tmpfs", "/tmp"), ("tmpfs", "/var/lib"), ("cgroup2", "/sys/fs/cgroup")]:
        subprocess.run(["mount", "-t", kind, kind, place], check=place != "/dev", env={"PATH": os.defpath})
    os.environ.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LC_ALL="C")
    os.dup2(os.open("/dev/ttyS0", os.O_WRONLY | os.O_NOCTTY), 1)
    os.dup2(2, 3)
    os.dup2(os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    run("ip", "link", "set", "lo", "up")
    for module in ("loop", "raid1", "cifs"):
        run("modprobe", module)


def halt():
    with contextlib.suppress(OSError):
        os.write(3, LOG.read_bytes()[-64_000:])
    os.sync()
    ctypes.CDLL(None).reboot(0x4321FEDC)  # RB_POWER_OFF


def agent():
    """Makes the agent, which is asked nothing before it does any of this."""
    POLICY.write_text("")
    with Gatewren():
        pass
    words = [word for tool in TOOLS for word in ("--tool", f"{tool}=allow")]
    # What it complains of stands in the log.
    subprocess.run([GATEWREN, "agent", "edit", "try", "--dir", HOME, *words], check=True, stdout=subprocess.DEVNULL)


def until(what, truth, bound=BOUND):
    end = time.monotonic() + bound
    while not truth():
        expect(time.monotonic() < end, f"{what}: not in time")
        time.sleep(0.1)


def disk(name, size=64 << 20):
    """A file in memory that is a disk."""
    file = pathlib.Path("/run", name)
    with open(file, "wb") as made:
        made.truncate(size)
    return file, run("losetup", "--find", "--show", str(file)).strip()


def word(name):
    return (MD / name).read_text().strip()


def md():
    (one, first), (two, second) = disk("one"), disk("two")
    run("mdadm", "--create", "/dev/md0", "--run", "--level=1", "--raid-devices=2", "--assume-clean", first, second)
    names = sorted([first[5:], second[5:]])
    POLICY.write_text('storage = "on"\n')
    with Gatewren() as gatewren:
        def health():
            wrong, said = gatewren.call("disk_health")
            expect(not wrong, said)
            return said["problems"], said["md"]

        with check("disk_health tells of an array that is well"):
            problems, arrays = health()
            expect(problems == [], problems)
            well = {"name": "md0", "active": True, "level": "raid1", "devices": names, "failed": [],
                    "expected": 2, "working": 2, "mismatches": 0}
            expect(arrays == [well], arrays)
        with check("disk_repair has md compare what the disks hold, and is not begun twice"):
            # So slow that it is still at it when it is asked again.
            for end in ("min", "max"):
                (MD / f"sync_speed_{end}").write_text("1000")
            wrong, said = gatewren.call("disk_repair", array="md0")
            expect(not wrong and said == {"outcome": "begun"}, said)
            expect(word("sync_action") == "check", word("sync_action"))
            until("it is at it", lambda: health()[1][0].get("action") == "check")
            expect(0 <= health()[1][0]["done_percent"] < 100, health())
            wrong, said = gatewren.call("disk_repair", array="md0")
            expect(wrong and "the array is busy: check" in said, said)
            for end in ("min", "max"):
                (MD / f"sync_speed_{end}").write_text("1000000")
            until("it ends", lambda: word("sync_action") == "idle")
            problems, arrays = health()
            expect(problems == [] and arrays == [well], arrays)
        with check("disk_health tells what such a look has found"):
            with open(two, "r+b") as behind:
                behind.seek(32 << 20)
                behind.write(b"no wren wrote this")
            os.sync()
            wrong, said = gatewren.call("disk_repair", array="md0")
            expect(not wrong and said["outcome"] == "begun", said)
            until("it ends", lambda: word("sync_action") == "idle")
            found = int(word("mismatch_cnt"))
            problems, arrays = health()
            expect(found > 0 and arrays[0]["mismatches"] == found, arrays)
            expect(len(problems) == 1 and "md0" in problems[0] and str(found) in problems[0], problems)
        with check("disk_health tells of an array that has lost a disk"):
            run("mdadm", "--fail", "/dev/md0", second)
            problems, arrays = health()
            expect(arrays[0]["failed"] == [second[5:]] and arrays[0]["working"] == 1, arrays)
            expect("md0: 1 of 2 disks work" in problems, problems)
        with check("disk_repair refuses what is no array"):
            for name in ("md9", first[5:]):
                wrong, said = gatewren.call("disk_repair", array=name)
                expect(wrong and "no such array" in said, said)
    run("mdadm", "--stop", "/dev/md0")
    # They are in memory.
    for file, device in [(one, first), (two, second)]:
        run("losetup", "--detach", device)
        file.unlink()


class Wren(Gatewren):
    """Keeps all that it is answered."""

    heard = ""

    def ask(self, method, **params):
        answer = super().ask(method, **params)
        self.heard += json.dumps(answer)
        return answer

    def timed(self, tool, **arguments):
        """The same as a call, with its seconds in front."""
        start = time.monotonic()
        wrong, said = self.call(tool, **arguments)
        return time.monotonic() - start, wrong, said

    def together(self, tool, targets):
        """The same for several targets at once; what each is answered."""
        start = time.monotonic()
        for target in targets:
            self.say(target, tool, target=target)
        answers = {}
        for _ in targets:
            answer = json.loads(self.process.stdout.readline())
            self.heard += json.dumps(answer)
            text = answer["result"]["content"][0]["text"]
            answers[answer["id"]] = (time.monotonic() - start, answer["result"].get("isError", False), text)
        return answers

    def say(self, number, tool, **arguments):
        params = {"name": tool, "arguments": arguments, "_meta": self.META}
        call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        print(json.dumps(call), file=self.process.stdin, flush=True)


@contextlib.contextmanager
def smbd():
    """Samba's server, with one share that one user may use."""
    home = pathlib.Path("/run/samba")
    if not home.exists():
        home.mkdir()
        SHARE.mkdir()
        run("useradd", "--no-create-home", "wren")
        shutil.chown(SHARE, "wren")
        names = ["private dir", *(f"{what} directory" for what in ("lock", "state", "cache", "pid")), "ncalrpc dir"]
        folders = [f"{name} = {home}" for name in names]
        settings = ["[global]", "interfaces = lo", "bind interfaces only = yes", "disable netbios = yes",
                    "smb ports = 445", "load printers = no", f"log file = {home}/log", *folders,
                    "[backups]", f"path = {SHARE}", "read only = no", "valid users = wren"]
        (home / "conf").write_text("\n".join(settings) + "\n")
        run("smbpasswd", "-c", f"{home}/conf", "-a", "-s", "wren", input=f"{PASSWORD}\n{PASSWORD}\n")
    server = subprocess.Popen(["smbd", "--foreground", "--debug-stdout", f"--configfile={home}/conf"], stdout=2)

    def answers():
        with socket.socket() as door:
            return door.connect_ex(("127.0.0.1", 445)) == 0

    until("smbd answers", answers)
    try:
        yield server
    finally:
        for number in (signal.SIGCONT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, number)
        server.wait()


def mounted():
    lines = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    return [line for line in lines if line[2] == "cifs"]


def named(program):
    """The processes that were started under that name."""
    found = []
    for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if program in line.read_text():
                found.append(line.read_text())
    return found


def tree(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        facts = path.lstat()
        inside = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_uid, int(facts.st_mtime), inside)
    return found


def credentials(password):
    CREDENTIALS.write_text(f"username=wren\npassword={password}\n")
    CREDENTIALS.chmod(0o600)


def share():
    """What is to be kept on a share, and an agent that may do it."""
    for folder in ("data/deep", "back", "kept"):
        pathlib.Path("/run", folder).mkdir(parents=True, exist_ok=True)
    pathlib.Path("/run/data/song").write_bytes(os.urandom(3 << 20))
    pathlib.Path("/run/data/deep/none").write_bytes(b"")
    if not os.path.lexists("/run/data/deep/link"):
        os.symlink("../song", "/run/data/deep/link")
    os.chmod("/run/data/song", 0o640)
    credentials(PASSWORD)
    # The real program is found by what writes down how it was started; one share takes it longer than anybody waits.
    program, real = pathlib.Path("/usr/sbin/mount.cifs"), pathlib.Path("/usr/sbin/mount.cifs.real")
    if not real.exists():
        program.rename(real)
    program.write_text(f"""#!/bin/bash
{{ echo "mount.cifs $*"; tr '\\0' '\\n' </proc/$$/environ; }} >>{STARTED}
[ "$1" != {SLOW} ] || exec -a mount.cifs sleep infinity
exec -a mount.cifs {real} "$@"
""")
    program.chmod(0o755)
    shares = [f"{name}: smb {place} credentials={CREDENTIALS}" for name, place in [("nas", NAS), ("slow", SLOW)]]
    POLICY.write_text(f'backup = "on"\nbackup_targets = {json.dumps(["local: /run/kept", *shares])}\n'
                      'backup_paths = ["/run/data"]\nhost_file_writes = ["/run/back"]\n')


def gone():
    share()
    nas = {"target": "nas"}
    with Wren() as gatewren:
        with check("a server that is not there is told of"):
            seconds, wrong, said = gatewren.timed("backup_target_mount", **nas)
            expect(wrong and "could not connect to 127.0.0.1" in said and seconds < 50, (seconds, said))
        with socket.create_server(("127.0.0.1", 445)):
            with check("a server that says nothing is waited for a minute, and then by nobody"):
                answers = gatewren.together("backup_target_mount", ["nas", "slow"])
                expect(not named("mount.cifs") and mounted() == [], named("mount.cifs"))
                seconds, wrong, said = answers["nas"]
                expect(wrong and ("Host is down" in said or "'nas' does not answer" in said) and seconds < 90, answers)
                seconds, wrong, said = answers["slow"]
                expect(wrong and "'slow' does not answer" in said and 50 < seconds < 90, answers)
            with check("nothing goes on to mount a share when the gatewren has ended that was asked for it"):
                gatewren.say(1, "backup_target_mount", target="slow")
                until("it begins", lambda: named("mount.cifs"))
                gatewren.process.kill()
                until("it ends", lambda: not named("mount.cifs"), 30)


def cifs():
    share()
    nas = {"target": "nas"}
    with Wren() as gatewren:
        with smbd() as server:
            with check("backup_target_mount mounts a share, harmless"):
                wrong, said = gatewren.call("backup_target_mount", **nas)
                expect(not wrong and (said["kind"], said["ready"]) == ("share", True), said)
                expect(said["total_bytes"] > 0 and said["place"] == NAS, said)
                [(source, _, _, options, *_)] = mounted()
                expect(source == NAS, source)
                expect({"rw", "nosuid", "nodev", "noexec", "dir_mode=0700"} <= set(options.split(",")), options)
                wrong, said = gatewren.call("backup_target_mount", **nas)
                expect(not wrong and len(mounted()) == 1, said)
            with check("a backup is kept on the share, verified and brought back"):
                wrong, made = gatewren.call("backup_create", path="/run/data", **nas)
                expect(not wrong, made)
                kept = sorted(path.name for path in SHARE.rglob("*") if path.is_file())
                expect(kept == ["archive.tar.zst", "lock", "manifest.json"], kept)
                wrong, said = gatewren.call("backup_verify", backup=made["backup"], **nas)
                expect(not wrong and said["whole"], said)
                wrong, said = gatewren.call("backup_restore", backup=made["backup"], path="/run/back/new", **nas)
                expect(not wrong and tree("/run/back/new") == tree("/run/data"), said)
            with check("backup_target_umount unmounts it, and the backups are there again with the next mount"):
                wrong, said = gatewren.call("backup_target_umount", **nas)
                expect(not wrong and not said["ready"] and mounted() == [], said)
                expect(gatewren.call("backup_list")[1]["total"] == 0, "what is not there is listed")
                wrong, said = gatewren.call("backup_target_mount", **nas)
                expect(not wrong, said)
                wrong, said = gatewren.call("backup_list")
                expect(not wrong and [one["backup"] for one in said["backups"]] == [made["backup"]], said)
            with check("a wrong password is told of, and nothing is mounted"):
                wrong, said = gatewren.call("backup_target_umount", **nas)
                expect(not wrong, said)
                credentials(f"x{PASSWORD}")
                wrong, said = gatewren.call("backup_target_mount", **nas)
                expect(wrong and "Permission denied" in said and mounted() == [], said)
                credentials(PASSWORD)
            with check("where the server of a share falls silent, other targets go on"):
                wrong, said = gatewren.call("backup_create", path="/run/data", target="local")
                expect(not wrong, said)
                wrong, said = gatewren.call("backup_target_mount", **nas)
                expect(not wrong, said)
                os.killpg(server.pid, signal.SIGSTOP)
                seconds, wrong, said = gatewren.timed("backup_target_list")
                expect(not wrong, said)
                ready = {one["target"]: one["ready"] for one in said["targets"]}
                expect(ready == {"local": True, "nas": False, "slow": False} and seconds < 50, (seconds, said))
                expect("'nas' does not answer" in str(said["targets"]), said)
                seconds, wrong, said = gatewren.timed("backup_list")
                expect(not wrong and said["total"] == 1 and seconds < 50, (seconds, said))
                expect([one["target"] for one in said["unseen"]] == ["nas", "slow"], said)
            with check("a share whose server is silent is not unmounted for ever, but when it answers again"):
                seconds, wrong, said = gatewren.timed("backup_target_umount", **nas)
                expect(wrong and "'nas' does not answer" in said and seconds < 90, (seconds, said))
                os.killpg(server.pid, signal.SIGCONT)
                until("it is unmounted", lambda: not gatewren.call("backup_target_umount", **nas)[0])
                expect(mounted() == [], mounted())
        with check("the password is in no argument, no variable, no answer and no log, nor kept"):
            started = STARTED.read_text()
            expect(f"credentials={CREDENTIALS}" in started and f"mount.cifs {NAS}" in started, started)
            said = {"arguments": started, "answers": gatewren.heard, "log": LOG.read_text()}
            for what, text in said.items():
                expect(PASSWORD not in text, what)
            files = [path for path in pathlib.Path(HOME).rglob("*") if path.is_file()]
            kept = [path for path in files if PASSWORD.encode() in path.read_bytes()]
            expect(len(files) > 3 and kept == [], kept)


def zfs():
    """A stand-in for zpool(8), of which there is none for this kernel: it writes down what it is asked, and answers
    with the words of OpenZFS 2's library."""
    busy = "currently scrubbing; use 'zpool scrub -s' to cancel current scrub"
    stand_in = pathlib.Path("/usr/sbin/zpool")
    stand_in.write_text(f"""#!/bin/bash
printf '%s\\n' "$*" >>/run/zpool
[ "$1" = scrub ] || exit 0
case $3 in
tank) ;;
busy) echo "cannot scrub busy: {busy}" >&2; exit 1 ;;
*) echo "cannot open '$3': no such pool" >&2; exit 1 ;;
esac
""")
    stand_in.chmod(0o755)
    POLICY.write_text('storage = "on"\n')
    with Gatewren() as gatewren:
        with check("disk_repair begins with a pool (a stand-in for zpool)"):
            wrong, said = gatewren.call("disk_repair", pool="tank")
            expect(not wrong and said == {"outcome": "begun"}, said)
            # The pools' state is read from time to time as well.
            asked = [line for line in pathlib.Path("/run/zpool").read_text().splitlines() if not line.startswith("list ")]
            expect(asked == ["scrub -- tank"], asked)
        with check("disk_repair tells why zpool does not begin (a stand-in for zpool)"):
            for pool, why in [("busy", f"cannot scrub busy: {busy}"), ("none", "cannot open 'none': no such pool")]:
                wrong, said = gatewren.call("disk_repair", pool=pool)
                expect(wrong and why in said, said)


def main(parts):
    try:
        boot()
        agent()
        everything = {"md": md, "gone": gone, "cifs": cifs, "zfs": zfs, "limits": kernel_limits.limits}
        for part in parts or everything:
            with check(f"{part}: comes to its end"):
                everything[part]()
        print("done", flush=True)
    finally:
        halt()


if __name__ == "__main__":
    main(sys.argv[2:])
