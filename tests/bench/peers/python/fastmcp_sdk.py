"""fastmcp on uvicorn with uvloop, JSON replies without sessions: `fastmcp_sdk.py PORT`"""

import asyncio
import sys

import uvicorn
from fastmcp import FastMCP

server = FastMCP("example")


@server.tool
async def echo(text: str) -> str:
    """Say the same"""
    return text


@server.tool
async def shell(command: str) -> str:
    """Run a command with /bin/sh and say what it printed"""
    pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", command, stdin=none, stdout=pipe)
    text, _ = await process.communicate()
    return text.decode()


if __name__ == "__main__":
    app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False,
                timeout_keep_alive=60)
