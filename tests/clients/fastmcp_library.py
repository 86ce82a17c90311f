"""fastmcp as a client: `fastmcp_library.py auto`, its default, or `legacy` for the stateful era.

It has nothing for subscriptions, in neither era.
"""

import contextlib
import sys

from fastmcp.client import Client
from fastmcp.client.transports import StreamableHttpTransport

import checks

MODE = sys.argv[1]


class FastMcp(checks.Library):
    cancels = stays = True

    def __init__(self, client):
        self.client = client
        if MODE == "legacy":
            self.session_id = client.transport.get_session_id

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_handler=progress, raise_on_error=False)
        return checks.Result(result.is_error, result.content[0].text)

    async def read(self, uri):
        return (await self.client.read_resource(uri))[0].text


@contextlib.asynccontextmanager
async def connect(server, asked):
    transport = StreamableHttpTransport(server.url, auth=server.token, verify=checks.AUTHORITIES)
    async with Client(transport, mode=MODE, **answers(asked)) as client:
        version = client.session.protocol_version
        checks.expect((version < "2026") == (MODE == "legacy"), f"the version is {version}")
        yield FastMcp(client)


def answers(asked):
    """The handlers with which fastmcp answers the server; without them it declares that it cannot."""
    if not asked:
        return {}

    async def elicited(message, response_type, params, context):
        return asked.elicited(message, params.requested_schema)

    async def sampled(messages, params, context):
        return asked.sampled(messages[0].content.text)

    return {"elicitation_handler": elicited, "sampling_handler": sampled}


checks.run(connect, asks=True)
