"""The Python SDK (mcp 2.x) as a client: `sdk_python.py 2026-07-28`, or `sdk_python.py legacy` for the stateful era.

The runner changes the box when asked (`change container`, `change row` on stdout) and answers `changed` on stdin.
"""

import contextlib
import json
import os
import ssl
import sys
import warnings

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

CONTAINER = os.environ.get("GATEWREN_CONTAINER")  # empty where there is no container to try
SHELL = "container_shell" if CONTAINER else "system_shell"
BOUND = 60  # seconds for the whole of it; a client that hangs has failed
NOTICE = 3  # seconds from a change to the notice of it
BOX = "gatewren:///public/packageData"
NOTES = "gatewren:///public/notes"

MODE = sys.argv[1]
NAME = f"sdk-python {MODE}"
# In the stateful era the SDK calls resources/subscribe deprecated, and is right.
warnings.simplefilter("ignore")

failed = False


def say(line):
    print(" ".join(line.split()), flush=True)


@contextlib.contextmanager
def check(what):
    global failed
    try:
        yield
        say(f"ok {NAME} {what}")
    except Exception as error:
        failed = True
        say(f"not ok {NAME} {what}: {type(error).__name__}: {error}")


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


class Ear:
    """Hears notices by URI, and waits for one that comes after a change was asked for."""

    def __init__(self):
        self.counts = {}

    def heard(self, uri):
        self.counts[uri] = self.counts.get(uri, 0) + 1

    async def hears(self, uri, change):
        before = self.counts.get(uri, 0)
        say(f"change {change}")
        answer = (await anyio.to_thread.run_sync(sys.stdin.readline)).strip()
        expect(answer == "changed", f"the runner could not make the change: {answer}")
        with anyio.move_on_after(NOTICE):
            while self.counts.get(uri, 0) == before:
                await anyio.sleep(0.02)
            return
        raise AssertionError(f"no notice for {uri} within {NOTICE} s")


async def calls(client):
    with check("lists its tools"):
        names = [tool.name for tool in (await client.list_tools()).tools]
        expect({SHELL, "whoami"} <= set(names), f"only {names}")
    with check("calls whoami"):
        result = await client.call_tool("whoami", {})
        expect(not result.is_error and result.content, result)
    with check("is told what is wrong with its arguments"):
        where = {"container": CONTAINER} if CONTAINER else {}
        result = await client.call_tool(SHELL, {**where, "command": 7})
        expect(result.is_error and "command" in result.content[0].text, result)
    with check("reads a resource"):
        containers = json.loads((await client.read_resource(BOX)).contents[0].text)
        expect(not CONTAINER or CONTAINER in containers, containers)
    if not CONTAINER:
        say(f"skip {NAME} runs a command in a container: no LXC lab here")
        return
    with check("runs a command in a container"):
        command = 'echo "this is $(hostname)"'
        result = await client.call_tool(SHELL, {"container": CONTAINER, "command": command})
        expect(not result.is_error and f"this is {CONTAINER}" in result.model_dump_json(), result)


async def notices(ear, box):
    if CONTAINER:
        with check("hears that a container was restarted"):
            await ear.hears(box, "container")
    else:
        say(f"skip {NAME} hears that a container was restarted: no LXC lab here")
    with check("hears of a row another program wrote"):
        await ear.hears(NOTES, "row")


async def stateful(client, ear, box):
    """Notices come on the session's GET stream, to the client's message handler."""
    with check("subscribes"):
        for uri in (box, NOTES):
            await client.subscribe_resource(uri)
    await notices(ear, box)


async def stateless(client, ear, box):
    """Notices come on the stream of subscriptions/listen."""

    async def forward(subscription):
        async for event in subscription:
            ear.heard(event.uri)

    async with client.listen(resource_subscriptions=[box, NOTES]) as subscription, anyio.create_task_group() as tasks:
        with check("subscribes"):
            honoured = subscription.honored.resource_subscriptions or []
            expect(len(honoured) == 2, f"honoured only {honoured}")
        tasks.start_soon(forward, subscription)
        await notices(ear, box)
        tasks.cancel_scope.cancel()


async def main():
    ear = Ear()

    async def on_message(message):
        if getattr(message, "method", None) == "notifications/resources/updated":
            ear.heard(str(message.params.uri))

    trust = ssl.create_default_context(cafile=os.environ["GATEWREN_CA"])
    headers = {"Authorization": f"Bearer {os.environ['GATEWREN_TOKEN']}"}
    with anyio.fail_after(BOUND):
        # No read time-out: a stream of notices is silent for as long as nothing changes.
        async with httpx2.AsyncClient(headers=headers, verify=trust, timeout=httpx2.Timeout(30, read=None)) as http:
            transport = streamable_http_client(os.environ["GATEWREN_URL"], http_client=http)
            async with Client(transport, mode=MODE, message_handler=on_message) as client:
                await calls(client)
                box = f"{BOX}/{CONTAINER}" if CONTAINER else BOX
                await (stateful if MODE == "legacy" else stateless)(client, ear, box)


with check("connects and closes"):
    anyio.run(main)
sys.exit(failed)
