"""mcp-remote, the bridge from stdio to HTTP, as a client: JSON lines on its standard input, in the revision named.

    mcp_remote.py 2025-11-25   initialize, and resources/subscribe on the bridge's session
    mcp_remote.py 2026-07-28   server/discover, and subscriptions/listen
"""

import contextlib
import itertools
import json
import subprocess
import sys

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

import checks

REVISION = sys.argv[1]
STATEFUL = REVISION < "2026"
ME = {"name": "gatewren-tests", "version": "1"}
LINE = 1 << 22  # bytes of one message, at most
CONTEXT = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": ME,
}


class McpRemote(checks.Client):
    stays = True
    # A call is cancelled with a notification in the stateful era. In the stateless one the stream of its answer is
    # to be closed, which nothing on stdin makes the bridge do.
    cancels = STATEFUL
    # The bridge opens the stream of its session again, but gives up after two tries, which a server on a busy
    # machine can miss.
    hears_later = None if STATEFUL else checks.SUBSCRIBING_AGAIN

    def __init__(self, process):
        self.process = process
        self.ids = itertools.count(1)
        self.waiting = {}
        self.ears = []

    async def tools(self):
        return [tool["name"] for tool in (await self.request("tools/list"))["tools"]]

    async def call(self, name, arguments):
        result = await self.request("tools/call", name=name, arguments=arguments)
        return checks.Result(result.get("isError", False), result["content"][0]["text"])

    async def read(self, uri):
        return (await self.request("resources/read", uri=uri))["contents"][0]["text"]

    @contextlib.asynccontextmanager
    async def subscribe(self, uris, heard):
        self.ears.append(heard)
        if STATEFUL:
            for uri in uris:
                await self.request("resources/subscribe", uri=uri)
            yield
            return
        self.acknowledged = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.listen, uris)
            await self.acknowledged.wait()
            yield
            tasks.cancel_scope.cancel()

    async def listen(self, uris):
        with contextlib.suppress(RuntimeError):  # it ends with the server, as an error or not at all
            await self.request("subscriptions/listen", notifications={"resourceSubscriptions": uris})

    async def request(self, method, **params):
        """The result of a request; an error is raised with its words."""
        number = next(self.ids)
        send, receive = anyio.create_memory_object_stream(1)
        self.waiting[number] = send
        await self.send(method, params, id=number)
        try:
            answer = await receive.receive()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.send("notifications/cancelled", {"requestId": number})
            raise
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    async def send(self, method, params, **more):
        if not STATEFUL:
            params = {**params, "_meta": CONTEXT}
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        await self.process.stdin.send(json.dumps(message).encode() + b"\n")

    async def hear(self):
        """Gives each answer to the request that waits for it, and each notice to who wants to hear it."""
        lines = BufferedByteReceiveStream(self.process.stdout)
        with contextlib.suppress(anyio.IncompleteRead):
            while True:
                message = json.loads(await lines.receive_until(b"\n", LINE))
                if message.get("method") == "notifications/resources/updated":
                    for heard in self.ears:
                        heard(message["params"]["uri"])
                elif message.get("method") == "notifications/subscriptions/acknowledged":
                    self.acknowledged.set()
                elif waiting := self.waiting.pop(message.get("id"), None):
                    await waiting.send(message)


@contextlib.asynccontextmanager
async def connect(server, asked):
    authorization = f"Authorization: {server.headers['Authorization']}"
    command = ["node_modules/.bin/mcp-remote", server.url, "--transport", "http-only", "--header", authorization]
    with open("mcp-remote.log", "w") as log:
        process = await anyio.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    async with process, anyio.create_task_group() as tasks:
        client = McpRemote(process)
        tasks.start_soon(client.hear)
        try:
            await (initialize if STATEFUL else discover)(client)
            yield client
        finally:
            with anyio.CancelScope(shield=True):
                process.terminate()
                await process.wait()
            tasks.cancel_scope.cancel()


async def initialize(client):
    result = await client.request("initialize", protocolVersion=REVISION, capabilities={}, clientInfo=ME)
    checks.expect(result["protocolVersion"] == REVISION, result)
    await client.send("notifications/initialized", {})


async def discover(client):
    result = await client.request("server/discover")
    checks.expect(REVISION in result["supportedVersions"], result)


checks.run(connect)
