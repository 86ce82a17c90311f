#!/usr/bin/env python3
"""A small client of a running gatewren, for the tests in the booted box: one command, one answer on standard output.

    visitor.py URL CA call TOKEN TOOL [ARGUMENTS]                 calls a tool (2026-07-28); prints its data
    visitor.py URL CA begin TOKEN TOOL [ARGUMENTS]                the same as a task; prints its id
    visitor.py URL CA task TOKEN ID                               prints how a task stands
    visitor.py URL CA open TOKEN [POINTER]                        opens a session (2025-11-25); prints its id
    visitor.py URL CA in SESSION TOKEN TOOL [ARGUMENTS]           calls a tool in it; prints its data
    visitor.py URL CA knock FOLDER                                connects over and over until FOLDER/enough exists

`knock` writes FOLDER/begun after the first answer, and prints at the end how often it came in and what went wrong.
CA may be "-" for whatever certificate there is. Exit status 1 with the reason on standard error.
"""

import http.client
import json
import os
import ssl
import sys
import urllib.parse

VERSION = "2026-07-28"
STATEFUL = "2025-11-25"
TASKS = "io.modelcontextprotocol/tasks"
# Seconds that anything is waited for, on a machine however slow.
BOUND = 120


class Refused(Exception):
    """The server answered, and not with what was asked for."""


def main(url, ca, command, *rest):
    commands = {
        "call": call,
        "begin": begin,
        "task": task,
        "open": open_session,
        "in": in_session,
        "knock": knock,
    }
    print(json.dumps(commands[command](Door(url, ca), *rest)))


class Door:
    def __init__(self, url, ca):
        self.url = urllib.parse.urlsplit(url)
        self.trust = ssl.create_default_context(cafile=None if ca == "-" else ca)
        if ca == "-":
            self.trust.check_hostname = False
            self.trust.verify_mode = ssl.CERT_NONE

    def ask(self, method, path, token, message=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        body = None if message is None else json.dumps(message)
        connection = http.client.HTTPSConnection(
            self.url.hostname, self.url.port, context=self.trust, timeout=BOUND
        )
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def post(self, token, message, **headers):
        return self.ask("POST", self.url.path, token, message, **headers)


def call(door, token, tool, arguments="{}"):
    answer = request(door, token, "tools/call", tool, {"name": tool, "arguments": json.loads(arguments)})
    return data(answer)


def request(door, token, method, name, params):
    """A complete request of 2026-07-28, by a client that knows of tasks; the whole answer."""
    able = {"extensions": {TASKS: {}}} if method.startswith("tasks/") or params.pop("task", False) else {}
    meta = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": able}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return door.post(token, message, MCP_Protocol_Version=VERSION, Mcp_Method=method, Mcp_Name=name)


def begin(door, token, tool, arguments="{}"):
    """Calls a tool that lasts; the id of the task that the call became."""
    params = {"name": tool, "arguments": json.loads(arguments), "task": True}
    return result_of(request(door, token, "tools/call", tool, params))["taskId"]


def task(door, token, number):
    return result_of(request(door, token, "tasks/get", number, {"taskId": number}))


def open_session(door, token, pointer=None):
    params = {
        "protocolVersion": STATEFUL,
        "capabilities": {},
        "clientInfo": {"name": "gatewren-tests", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    status, headers, text = door.post(token, message)
    session = headers.get("Mcp-Session-Id")
    if status != 200 or not session:
        raise Refused(f"initialize: HTTP {status} {text}")
    notes = [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
    if pointer:
        uri = f"gatewren://{pointer}"
        notes.append({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}})
    for note in notes:
        status, _, text = door.post(token, note, Mcp_Session_Id=session, MCP_Protocol_Version=STATEFUL)
        if status not in (200, 202) or '"error"' in text:
            raise Refused(f"{note['method']}: HTTP {status} {text}")
    return session


def in_session(door, session, token, tool, arguments="{}"):
    params = {"name": tool, "arguments": json.loads(arguments)}
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    return data(door.post(token, message, Mcp_Session_Id=session, MCP_Protocol_Version=STATEFUL))


def data(answer):
    """What a tool answered."""
    result = result_of(answer)
    if result.get("isError"):
        raise Refused(json.dumps(result))
    return result.get("structuredContent", result)


def result_of(answer):
    """Out of one JSON object, or of the last event of a stream."""
    status, headers, text = answer
    if status != 200:
        raise Refused(f"HTTP {status} {text}")
    if headers.get_content_type() == "text/event-stream":
        lines = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
        text = lines[-1]
    result = json.loads(text).get("result")
    if result is None:
        raise Refused(text)
    return result


def knock(door, folder):
    """A client that was let in and hung up on, because the server that let it in ended, asks once more."""
    came_in, wrong, tries = 0, [], 0
    while True:
        enough = os.path.exists(os.path.join(folder, "enough"))
        try:
            status, _, text = door.ask("GET", "/health", None)
            if status != 200:
                raise OSError(f"HTTP {status} {text}")
            came_in, tries = came_in + 1, 0
        except (OSError, http.client.HTTPException) as error:
            tries += 1
            hung_up = isinstance(error, (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError))
            if tries > 1 or not hung_up:
                wrong.append(f"{type(error).__name__}: {error}")
            else:
                continue
        if came_in == 1:
            open(os.path.join(folder, "begun"), "w").close()
        # Once more after whoever asked said enough: what is up last counts too.
        if enough:
            return {"came_in": came_in, "wrong": wrong[:5], "times_wrong": len(wrong)}


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Refused as words:
        sys.exit(str(words))
