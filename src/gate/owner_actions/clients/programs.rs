//! Programs and libraries.

use super::profile::{BRACES, CaSetting, ClientProfile, SHELL, SnippetFormat, TokenSource, Trust};

pub(super) const CLIENTS: [ClientProfile; 3] = [
    // https://github.com/geelen/mcp-remote
    ClientProfile {
        word: "mcp-remote",
        title: "mcp-remote",
        place: "a terminal, or any client that starts stdio servers",
        form: SnippetFormat::Shell,
        // The quotes prevent expansion by the shell: mcp-remote itself inserts the variable, so no process list shows
        // the token.
        text: "npx -y mcp-remote {url} --transport http-only --header 'Authorization:Bearer {token}'",
        source: BRACES,
        check: ("it prints Proxy established successfully, and waits", ""),
        ..ClientProfile::BASE
    },
    // https://gofastmcp.com/clients/client
    ClientProfile {
        word: "fastmcp",
        title: "FastMCP",
        place: "a Python program",
        form: SnippetFormat::Python,
        text: r#"import asyncio

from fastmcp import Client

client = Client("{url}", auth="{token}")


async def main():
    async with client:
        for tool in await client.list_tools():
            print(tool.name)


asyncio.run(main())"#,
        source: TokenSource::Variable(&[
            ("import asyncio\n", "import asyncio\nimport os\n"),
            ("\"{token}\"", "os.environ[\"GATEWREN_TOKEN\"]"),
        ]),
        trust: Trust::Shell(CaSetting::PYTHON),
        check: ("it prints the names of the tools", ""),
        ..ClientProfile::BASE
    },
    ClientProfile {
        word: "curl",
        title: "curl",
        form: SnippetFormat::Shell,
        text: "curl --cacert {ca} {url} \\\n  \
            -H \"Authorization: Bearer {token}\" \\\n  \
            -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\\n  \
            -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\\n  \
            -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\
            \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
            \"io.modelcontextprotocol/clientCapabilities\":{}}}}'",
        authority_part: "--cacert {ca} ",
        source: SHELL,
        trust: Trust::InText,
        check: ("it prints JSON with \"tools\"", ""),
        ..ClientProfile::BASE
    },
];
