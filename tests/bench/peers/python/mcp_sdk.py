"""mcp (MCPServer) on uvicorn with uvloop, JSON replies without sessions: `mcp_sdk.py PORT`"""

import asyncio
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

URI = "bench://document"
server = MCPServer("example", log_level="WARNING")


@server.tool()
async def echo(text: str) -> str:
    """Say the same"""
    return text


@server.tool()
async def shell(command: str) -> str:
    """Run a command with /bin/sh and say what it printed"""
    pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", command, stdin=none, stdout=pipe)
    text, _ = await process.communicate()
    return text.decode()


@server.tool()
async def touch(context: Context) -> str:
    """Say to all who listen that the document has changed"""
    await context.notify_resource_updated(URI)
    return "told"


@server.resource(URI)
def document() -> str:
    return "unchanged"


if __name__ == "__main__":
    app = server.streamable_http_app(json_response=True, stateless_http=True, max_sessions=None)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False,
                timeout_keep_alive=60)
