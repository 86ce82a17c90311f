"""One client, told by `gatewren client-config` what it is to be told, and run as a person would run it.

    config.py CLIENT ADDRESS_FILE FOLDER

ADDRESS_FILE is what `gatewren try --json` has said, FOLDER where npm has installed the client. Started by
tests/clients/config in a folder whose node_modules has the other programs.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import model

NAME, ADDRESS, FOLDER = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text().splitlines()[0]), sys.argv[3]
STATE = pathlib.Path(sys.argv[2]).parent / "state"
TOKEN = ADDRESS["token"]
BOUND = 90  # seconds for one program

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "gatewren-tests", "version": "1"},
    },
}


class Fault(Exception):
    """What is wrong, in words for the line of a check."""


def expect(truth, words):
    if not truth:
        raise Fault(" ".join(str(words).split())[-600:])


HOST = ADDRESS["url"].removeprefix("https://").removesuffix("/mcp")


def told(*options, host=HOST):
    """The text for the client, and the steps around it."""
    command = [os.environ["GATEWREN_BIN"], "client-config", NAME, "--dir", STATE, "--host", host]
    done = subprocess.run([*command, "--authority", ADDRESS["ca"], *options], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    return done.stdout, done.stderr


def steps(host=HOST):
    """The numbered steps, as data."""
    return json.loads(told("--json", host=host)[0])["steps"]


def edited(home, path, before, host=HOST):
    """The home of another person, whose file at this path was edited with --write."""
    home = pathlib.Path(home, "other")
    file = home / path
    file.parent.mkdir(parents=True)
    file.write_text(before)
    command = [os.environ["GATEWREN_BIN"], "client-config", NAME, "--dir", STATE, "--host", host, "--write"]
    with token_file() as token:
        printed = run([*command, "--token-file", token], environment(str(home)))
    expect(f"Changed {file}; the file before is" in printed, printed)
    return str(home)


@contextlib.contextmanager
def token_file():
    with tempfile.NamedTemporaryFile("w", suffix=".token") as file:
        file.write(TOKEN + "\n")
        file.flush()
        yield file.name


def environment(home, **more):
    """Of a person who has just come: nothing is there but what the client needs to be found."""
    path = [f"{FOLDER}/node_modules/.bin", f"{os.getcwd()}/node_modules/.bin", os.environ["PATH"]]
    kept = {"PATH": ":".join(path), "HOME": home, "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb"}
    return {**kept, **{name: value for name, value in more.items() if value is not None}}


def run(command, env, **more):
    """What a program prints; it must go well."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=BOUND, **more)
    said = done.stdout + done.stderr
    expect(done.returncode == 0, f"{command} ended with {done.returncode}: {said}")
    return said


def speak(command, env):
    """Starts a server on standard input and output, and has it say who it is; nobody sees the token meanwhile."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as bridge:
        try:
            bridge.stdin.write(json.dumps(INITIALIZE) + "\n")
            bridge.stdin.flush()
            answer = json.loads(bridge.stdout.readline())
            seen = [line for line in command_lines() if TOKEN.encode() in line]
        finally:
            bridge.terminate()
    expect(answer["result"]["serverInfo"]["name"] == "gatewren", answer)
    return seen


def command_lines():
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            yield (process / "cmdline").read_bytes()


def curl(home):
    for options, variable in (([], TOKEN), (["--token-file"], None)):
        with token_file() as file:
            text, _ = told(*options, *([file] if options else []))
        said = run(["bash", "-c", text], environment(home, GATEWREN_TOKEN=variable))
        expect('"tools":[' in said, said)


def mcp_remote(home):
    text, words = told()
    expect("read -rs GATEWREN_TOKEN" in words, words)
    env = environment(home, GATEWREN_TOKEN=TOKEN, NODE_EXTRA_CA_CERTS=ADDRESS["ca"])
    seen = speak(["bash", "-c", text], env)
    expect(not seen, f"the token stands in a process list: {len(seen)} times")


def claude_desktop(home):
    text, _ = told()
    expect("Bearer GATEWREN_TOKEN" in text, text)
    with token_file() as file:
        text, _ = told("--token-file", file)
    entry = json.loads(text)["mcpServers"]["gatewren"]
    # As it starts what stands there: with that environment and little of its own.
    seen = speak([entry["command"], *entry["args"]], {**environment(home), **entry["env"]})
    expect(not seen, "the token stands in a process list")


def cursor(home):
    """Others read the same file: mcporter as it is, Inspector's command line too."""
    text, _ = told()
    headers = json.loads(text)["mcpServers"]["gatewren"]["headers"]
    expect(headers == {"Authorization": "Bearer ${env:GATEWREN_TOKEN}"}, headers)
    with token_file() as file:
        text, _ = told("--token-file", file)
    config = pathlib.Path(home, "mcp.json")
    config.write_text(text)
    env = environment(home, NODE_EXTRA_CA_CERTS=ADDRESS["ca"], MCPORTER_LIST_TIMEOUT="60000")
    listed = run(["mcporter", "--config", config, "list", "gatewren", "--json"], env)
    expect('"whoami"' in listed, listed)
    # It wants to be told the kind, which Cursor finds out.
    entry = {"type": "streamable-http", **json.loads(text)["mcpServers"]["gatewren"]}
    config.write_text(json.dumps({"mcpServers": {"gatewren": entry}}))
    env["MCP_INSPECTOR_SECRET_STORE"] = "memory"
    where = ["--config", config, "--server", "gatewren"]
    listed = run(["mcp-inspector", "--cli", *where, "--method", "tools/list", "--format", "json"], env)
    expect('"whoami"' in listed, listed)


