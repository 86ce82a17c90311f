"""What stands outside a booted box: a way into it, and an MCP client that reaches it over TLS alone."""

import http.client
import itertools
import json
import ssl
import subprocess
import time

FRONT, HELPER = "gatewren.service", "gatewren-helper.service"

# How long anything is waited for that has no bound of its own: long enough for a machine with much else to do.
BOUND = 300

MODERN = "2026-07-28"
STATEFUL = "2025-11-25"


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


def wait(what, truth):
    """Waits until `truth()` is something and returns it."""
    end = time.monotonic() + BOUND
    while True:
        found = truth()
        if found:
            return found
        expect(time.monotonic() < end, f"not within {BOUND} s: {what}")
        time.sleep(0.05)


checks = []


def check(words):
    """A check: what is true when it goes well. It may return what it has measured."""
    def add(function):
        checks.append((words, function))
        return function
    return add


class Box:
    """The booted Debian, by the script that booted it."""

    def __init__(self, script):
        self.script = script

    def run(self, *command, given=None, check=True):
        """Runs a command in it as root; its standard output."""
        done = subprocess.run(
            [self.script, "exec", *command], input=given or "", capture_output=True, text=True, timeout=BOUND
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-600:]}")
        return done.stdout.strip()

    def shell(self, line, check=True):
        return self.run("bash", "-ec", line, check=check)

    def write(self, path, text):
        self.run("bash", "-ec", 'mkdir -p "${1%/*}"; cat >"$1"', "write", path, given=text)

    def read(self, path):
        return self.run("cat", path)

    def property(self, unit, name):
        return self.run("systemctl", "show", "--value", "--property", name, unit)

    def main_pid(self, unit):
        return int(self.property(unit, "MainPID"))

    def is_active(self, unit):
        return self.property(unit, "ActiveState") == "active"

    def drop_in(self, unit, text):
        """Other settings for a unit, as `systemctl edit` makes them; without text, its own again."""
        path = f"/etc/systemd/system/{unit}.d/test.conf"
        if text:
            self.write(path, text)
        else:
            self.run("rm", "-f", path)
        self.run("systemctl", "daemon-reload")

    def journal(self, *filters):
        self.run("journalctl", "--sync")
        lines = self.run("journalctl", "--output", "json", "--no-pager", *filters).splitlines()
        return [json.loads(line) for line in lines]

    def processes(self, marker):
        """Everything in the box, its containers included, whose command line has these words."""
        line = 'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null | sed "s|^|${p#/proc/} |"; echo; done'
        return [found for found in self.shell(line, check=False).splitlines() if marker in found and " sed " not in found]


class Client:
    """An MCP client with a token, which trusts nobody but the box's own certificate authority."""

    def __init__(self, host, port, ca, token):
        self.host, self.port, self.token = host, port, token
        self.tls = ssl.create_default_context(cadata=ca)

    def connect(self):
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls, timeout=BOUND)

    def send(self, message, headers, connection=None):
        """Sends a message; the connection, whose answer is not read yet."""
        connection = connection or self.connect()
        sent = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        }
        connection.request("POST", "/mcp", json.dumps(message), sent)
        return connection

    def post(self, message, headers, connection=None):
        """Sends a message; the connection and the answer, whose body is not read yet."""
        connection = self.send(message, headers, connection)
        return connection, connection.getresponse()

    def modern(self, method, params=None, connection=None):
        """A request of the stateless revision; the connection and its answer."""
        connection = self.begin(method, params, connection)
        return connection, connection.getresponse()

    def begin(self, method, params=None, connection=None):
        """Sends a request of the stateless revision; the connection, whose answer is not read yet."""
        params = dict(params or {})
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if name := params.get("name") or params.get("uri"):
            headers["Mcp-Name"] = name
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.send(message, headers, connection)

    def ask(self, method, params=None):
        """The result of a request over a connection of its own."""
        connection, answer = self.modern(method, params)
        with connection_closed(connection):
            return result_of(answer)

    def certificate(self):
        """The box's certificate as it is now."""
        connection = self.connect()
        with connection_closed(connection):
            connection.connect()
            return connection.sock.getpeercert()

    def comes_in(self):
        """Whether its token counts, and the box's certificate is for the address."""
        connection = None
        try:
            connection, answer = self.modern("tools/list")
            return answer.status == 200
        except ssl.SSLCertVerificationError:
            return False
        finally:
            if connection:
                connection.close()

    def call(self, tool, /, **arguments):
        """The result of a tool's call."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def read(self, pointer):
        """What stands at a place of the state document."""
        contents = self.ask("resources/read", {"uri": f"gatewren://{pointer}"})["contents"]
        return json.loads(contents[0]["text"])


def text_of(result):
    return "\n".join(part.get("text", "") for part in result["content"])


marks = (f"mark-{number}-of-the-check" for number in itertools.count())


class connection_closed:
    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        return self.connection

    def __exit__(self, *_):
        self.connection.close()


def messages(answer):
    """The messages of an answer as they come, be it one object or a stream of events."""
    if answer.headers.get_content_type() != "text/event-stream":
        yield json.loads(answer.read())
        return
    data = []
    for line in answer:
        line = line.decode().rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            text = "\n".join(data)
            data = []
            if text:
                yield json.loads(text)


def result_of(answer):
    """The result, after whatever came before it."""
    if answer.status != 200:
        raise AssertionError(f"status {answer.status}: {answer.read(500)}")
    last = None
    for last in messages(answer):
        if "result" in last or "error" in last:
            break
    expect(last is not None and "result" in last, f"no result: {last}")
    return last["result"]


class Session:
    """A session of a stateful revision."""

    def __init__(self, client):
        self.client = client
        params = {"protocolVersion": STATEFUL, "capabilities": {}, "clientInfo": {"name": "outside", "version": "1"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        connection, answer = client.post(message, {})
        with connection_closed(connection):
            self.id = answer.headers["Mcp-Session-Id"]
            result_of(answer)
        connection, answer = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers())
        with connection_closed(connection):
            expect(answer.status == 202, f"initialized: status {answer.status}")

    def headers(self):
        return {"MCP-Protocol-Version": STATEFUL, "Mcp-Session-Id": self.id}

    def ask(self, method, params=None):
        message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params or {}}
        connection, answer = self.client.post(message, self.headers())
        with connection_closed(connection):
            return result_of(answer)
