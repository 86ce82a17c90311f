"""Two fronts of one gatewren with a shared helper, and nginx or HAProxy before them with the examples of the package."""

import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import time
import urllib.parse

from stage import Requests, Server, Fault, kept_port, wait_for, write_row

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging" / "examples"

SETTINGS = """listen = ["127.0.0.1:{port}"]
state_dir = "{state}"

[sessions]
instance = "a"

[helper]
socket = "{socket}"

[limits]
# A call of some seconds reports its progress.
heartbeat = "1s"
"""

# What nginx needs around the example when it is not started by its package.
NGINX = """daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log {log};
events {{}}
http {{
access_log off;
client_body_temp_path {folder}/client_body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{example}
}}
"""


class Front:
    """A front with a port of its own, started, killed and started again."""

    def __init__(self, name, folder, helper, results):
        self.name, self.port = name, kept_port()
        self.settings = folder / f"front-{name}.toml"
        self.settings.write_text(SETTINGS.format(port=self.port, state=folder / "state", socket=helper))
        self.log = results / f"clients-front-{name}.log"
        self.log.write_text("")
        self.start()

    def start(self):
        command = [os.environ["GATEWREN_BIN"], "serve", "--instance", self.name, "--config", self.settings]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        wait_for(lambda: listens(self.port), f"the front {self.name} does not listen")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Balancer:
    """nginx or HAProxy with its example, in which only addresses and files are replaced."""

    def __init__(self, program, folder, fronts, results):
        self.port = kept_port()
        tls = folder / "state" / "tls"
        pem = folder / "balancer.pem"
        pem.write_text("".join((tls / name).read_text() for name in ("cert.pem", "key.pem")))
        example = "nginx-fronts.conf" if program == "nginx" else "haproxy-fronts.cfg"
        text = (EXAMPLES / example).read_text()
        replaced = {
            "listen 443": f"listen 127.0.0.1:{self.port}",
            "bind :443": f"bind 127.0.0.1:{self.port}",
            "127.0.0.1:8443": f"127.0.0.1:{fronts['a'].port}",
            "127.0.0.1:8444": f"127.0.0.1:{fronts['b'].port}",
            "/var/lib/gatewren/tls/ca.pem": tls / "ca.pem",
            "/etc/ssl/box.example.org.pem": pem,
            "/etc/ssl/private/box.example.org.key": pem,
            "/etc/haproxy/box.example.org.pem": pem,
        }
        for words, by in replaced.items():
            text = text.replace(words, str(by))
        log = results / f"clients-{program}.log"
        if program == "nginx":
            text = NGINX.format(folder=folder, log=log, example=text)
        file = folder / example
        file.write_text(text)
        words = ["-e", log, "-c", file] if program == "nginx" else ["-db", "-f", file]
        with open(log, "w") as errors:
            self.process = subprocess.Popen([program, *words], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        wait_for(lambda: listens(self.port), f"{program} does not listen")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Fronts(Requests):
    """The fronts `a` and `b`. What a client may ask for is a method whose name begins with `ask_`."""

    def __init__(self, folder, results):
        # A trial makes the certificate and the agent.
        trial = ["try", "--dir", str(folder / "state"), "--policy", "admin"]
        self.trial = Server("trial", trial, results / "clients-trial.log")
        self.trial.stop()
        self.folder, self.state_db, self.killed = folder, self.trial.address["state_db"], None
        self.context = ssl.create_default_context(cafile=self.trial.address["ca"])
        self.helper = start_helper(folder, results)
        self.fronts = {}
        for name in ("a", "b"):
            self.fronts[name] = Front(name, folder, folder / "helper.sock", results)

    def environment(self, balancer):
        """Where a client connects, with what token, and which authority it trusts."""
        host = urllib.parse.urlsplit(self.trial.address["url"]).hostname
        ca = self.trial.address["ca"]
        return {
            "GATEWREN_FRONTS": "a b",
            "GATEWREN_URL": f"https://{host}:{balancer.port}/mcp",
            "GATEWREN_TOKEN": self.trial.address["token"],
            # No client reaches the fixtures here.
            "GATEWREN_FIXTURES_URL": "https://localhost:1/mcp",
            "GATEWREN_FIXTURES_TOKEN": "none",
            "GATEWREN_CA": ca,
            "GATEWREN_CONTAINER": "",
            "NODE_EXTRA_CA_CERTS": ca,
        }

    def ask_write_row(self):
        write_row(self.state_db)

    def ask_kill_front_of(self, session):
        """SIGKILL for the front that opened the session."""
        name = session.split("-")[0]
        if name not in self.fronts:
            raise Fault(f"no front opened the session {session}")
        self.killed = self.fronts[name]
        self.killed.kill()

    def ask_start_front(self):
        self.killed.start()
        self.killed = None

    def ask_see_session(self, session):
        """Each front has the session."""
        self.see(session, 200)

    def ask_see_no_session(self, session):
        """No front has it any longer."""
        self.see(session, 404)

    def see(self, session, wanted):
        for front in self.fronts.values():
            wait_for(
                lambda: self.ping(front.port, session) == wanted,
                f"the front {front.name} does not answer {wanted} for the session {session}",
            )

    def ping(self, port, session):
        connection = http.client.HTTPSConnection("localhost", port, context=self.context, timeout=30)
        headers = {
            "Authorization": f"Bearer {self.trial.address['token']}",
            "Mcp-Session-Id": session,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        body = json.dumps({"jsonrpc": "2.0", "id": f"ping-{time.monotonic_ns()}", "method": "ping"})
        try:
            connection.request("POST", "/mcp", body, headers)
            return connection.getresponse().status
        except OSError as error:
            raise Fault(f"no answer on port {port}: {error}") from error
        finally:
            connection.close()

    def stop(self):
        """The exit status of each process after SIGTERM, by name."""
        processes = {f"front {name}": front.process for name, front in self.fronts.items()}
        processes["helper"] = self.helper
        statuses = {}
        for name, process in processes.items():
            process.terminate()
            statuses[name] = process.wait()
        return statuses


def start_helper(folder, results):
    """The helper that both fronts use, on a socket that it is given as by systemd."""
    command = [os.environ["GATEWREN_BIN"], "helper", "--trial", "--socket-fd", "0", "--lxcpath", "/nonexistent"]
    command += ["--state-dir", str(folder / "helper")]
    with socket.socket(socket.AF_UNIX) as listener, open(results / "clients-helper.log", "w") as log:
        listener.bind(str(folder / "helper.sock"))
        listener.listen()
        return subprocess.Popen(command, stdin=listener.fileno(), stderr=log)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def has_program(name):
    return shutil.which(name) is not None
