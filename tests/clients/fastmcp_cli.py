"""fastmcp's command line as a client.

It cannot subscribe, and ends with its call: nothing to cancel, nothing to keep.
"""

import json
import pathlib
import sys

import checks
import programs

FASTMCP = str(pathlib.Path(sys.executable).parent / "fastmcp")


class FastMcpCli(checks.Client):
    def __init__(self, server):
        self.server = server

    async def tools(self):
        return [tool["name"] for tool in (await self.fastmcp("list"))["tools"]]

    async def call(self, name, arguments):
        return programs.result(await self.fastmcp("call", name, "--input-json", json.dumps(arguments)))

    async def read(self, uri):
        return (await self.fastmcp("call", uri))[0]["text"]

    async def fastmcp(self, verb, *words):
        command = [FASTMCP, verb, self.server.url, *words, "--auth", self.server.token, "--json"]
        return await programs.output(*command, environment={"SSL_CERT_FILE": checks.AUTHORITIES})


checks.run(programs.connecting(FastMcpCli))
