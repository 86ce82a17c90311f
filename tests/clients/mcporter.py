"""mcporter's command line as a client.

It cannot subscribe, and ends with its call: nothing to cancel, nothing to keep.
"""

import json
import tempfile

import checks
import programs


# Its own bounds in milliseconds, as a busy machine needs them.
PATIENCE = {"MCPORTER_LIST_TIMEOUT": "100000", "MCPORTER_CALL_TIMEOUT": "100000"}


class McPorter(checks.Client):
    def __init__(self, server):
        entry = {"baseUrl": server.url, "headers": server.headers}
        self.config = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump({"mcpServers": {"gatewren": entry}}, self.config)
        self.config.flush()

    async def tools(self):
        return [tool["name"] for tool in (await self.mcporter("list", "gatewren", "--json"))["tools"]]

    async def call(self, name, arguments):
        words = ["--args", json.dumps(arguments), "--output", "json"]
        answer = await self.mcporter("call", f"gatewren.{name}", *words)
        # It prints the whole result of a tool's error, and only what was asked for otherwise.
        return programs.result(answer) if "isError" in answer else checks.Result(False, json.dumps(answer))

    async def read(self, uri):
        return json.dumps(await self.mcporter("resource", "gatewren", uri, "--json"))

    async def mcporter(self, *words):
        command = ["node_modules/.bin/mcporter", "--config", self.config.name, *words]
        return await programs.output(*command, environment=PATIENCE)


checks.run(programs.connecting(McPorter))