def vscode(home):
    """There is no VS Code here: the file is looked at by what its manual says of it."""
    text, words = told()
    config = json.loads(text)
    expect(set(config) == {"inputs", "servers"}, config)
    [asked] = config["inputs"]
    expect(asked["type"] == "promptString" and asked["password"] is True and asked["id"] and asked["description"], asked)
    server = config["servers"]["gatewren"]
    expect(set(server) == {"type", "url", "headers"} and server["type"] == "http", server)
    expect(server["headers"]["Authorization"] == "Bearer ${input:%s}" % asked["id"], server)
    expect("asks for it once" in words, words)


def fastmcp(home):
    for options, variable in (([], TOKEN), (["--token-file"], None)):
        with token_file() as file:
            text, _ = told(*options, *([file] if options else []))
        env = environment(home, GATEWREN_TOKEN=variable, SSL_CERT_FILE=ADDRESS["ca"])
        said = run([sys.executable, "-c", text], env)
        expect("whoami" in said.split(), said)


def claude_code(home):
    """It stands on BoringSSL, which takes no address from an authority that is bounded to addresses."""
    _, words = told()
    expect("cannot connect by address, so the steps use the name" in words and "\n   127.0.0.1 " in words, words)
    host = HOST.replace("127.0.0.1", "localhost")
    text, words = told(host=host)
    expect("cannot connect by address" not in words, words)
    # The trust is in its settings, as the steps say, and in no variable.
    settings = next(step["code"] for step in steps(host) if "settings.json" in step["words"])
    pathlib.Path(home, ".claude").mkdir()
    pathlib.Path(home, ".claude/settings.json").write_text(settings)
    env = environment(home, GATEWREN_TOKEN=TOKEN, DISABLE_AUTOUPDATER="1")
    run(["bash", "-c", text], env)
    said = run(["claude", "mcp", "get", "gatewren"], env)
    expect("Connected" in said and host in said and "User" in said, said)
    expect("Connected" in run(["claude", "mcp", "list"], env), "it is not listed as connected")
    home = edited(home, ".claude.json", '{"mcpServers": {"other": {"type": "http", "url": "https://o/"}}}', host)
    said = run(["claude", "mcp", "get", "gatewren"], environment(home, DISABLE_AUTOUPDATER="1"))
    expect("Connected" in said and host in said and "User" in said, said)


def gemini(home):
    text, _ = told()
    env = environment(home, GATEWREN_TOKEN=TOKEN, NODE_EXTRA_CA_CERTS=ADDRESS["ca"], GEMINI_CLI_TRUST_WORKSPACE="true")
    run(["bash", "-c", text], env)
    settings = json.loads(pathlib.Path(home, ".gemini/settings.json").read_text())
    entry = settings["mcpServers"]["gatewren"]
    expect(ADDRESS["url"] in entry.values() and entry["headers"]["Authorization"] == f"Bearer {TOKEN}", entry)
    said = run(["gemini", "mcp", "list"], env)
    expect("gatewren" in said and "Connected" in said, said)
    env["HOME"] = edited(home, ".gemini/settings.json", "{\n  // mine\n  \"ui\": { \"hideTips\": true }\n}\n")
    said = run(["gemini", "mcp", "list"], env)
    expect("gatewren" in said and "Connected" in said, said)


def asks_who_it_is(command, env):
    """A session of a client, in which its model asks for `whoami`: what the client prints has the server's answer."""
    said = run([*command, "Which agent are you?"], env, cwd=env["HOME"], stdin=subprocess.DEVNULL)
    expect('"agent":"agent_' in said and '"policy":"' in said, said)


