"""The Python SDK (mcp 2.x) as a client: `python_v2.py 2026-07-28`, `auto` (asks with server/discover first), or
`legacy` for the stateful era."""

import contextlib
import ssl
import sys
import warnings

import anyio
import httpx2
import mcp_types
from mcp.client import streamable_http
from mcp.client.client import Client
from mcp.client.subscriptions import SubscriptionLost

import checks

MODE = sys.argv[1]
STATEFUL = MODE == "legacy"
# In the stateful era the SDK calls resources/subscribe deprecated, and is right.
warnings.simplefilter("ignore")
# By itself it gives up after two tries, which a server on a busy machine can miss.
streamable_http.MAX_RECONNECTION_ATTEMPTS = 60


class PythonV2(checks.Library):
    cancels = stays = True
    hears_later = checks.BY_ITSELF if STATEFUL else checks.SUBSCRIBING_AGAIN

    def __init__(self, client, ids, ears):
        self.client, self.ids, self.ears = client, ids, ears
        if STATEFUL:
            self.session_id = lambda: self.ids[-1]

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        return checks.Result(result.is_error, result.content[0].text)

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    def subscribe(self, uris, heard):
        return self.on_session(uris, heard) if STATEFUL else self.on_listen(uris, heard)

    @contextlib.asynccontextmanager
    async def on_session(self, uris, heard):
        """Notices come on the session's GET stream, to the client's message handler."""
        self.ears.append(heard)
        for uri in uris:
            await self.client.subscribe_resource(uri)
        yield

    @contextlib.asynccontextmanager
    async def on_listen(self, uris, heard):
        """Notices come on the stream of subscriptions/listen, which ends with the server."""

        async def forward():
            with contextlib.suppress(SubscriptionLost):
                async for event in subscription:
                    heard(event.uri)

        async with self.client.listen(resource_subscriptions=uris) as subscription, anyio.create_task_group() as tasks:
            honoured = subscription.honored.resource_subscriptions or []
            checks.expect(len(honoured) == len(uris), f"honoured only {honoured}")
            tasks.start_soon(forward)
            yield
            tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def connect(server, asked):
    ids, ears = [], []

    async def see_session(request):
        ids.append(request.headers.get("mcp-session-id"))

    async def on_message(message):
        if getattr(message, "method", None) == "notifications/resources/updated":
            for heard in ears:
                heard(str(message.params.uri))

    trust = ssl.create_default_context(cafile=checks.AUTHORITIES)
    # No read time-out: a stream of notices is silent for as long as nothing changes.
    timeout = httpx2.Timeout(30, read=None)
    hooks = {"request": [see_session]}
    async with httpx2.AsyncClient(headers=server.headers, verify=trust, timeout=timeout, event_hooks=hooks) as http:
        transport = streamable_http.streamable_http_client(server.url, http_client=http)
        async with Client(transport, mode=MODE, message_handler=on_message, **answers(asked)) as client:
            version = client.protocol_version
            checks.expect((version < "2026") == STATEFUL, f"the version is {version}")
            yield PythonV2(client, ids, ears)


def answers(asked):
    """The callbacks with which the SDK answers the server; without them it declares that it cannot."""
    if not asked:
        return {}

    async def elicited(context, params):
        content = asked.elicited(params.message, params.requested_schema)
        return mcp_types.ElicitResult(action="accept", content=content)

    async def sampled(context, params):
        text = asked.sampled(params.messages[0].content.text)
        content = mcp_types.TextContent(type="text", text=text)
        return mcp_types.CreateMessageResult(role="assistant", model="none", content=content)

    return {"elicitation_callback": elicited, "sampling_callback": sampled}


checks.run(connect, asks=True)
