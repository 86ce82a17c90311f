"""Reads /metrics as a Prometheus does: `metrics.py ADDRESS_FILE DIRECTORY`, where `gatewren try --json` has said where."""

import json
import math
import os
import pathlib
import ssl
import subprocess
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

ADDRESS = json.loads(pathlib.Path(sys.argv[1]).read_text().splitlines()[0])
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "whoami",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


def ask(path, token, body=None, **headers):
    context = ssl.create_default_context(cafile=ADDRESS["ca"])
    headers = {"Authorization": f"Bearer {token}", **{name.replace("_", "-"): text for name, text in headers.items()}}
    request = urllib.request.Request(ADDRESS["url"].removesuffix("/mcp") + path, body, headers)
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return answer.headers["content-type"], answer.read().decode()


def main():
    command = [os.environ["GATEWREN_BIN"], "metrics", "token", "--json", "--dir", sys.argv[2]]
    token = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["token"]
    kinds = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
    era = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "whoami"}
    ask("/mcp", ADDRESS["token"], json.dumps(CALL).encode(), **kinds, **era)
    kind, page = ask("/metrics", token)
    assert kind.startswith("text/plain; version=0.0.4"), kind
    families = {family.name: family for family in text_string_to_metric_families(page)}
    for family in families.values():
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        assert family.name.startswith("gatewren_") and family.samples or family.type == "counter", family
    [called] = families["gatewren_tool_calls"].samples
    assert (called.labels["tool"], called.labels["outcome"], called.value) == ("whoami", "ok", 1.0), called
    times = families["gatewren_tool_seconds"].samples
    buckets = [(float(one.labels["le"]), one.value) for one in times if one.name.endswith("_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] == (math.inf, 1.0), buckets
    assert [one.value for one in times if one.name.endswith("_count")] == [1.0], times
    print(f"ok metrics are read by prometheus_client: {len(families)} families")


try:
    main()
except (AssertionError, KeyError, ValueError, OSError, subprocess.SubprocessError) as error:
    print(f"not ok metrics are read by prometheus_client: {type(error).__name__}: {error}"[:900])
    sys.exit(1)
