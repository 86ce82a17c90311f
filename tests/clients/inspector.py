"""The MCP Inspector's command line as a client: `inspector.py legacy`, `auto` or `modern`, set in its config file.

It cannot subscribe, and ends with its call: nothing to cancel, nothing to keep. In its modern era it opens
subscriptions/listen while it connects.
"""

import json
import sys
import tempfile

import checks
import programs

ERA = sys.argv[1]
REVISION = {"legacy": "2025-11-25", "auto": "2026-07-28", "modern": "2026-07-28"}


class Inspector(checks.Client):
    def __init__(self, server):
        entry = {"type": "streamable-http", "url": server.url, "protocolEra": ERA, "headers": server.headers}
        self.config = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump({"mcpServers": {"gatewren": entry}}, self.config)
        self.config.flush()

    async def tools(self):
        revision = (await self.inspector("initialize"))["protocolVersion"]
        checks.expect(revision == REVISION[ERA], f"it speaks {revision}")
        return [tool["name"] for tool in (await self.inspector("tools/list"))["tools"]]

    async def call(self, name, arguments):
        words = ["--tool-name", name, "--tool-args-json", json.dumps(arguments)]
        return programs.result(await self.inspector("tools/call", *words))

    async def read(self, uri):
        return (await self.inspector("resources/read", "--uri", uri))["contents"][0]["text"]

    async def inspector(self, method, *words):
        where = ["--config", self.config.name, "--server", "gatewren", "--connect-timeout", "60000"]
        command = ["node_modules/.bin/mcp-inspector", "--cli", *where, "--method", method, *words, "--format", "json"]
        return (await programs.output(*command, environment={"MCP_INSPECTOR_SECRET_STORE": "memory"}))["result"]


checks.run(programs.connecting(Inspector))