def codex(home):
    """Its list does not ask the server; a session with a model of one's own does."""
    text, words = told()
    expect("CODEX_CA_CERTIFICATE=" in words, words)
    folder = pathlib.Path(home, ".codex")
    folder.mkdir()
    (folder / "config.toml").write_text(text)
    env = environment(home, GATEWREN_TOKEN=TOKEN)
    listed = json.loads(subprocess.run(["codex", "mcp", "list", "--json"], env=env, capture_output=True, text=True,
                                       timeout=BOUND, check=True).stdout)
    [entry] = [one for one in listed if one["name"] == "gatewren"]
    transport = entry["transport"]
    expect(transport["type"] == "streamable_http" and transport["url"] == ADDRESS["url"], entry)
    expect(transport["bearer_token_env_var"] == "GATEWREN_TOKEN", entry)
    expect("gatewren" in run(["codex", "mcp", "get", "gatewren"], env), "it does not know it")
    session = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    with model.served() as api:
        own = {"name": "own", "base_url": api, "wire_api": "responses"}
        chosen = [f"model_providers.own.{key}={json.dumps(value)}" for key, value in own.items()]
        for option in ("model=m", "model_provider=own", *chosen):
            session += ["-c", option]
        asks_who_it_is(session, {**env, "CODEX_CA_CERTIFICATE": ADDRESS["ca"]})
    env["HOME"] = edited(home, ".codex/config.toml", 'model = "m" # mine\n\n[mcp_servers.other]\nurl = "https://o/"\n')
    said = run(["codex", "mcp", "get", "gatewren"], env)
    expect(ADDRESS["url"] in said and "GATEWREN_TOKEN" in said, said)
    expect("https://o/" in run(["codex", "mcp", "get", "other"], env), "it does not know the other")


def opencode(home):
    """It is made with Bun, whose TLS library takes no address from an authority that is limited to addresses."""
    _, words = told()
    expect("cannot connect by address, so the steps use the name" in words and "\n   127.0.0.1 " in words, words)
    host = HOST.replace("127.0.0.1", "localhost")
    text, _ = told(host=host)
    config = pathlib.Path(home, ".config/opencode/opencode.json")
    config.parent.mkdir(parents=True)
    config.write_text(text)
    env = environment(home, GATEWREN_TOKEN=TOKEN, NODE_EXTRA_CA_CERTS=ADDRESS["ca"])
    check = steps(host)[-1]["code"]
    said = run(check.split(), env)
    expect("gatewren" in said and "connected" in said and "failed" not in said, said)
    before = "{\n  // mine\n  \"autoupdate\": false,\n}\n"
    env = environment(edited(home, ".config/opencode/opencode.json", before, host), NODE_EXTRA_CA_CERTS=ADDRESS["ca"])
    said = run(check.split(), env)
    expect("gatewren" in said and "connected" in said and "failed" not in said, said)


def copilot(home):
    """Without an account it starts a session only with a model of one's own."""
    text, _ = told()
    env = environment(home, GATEWREN_TOKEN=TOKEN, NODE_EXTRA_CA_CERTS=ADDRESS["ca"])
    run(["bash", "-c", text], env)
    said = run(["copilot", "mcp", "get", "gatewren"], env)
    expect("Type: http" in said and ADDRESS["url"] in said and "* (all)" in said, said)
    written = json.loads(pathlib.Path(home, ".copilot/mcp-config.json").read_text())
    headers = written["mcpServers"]["gatewren"]["headers"]
    expect(headers == {"Authorization": f"Bearer {TOKEN}"}, headers)
    env["HOME"] = edited(home, ".copilot/mcp-config.json", "{}")
    said = run(["copilot", "mcp", "get", "gatewren"], env)
    expect("Type: http" in said and ADDRESS["url"] in said and "* (all)" in said, said)
    with model.served() as api:
        own = {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": api, "COPILOT_MODEL": "m"}
        for who in (home, env["HOME"]):
            asks_who_it_is(["copilot", "--allow-all-tools", "-p"], {**env, **own, "HOME": who})


LIBRECHAT = """
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(process.argv[2] + "/");
const { configSchema } = require("librechat-data-provider");
const file = require("yaml").parse(readFileSync(process.argv[3], "utf8"));
const read = configSchema.strict().safeParse({ version: "1.3.0", ...file });
if (!read.success) throw new Error(JSON.stringify(read.error.issues));
console.log(JSON.stringify(read.data));
"""


def librechat(home):
    """Its own schema reads the file, with the variable filled in as it does at its start."""
    text, _ = told()
    config, script = pathlib.Path(home, "librechat.yaml"), pathlib.Path(home, "read.mjs")
    config.write_text(text)
    script.write_text(LIBRECHAT)
    env = environment(home, GATEWREN_TOKEN=TOKEN)
    read = json.loads(run(["node", script, FOLDER, config], env).splitlines()[-1])
    server = read["mcpServers"]["gatewren"]
    expect(server["type"] == "streamable-http" and server["url"] == ADDRESS["url"], server)
    expect(TOKEN in server["headers"]["Authorization"] or "GATEWREN_TOKEN" in server["headers"]["Authorization"], server)
    expect(read["mcpSettings"]["allowedAddresses"] == [HOST], read)


def main():
    client = globals()[NAME.replace("-", "_")]
    try:
        with tempfile.TemporaryDirectory(prefix="gatewren-home-") as home:
            client(home)
    except (Fault, subprocess.SubprocessError, KeyError, ValueError, OSError) as error:
        words = " ".join(f"{type(error).__name__}: {error}".replace(TOKEN, "TOKEN").split())
        print(f"not ok config {NAME}: {words[-900:]}")
        return 1
    print(f"ok config {NAME}")
    return 0


sys.exit(main())
