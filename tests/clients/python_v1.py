"""The Python SDK of the stateful era (mcp 1.x) as a client: session, GET stream, DELETE."""

import contextlib

import anyio
import httpx
from mcp import types
from mcp.client import streamable_http
from mcp.client.session import ClientSession

import checks


class PythonV1(checks.Library):
    cancels = stays = True
    hears_later = checks.BY_ITSELF
    comes_back = True

    def __init__(self, session, session_id, ears):
        self.session, self.session_id, self.ears = session, session_id, ears

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments, progress=None):
        request = self.session._request_id  # that of the request which follows
        try:
            result = await self.session.call_tool(name, arguments, progress_callback=progress)
        except anyio.get_cancelled_exc_class():
            # The SDK tells nobody that it gave a request up; who wants that sends the notification.
            with anyio.CancelScope(shield=True):
                await self.session.send_notification(cancelled(request))
            raise
        return checks.Result(result.isError, result.content[0].text)

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    @contextlib.asynccontextmanager
    async def subscribe(self, uris, heard):
        self.ears.append(heard)
        for uri in uris:
            await self.session.subscribe_resource(uri)
        yield


def cancelled(request):
    params = types.CancelledNotificationParams(requestId=request, reason="given up")
    return types.ClientNotification(types.CancelledNotification(params=params))


@contextlib.asynccontextmanager
async def connect(server, asked):
    ears = []

    async def on_message(message):
        notice = getattr(message, "root", None)
        if isinstance(notice, types.ResourceUpdatedNotification):
            for heard in ears:
                heard(str(notice.params.uri))

    # No read time-out: a stream of notices is silent for as long as nothing changes.
    timeout = httpx.Timeout(30, read=None)
    async with httpx.AsyncClient(headers=server.headers, verify=checks.AUTHORITIES, timeout=timeout) as http:
        async with streamable_http.streamable_http_client(server.url, http_client=http) as (reader, writer, session_id):
            async with ClientSession(reader, writer, message_handler=on_message, **answers(asked)) as session:
                await session.initialize()
                checks.expect(session_id(), "no Mcp-Session-Id")
                yield PythonV1(session, session_id, ears)


def answers(asked):
    """The callbacks with which the SDK answers the server; without them it declares that it cannot."""
    if not asked:
        return {}

    async def elicited(context, params):
        return types.ElicitResult(action="accept", content=asked.elicited(params.message, params.requestedSchema))

    async def sampled(context, params):
        text = asked.sampled(params.messages[0].content.text)
        content = types.TextContent(type="text", text=text)
        return types.CreateMessageResult(role="assistant", model="none", content=content)

    return {"elicitation_callback": elicited, "sampling_callback": sampled}


checks.run(connect, asks=True)
