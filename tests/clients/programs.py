"""Clients that are programs of the command line: one process for each thing done, its answer on standard output."""

import contextlib
import json
import os
import subprocess

import anyio

import checks

BOUND = 120  # seconds for one process


async def output(*command, environment=None):
    """What a program printed, parsed as JSON if it is that; a status other than 0 is for the caller to judge."""
    with anyio.fail_after(BOUND):
        env = {**os.environ, **(environment or {})}
        done = await anyio.run_process(command, check=False, env=env, stdin=subprocess.DEVNULL)
    if not done.stdout.strip():
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return json.loads(done.stdout)


def connecting(client):
    """A program connects anew each time: its first answer shows that it can."""

    @contextlib.asynccontextmanager
    async def connect(server, asked):
        made = client(server)
        await made.tools()
        yield made

    return connect


def result(answer):
    """A tools/call result as these programs print it, each with a spelling of its own."""
    is_error = answer.get("isError", answer.get("is_error", False))
    return checks.Result(is_error, answer["content"][0]["text"])
