"""The Python SDKs over stdio, HTTP+SSE and `gatewren bridge`, against the fixtures, and over stdio and the bridge
against a trial of the product:

    transports.py v1 stdio|sse|bridge                       mcp 1.x
    transports.py v2 stdio|bridge legacy|auto|2026-07-28    mcp 2.x
    transports.py v2 sse legacy

Environment: GATEWREN_CLIENT (a name for the checks), GATEWREN_BIN, GATEWREN_SSE_URL, XDG_STATE_HOME, and the words of
the bridge in GATEWREN_BRIDGE_FIXTURES and GATEWREN_BRIDGE_BOX.
"""

import contextlib
import os
import sys
import warnings

import anyio
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

SDK, KIND, MODE = (sys.argv[1:] + ["legacy"])[:3]
NAME = os.environ["GATEWREN_CLIENT"]
BOUND = 150  # seconds for the whole of it; a client that hangs has failed
EVENT = 60  # seconds until something that must happen has happened
WATCHED = "test://watched-resource"
TRIAL = ["try", "--stdio", "--policy", "admin"]
failed = False
# In the stateful era the newer SDK calls resources/subscribe deprecated, and is right.
warnings.simplefilter("ignore")


def transport(args, errlog):
    if KIND == "sse" and args[0] == "everything":
        return sse_client(os.environ["GATEWREN_SSE_URL"])
    if KIND == "bridge":
        elsewhere = "GATEWREN_BRIDGE_FIXTURES" if args[0] == "everything" else "GATEWREN_BRIDGE_BOX"
        args = os.environ[elsewhere].split(" ")
    env = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME")}
    server = StdioServerParameters(command=os.environ["GATEWREN_BIN"], args=args, env=env)
    return stdio_client(server, errlog=errlog)


@contextlib.asynccontextmanager
async def first(args, heard, errlog):
    """mcp 1.x: a session that is initialised by hand."""
    from mcp import ClientSession, types

    async def elicited(context, params):
        content = dict.fromkeys(params.requestedSchema["properties"], "Ada")
        return types.ElicitResult(action="accept", content=content)

    async def sampled(context, params):
        content = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", model="none", content=content)

    async def on_message(message):
        notice = getattr(message, "root", None)
        if isinstance(notice, types.ResourceUpdatedNotification):
            heard.append(str(notice.params.uri))

    answers = {"elicitation_callback": elicited, "sampling_callback": sampled, "message_handler": on_message}
    async with transport(args, errlog) as (reader, writer):
        async with ClientSession(reader, writer, **answers) as session:
            await session.initialize()
            yield session


@contextlib.asynccontextmanager
async def second(args, heard, errlog):
    """mcp 2.x: a client that settles on an era itself."""
    import mcp_types
    from mcp.client.client import Client

    async def elicited(context, params):
        content = dict.fromkeys(params.requested_schema["properties"], "Ada")
        return mcp_types.ElicitResult(action="accept", content=content)

    async def sampled(context, params):
        content = mcp_types.TextContent(type="text", text="Paris")
        return mcp_types.CreateMessageResult(role="assistant", model="none", content=content)

    async def on_message(message):
        if getattr(message, "method", None) == "notifications/resources/updated":
            heard.append(str(message.params.uri))

    answers = {"elicitation_callback": elicited, "sampling_callback": sampled, "message_handler": on_message}
    async with Client(transport(args, errlog), mode=MODE, **answers) as client:
        version = client.protocol_version
        expect((version < "2026") == (MODE == "legacy"), f"the version is {version}")
        yield client


connect = first if SDK == "v1" else second


async def call(client, name, arguments=None, progress=None):
    result = await client.call_tool(name, arguments or {}, progress_callback=progress)
    failure = getattr(result, "is_error", None) or getattr(result, "isError", None)
    expect(not failure, f"{result}")
    return result.content[0].text


async def says(client, name, arguments, wanted):
    text = await call(client, name, arguments)
    expect(wanted in text, text)


async def at_the_fixtures(client, heard):
    with check("lists tools, resources and prompts"):
        expect(len((await client.list_tools()).tools) > 20, "too few tools")
        expect(len((await client.list_resources()).resources) > 2, "too few resources")
        expect(len((await client.list_prompts()).prompts) > 2, "too few prompts")
    with check("calls a tool"):
        await says(client, "echo", {"message": "hello"}, "hello")
    with check("reads a resource"):
        expect((await client.read_resource("test://static-text")).contents[0].text, "it is empty")
    with check("answers an elicitation"):
        await says(client, "test_elicitation", {"message": "Who are you?"}, "Ada")
    with check("answers a sampling request"):
        await says(client, "test_sampling", {"prompt": "The capital?"}, "Paris")
    with check("hears of progress"):
        reports = []

        async def on_progress(progress, total, message):
            reports.append(progress)

        await call(client, "test_tool_with_progress", progress=on_progress)
        await eventually(lambda: reports == [0, 50, 100], lambda: f"heard {reports}")
    with check("goes on after it has given a call up"):
        began = anyio.Event()

        async def begun(progress, total, message):
            began.set()

        given_up = getattr(client, "_request_id", None)  # that of the request which follows, in mcp 1.x
        async with anyio.create_task_group() as tasks:
            arguments = {"duration": 600, "steps": 1000}
            tasks.start_soon(call, client, "trigger-long-running-operation", arguments, begun)
            await began.wait()
            tasks.cancel_scope.cancel()
        if SDK == "v1":
            await cancel(client, given_up)
        await says(client, "echo", {"message": "still here"}, "still here")
    with check("hears that a resource has changed"):
        async with subscription(client, heard):
            await call(client, "test_trigger_resource_update")
            await eventually(lambda: WATCHED in heard, lambda: f"heard {heard}")


async def cancel(session, request):
    """mcp 1.x tells nobody that it gave a request up; who wants that sends the notification."""
    from mcp import types

    params = types.CancelledNotificationParams(requestId=request, reason="given up")
    await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))


@contextlib.asynccontextmanager
async def subscription(client, heard):
    if MODE == "legacy":
        await client.subscribe_resource(WATCHED)
        yield
        return

    async def forward():
        async for event in listening:
            heard.append(event.uri)

    async with client.listen(resource_subscriptions=[WATCHED]) as listening, anyio.create_task_group() as tasks:
        tasks.start_soon(forward)
        yield
        tasks.cancel_scope.cancel()


async def at_the_box(client):
    with check("runs a command"):
        await says(client, "system_shell", {"command": 'echo "out $((6 * 7))"; echo err >&2'}, "out 42")


async def main():
    # The process's own words are not for the checks; they stay beside the script.
    with open("transports.err", "a") as errlog, anyio.fail_after(BOUND):
        # Whoever closes a pipe waits for the process's end: to be done is to have seen it.
        with check("connects to the fixtures and closes"):
            heard = []
            async with connect(["everything", "stdio"], heard, errlog) as client:
                await at_the_fixtures(client, heard)
        if KIND != "sse":
            with check("connects to the box and closes"):
                async with connect(TRIAL, [], errlog) as client:
                    await at_the_box(client)


async def eventually(holds, why):
    late = anyio.current_time() + EVENT
    while not holds():
        expect(anyio.current_time() < late, why())
        await anyio.sleep(0.05)


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


@contextlib.contextmanager
def check(what):
    global failed
    try:
        yield
        print(f"ok {NAME} {what}", flush=True)
    except Exception as error:
        failed = True
        print(f"not ok {NAME} {what}: {' '.join(repr(error).split())}", flush=True)


with check("comes to its end"):
    anyio.run(main)
sys.exit(failed)
