#!/usr/bin/env python3
"""A newcomer's walk, on a box that has nothing but the package: from the install to the first answer, as they type it."""

import fcntl
import struct
import time

from box import *  # noqa: F403

# Seconds from the beginning of the install to the first answer, the download aside.
AT_MOST = 60


def main():
    begun = time.monotonic()
    installed()
    token = first_agent()
    first_answer(token, begun)
    seen_by_its_owner()
    again()
    another_port()
    push_services()
    purged()
    finish()


def installed():
    with check("the package is installed, and init --yes says that it serves, and what comes next"):
        install("this")
        words = gatewren("init", "--yes")
        expect("gatewren serves MCP at https://" in words, words)
        expect("gatewren agent add" in words and "gatewren doctor" in words, words)
        expect("gw_" not in words, "a token was printed that nobody asked for")


def first_agent():
    token = ""
    with check("agent add gives a token"):
        words = gatewren("agent", "add", "laptop", "--policy", "observe")
        token = words.split()[-1]
        expect(token.startswith("gw_"), words)
    return token


def first_answer(token, begun):
    with check(f"what client-config prints for curl is answered, within {AT_MOST} s of the install") as told:
        # As Debian's installer writes it.
        with open("/etc/hosts", "a") as hosts:
            hosts.write(f"127.0.1.1 {socket.gethostname()}\n")
        # What is printed beside the text is for whoever reads.
        line = gatewren("client-config", "curl", "--authority", CA, stderr=subprocess.DEVNULL)
        answer = run("bash", "-c", line, env={**os.environ, "GATEWREN_TOKEN": token})
        took = time.monotonic() - begun
        expect('"serverInfo"' in answer or '"tools"' in answer, f"{line}: {answer}")
        expect(took < AT_MOST, f"{took:.1f} s")
        told.append(f"{took:.1f} s")


def seen_by_its_owner():
    with check("status says that it serves and who may come in"):
        said = json.loads(gatewren("status", "--json"))
        expect(said["serving"] and said["agents"] == 1, said)
    with check("doctor finds nothing that does not work, and makes a real call") as told:
        code, words = run("gatewren", "doctor", "--json", ok=False)
        said = json.loads(words)
        states = {}
        for finding in said["findings"]:
            states.setdefault(finding["state"], []).append(finding["check"])
        problems = [finding for finding in said["findings"] if finding["state"] == "problem"]
        expect(problems == [] and code in (0, 1), words)
        expect({"units", "answers", "names", "call", "audit", "state", "sandbox"} <= set(states["ok"]), states)
        told.append(", ".join(f"{len(names)} {state}" for state, names in sorted(states.items())))
    with check("a service that was stopped is a problem with a remedy, and status says so by its exit code"):
        run("systemctl", "stop", "gatewren.service", "gatewren.socket")
        code, words = run("gatewren", "doctor", "--json", ok=False)
        found = {finding["check"]: finding for finding in json.loads(words)["findings"]}
        expect(code == 2 and found["answers"]["state"] == "problem", words)
        expect("systemctl start" in found["units"]["remedy"], found["units"])
        code, words = run("gatewren", "status", ok=False)
        expect(code == 3 and "does not answer" in words, words)


def again():
    with check("init starts what was stopped, and a second time changes nothing"):
        said = json.loads(gatewren("init", "--yes", "--json"))
        expect(said["changed"] == ["the service was started"], said)
        said = json.loads(gatewren("init", "--yes", "--json"))
        expect(said["changed"] == [], said)
        before = sorted(os.listdir("/etc/gatewren/conf.d"))
        expect("10-init.toml" not in before, before)
    with check("init --name and --agent: a name that the certificate then holds for, and an agent with its token, once"):
        words = ["init", "--yes", "--json", "--name", "newcomer.localhost", "--agent", "phone"]
        said = json.loads(gatewren(*words))
        expect(said["url"].startswith("https://newcomer.localhost:"), said)
        expect(said["agent"]["token"].startswith("gw_"), "no token")
        curl = ["curl", "-s", "--cacert", CA, "--resolve", "newcomer.localhost:8443:127.0.0.1"]
        expect('"ok"' in run(*curl, "https://newcomer.localhost:8443/health"), "it does not answer under its name")
        said = json.loads(gatewren(*words))
        expect(said["changed"] == [] and said["agent"]["token"] is None, said)


def another_port():
    with check("init --listen 9443 moves the port, and one that is taken changes nothing"):
        said = json.loads(gatewren("init", "--yes", "--json", "--listen", "9443"))
        expect(":9443/" in said["url"], said)
        curl = ["curl", "-s", "--cacert", CA]
        expect('"ok"' in run(*curl, "https://localhost:9443/health"), "it does not answer at the new port")
        with socket.create_server(("0.0.0.0", 9444)):
            code, words = run("gatewren", "init", "--yes", "--listen", "9444", ok=False)
        expect(code == 1 and "cannot listen on" in words, words)
        gatewren("init", "--yes")
        expect('"ok"' in run(*curl, "https://localhost:9443/health"), "the old port is gone")
        line = gatewren("client-config", "curl", stderr=subprocess.DEVNULL)
        expect(":9443/mcp" in line, line)


def reaches(address, port):
    """Whether a process in the group of the service, and so under its rules, reaches the address."""
    line = f"echo $$ >/sys/fs/cgroup/system.slice/gatewren.service/cgroup.procs && exec 3<>/dev/tcp/{address}/{port}"
    code, _ = run("timeout", "3", "bash", "-c", line, ok=False)
    return code == 0


def own_address(address):
    """Gives this box the address, which is of RFC 5737 and so not of the local network. The box has no ip(8)."""
    SIOCSIFADDR = 0x8916
    request = struct.pack("16sH2x4s8x", b"lo:public", socket.AF_INET, socket.inet_aton(address))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFADDR, request)


def push_services():
    public, port = "203.0.113.7", 8000
    own_address(public)
    with socket.create_server((public, port)), check("notify push on lets the service reach the internet, and off no longer"):
        expect(not reaches(public, port), "the service reaches a public address before")
        words = gatewren("notify", "push", "on")
        expect("the service can reach push services" in words, words)
        expect(reaches(public, port), "the service reaches no public address after push on")
        expect("nothing to change" in gatewren("notify", "push", "on"), "a second time changes something")
        gatewren("notify", "push", "off")
        expect(not reaches(public, port), "the service reaches a public address after push off")
        expect(json.loads(gatewren("status", "--json"))["serving"], "the service does not serve")
        gatewren("notify", "push", "on")


def purged():
    with check("a purge takes with it what init and notify push on wrote"):
        gatewren("init", "--yes", "--profile", "home")
        backups = "/var/backups/gatewren"
        expect(os.path.isdir(backups), "the profile home has made no place for backups")
        apt("purge", "gatewren")
        units = "/etc/systemd/system/gatewren"
        paths = ["/etc/gatewren", f"{units}.socket.d", f"{units}.service.d", backups]
        left = [path for path in paths if os.path.exists(path)]
        expect(left == [], left)


main()
